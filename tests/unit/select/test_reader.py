import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.errors import FatalError, PositionLostError, TransientError
from setl.model.batch import BatchTermin
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.select.batching import BatchSettings
from setl.select.reader import SelectLoop
from setl.select.reading import SelectSettings
from setl.select.source import absorbs_nothing
from tests.unit.model.streams import B, C, H, R, entries, kafka_position, streams
from tests.unit.select.fakes import ScriptedSource
from tests.waiting import eventually

START = Checkpoint(kafka_position(0))
LOST = TransientError("the connection was lost")


def transactions(count, rows=2):
    return entries([B, *[R] * rows, C] * count)


@pytest.fixture
def make():
    """Builds loops; all are stopped, and none may leave a thread behind.

    Batches end by their rows, and not by the time that a busy machine took to read them.
    """
    loops = []
    before = set(threading.enumerate())

    def build(source, *, rows=2, wait=600.0, window=3, epoch=1, **more):
        loop = SelectLoop(
            source,
            SelectSettings(BatchSettings(rows, 1 << 20, wait), window, **more),
            epoch=epoch,
            name="shop/orders",
        )
        loops.append(loop)
        return loop

    yield build
    for loop in loops:
        loop.stop()
    eventually(lambda: not set(threading.enumerate()) - before, 60, message="threads ended")


def take(loop, count):
    """The next `count` batches, each acked at once."""
    found = []
    for _ in range(count):
        batch = loop.next_batch(60)
        assert batch is not None
        loop.ack(batch)
        found.append(batch)
    return found


def rows_of(batches):
    return [e for b in batches for e in b.entries if e.rows]


def test_batches_come_in_order_until_the_stream_is_idle(make):
    stream = transactions(20)
    loop = make(ScriptedSource(stream))
    loop.start(START)
    got = take(loop, 20)
    assert [e for b in got for e in b.entries] == stream
    assert [b.id for b in got] == list(range(1, 21))
    assert loop.next_batch(0.02) is None
    status = loop.status()
    assert (status.state, status.entries, status.rows, status.batches) == ("reading", 80, 40, 20)
    assert (status.unacked, status.waiting, status.error, status.bytes) == (0, 0, "", 800)
    assert status.timestamp == 80.0


def test_reading_stops_while_the_window_is_full(make):
    source = ScriptedSource(transactions(50))
    loop = make(source, window=3)
    loop.start(START)
    first = loop.next_batch(60)
    eventually(lambda: loop.status().held_back, 60)
    reads = source.reads
    assert (loop.status().unacked, loop.status().waiting) == (3, 2)
    assert source.reads == reads
    loop.ack(first)
    eventually(lambda: source.reads > reads, 60)
    assert loop.status().unacked == 3


def test_reading_stops_while_the_buffer_is_full(make):
    # A transaction has 40 bytes.
    source = ScriptedSource(transactions(50))
    loop = make(source, window=100, buffer_bytes=100)
    loop.start(START)
    first = loop.next_batch(60)
    eventually(lambda: loop.status().held_back, 60)
    status = loop.status()
    assert (status.unacked, status.buffered_bytes, status.buffer_bytes) == (2, 80, 100)
    assert status.blocked_seconds > 0
    reads = source.reads
    loop.ack(first)
    eventually(lambda: source.reads > reads, 60)
    eventually(lambda: loop.status().buffered_bytes == 80, 60)
    loop.stop()
    assert loop.status().buffered_bytes == 0
    assert not loop.status().held_back


def test_what_is_behind_is_all_that_is_not_acknowledged(make):
    source = ScriptedSource(transactions(50))
    loop = make(source, window=3)
    loop.start(START)
    eventually(lambda: loop.status().unacked == 3, 60)
    assert loop.status().behind is None  # the source does not tell
    source.unread = 7
    before = loop.status().behind
    assert before > 7
    first = loop.next_batch(60)
    assert loop.status().behind == before  # being applied is not applied
    loop.stop()
    assert first is not None
    assert loop.status().behind is None


def test_small_changes_do_not_wait_for_a_full_batch(make):
    loop = make(ScriptedSource(transactions(1)), rows=1000, wait=0.01)
    loop.start(START)
    assert loop.next_batch(60).rows == 2


def test_while_a_batch_waits_the_next_one_grows(make):
    source = ScriptedSource(transactions(40), chunk=4)
    source.hold(4)
    loop = make(source, rows=1000, wait=0.0, window=10)
    loop.start(START)
    eventually(lambda: loop.status().waiting == 1, 60)
    source.release()
    eventually(lambda: loop.status().entries == 160, 60)
    assert [b.rows for b in take(loop, 2)] == [2, 78]


def opened(make, come, *, chunk=4, **options):
    """A loop of which a full batch was taken, and as many entries came after it; and the source.

    Nothing else is due for ten minutes.
    """
    source = ScriptedSource(entries([B, R, R, R, R, C, *[B, R, R, C] * 2]), chunk=chunk)
    source.hold(6)
    loop = make(source, rows=4, **options)
    loop.start(START)
    assert loop.next_batch(60).rows == 4
    source.hold(6 + come)
    eventually(lambda: loop.status().entries == 6 + come, 60)
    return loop, source


