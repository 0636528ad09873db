import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint, CheckpointTracker, check_progress
from setl.model.entry import Entry, EntryKind
from setl.model.position import (
    BinlogOrigin,
    BinlogPosition,
    KafkaOrigin,
    KafkaPosition,
    document_version,
    position_from_json,
    position_to_json,
    version_generation,
)
from tests.unit.model.streams import (
    B,
    C,
    D,
    H,
    R,
    binlog_position,
    cuts,
    entries,
    kafka_position,
    streams,
)

START = Checkpoint(kafka_position(0), generation=3)


def test_rows_move_only_applied_and_a_commit_moves_resume():
    tracker = CheckpointTracker(START)
    seen = [tracker.advance(e) for e in entries([B, R, R, C])]
    assert [(c.resume.offset, c.applied and c.applied.offset) for c in seen] == [
        (0, None),
        (0, 2),
        (0, 3),
        (4, None),
    ]


@pytest.mark.parametrize(
    ("kinds", "resume", "applied", "inside"),
    [
        ([H], 1, None, False),
        ([D], 1, None, False),
        ([B, R, H], 0, 2, True),  # no boundary between two records of a transaction
        ([B, R, B], 2, None, True),  # a begin ends a transaction that has no commit
        ([R, R, C, R], 3, 4, True),  # rows begin one that has no begin
        ([B, R, D], 3, None, False),
        ([B, C], 2, None, False),
    ],
)
def test_boundaries(kinds, resume, applied, inside):
    tracker = CheckpointTracker(START)
    got = tracker.advance_all(entries(kinds))
    assert (got.resume.offset, got.applied and got.applied.offset) == (resume, applied)
    assert tracker.inside is inside


def test_timestamp_is_the_newest_and_generation_stays():
    got = CheckpointTracker(replace(START, timestamp=5.0)).advance_all(
        entries([B, R, C], timestamps=[7, 9, 2])
    )
    assert got.timestamp == 9.0
    assert got.generation == 3
    assert (
        CheckpointTracker(replace(START, timestamp=50.0)).advance_all(entries([C])).timestamp
        == 50.0
    )


def test_a_position_inside_a_transaction_names_it_and_one_between_two_names_none():
    tracker = CheckpointTracker(Checkpoint(BinlogPosition("log.01", 4)))
    rows = Entry(EntryKind.ROWS, BinlogPosition("log.01", 60), 0.0, transaction="0-1-7")
    inside = tracker.advance(rows)
    assert inside.transaction == "0-1-7"
    again = CheckpointTracker(inside)
    assert again.advance(rows).transaction == "0-1-7"
    done = Entry(EntryKind.COMMIT, BinlogPosition("log.01", 80), 0.0, transaction="0-1-7")
    assert again.advance(done).transaction == ""


def test_rows_read_again_do_not_take_the_checkpoint_back():
    stream = entries([B, R, R, R, C])
    start = CheckpointTracker(START).advance_all(stream[:3])
    tracker = CheckpointTracker(start)
    assert [tracker.advance(e).order for e in stream[:3]] == [start.order] * 3
    assert tracker.advance(stream[3]).applied == stream[3].position


def test_without_entries_the_start_is_the_checkpoint():
    assert CheckpointTracker(START).advance_all([]) is START


def reference(start, stream):
    """What `CheckpointTracker` does, one entry after another, as plainly as possible."""
    resume, applied, last, inside, stamp = (
        start.resume,
        start.applied,
        start.resume,
        False,
        start.timestamp,
    )
    for entry in stream:
        stamp = max(stamp, entry.timestamp)
        if entry.kind is EntryKind.ROWS:
            inside = True
            if applied is None or entry.position.order > applied.order:
                applied = entry.position
        elif entry.kind is EntryKind.BEGIN:
            if inside:
                resume, applied = last, None
            inside = True
        elif entry.kind is not EntryKind.HEARTBEAT or not inside:
            resume, applied, inside = entry.position, None, False
        last = entry.position
    return Checkpoint(resume, applied, stamp, start.generation)


positions = st.sampled_from([kafka_position, binlog_position])


@given(st.data(), positions)
def test_taking_many_entries_in_is_taking_each_in(data, position):
    stream, _ = data.draw(streams(position=position))
    start = Checkpoint(position(0))
    tracker = CheckpointTracker(start)
    for begin, end in pairwise(data.draw(cuts(len(stream)))):
        assert tracker.advance_all(stream[begin:end]) == reference(start, stream[:end])


def after(stream, position):
    return [e for e in stream if e.position.order > position.order]


