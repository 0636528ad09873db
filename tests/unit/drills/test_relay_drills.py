"""Which points crashes are rehearsed at, and where outages of a relay are read off."""

import re
from pathlib import Path

import pytest

import setl
from setl import failpoints
from setl_drills import relaying
from setl_drills.catalogue import CATALOGUE
from setl_drills.checkers import Advance
from setl_drills.drills import loading
from setl_drills.observing import Leadership


def points(prefix):
    return {name.removeprefix(prefix) for name in CATALOGUE if name.startswith(prefix)}


def test_every_point_has_a_crash():
    # Drills change no tables; schema_changes/test_schema_changes.py in tests/integration crashes at
    # these. Those of loads of tables are struck by load-dies and load-task-dies, those of tables
    # that are created by targets/test_target_creation.py.
    drilled = {p for p in failpoints.POINTS if not p.startswith(("ddl.", "tables.", "create."))}
    assert set(loading.POINTS) == {p for p in failpoints.POINTS if p.startswith("tables.")}
    assert points("crash-at-") | points("relay-crash-at-") == drilled


def test_relays_crash_at_all_points_that_they_pass():
    sources = [s for s in Path(setl.__file__).parent.rglob("*.py") if "relay" in str(s)]
    own = {
        point
        for source in sources
        for point in re.findall(r'failpoints\.reached\("([^"]+)"\)', source.read_text())
    }
    assert own
    assert own <= points("relay-crash-at-")


class DrillRun(relaying.RelayDrillRun):
    """One in which nothing happens but what a test says."""

    def __init__(self, first_applied, waiter):
        self.topics = {"c/relay": "topic"}
        self.statuses = self.marks = self._watch = self
        figures = {"first_applied_at": first_applied}
        self.known = {"c/relay": {7: Leadership(), 9: Leadership(figures=figures)}}
        self.advances = {}
        self.waiter = waiter

    def leaderships_of(self, key):
        return self.known[key]

    def since(self, key, moment):
        return [Advance(at, 0) for at in self.waiter if at >= moment]


@pytest.mark.parametrize(
    ("first_applied", "waiter", "expected"),
    [
        (None, [10.5, 17.0], None),  # the new leader has not applied anything
        (16.8, [10.5, 16.0], None),  # and when it has, it is not seen yet
        (16.8, [], None),
        (16.8, [9.0, 10.5, 17.0, 17.5], (7.0, 9)),  # 10.5 was on its way when the fault came
        (16.8, [10.1, 17.0, 18.0], (7.0, 9)),
    ],
)
def test_the_outage_ends_when_readers_see_rows_again(first_applied, waiter, expected):
    assert DrillRun(first_applied, waiter)._outage("c/relay", 10.0, 7) == expected