def test_what_came_while_batches_were_taken_joins_them(make):
    loop, source = opened(make, 4)
    joined = loop.complete_so_far(0)
    assert (joined.id, joined.entries) == (2, source.stream[6:10])
    assert loop.complete_so_far(0) is None, "there is no more"
    loop.finish(BatchTermin(1, 1))
    assert loop.ack(joined) == joined.checkpoint
    assert (loop.status().batches, loop.status().unacked) == (2, 0)
    loop.rollback()  # what was acknowledged does not come again
    # It is opened by a thread that begins now.
    eventually(lambda: source.opened[-1] == joined.checkpoint.resume, 60)


def test_nothing_joins_a_load_that_is_as_large_as_a_batch(make):
    """Then loading is behind, and full batches are worth more."""
    loop, _ = opened(make, 4)
    assert loop.complete_so_far(4) is None
    assert loop.complete_so_far(3) is not None


def test_a_transaction_that_is_not_complete_does_not_join(make):
    loop, source = opened(make, 6, chunk=1)
    joined = loop.complete_so_far(0)
    assert joined.entries == source.stream[6:10]
    assert joined.checkpoint.applied is None
    assert loop.complete_so_far(0) is None


def test_nothing_passes_a_batch_that_waits(make):
    loop, source = opened(make, 4, chunk=6, wait=0.0)
    eventually(lambda: loop.status().waiting == 1, 60)
    source.release()
    eventually(lambda: loop.status().entries == 14, 60)
    assert loop.complete_so_far(0) is None
    second = loop.next_batch(60)
    third = loop.complete_so_far(0) or loop.next_batch(60)
    assert [*second.entries, *third.entries] == source.stream[6:]


def test_nor_one_that_waits_for_room(make):
    """It is too large to be offered; what comes behind it would fit."""
    source = ScriptedSource(entries([*[B, R, R, R, R, C] * 2, B, R, R, C]), chunk=16)
    source.hold(6)
    loop = make(source, rows=4, buffer_bytes=130)
    loop.start(START)
    first = loop.next_batch(60)
    source.release()
    eventually(lambda: loop.status().held_back, 60)
    assert loop.complete_so_far(0) is None
    loop.ack(first)
    second = loop.next_batch(60)
    assert second.entries == source.stream[6:12]
    eventually(lambda: loop.complete_so_far(0), 60)


def test_nothing_joins_where_nothing_is_being_applied_or_there_is_no_room(make):
    loop, _ = opened(make, 4)
    loop.rollback()
    eventually(lambda: loop.status().waiting == 1, 60)
    assert loop.complete_so_far(0) is None
    loop.stop()
    assert loop.complete_so_far(0) is None
    full, _ = opened(make, 4, window=1)
    assert full.complete_so_far(0) is None


def test_an_error_comes_after_what_was_read_before_it(make):
    stream = transactions(4)
    loop = make(ScriptedSource(stream, failures={13: LOST}), rows=1000, wait=600)
    loop.start(START)
    batch = loop.next_batch(60)
    assert batch.entries == stream[:12]  # the rest of the fourth transaction is read again
    for _ in range(3):
        with pytest.raises(TransientError, match="connection was lost"):
            loop.next_batch(60)
    assert loop.status().state == "failed"
    assert "connection was lost" in loop.status().error
    loop.ack(batch)
    assert loop.rollback() == batch.checkpoint
    assert loop.status().error == "", "the new generation must not inherit the old error"


@pytest.mark.parametrize(
    "error", [LOST, PositionLostError("binlog.000001 was purged"), FatalError("statement format")]
)
def test_an_error_of_opening_is_handed_on(make, error):
    source = ScriptedSource(transactions(1), open_errors=[error])
    loop = make(source)
    loop.start(START)
    with pytest.raises(type(error)) as raised:
        loop.next_batch(60)
    assert raised.value is error
    loop.rollback()
    assert take(loop, 1)[0].rows == 2


def test_a_defect_in_a_source_is_an_error_too(make):
    loop = make(ScriptedSource(transactions(1), open_errors=[KeyError("x")]))
    loop.start(START)
    with pytest.raises(FatalError, match=r"KeyError\('x'\)") as raised:
        loop.next_batch(60)
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_rollback_reads_again_from_the_last_ack_with_new_ids(make):
    stream = transactions(10)
    source = ScriptedSource(stream)
    loop = make(source)
    loop.start(START)
    (first,) = take(loop, 1)
    second, third = loop.next_batch(60), loop.next_batch(60)
    assert loop.rollback() == first.checkpoint
    again = take(loop, 9)
    assert [e for b in (first, *again) for e in b.entries] == stream
    assert min(b.id for b in again) > third.id > second.id
    assert [p.offset for p in source.opened] == [0, 4]
    assert loop.status().generation == 2