@given(st.data(), positions)
def test_a_checkpoint_covers_exactly_what_was_seen(data, position):
    stream, boundaries = data.draw(streams(position=position))
    seen = data.draw(st.integers(0, len(stream)))
    checkpoint = CheckpointTracker(Checkpoint(position(0))).advance_all(stream[:seen])
    resume = len(stream) - len(after(stream, checkpoint.resume))
    assert resume in boundaries
    assert resume <= seen
    again = stream[resume:]
    left = [e for e in again if e.kind is EntryKind.ROWS and not checkpoint.covers(e)]
    assert left == [e for e in stream[seen:] if e.kind is EntryKind.ROWS]


@given(st.data(), positions)
def test_every_row_is_applied_once_however_often_reading_begins_again(data, position):
    stream, _ = data.draw(streams(position=position))
    checkpoint = Checkpoint(position(0))
    applied, orders = [], [checkpoint.order]
    for last in (False, False, False, True):
        rest = after(stream, checkpoint.resume)
        steps = len(rest) if last else data.draw(st.integers(0, len(rest)))
        start, tracker = checkpoint, CheckpointTracker(checkpoint)
        for entry in rest[:steps]:
            checkpoint = tracker.advance(entry)
            if entry.kind is EntryKind.ROWS and not start.covers(entry):
                applied.append(entry)
            orders.append(checkpoint.order)
    assert applied == [e for e in stream if e.kind is EntryKind.ROWS]
    assert orders == sorted(orders)  # I7: never backwards


@given(st.data(), positions)
def test_json_stores_everything(data, position):
    stream, _ = data.draw(streams(position=position))
    checkpoint = CheckpointTracker(Checkpoint(position(0), generation=2)).advance_all(stream)
    assert Checkpoint.from_json(checkpoint.to_json()) == checkpoint


def binlog(file, offset, **more):
    return Checkpoint(BinlogPosition(file, offset), **more)


def test_progress_may_stand_still_or_go_on():
    one = binlog("binlog.000001", 500)
    check_progress(one, one)
    check_progress(one, binlog("binlog.000002", 4))
    check_progress(one, replace(one, applied=BinlogPosition("binlog.000001", 700)))


@pytest.mark.parametrize(
    ("stored", "new", "says"),
    [
        (binlog("binlog.000002", 4), binlog("binlog.000001", 500), "lies before"),
        (
            replace(binlog("b.000001", 4), applied=BinlogPosition("b.000001", 90)),
            binlog("b.000001", 80),
            "lies before",
        ),
        (binlog("b.000001", 4, generation=2), binlog("b.000009", 4), "lies before"),
        (binlog("b.000001", 4), binlog("other.000009", 4), "another stream"),
        (binlog("b.000001", 4), Checkpoint(KafkaPosition("t", 0, 9)), "another stream"),
        (
            Checkpoint(KafkaPosition("t", 0, 9)),
            Checkpoint(KafkaPosition("t", 1, 10)),
            "another stream",
        ),
    ],
)
def test_progress_refuses_to_go_back_or_elsewhere(stored, new, says):
    with pytest.raises(FatalError, match=says):
        check_progress(stored, new)


def test_a_higher_generation_may_begin_anywhere():
    check_progress(binlog("b.000009", 4), Checkpoint(KafkaPosition("t", 0, 1), generation=2))


def test_a_checkpoint_that_moves_stores_all_but_the_position():
    stored = Checkpoint(
        BinlogPosition("b.000009", 500, "0-1-7", BinlogOrigin("1", 1, 9)),
        applied=BinlogPosition("b.000009", 800),
        timestamp=77.0,
        generation=3,
        rows=12,
        requested=2,
    )
    position = BinlogPosition("other.000001", 4, "0-1-7", BinlogOrigin("2", 2, 8))
    moved = stored.moved_to(position)
    assert moved == Checkpoint(
        position, None, 77.0, generation=4, rows=12, requested=2, repeats=True
    )
    check_progress(stored, moved)
    with pytest.raises(FatalError):
        check_progress(moved, stored)
    # What is read from there carries it on.
    [entry] = entries([EntryKind.COMMIT], lambda _: replace(position, offset=90))
    after = CheckpointTracker(moved).advance(entry)
    assert (after.generation, after.requested) == (4, 2)
    check_progress(moved, after)


