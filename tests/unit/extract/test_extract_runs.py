"""Extract over entries in which several records are joined."""

import struct
from dataclasses import replace

import pytest

from setl.channel.routes.routing import Route
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.row_codec import single_entries
from setl.errors import PositionLostError
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.entry import EntryKind
from tests.unit.codec.binlog_events import START, EventWriter, entries_of, names

INT = (3, b"")
OWN, OTHER = 7, 8
CODEC = BinlogRowCodec()


class Orders:
    """Maps `shop.orders` and `shop.lines`, and nothing else."""

    def route(self, schema, table):
        return (Route(index=0, target=("t", table)),) if table in {"orders", "lines"} else ()

    def shadow(self, schema, table):
        return None


def order(writer, number, table="orders", table_id=9):
    return [
        writer.table_map([INT], table=table, table_id=table_id, optional=names("id")),
        writer.rows(30, 1, [b"\0" + struct.pack("<i", number)], table_id=table_id),
    ]


def mark(writer, channel):
    columns = names("ID", "CHANNEL_ID")
    return [
        writer.table_map(
            [INT, INT], schema="retl", table="retl_mark", table_id=5, optional=columns
        ),
        writer.rows(30, 2, [b"\0" + struct.pack("<ii", 1, channel)], table_id=5),
    ]


def events_of(*steps):
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN")]
    for step in steps:
        events += step(writer)
    return [*events, writer.xid()]


def orders(count, first=0):
    return [lambda w, n=n: order(w, n) for n in range(first, first + count)]


def extracted(entries, checkpoint=None, mark_id=OWN):
    extractor = Extractor(Orders(), MarkIdentity(mark_id), CODEC)
    checkpoint = checkpoint or Checkpoint(START)
    extractor.reset(checkpoint)
    after = CheckpointTracker(checkpoint).advance_all(entries)
    return extractor.extract(Batch(1, 1, entries, after, sum(e.rows for e in entries), 0))


def records(found):
    return [one.payload for rows in found.rows for one in single_entries(CODEC, rows.entry)]


def row_entries(entries):
    return [e for e in entries if e.kind is EntryKind.ROWS]


@pytest.mark.parametrize("joined", [1, 2, 3, 5, 30])
@pytest.mark.parametrize("marks", [[], [lambda w: mark(w, OTHER)]])
def test_what_is_applied_is_cut_off_wherever_it_ends(joined, marks):
    events = events_of(*marks, *orders(10))
    alone = row_entries(entries_of(events)[0])
    alone = [e for e in alone if e.table == "orders"]
    joined_entries, _ = entries_of(events, chunk_events=joined)
    for applied, last in enumerate(alone, 1):
        checkpoint = Checkpoint(START, applied=last.position)
        found = extracted(joined_entries, checkpoint)
        assert records(found) == [e.payload for e in alone[applied:]]
        assert found.counts.repeated == applied
        assert found.counts.rows == 10 - applied
        positions = [one.position for r in found.rows for one in single_entries(CODEC, r.entry)]
        assert positions == [e.position for e in alone[applied:]]


@pytest.mark.parametrize("joined", [1, 3, 30])
def test_another_transaction_at_the_position_of_one_that_is_applied_in_part_is_an_error(joined):
    """A source that crashed may have lost it, and what follows the boundary is another one."""
    alone = row_entries(entries_of(events_of(*orders(10)))[0])
    applied = alone[4]
    assert applied.transaction
    checkpoint = Checkpoint(START, applied=applied.position, transaction=applied.transaction)
    same, _ = entries_of(events_of(*orders(10)), chunk_events=joined)
    assert len(records(extracted(same, checkpoint))) == 5
    # It is known by its GTID; or by its rows, of which one has to end where the last one did.
    gone = replace(checkpoint, transaction="some other one")
    for lost, entries in (
        (gone, same),
        (Checkpoint(START, applied=moved(applied.position, -1)), same),
        (Checkpoint(START, applied=moved(same[-2].position, 1)), same),
        (replace(checkpoint, transaction=""), [same[0], same[-1]]),
    ):
        with pytest.raises(PositionLostError, match=f"a part of .*, which followed {START}"):
            extracted(entries, lost)


def moved(position, offset):
    return replace(position, offset=position.offset + offset)


def test_what_is_applied_is_cut_off_where_runs_lie_between_each_other():
    """A reader that has joined less may have left such a checkpoint."""
    steps = [
        (lambda w, n=n: order(w, n, "lines", 6)) if n % 3 else (lambda w, n=n: order(w, n))
        for n in range(9)
    ]
    events = events_of(*steps)
    alone = row_entries(entries_of(events)[0])
    mixed, _ = entries_of(events, chunk_events=30, mixes=lambda _: True)
    assert len(row_entries(mixed)) == 2
    for applied, last in enumerate(alone, 1):
        found = extracted(mixed, Checkpoint(START, applied=last.position))
        positions = [one.position for r in found.rows for one in single_entries(CODEC, r.entry)]
        assert sorted(positions, key=lambda p: p.order) == [e.position for e in alone[applied:]]
        assert found.counts.repeated == applied


def test_a_run_that_is_not_cut_stays_whole():
    entries, _ = entries_of(events_of(*orders(10)), chunk_events=30)
    (rows,) = extracted(entries).rows
    assert rows.entry is entries[1]


def test_each_mark_of_a_run_speaks_for_what_follows_it():
    """The last one counts: a loader's transaction whose begin and commit are missing."""
    steps = [lambda w: [*mark(w, OTHER), *mark(w, OWN)], *orders(3)]
    entries, _ = entries_of(events_of(*steps), chunk_events=30)
    assert len(row_entries(entries)) == 2
    found = extracted(entries)
    assert found.rows == []
    assert found.counts.loopback_rows == 3
    assert found.counts.echoes_dropped == 1
    assert len(records(extracted(entries, mark_id=9))) == 3
