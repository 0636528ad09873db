"""On a live cluster: only what is harmless, after confirmation, and by the setl command."""

import json

import pytest
from click.testing import CliRunner

from setl_drills import live
from setl_drills.command import drill


class Cluster:
    """Answers as the setl command does."""

    def __init__(self, redelivered=0, refuse=False, leader="n1"):
        self.asked = []
        self.redelivered, self.refuse, self.leader = redelivered, refuse, leader

    def __call__(self, *arguments):
        self.asked.append(arguments)
        if arguments[0] == "status":
            if arguments[1] != "shop":
                return 2, "", "Error: there is no channel 'nonsense'"
            rows = [{"pipeline": f"shop/{p}", "leader": self.leader} for p in ("ab", "ba")]
            return 0, json.dumps(rows), ""
        if self.refuse:
            return 1, json.dumps({"outcome": "refused", "reason": "no standby"}), "Error: no"
        outcome = {"from": "n1", "to": "n2", "seconds": 1.5, "redelivered": self.redelivered}
        return 0, json.dumps({"outcome": "done", **outcome}), ""


def rehearse(cluster):
    return live.switchover_live("shop", cluster, lambda _: None)


def test_every_pipeline_goes_over_and_back():
    cluster = Cluster()
    result = rehearse(cluster)
    assert result.passed
    assert result.outages == [1.5] * 4
    assert [a[1:-3] for a in cluster.asked if a[0] == "switchover"] == [
        ("shop/ab",), ("shop/ab", "--to", "n1"), ("shop/ba",), ("shop/ba", "--to", "n1"),
    ]  # fmt: skip


def test_redelivered_rows_are_a_failure():
    result = rehearse(Cluster(redelivered=3))
    assert not result.passed
    assert result.redelivered == 12


def test_a_refusal_is_a_failure_and_is_not_repeated():
    cluster = Cluster(refuse=True)
    result = rehearse(cluster)
    assert "no standby" in result.problems[0]
    assert sum(a[0] == "switchover" for a in cluster.asked) == 2


def test_without_a_leader_nothing_is_asked():
    cluster = Cluster(leader="")
    assert not rehearse(cluster).passed
    assert len(cluster.asked) == 1


@pytest.fixture
def cluster(monkeypatch):
    cluster = Cluster()
    monkeypatch.setattr(live, "setl_command", lambda environment: cluster)
    return cluster


def test_what_is_not_harmless_is_refused(cluster):
    done = CliRunner().invoke(drill, ["run", "kill-active", "--live", "shop", "--yes"])
    assert done.exit_code == 2
    assert cluster.asked == []


def test_without_consent_nothing_happens(cluster):
    done = CliRunner().invoke(drill, ["run", "switchover", "--live", "shop"], input="n\n")
    assert done.exit_code == 1
    assert [a[0] for a in cluster.asked] == ["status"]


def test_with_consent(cluster):
    done = CliRunner().invoke(drill, ["run", "switchover", "--live", "shop"], input="y\n")
    assert done.exit_code == 0
    assert "passed" in done.output


def test_an_unknown_channel(cluster):
    done = CliRunner().invoke(drill, ["run", "switchover", "--live", "nonsense", "--yes"])
    assert done.exit_code == 1
    assert "there is no channel" in done.output