def test_what_follows_a_move_repeats_until_it_is_later_than_what_was_applied():
    stored = Checkpoint(BinlogPosition("b.000009", 500), timestamp=77.0)
    moved = stored.moved_to(BinlogPosition("b.000001", 4))
    assert Checkpoint.from_json(moved.to_json()) == moved
    tracker, said = CheckpointTracker(moved), []
    for offset, time in ((10, 70.0), (20, 77.0), (30, 76.0), (40, 77.5), (50, 60.0)):
        position = BinlogPosition("b.000001", offset)
        said.append(tracker.advance(Entry(EntryKind.COMMIT, position, time)).repeats)
    assert said == [True, True, True, False, False]
    position = BinlogPosition("b.000001", 10)
    heartbeat = Entry(EntryKind.HEARTBEAT, position, 99.0)
    assert CheckpointTracker(moved).advance(heartbeat).repeats, "it only says what time it is"
    assert not Checkpoint(stored.resume).moved_to(moved.resume).repeats, "nothing was applied"
    assert not stored.moved_to(moved.resume, exact=True).repeats, "it is the same position"
    inside = replace(stored, applied=BinlogPosition("b.000009", 700))
    assert inside.moved_to(moved.resume, exact=True).repeats, "a transaction comes whole again"


def test_versions_after_a_move_are_above_all_before():
    before = BinlogPosition("b.000999", 4_000_000_000)
    checkpoint = Checkpoint(before, generation=5)
    moved = checkpoint.moved_to(BinlogPosition("b.000001", 4))
    low = document_version(moved.generation, moved.resume)
    assert low > document_version(checkpoint.generation, before)
    assert version_generation(low) == 6
    assert version_generation(document_version(5, before)) == 5


def test_who_asks_to_start_over():
    first = binlog("b.000001", 4, generation=2, requested=2)
    assert [first.outdated(n) for n in (1, 2, 3)] == [False, False, True]
    # Generations that a move has used up are not the operator's.
    moved = first.moved_to(BinlogPosition("c.000001", 4)).moved_to(BinlogPosition("d.000001", 4))
    assert moved.generation == 4
    assert [moved.outdated(n) for n in (2, 3, 4)] == [False, True, True]
    # Stored before the two could differ.
    old = binlog("b.000001", 4, generation=2)
    assert [old.outdated(n) for n in (2, 3)] == [False, True]
    assert old.moved_to(BinlogPosition("c.000001", 4)).requested == 2


@pytest.mark.parametrize(
    ("value", "position"),
    [
        (
            {"file": "b.000001", "offset": 4, "gtid": "0-1-1"},
            BinlogPosition("b.000001", 4, "0-1-1"),
        ),
        ({"topic": "t", "partition": 0, "offset": 9, "timestamp": 5}, KafkaPosition("t", 0, 9, 5)),
    ],
)
def test_checkpoints_stored_by_the_first_version_are_read(value, position):
    stored = {"version": 1, "resume": value, "applied": None, "timestamp": 1.5, "generation": 3}
    assert Checkpoint.from_json(stored) == Checkpoint(position, None, 1.5, generation=3)


@pytest.mark.parametrize(
    "position",
    [
        BinlogPosition("b.000001", 4, "0-1-1", BinlogOrigin("8a-1", 7, 1_700_000_000)),
        KafkaPosition("t", 0, 9, 5, 4_000_000_000, KafkaOrigin("c-1", "t-1")),
    ],
)
def test_json_stores_where_a_position_is_from(position):
    stored = json.loads(json.dumps(position_to_json(position)))
    assert position_from_json(stored) == position
    assert isinstance(position_from_json(stored).origin, type(position.origin))


def test_an_origin_that_is_none_is_refused():
    with pytest.raises(FatalError, match="not a stored position"):
        position_from_json({"file": "b.000001", "offset": 4, "origin": {"server": "1"}})


POSITION = {"file": "b.000001", "offset": 4}


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"resume": []},
        {"resume": "x"},
        {"resume": {"file": "b.000001", "offset": 10**400}},
        {"resume": {"file": "b.000001", "offset": "x"}},
        {"resume": POSITION, "applied": 5},
        {"resume": POSITION, "timestamp": 10**400},
        {"resume": POSITION, "timestamp": float("nan")},
        {"resume": POSITION, "rows": 10**400},
        {"resume": POSITION, "rows": float("inf")},
        {"resume": POSITION, "generation": {}},
        {"resume": {"topic": "t", "partition": 0, "offset": 0, "origin": [1]}},
        [],
        5,
    ],
)
def test_what_is_no_checkpoint_is_refused(stored):
    with pytest.raises(FatalError, match="not a stored"):
        Checkpoint.from_json(stored)
