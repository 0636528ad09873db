"""A transaction that takes its file beyond 4 GiB, and files that follow: versions grow."""

from itertools import pairwise

import pytest

from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition, version_text
from setl.transform.work import WorkItem, codec_named, single_items
from tests.unit.codec.binlog_events import EventWriter, entries_of, mysql_transaction, one_row

CODEC = codec_named("binlog")
FOUR_GIB = 1 << 32


def stream(without_position):
    """Three transactions: over the bound, all behind it, and in the next file."""
    begin = FOUR_GIB - 300
    writer = EventWriter(file="binlog.1048575", offset=begin, without_position=without_position)
    events = [
        *writer.opening(),
        *mysql_transaction(writer, 1, *[one_row] * 9),
        *mysql_transaction(writer, 2, one_row),
        writer.rotate("binlog.1048576"),
        writer.format_description(),
        *mysql_transaction(writer, 3, *[one_row] * 3),
    ]
    start = BinlogPosition("binlog.1048575", begin)
    entries, _ = entries_of(events, start, chunk_events=4)
    return start, entries


@pytest.mark.parametrize("without_position", [(), (19, 30)])
def test_versions_grow_over_the_bound_and_over_the_file_behind_it(without_position):
    start, entries = stream(without_position)
    tracker = CheckpointTracker(Checkpoint(start))
    reached = tracker.advance_all(entries)
    offsets = [e.position.offset for e in entries if e.position.file == start.file]
    assert offsets[0] < FOUR_GIB < offsets[-1]
    assert [number for number, _ in reached.files.long] == [1_048_575]
    versions = []
    for entry in entries:
        version = reached.version_of(entry.position)
        assert version_text(version, reached.resume, reached.files) == str(entry.position)
        if entry.kind is EntryKind.ROWS:
            item = WorkItem((0,), version, entry.context, entry.payload)
            versions += [single.version for single in single_items(CODEC, [item])]
        else:
            versions.append(version)
    assert len(versions) >= 13 + 3
    assert all(before < after for before, after in pairwise(versions))


def test_whoever_goes_on_behind_any_entry_counts_alike():
    start, entries = stream(())
    whole = CheckpointTracker(Checkpoint(start)).advance_all(entries)
    for done in range(len(entries) + 1):
        tracker = CheckpointTracker(Checkpoint(start))
        stored = Checkpoint.from_json(tracker.advance_all(entries[:done]).to_json())
        # What follows `resume` is read again.
        rest = [e for e in entries if e.position.order > stored.resume.order]
        again = CheckpointTracker(stored).advance_all(rest)
        assert [again.version_of(e.position) for e in rest] == [
            whole.version_of(e.position) for e in rest
        ]
