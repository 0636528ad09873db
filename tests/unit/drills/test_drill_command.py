"""The command around the drills: what it lists, refuses, prints and exits with."""

import json
import signal

import pytest
from click.testing import CliRunner

from setl_drills import catalogue, world
from setl_drills.command import drill
from setl_drills.drill import Drill, DrillResult
from setl_embedded import EmbeddedError


class NoWorld:
    """Stands in for servers and nodes."""

    def __init__(self, folder, needs, **options):
        self.folder = folder
        self.processes = {}

    def __enter__(self):
        self.folder.mkdir(parents=True)
        return self

    def __exit__(self, *error):
        pass


def good(_, seed):
    return DrillResult("good", seed, outages=[1.0, seed * 2.0], redelivered=3)


def bad(_, seed):
    result = DrillResult("bad", seed, lost=1)
    if seed == 2:
        result.problems.append("a row is lost")
    return result


def raising(_, seed):
    raise RuntimeError("the servers did not start")


@pytest.fixture(autouse=True)
def drills(monkeypatch):
    found = {
        name: Drill(name, f"about {name}", "nothing", run)
        for name, run in (("good", good), ("bad", bad), ("raising", raising))
    }
    monkeypatch.setattr(catalogue, "CATALOGUE", found)
    monkeypatch.setattr("setl_drills.runner.World", NoWorld)


def invoke(*arguments):
    return CliRunner().invoke(drill, arguments)


def test_the_list():
    done = invoke("list")
    assert done.exit_code == 0
    assert all(f"about {name}" in done.output for name in ("good", "bad", "raising"))


def test_signals_do_afterwards_what_they_did_before(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    assert invoke("run", "good", "--folder", str(tmp_path / "f")).exit_code == 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_unknown_name_runs_nothing():
    done = invoke("run", "good", "nonsense")
    assert done.exit_code == 2
    assert "no drill is called nonsense" in done.output


def test_all_passed(tmp_path):
    record = tmp_path / "record.json"
    done = invoke(
        "run", "good", "--seeds", "3", "--json", str(record), "--folder", str(tmp_path / "f")
    )
    assert done.exit_code == 0
    (found,) = json.loads(record.read_text())["drills"]
    assert found["seeds"] == [1, 2, 3]
    assert (found["outage_p50"], found["outage_max"]) == (1.0, 6.0)
    assert found["redelivered"] == 9
    assert not (tmp_path / "f").exists(), "nothing is left of what passed"


def test_one_seed_that_failed_fails_the_whole_and_stores_its_folder(tmp_path):
    record = tmp_path / "record.json"
    done = invoke(
        "run", "all", "--seeds", "2", "--json", str(record), "--folder", str(tmp_path / "f")
    )
    assert done.exit_code == 1
    assert "seed 2: a row is lost" in done.output
    stored = tmp_path / "f" / "bad-2"
    assert json.loads((stored / "result.json").read_text())["problems"] == ["a row is lost"]
    assert not (tmp_path / "f" / "bad-1").exists()
    assert not json.loads(record.read_text())["passed"]


def test_a_drill_that_raises_has_failed_and_the_next_one_runs(tmp_path):
    done = invoke("run", "raising", "good", "--folder", str(tmp_path / "f"))
    assert done.exit_code == 1
    assert "RuntimeError: the servers did not start" in done.output
    assert "good" in done.output


def test_servers_that_do_not_start_are_said_to_and_their_logs_stay(tmp_path, monkeypatch):
    def fail(self):
        self.folder.mkdir(parents=True)
        raise EmbeddedError("mariadb-a does not answer")

    monkeypatch.setattr(NoWorld, "__enter__", fail)
    done = invoke("run", "good", "--folder", str(tmp_path / "f"))
    assert done.exit_code == 1
    assert "mariadb-a does not answer" in done.output
    assert str(tmp_path / "f") in done.output.replace("\n", "")
    assert (tmp_path / "f" / "world").exists()


def test_one_seed_can_be_repeated(tmp_path):
    done = invoke("run", "bad", "--seed", "2", "--folder", str(tmp_path / "f"))
    assert done.exit_code == 1
    assert invoke("run", "bad", "--seed", "1", "--folder", str(tmp_path / "g")).exit_code == 0


def test_needs_add_up():
    both = world.Needs(quorum=True, relays=True) | world.Needs(search=True)
    assert both == world.Needs(quorum=True, search=True, kafka=False, relays=True)
