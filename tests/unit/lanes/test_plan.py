"""Every test runs in exactly one lane, on the servers that it is about."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from setl_drills.world import SITES
from tests.families import BETWEEN, MIXED, ONCE, Pair, pairs_of, suits
from tests.lanes.__main__ import _width
from tests.lanes.plan import LANES, QUICK, lane_of
from tests.lanes.recording import lane_of_item

ROOT = Path(__file__).parents[3]
FILES = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py"))
ALONE = set[str]()  # what needs the machine to itself


def is_in(path, positions):
    return any(path == given or path.startswith(f"{given}/") for given in positions)


def looks_into(path):
    return {
        lane.name for lane in LANES if is_in(path, lane.paths) and not is_in(path, lane.without)
    }


def test_the_lane_of_a_test_looks_into_its_file():
    assert len(FILES) > len(ALONE)
    for path in set(FILES) - ALONE:
        assert {lane_of(path, pair) for pair in (None, *Pair)} <= looks_into(path), path


@pytest.mark.parametrize("sites", SITES)
def test_every_drill_has_a_lane_that_looks_for_it(sites):
    path = "tests/drills/test_drills.py"
    assert lane_of(path, sites=sites) in looks_into(path)


def test_each_pair_is_of_two_known_families():
    known = {"mariadb", "mysql"}
    assert all({pair.a, pair.b} <= known for pair in Pair if pair is not Pair.GIVEN)
    assert len({(pair.a, pair.b) for pair in Pair}) == len(Pair)


def test_a_lane_uses_one_family_of_servers_as_long_as_a_test_is_not_about_two():
    path = "tests/integration/targets/test_pipeline_mysql.py"
    assert len({lane_of(path, pair) for pair in (Pair.MARIADB, Pair.MYSQL)}) == 2


def test_what_is_said_of_files_is_said_of_files_that_there_are():
    of_lanes = [path for lane in LANES for path in (*lane.paths, *lane.without)]
    for path in (*ONCE, *MIXED, *of_lanes):
        assert (ROOT / path).exists(), path
    assert all(ONCE.values())
    assert not MIXED & set(ONCE)


def test_what_talks_to_a_database_runs_on_both_families_unless_it_is_said_why_not():
    assert pairs_of("tests/contract/test_source.py") == (Pair.MARIADB, Pair.MYSQL)
    assert pairs_of(next(iter(ONCE))) == (Pair.MARIADB,)
    assert set(pairs_of(next(iter(MIXED)))) == set(Pair) - {Pair.GIVEN}
    assert pairs_of("tests/contract/test_source.py", given=True) == (Pair.GIVEN,)


def test_a_test_about_one_family_runs_where_both_servers_are_of_it():
    assert [pair for pair in Pair if suits(pair, ["mysql"])] == [Pair.MYSQL, Pair.GIVEN]
    assert all(suits(pair, []) for pair in Pair)
    assert [pair for pair in Pair if not suits(pair, [], one=True)] == list(BETWEEN)


def test_a_fixture_of_a_unit_test_may_have_the_name_of_a_drills_world():
    item = SimpleNamespace(nodeid="tests/unit/relay/test_x.py::test_y", fixturenames=["world"])
    assert lane_of_item(item) == "unit"


@pytest.mark.parametrize(
    ("cores", "gib", "width"),
    [(2, 64, 4), (2, 15, 4), (2, 7.6, 3), (2, 2, 2), (4, 16, 6), (8, 64, 16)],
)
def test_as_many_lanes_run_at_once_as_cores_and_memory_take(cores, gib, width):
    assert _width(cores, gib) == width


def test_quick_runs_all_tests_that_need_no_server():
    assert {lane_of(path) for path in FILES if path.startswith("tests/unit/")} == set(QUICK)
