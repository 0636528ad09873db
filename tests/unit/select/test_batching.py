from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.select.batching import BatchAssembler, BatchSettings
from tests.unit.model.streams import B, C, D, H, R, cuts, entries, kafka_position, streams
from tests.unit.select.fakes import ManualClock

START = Checkpoint(kafka_position(0))


def assembler(rows=8, size=1 << 20, wait=1.0, clock=None, **more):
    return BatchAssembler(7, START, BatchSettings(rows, size, wait), clock or ManualClock(), **more)


def due(under_test):
    """The batch whose time is up; there must be one."""
    batch = under_test.take_due()
    assert batch is not None
    return batch


def transactions(*sizes):
    return entries([kind for size in sizes for kind in (B, *[R] * size, C)])


def shapes(batches):
    return ["".join(e.kind.name[0] for e in batch.entries) for batch in batches]


def test_closes_at_the_commit_that_reaches_the_limit():
    got = assembler(rows=8).add(transactions(3, 3, 3, 3))
    assert shapes(got) == ["BRRRCBRRRCBRRRC"]
    (batch,) = got
    assert (batch.id, batch.epoch, batch.rows, batch.size) == (1, 7, 9, 180)
    assert batch.checkpoint.resume == batch.entries[-1].position
    assert batch.checkpoint.applied is None


def test_a_transaction_that_straddles_the_limit_is_completed():
    assert shapes(assembler(rows=8).add(transactions(7, 3))) == ["B" + "R" * 7 + "CBRRRC"]


def test_a_transaction_that_would_go_too_far_begins_the_next_batch():
    under_test = assembler(rows=8)
    got = under_test.add(transactions(5, 6, 2))
    assert shapes(got) == ["BRRRRRC", "BRRRRRRCBRRC"]
    assert [b.rows for b in got] == [5, 8]
    assert [b.id for b in got] == [1, 2]


@pytest.mark.parametrize("limits", [{"rows": 1}, {"size": 1}, {"rows": 2}])
def test_transactions_that_are_absorbed_are_one_batch_whatever_its_limits(limits):
    """Heartbeats are absorbed so; the lag is told by what the batch holds."""
    under_test = assembler(**limits)
    absorber = transactions(1, 1)
    batch = under_test.single_batch(absorber)
    assert shapes([batch]) == ["BRCBRC"]
    assert (batch.id, batch.rows, batch.size) == (1, 2, 40)
    assert batch.checkpoint.resume == absorber[-1].position
    assert under_test.is_between
    assert under_test.next_id == 2


def test_complete_transactions_can_be_taken_at_any_time():
    under_test = assembler(rows=100)
    assert under_test.take_complete() is None
    assert not under_test.add(transactions(3, 2)[:-2])
    assert under_test.size == 80  # of the rows
    batch = under_test.take_complete()
    assert batch is not None
    assert shapes([batch]) == ["BRRRC"]
    assert under_test.take_complete() is None, "the other one is not complete"
    assert under_test.add(transactions(3, 2)[-2:]) == []
    rest = under_test.take_complete()
    assert rest is not None
    assert shapes([rest]) == ["BRRC"]
    assert (batch.id, rest.id) == (1, 2)
    assert rest.checkpoint.resume == rest.entries[-1].position


def test_a_transaction_larger_than_a_batch_is_cut_and_says_how_far_it_is():
    got = assembler(rows=8).add(transactions(30))
    assert shapes(got) == ["B" + "R" * 11, "R" * 8, "R" * 8]
    assert [b.checkpoint.resume.offset for b in got] == [0, 0, 0]
    assert [b.checkpoint.applied for b in got] == [b.entries[-1].position for b in got]


def test_a_transaction_of_exactly_a_batch_is_not_cut():
    assert shapes(assembler(rows=8).add(transactions(8, 8))) == ["BRRRRRRRRC"] * 2


def test_after_a_cut_transaction_batches_end_at_commits_again():
    got = assembler(rows=8).add(transactions(20, 3, 3, 3, 3))
    assert shapes(got) == ["B" + "R" * 11, "R" * 8, "RC" + "BRRRC" * 3]


def test_bytes_close_a_batch_too():
    got = assembler(rows=1000, size=100).add(transactions(2, 2, 2, 2))
    assert [b.size for b in got] == [120]
    assert shapes(assembler(rows=1000, size=100).add(transactions(40)))[0] == "B" + "R" * 7


