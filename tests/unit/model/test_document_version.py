"""Document versions grow with the stream, whatever servers' files are numbered and how long."""

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.entry import Entry, EntryKind
from setl.model.file_count import BY_NUMBER, FileCount
from setl.model.position import (
    BinlogPosition,
    KafkaPosition,
    document_version,
    version_generation,
    version_text,
)

GIB = 1 << 30
LAST_FILE = (1 << 31) - 1  # where servers end


def at(number, offset):
    return BinlogPosition(f"binlog.{number:06d}", offset)


def old_version(generation, number, offset):
    """What indexes hold that were filled when a file had 20 bits and an offset 32."""
    return generation << 52 | number << 32 | offset


offsets = st.integers(4, (4 * GIB) - 1) | st.integers(4, 20 * GIB)
# Files as the server writes them: a number, and the places at which transactions end.
files = st.lists(st.lists(offsets, min_size=1, max_size=4).map(sorted), min_size=1, max_size=6)
numbers = st.integers(1, LAST_FILE - 100) | st.sampled_from(
    [1, 1_048_570, 1_048_575, 1_048_576, 1_103_860, (1 << 21) - 2, LAST_FILE - 100]
)


def commits(first, positions):
    return [
        Entry(EntryKind.COMMIT, at(first + number, offset), 1.0)
        for number, offsets in enumerate(positions)
        for offset in offsets
    ]


def versions(checkpoint, entries, cut):
    """The version of each entry, as a load gets it that ends a few entries later."""
    tracker, found = CheckpointTracker(checkpoint), []
    for begin in range(0, len(entries), cut):
        part = entries[begin : begin + cut]
        reached = tracker.advance_all(part)
        found += [reached.version_of(entry.position) for entry in part]
    return found, tracker.checkpoint


@given(st.integers(1, 100), st.integers(1, 1_048_575), st.integers(4, (1 << 32) - 1))
def test_versions_of_today_stay_as_they_are(generation, number, offset):
    position = at(number, offset)
    assert document_version(generation, position) == old_version(generation, number, offset)
    assert Checkpoint.first(position, generation).version == old_version(generation, number, offset)


@given(st.integers(1, 3), numbers, files, st.integers(1, 5), st.booleans())
def test_versions_grow_with_the_stream(generation, first, positions, cut, counted):
    entries, start = commits(first, positions), at(first, 4)
    begun = Checkpoint.first(start, generation) if counted else Checkpoint(start, generation=1)
    if not counted and first > (1 << 31) - (1 << 21):
        return  # a checkpoint of before begins below 2^20
    found, _ = versions(begun, entries, cut)
    reported = [(e.position.order, v) for e, v in zip(entries, found, strict=True)]
    for (before, lower), (after, higher) in pairwise(reported):
        assert lower < higher or (before == after and lower == higher)
    assert all(v < 1 << 63 for v in found)
    assert found[0] > old_version(generation if counted else 1, 0, 0)


@given(numbers, files, st.integers(1, 5), st.integers(1, 5), st.data())
def test_a_crash_between_any_two_batches_changes_no_version(first, positions, cut, other, data):
    entries = commits(first, positions)
    start = Checkpoint.first(at(first, 4), 1)
    found, _ = versions(start, entries, cut)
    done = data.draw(st.integers(0, len(entries)))
    _, stored = versions(start, entries[:done], other)
    stored = Checkpoint.from_json(json.loads(json.dumps(stored.to_json())))
    again, _ = versions(stored, entries[done:], other)
    assert again == found[done:]


@given(numbers, files, numbers, files, st.integers(0, 65_000))
def test_all_after_a_move_is_above_all_before(first, positions, second, others, ahead):
    entries = commits(first, positions)
    start = Checkpoint.first(at(first, 4), 1)
    _, reached = versions(start, entries, 3)
    end = entries[-1].position
    number = min(first + len(positions) - 1 + ahead, LAST_FILE)
    unsaved = reached.version_of(at(number, end.offset))  # in the target, not in the checkpoint
    moved = reached.moved_to(at(second, 4))
    assert moved.generation - 1 <= version_generation(unsaved) + 1, "it takes little room"
    after, _ = versions(moved, commits(second, others), 3)
    assert min(after) > unsaved


@given(numbers, files)
@example(1, [[4 * GIB]])
@example(1, [[4 * GIB + 4]])
def test_a_version_says_where_it_was_made(first, positions):
    entries = commits(first, positions)
    found, reached = versions(Checkpoint.first(at(first, 4), 3), entries, 100)
    near = entries[-1].position
    texts = [version_text(version, near, reached.files) for version in found]
    assert texts == [str(entry.position) for entry in entries]


def test_files_go_on_in_the_bits_of_the_generation():
    last, next_ = at(1_048_575, 5_000), at(1_048_576, 4)
    assert document_version(1, last) == old_version(1, 1_048_575, 5_000)
    assert document_version(1, next_) == old_version(2, 0, 4)
    assert Checkpoint(next_).moved_to(at(7, 4)).generation == 3
    # What was loaded last may not be in the checkpoint.
    assert Checkpoint(last).moved_to(at(7, 4)).generation == 3


def test_a_generation_counts_from_where_it_begins():
    far = at(LAST_FILE, 4)
    begun = Checkpoint.first(far, 1)
    assert version_generation(begun.version) == 1
    assert begun.moved_to(far).generation == 3
    assert Checkpoint.first(at(1_103_860, 4), 1).version == old_version(1, 1_103_860 - (1 << 20), 4)


def test_long_files_move_up_those_behind_them():
    count = BY_NUMBER.past(5, 9 * GIB)
    assert [count.of(n) for n in (4, 5, 6, 7)] == [4, 5, 8, 9]
    assert count.past(5, 9 * GIB) is count
    assert BY_NUMBER.past(5, 4 * GIB - 1) is BY_NUMBER
    for n in range(6, 106):
        count = count.past(n, 5 * GIB)
    assert len(count.long) == 32
    assert count.of(106) == 106 + 2 + 100
    assert count.past_all([(106, 100), (107, 4 * GIB)]).of(108) == 108 + 2 + 100 + 1


def test_a_load_over_the_end_of_a_long_file_keeps_the_two_apart():
    tracker = CheckpointTracker(Checkpoint(at(5, 4)))
    long, behind = at(5, 5 * GIB), at(6, 200)
    reached = tracker.advance_all(
        [Entry(EntryKind.COMMIT, position, 1.0) for position in (long, behind)]
    )
    assert reached.files == FileCount(0, ((5, 1),))
    assert reached.version_of(long) == old_version(1, 6, GIB)
    assert reached.version_of(behind) == old_version(1, 7, 200)


def test_the_end_of_all_generations_is_reported():
    assert document_version(2_047, at(1_048_575, (1 << 32) - 1)) == (1 << 63) - 1
    for generation, position in ((2_048, at(1, 4)), (2_047, at(1_048_576, 4))):
        with pytest.raises(FatalError, match="used up its 2048 generations") as raised:
            document_version(generation, position)
        assert "under another name" in raised.value.hint
        assert "binlog numbering" not in raised.value.hint


@given(st.integers(0, (1 << 52) - 1))
def test_records_of_a_topic_have_all_the_room(offset):
    version = document_version(1, KafkaPosition("t", 0, offset))
    assert version == 1 << 52 | offset
    assert version_text(version, KafkaPosition("t", 0, 0)) == f"t[0]@{offset}"
