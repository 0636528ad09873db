"""From the bytes of a binlog to the bytes of DTS records, and back through their readers."""

import struct
from dataclasses import dataclass
from itertools import pairwise

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.dts.envelope import read_envelope
from setl.codec.dts.header import read_header
from setl.codec.dts.record_writer import DtsRecordWriter
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.dts.table_form import DtsTableForms
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.model.position import BinlogOrigin, BinlogPosition, KafkaPosition
from setl.relay.dts import DtsSerializer
from setl.relay.interceptor import Interceptor
from setl.relay.partitioning import Partitioner
from setl.relay.sequence import Sequencer
from tests.unit.codec.binlog_events import EventWriter, entries_of, field, names
from tests.unit.relay.relay_streams import (
    ShopIsMapped,
    last_positions,
    ordinals,
    position,
    value_of,
)

_KEY = field(8, b"\0")  # the first column
START = BinlogPosition("binlog.000007", 4, "", BinlogOrigin("srv-1"))


@dataclass
class Stopped:
    """A clock that stands still, so that replays give the same bytes."""

    def monotonic(self):
        return 0.0

    def now(self):
        return 1.7e9


def whole(*numbers):
    return [b"\0" + struct.pack("<i", number) for number in numbers]


def binlog(mariadb=False):
    """A file with a mark, rows of two tables of which one is mapped, a key change and DDL."""
    events = EventWriter(mariadb=mariadb)
    yield from events.opening()
    yield events.mariadb_gtid(42, flags=0) if mariadb else events.gtid(42)
    yield events.query("BEGIN")
    insert, update, delete = (23, 24, 25) if mariadb else (30, 31, 32)
    integer = [(3, b"")]
    id_is_key = names("id") + _KEY
    yield events.table_map(
        integer, schema="retl", table="retl_mark", table_id=5, optional=id_is_key
    )
    yield events.rows(update, 1, whole(1, 2), table_id=5)
    yield events.table_map(integer, schema="other", table="t", table_id=6, optional=id_is_key)
    yield events.rows(insert, 1, whole(1, 2, 3), table_id=6)
    yield events.table_map(integer, table="orders", optional=id_is_key)
    yield events.rows(insert, 1, whole(*range(8)))
    yield events.rows(update, 1, whole(0, 100, 1, 101, 2, 102, 3, 103))
    yield events.rows(delete, 1, whole(7))
    yield events.xid()
    yield events.mariadb_gtid(43, flags=1) if mariadb else events.gtid(43)
    yield events.query("ALTER TABLE orders ADD x INT")


def sequencer(by, partitions, last=None):
    return Sequencer(
        Checkpoint(START, generation=2),
        last or [None] * partitions,
        interceptor=Interceptor(ShopIsMapped()),
        partitioner=Partitioner(by, partitions),
        codec=BinlogRowCodec(),
        serializer=DtsSerializer(DtsRecordWriter("8.4.3"), DtsTableForms(), Stopped()),
    )


def rows_of(records):
    codec = DtsRowCodec()
    for offset, record in enumerate(records):
        entry = read_header(value_of(record), KafkaPosition("t", record.partition, offset + 1))
        if entry.kind is EntryKind.ROWS:
            _, op, images = codec.decode(entry.payload, entry.context)
            yield entry.table, op.value, *images[0]


def test_records_say_what_the_binlog_said():
    entries, reader = entries_of(binlog(), START)
    relay = sequencer("order", 1)
    records = [r for entry in entries for r in relay.records([entry]).records]
    assert [r.partition for r in records] == [0] * len(records)
    envelopes = [read_envelope(value_of(r)) for r in records]
    assert [e.operation for e in envelopes] == [
        *("BEGIN", "UPDATE"),
        *["INSERT"] * 8,
        *["UPDATE"] * 4,
        *("DELETE", "COMMIT", "DDL"),
    ]
    gtid = "9d437549-9a4c-11ea-9659-9efc635af2ae"
    assert envelopes[0].tags["GTID"] == f"{gtid}:42"
    assert envelopes[-1].tags["GTID"] == f"{gtid}:43"
    assert {e.tags["server_id"] for e in envelopes if e.columns} == {"1"}
    assert {e.safe_position for e in envelopes[:-1]} == {"4@7"}
    ids = [e.id for e in envelopes]
    assert ids == sorted(set(ids))
    assert list(rows_of(records)) == [
        ("retl_mark", "update", (1,), (2,)),
        *[("orders", "insert", None, (n,)) for n in range(8)],
        *[("orders", "update", (n,), (100 + n,)) for n in range(4)],
        ("orders", "delete", (7,), None),
    ]
    assert position(records[0]).transaction == (
        *(2, "binlog.000007", 4, "srv-1", 1, 1_700_000_000, f"{gtid}:42", "dts"),
    )
    assert relay.checkpoint.resume == reader.position
    heartbeats = relay.heartbeat(1.7e9)
    assert [read_envelope(value_of(r)).operation for r in heartbeats] == ["HEARTBEAT"]
    assert read_envelope(value_of(heartbeats[0])).position == f"{reader.position.offset}@7"


def test_any_position_to_stop_gives_the_same_bytes_in_the_end():
    for mariadb in (False, True):
        entries, _ = entries_of(binlog(mariadb=mariadb), START)
        expected = [[], [], []]
        for record in sequencer("key", 3).records(entries).records:
            expected[record.partition].append(record)
        assert all(len(ordinals(p)) == len(p) > 4 for p in expected)
        for n in range(max(map(len, expected)) + 1):
            held = [records[: max(0, n - p)] for p, records in enumerate(expected)]
            again = sequencer("key", 3, last_positions(held)).records(entries).records
            for record in again:
                held[record.partition].append(record)
            assert held == expected


def test_rows_that_move_leave_one_partition_and_come_to_another():
    entries, _ = entries_of(binlog(), START)
    rows = list(rows_of(sequencer("key", 3).records(entries).records))
    state = set()
    for table, _, before, after in rows:
        if table == "orders":
            state ^= {image for image in (before, after) if image is not None}
    assert state == {(n,) for n in (4, 5, 6, 100, 101, 102, 103)}
    assert ["delete", "insert"] in [[a[1], b[1]] for a, b in pairwise(rows)]


def test_events_that_are_joined_give_the_same_records():
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(42), writer.query("BEGIN")]
    for number in range(40):
        events.append(writer.table_map([(3, b"")], table="orders", optional=names("id") + _KEY))
        events.append(writer.rows(30, 1, whole(number, number + 100)))
        writer.seconds += number == 20
    events.append(writer.xid())
    alone, _ = entries_of(events, START)
    expected = sequencer("key", 3).records(alone)
    assert expected.rows == 80
    for chunk_events in (3, 1000):
        joined, _ = entries_of(events, START, chunk_events=chunk_events)
        assert len(joined) < len(alone)
        assert sequencer("key", 3).records(joined) == expected
