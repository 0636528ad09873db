import logging
from types import SimpleNamespace
from typing import Any

import pytest

from setl.model.leadership import Leadership
from setl.node.leading.stall_watch import StallWatch
from setl.run.measured.pace import Stage
from setl.run.measured.progress import Progress
from setl.run.stalls.observer import Observed, Views
from tests.clocks import SetClock
from tests.unit.select.fakes import reads


class Run:
    """A run without anything to ask."""

    def __init__(self, clock, name="orders"):
        self.progress = Progress(clock)
        self.over = False
        self.status: Any = reads()
        select: Any = SimpleNamespace(status=lambda: self.status)
        self.observed = Observed(
            Leadership("shop", name, "n1", 7), self.progress, select, None,
            lambda: self.over, Views(),
        )  # fmt: skip


@pytest.fixture
def parts(caplog):
    caplog.set_level(logging.INFO, "setl.node.leading.stall_watch")
    clock = SetClock()
    watch = StallWatch(clock, limit=60)
    yield clock, watch, caplog
    watch.stop()


def said(caplog):
    return [(r.getMessage(), r.setl["pipeline"]) for r in caplog.records]


def test_a_stall_is_shown_and_reported_once_when_it_begins_and_once_when_it_ends(parts):
    clock, watch, caplog = parts
    run = Run(clock)
    watch.follow(run.observed)
    run.progress.at_stage(Stage.EXTRACT)
    watch.look()
    assert said(caplog) == []
    for _ in range(5):
        clock.time += 61
        watch.look()
        assert run.progress.figures().stalled.startswith("extract: no progress for")
    assert said(caplog) == [("pipeline stalls", "orders")]
    assert caplog.records[0].setl == {
        "channel": "shop", "pipeline": "orders", "nid": "n1", "epoch": 7,
        "stage": "extract", "reason": "unknown", "seconds": 61.0, "detail": "",
    }  # fmt: skip
    run.progress.at_stage(Stage.LOAD)
    watch.look()
    assert run.progress.figures().stalled == ""
    watch.look()
    assert said(caplog)[1:] == [("pipeline goes on after a stall", "orders")]
    assert caplog.records[1].setl["seconds"] == 305.0


def test_a_run_that_ends_while_it_stalls_is_let_go(parts):
    clock, watch, caplog = parts
    run = Run(clock)
    watch.follow(run.observed)
    run.progress.at_stage(Stage.EXTRACT)
    clock.time += 61
    watch.look()
    run.over = True
    watch.look()
    assert run.progress.figures().stalled == ""
    run.over = False
    clock.time += 61
    watch.look()
    assert run.progress.figures().stalled == "", "it is still watched"
    assert len(said(caplog)) == 2


def test_a_defect_in_looking_at_one_run_does_not_blind_it_for_the_others(parts):
    clock, watch, caplog = parts
    broken, run = Run(clock, "broken"), Run(clock)
    broken.status = None
    watch.follow(broken.observed)
    watch.follow(run.observed)
    run.progress.at_stage(Stage.EXTRACT)
    clock.time += 61
    watch.look()
    watch.look()
    assert run.progress.figures().stalled
    failures = [r for r in caplog.records if r.exc_info]
    assert len(failures) == 1


def test_a_new_run_of_a_pipeline_replaces_the_old(parts):
    clock, watch, _ = parts
    old, new = Run(clock), Run(clock)
    watch.follow(old.observed)
    watch.follow(new.observed)
    for run in (old, new):
        run.progress.at_stage(Stage.EXTRACT)
    clock.time += 61
    watch.look()
    assert not old.progress.figures().stalled
    assert new.progress.figures().stalled