def test_entries_without_rows_do_not_pile_up():
    got = assembler(rows=4).add(entries([H] * 50))
    assert [len(b.entries) for b in got] == [16, 16, 16]
    assert [b.rows for b in got] == [0, 0, 0]


def test_ddl_ends_the_batch_before_it_and_stands_alone():
    got = assembler().add(entries([B, R, C, D, D, B, R, C]))
    assert shapes(got) == ["BRC", "D", "D"]
    assert [b.checkpoint.resume.offset for b in got] == [3, 4, 5]
    assert all(b.checkpoint.applied is None for b in got)


def test_ddl_ends_an_unfinished_transaction():
    under_test = assembler()
    got = under_test.add(entries([B, R, D, R, C]))
    assert shapes(got) == ["BR", "D"]
    assert got[0].checkpoint.applied == kafka_position(2)


def test_time_closes_what_is_complete():
    clock = ManualClock()
    under_test = assembler(clock=clock, wait=1.0)
    assert under_test.remaining() is None
    assert under_test.take_due() is None
    stream = transactions(2, 2)
    assert under_test.add(stream[:6]) == []
    assert under_test.remaining() == 1.0
    clock.time += 0.75
    assert under_test.add(stream[6:]) == []
    assert under_test.remaining() == 0.25
    assert under_test.take_due() is None
    clock.time += 0.25
    assert shapes([due(under_test)]) == ["BRRCBRRC"]
    assert under_test.remaining() is None
    clock.time += 5
    assert under_test.take_due() is None


def test_a_transaction_after_a_pause_does_not_wait():
    clock = ManualClock()
    under_test = assembler(clock=clock, wait=1.0)
    stream = transactions(1, 1, 1, 1)
    clock.time += 5
    under_test.add(stream[:3])
    assert shapes([due(under_test)]) == ["BRC"]
    clock.time += 0.25
    under_test.add(stream[3:6])
    assert under_test.remaining() == 0.75
    clock.time += 0.5
    under_test.add(stream[6:9])
    assert under_test.take_due() is None
    clock.time += 0.25
    assert shapes([due(under_test)]) == ["BRCBRC"]
    clock.time += 5
    under_test.add(stream[9:11])
    assert under_test.take_due() is None
    under_test.add(stream[11:])
    assert shapes([due(under_test)]) == ["BRC"]


def test_twenty_transactions_a_second_wait_for_nothing():
    clock = ManualClock()
    under_test = BatchAssembler(7, START, BatchSettings(), clock)
    stream = transactions(*[2] * 40)
    for number in range(40):
        # They do not come like clockwork.
        clock.time += 0.07 if number % 2 else 0.03
        assert under_test.add(stream[number * 4 : number * 4 + 4]) == []
        assert under_test.remaining() == 0
        assert shapes([due(under_test)]) == ["BRRC"]


def test_time_leaves_a_transaction_that_is_still_arriving():
    clock = ManualClock()
    under_test = assembler(clock=clock, wait=1.0)
    stream = transactions(2, 3)
    under_test.add(stream[:4])
    clock.time += 0.5
    under_test.add(stream[4:7])
    clock.time += 0.5
    assert shapes([due(under_test)]) == ["BRRC"]
    # The rest came at 0.5 s at the latest; its patience is 25 times `wait` from its
    # predecessor's end.
    assert under_test.remaining() == pytest.approx(24.0)
    under_test.add(stream[7:])
    assert shapes([due(under_test)]) == ["BRRRC"]


def test_time_cuts_a_transaction_that_does_not_go_on():
    clock = ManualClock()
    under_test = assembler(clock=clock, wait=1.0)
    stream = transactions(3)
    under_test.add(stream[:3])
    clock.time += 24.9
    assert under_test.take_due() is None
    clock.time += 0.1
    cut = due(under_test)
    assert shapes([cut]) == ["BRR"]
    assert cut.checkpoint.applied == kafka_position(3)
    under_test.add(stream[3:])
    clock.time += 1.0
    rest = due(under_test)
    assert shapes([rest]) == ["RC"]
    assert rest.checkpoint.resume == kafka_position(5)


def test_heartbeats_alone_become_a_batch_when_the_time_is_up():
    clock = ManualClock()
    under_test = assembler(clock=clock)
    under_test.add(entries([H, H]))
    clock.time += 1.0
    batch = due(under_test)
    assert (shapes([batch]), batch.rows) == (["HH"], 0)
    assert batch.checkpoint.resume == kafka_position(2)


