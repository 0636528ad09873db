"""When a run keeps its checkpoint: at once, once a second, or seldom."""

from types import SimpleNamespace
from typing import Any

import pytest

from setl.errors import FencedError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition
from setl.run.checkpoints.checkpoint_writer import (
    IDLE_SECONDS,
    QUIET_AFTER,
    QUIET_SECONDS,
    CheckpointWriter,
)
from setl.run.measured.progress import Progress
from tests.unit.select.fakes import ManualClock


def at(offset):
    return Checkpoint(BinlogPosition("binlog.000001", offset))


@pytest.fixture
def made():
    made: Any = SimpleNamespace(clock=ManualClock(), stored=[])
    store: Any = SimpleNamespace(store=lambda *what: made.stored.append(what))
    made.keeping = CheckpointWriter(store, 7, Progress(made.clock), made.clock)
    made.keeping.is_stored(at(4))
    return made


def ticks(made, seconds):
    """Checkpoints kept while one heartbeat a second comes, and nothing else."""
    before = len(made.stored)
    for _ in range(seconds):
        made.clock.time += 1
        made.keeping.save_if_idle(at(int(made.clock.time)))
    return len(made.stored) - before


def test_what_moved_is_stored_once(made):
    assert made.keeping.save_if_due(at(9), 0.0)
    assert not made.keeping.save_if_due(at(9), 0.0)
    assert made.stored == [(at(9), 7)]
    assert made.keeping.last == at(9)


def test_what_went_further_back_has_to_catch_up(made):
    made.keeping.is_stored(at(9))
    assert made.keeping.unsaved(at(5)) is None
    assert made.keeping.unsaved(None) is None
    assert not made.keeping.save_if_due(at(5), 0.0)
    assert made.keeping.unsaved(at(10)) == at(10)


def test_nothing_is_stored_before_it_is_known_what_is_stored():
    clock, store = ManualClock(), SimpleNamespace()
    keeping = CheckpointWriter(store, 7, Progress(clock), clock)  # type: ignore[arg-type]
    assert not keeping.save_if_due(at(9), 0.0)


def test_an_idle_pipeline_stores_one_a_second_and_a_quiet_one_few(made):
    assert IDLE_SECONDS == 1.0
    assert ticks(made, int(QUIET_AFTER) - 1) == QUIET_AFTER - 1
    assert ticks(made, 100) == 100 / QUIET_SECONDS
    made.keeping.wrote()
    assert ticks(made, 10) == 10, "it is not quiet any more"


def test_what_a_store_refuses_is_not_taken_for_stored(made):
    def refuse(*_):
        raise FencedError("another leads")

    made.keeping._store.store = refuse
    with pytest.raises(FencedError):
        made.keeping.keep(at(9))
    assert made.keeping.unsaved(at(9)) == at(9)
