"""Which batches become one load."""

import itertools
from types import SimpleNamespace
from typing import Any

from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.run.backlog import Backlog
from tests.unit.model.streams import kafka_position
from tests.unit.select.fakes import ManualClock


def batch(number, rows, **position):
    return Batch(number, 1, [], Checkpoint(kafka_position(number), **position), rows, 0)


def together(first, *, waiting=(), so_far=None, room=100):
    """The ids of the batches that are loaded with the first one."""
    left, asked = [*waiting], []

    def complete_so_far(rows):
        asked.append(rows)
        return None if len(asked) > 1 else so_far

    select: Any = SimpleNamespace(
        next_batch=lambda _: left.pop(0) if left else None,
        complete_so_far=complete_so_far,
        status=lambda: SimpleNamespace(held_back=True),
    )
    work: Any = SimpleNamespace(room=room)
    backlog = Backlog(select, work, ManualClock(), lambda: False)
    return [each.id for each in backlog.with_what_waits(first)], asked


def test_a_load_takes_what_waits_and_then_what_is_complete_by_now():
    found = together(batch(1, 5), waiting=[batch(2, 3)], so_far=batch(3, 2))
    assert found == ([1, 2, 3], [8, 10])


def test_a_load_without_room_takes_no_more():
    assert together(batch(1, 5), so_far=batch(2, 2), room=5) == ([1], [])


def test_what_was_applied_before_is_waited_for_and_not_cut():
    assert together(batch(1, 5, repeats=True), so_far=batch(2, 2)) == ([1], [])


def test_heartbeats_do_not_hold_up_what_may_have_been_applied_before():
    """A relay writes one each second, also while its source is quiet."""
    clock, numbers = ManualClock(), itertools.count(2)

    def next_batch(_):
        clock.time += 1.0
        number = next(numbers)
        assert number < 20, "the load does not begin"
        return batch(number, 1 if number == 3 else 0, repeats=True)

    select: Any = SimpleNamespace(
        next_batch=next_batch, status=lambda: SimpleNamespace(held_back=False)
    )
    work: Any = SimpleNamespace(room=100)
    backlog = Backlog(select, work, clock, lambda: False)
    found = [each.id for each in backlog.with_what_waits(batch(1, 5, repeats=True))]
    assert found == [1, 2, 3, 4, 5, 6], "three seconds without a row are over"
