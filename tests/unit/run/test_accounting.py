"""What is counted of heartbeats that are absorbed is what would be counted of any batch of them."""

from dataclasses import replace

import pytest

from setl.extract.extractor import ExtractCounts, Extracted
from setl.extract.heartbeats import HeartbeatSeen
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition
from setl.run.measured.accounting import account, account_absorbed
from setl.run.measured.progress import Progress
from tests.clocks import SetClock

OWN, OTHER = 7, 8


def beats(number, seconds):
    """A batch of heartbeats: one that tells the lag, and one of another source."""
    position = BinlogPosition("binlog.000003", 100 * number)
    entries = [Entry(EntryKind.COMMIT, position, seconds)]
    checkpoint = Checkpoint(position, timestamp=seconds)
    batch = Batch(number, 5, entries, checkpoint, 2, 90, opened=1000.25, closed=1000.5)
    seen = [HeartbeatSeen(OWN, seconds - 0.5), HeartbeatSeen(OTHER, seconds - 40)]
    return batch, Extracted(heartbeats=seen, counts=ExtractCounts(heartbeats=2))


@pytest.mark.parametrize("heartbeat", [OWN, None])
@pytest.mark.parametrize("through", [2, 9])
def test_heartbeats_that_are_absorbed_count_like_any_batch(heartbeat, through):
    clock = SetClock(wall=500.0)
    one, other = Progress(clock), Progress(clock)
    for progress in (one, other):
        progress.took_over(through, counted=True)
    for number in range(1, 4):
        clock.time += 1
        batch, extracted = beats(number, clock.now() - 2)
        account(
            one, [batch], [extracted], Loaded(),
            heartbeat_id=heartbeat, pending=0, now=clock.now(), through=number,
        )  # fmt: skip
        one.took([batch], clock.monotonic() - batch.closed)
        one.moved()
        account_absorbed(
            other, batch, extracted,
            heartbeat_id=heartbeat, now=clock.now(), version=lambda number=number: number,
        )  # fmt: skip
        assert other.figures() == one.figures()
        assert other.measured() == one.measured()
        assert other.handover_cost() == one.handover_cost()
        assert other.pace() == one.pace()
    assert other.figures().batches == 3
    assert other.figures().position == "binlog.000003:300"
    assert other.figures().lag == (2.5 if heartbeat else 2.0)
    assert (other.handover_cost() is not None) == (through == 2)


def test_a_checkpoint_with_counts_is_else_the_same():
    full = Checkpoint(
        BinlogPosition("b.000001", 4), BinlogPosition("b.000001", 9), 5.0, 2, 3, 1,
        repeats=True, targets=(("a", "b"),), transaction="0-1-7",
    )  # fmt: skip
    counts = {"rows": 70, "load": None, "targets": (("c", "d"),)}
    assert full.counting(**counts) == replace(full, **counts)
