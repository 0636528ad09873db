"""How a leader knows that its target has what its source has shown."""

import threading
from typing import Any

import pytest

from setl.bulk.position_waiter import WaitOutcome
from setl.clock import SystemClock
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition
from setl.model.stream_end import StreamEnd
from setl.run.verification.position_waiter import RunPositionWaiter


def at(offset, timestamp=0.0):
    return Checkpoint(BinlogPosition("bin.000001", offset), timestamp=timestamp)


def waiter(reached, longest=30.0, stopping=None) -> Any:
    def never() -> StreamEnd:
        raise AssertionError("nobody asks for the end")

    return RunPositionWaiter(
        end=never,
        passed=lambda one, position: one.order >= position.order,
        reached=reached,
        stopping=stopping or threading.Event(),
        clock=SystemClock(),
        longest=longest,
    )


POSITION = StreamEnd(BinlogPosition("bin.000001", 500), 0.0)
MOMENT = StreamEnd(None, 1000.7)


@pytest.mark.parametrize(
    ("seen", "end"),
    [
        ([None, at(400), at(499), at(500)], POSITION),
        ([at(4, 999.0), at(4, 1000.0), at(4, 1000.9), at(4, 1001.0)], MOMENT),
    ],
    ids=["a position", "a time, of which the last second may still come"],
)
def test_it_waits_until_everything_before_the_end_is_applied(seen, end):
    looks = iter(seen)
    assert waiter(lambda: next(looks)).wait(end).wait_outcome is WaitOutcome.CAUGHT_UP
    assert next(looks, "none left") == "none left"


def test_it_does_not_wait_for_ever_nor_when_the_leader_ends():
    late = waiter(lambda: at(400), longest=0.0).wait(POSITION)
    assert (late.wait_outcome, "did not come there" in late.why) == (WaitOutcome.LATE, True)
    stopping = threading.Event()
    stopping.set()
    assert (
        waiter(lambda: at(400), stopping=stopping).wait(POSITION).wait_outcome is WaitOutcome.LATE
    )