def test_a_termin_with_an_error_is_a_rollback(make):
    loop = make(ScriptedSource(transactions(5)))
    loop.start(START)
    take(loop, 1)
    batch = loop.next_batch(60)
    acked = loop.finish(BatchTermin(batch.id, batch.epoch, LOST))
    assert acked.resume.offset == 4
    assert loop.next_batch(60).entries == batch.entries


def test_a_batch_of_before_the_rollback_cannot_be_acked_afterwards(make):
    loop = make(ScriptedSource(transactions(5)))
    loop.start(START)
    stale = loop.next_batch(60)
    loop.rollback()
    fresh = loop.next_batch(60)
    with pytest.raises(FatalError, match="out of order"):
        loop.ack(stale)
    loop.ack(fresh)


def test_stop_interrupts_reading_and_may_be_called_twice(make):
    source = ScriptedSource(transactions(1))
    loop = make(source)
    loop.start(START)
    take(loop, 1)
    loop.stop()
    loop.stop()
    assert not source.open_now
    assert loop.status().state == "stopped"
    with pytest.raises(FatalError, match="not started, or stopped"):
        loop.next_batch(60)


def test_stop_interrupts_a_reader_that_waits_for_room(make):
    loop = make(ScriptedSource(transactions(50)), window=1)
    loop.start(START)
    eventually(lambda: loop.status().waiting == 1, 60)
    loop.stop()
    assert loop.status().state == "stopped"


def test_starting_twice_is_refused(make):
    loop = make(ScriptedSource([]))
    loop.start(START)
    with pytest.raises(FatalError, match="twice"):
        loop.start(START)


def test_whoever_waits_is_woken_by_a_rollback_from_another_thread(make):
    loop = make(ScriptedSource([]))
    loop.start(START)
    found = []
    waiting = threading.Thread(target=lambda: found.append(loop.next_batch(600)), daemon=True)
    waiting.start()
    loop.rollback()
    waiting.join(60)
    assert found == [None]


class DeafSource(ScriptedSource):
    """Does not return from a read when it is closed, until it is let go."""

    def __init__(self, stream):
        super().__init__(stream)
        self.entered, self.let_go = threading.Event(), threading.Event()

    def read(self, limit, timeout, absorbs=absorbs_nothing):
        self.entered.set()
        self.let_go.wait(30)
        return super().read(limit, timeout)


def test_a_source_that_does_not_end_cannot_be_read_twice_at_once(make):
    source = DeafSource(transactions(1))
    loop = make(source, stop_timeout=0.05)
    loop.start(START)
    assert source.entered.wait(30)
    for _ in range(2):
        with pytest.raises(TransientError, match="does not end"):
            loop.rollback()
        with pytest.raises(TransientError, match="does not end"):
            loop.next_batch(60)
    source.let_go.set()
    eventually(lambda: not any(t.name.startswith("select-") for t in threading.enumerate()), 60)
    loop.rollback()
    assert take(loop, 1)[0].rows == 2


def test_blocked_time_is_counted(make):
    loop = make(ScriptedSource(transactions(3)), window=1)
    loop.start(START)
    eventually(lambda: loop.status().blocked_seconds > 0.2, 60)


def test_heartbeats_do_not_make_a_storm_of_batches(make):
    loop = make(ScriptedSource(entries([H] * 300), chunk=1), rows=1000, wait=0.05)
    began, batches = time.monotonic(), []
    loop.start(START)
    while sum(len(b.entries) for b in batches) < 300:
        batches += take(loop, 1)
    # One in the time that a batch may wait, however long a busy machine takes for all of them.
    assert len(batches) <= 2 + (time.monotonic() - began) / 0.05


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_whatever_fails_and_is_rolled_back_every_row_is_applied_once(data):
    stream, _ = data.draw(streams())
    failing = data.draw(st.sets(st.integers(0, max(0, len(stream) - 1)), max_size=4))
    source = ScriptedSource(
        stream,
        chunk=data.draw(st.integers(1, 5)),
        failures={at: TransientError(f"lost at {at}") for at in failing if at < len(stream)},
    )
    loop = SelectLoop(
        source,
        SelectSettings(BatchSettings(data.draw(st.integers(1, 6)), 1 << 20, 0.002), 3),
        epoch=1,
        name="p",
    )
    rolled_back = data.draw(st.sets(st.integers(1, 12), max_size=4))
    joined = data.draw(st.sets(st.integers(1, 12)))
    applied, floor, taken, went_back_to = [], START, 0, []
    loop.start(floor)
    want = [e for e in stream if e.kind is EntryKind.ROWS]
    try:
        while len(applied) < len(want):
            try:
                batch = loop.next_batch(60)
            except TransientError:
                went_back_to.append((loop.rollback(), floor))
                continue
            assert batch is not None
            taken += 1
            if taken in rolled_back:
                loop.rollback()
                continue
            also = loop.complete_so_far(0) if taken in joined else None
            for each in [batch] if also is None else [batch, also]:
                applied += [e for e in each.entries if e.rows and not floor.covers(e)]
                floor = loop.ack(each)
    finally:
        loop.stop()
    assert applied == want
    assert all(got == expected for got, expected in went_back_to)