def test_flush_gives_complete_transactions_and_forgets_the_rest():
    under_test = assembler()
    under_test.add(entries([B, R, C, B, R]))
    batch = under_test.flush()
    assert batch is not None
    assert shapes([batch]) == ["BRC"]
    assert batch.checkpoint.resume == kafka_position(3)
    assert under_test.remaining() is None
    assert under_test.flush() is None


def test_ids_go_on_from_where_they_are_reported_to():
    under_test = assembler(rows=1, first_id=40)
    assert [b.id for b in under_test.add(transactions(1, 1))] == [40, 41]
    assert under_test.next_id == 42


def drain(under_test, clock):
    """Everything that is left, as time would bring it out."""
    found = []
    while under_test.remaining() is not None:
        clock.time += under_test.remaining()
        found.append(under_test.take_due())
    return found


@st.composite
def runs(draw):
    """The batches of a stream that comes in pieces, with time passing in between."""
    stream, boundaries = draw(streams(most_rows=12))
    clock = ManualClock()
    under_test = assembler(
        rows=draw(st.integers(1, 10)), size=draw(st.integers(20, 300)), clock=clock
    )
    batches = []
    for begin, end in pairwise(draw(cuts(len(stream)))):
        batches += under_test.add(stream[begin:end])
        clock.time += draw(st.sampled_from([0.0, 0.5, 1.0, 20.0]))
        timely = under_test.take_due()
        batches += [timely] if timely else []
    return stream, boundaries, batches + drain(under_test, clock)


@given(runs())
def test_batches_are_the_stream_in_order_and_their_counts_are_right(run):
    stream, _, batches = run
    assert [e for b in batches for e in b.entries] == stream
    assert all(b.entries for b in batches)
    assert [b.id for b in batches] == list(range(1, len(batches) + 1))
    for batch in batches:
        assert batch.rows == sum(e.rows for e in batch.entries)
        assert batch.size == sum(len(e.payload) for e in batch.entries)
        if any(e.kind is EntryKind.DDL for e in batch.entries):
            assert len(batch.entries) == 1


@given(runs())
def test_reading_again_from_any_checkpoint_gives_each_row_once(run):
    stream, boundaries, batches = run
    rows = [e for e in stream if e.kind is EntryKind.ROWS]
    for done in range(len(batches)):
        checkpoint = batches[done].checkpoint
        applied = [e for b in batches[: done + 1] for e in b.entries if e.rows]
        assert checkpoint.resume.offset in boundaries
        again = [e for e in stream if e.position.order > checkpoint.resume.order]
        left = [e for e in again if e.rows and not checkpoint.covers(e)]
        assert applied + left == rows
    orders = [b.checkpoint.order for b in batches]
    assert orders == sorted(orders)


@given(streams(most_rows=3, most=30), st.integers(4, 12), st.data())
def test_small_transactions_are_never_cut(made_up, rows, data):
    stream, _ = made_up
    # With a commit each, a transaction of up to three rows fits the slack of any batch.
    pieces = {R: [B, R, R, R, C], D: [D], H: [H]}
    again = entries([kind for e in stream for kind in pieces.get(e.kind, [])])
    clock = ManualClock()
    under_test = assembler(rows=rows, clock=clock)
    batches = []
    for begin, end in pairwise(data.draw(cuts(len(again)))):
        batches += under_test.add(again[begin:end])
    batches += drain(under_test, clock)
    assert all(b.checkpoint.applied is None for b in batches)
    assert all(b.rows <= rows + 3 for b in batches)


def test_batches_grow_after_a_start():
    settings = BatchSettings(rows=30, first_rows=2)
    under_test = BatchAssembler(7, START, settings, ManualClock())
    assert [b.rows for b in under_test.add(transactions(*[1] * 100))] == [2, 8, 30, 30, 30]


def test_a_batch_of_one_row_leaves_the_next_one_small():
    clock = ManualClock()
    settings = BatchSettings(rows=100, first_rows=5)
    under_test = BatchAssembler(7, START, settings, clock)
    stream = transactions(*[1] * 100)
    under_test.add(stream[:3])
    assert [b.rows for b in drain(under_test, clock)] == [1]
    assert next(iter(under_test.add(stream[3:]))).rows == 5


def test_the_first_batch_after_a_start_is_a_small_one():
    under_test = BatchAssembler(7, START, BatchSettings(rows=8, first_rows=2), ManualClock())
    first = under_test.add(transactions(1, 1, 1))
    assert [b.rows for b in first] == [2]
    rest = under_test.add(transactions(*[1] * 9)[3:])
    assert [b.rows for b in rest] == [8]
