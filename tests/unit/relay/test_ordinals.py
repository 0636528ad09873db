"""Ordinals of rows in compressed transactions, where a row takes less than a byte."""

import struct
from itertools import pairwise

import pytest

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.dts.relayed import LAST
from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition
from setl.relay.interceptor import Interceptor
from setl.relay.partitioning import Partitioner
from setl.relay.sequence import Ordinals, Sequencer
from tests.unit.codec.binlog_events import START, EventWriter, entries_of, field, names
from tests.unit.relay.relay_streams import AsText, ShopIsMapped, position, value_of

INT = (3, b"")
KEYED = names("id") + field(8, b"\0")
TABLES = ("shop.orders", "other.t", "shop.items")


def images(count):
    return [b"\0" + struct.pack("<i", 5)] * count


def payload_binlog():
    """MySQL: two transactions, the first with 6000 rows in 12 events."""
    writer, inner = EventWriter(), EventWriter(checksum=False)
    events = [*writer.opening()]
    for number in (1, 2):
        held = [inner.query("BEGIN")]
        for n in range(12 // number):
            schema, _, table = TABLES[n % 3].partition(".")
            held.append(inner.table_map([INT], schema=schema, table=table, optional=KEYED))
            held.append(inner.rows(30, 1, images(500)))
        events += [writer.gtid(number), writer.payload([*held, inner.xid()])]
    return events


def squeezed_binlog():
    """MariaDB: the same, each event compressed."""
    writer, plain = EventWriter(mariadb=True), EventWriter(mariadb=True, checksum=False)
    events = [*writer.opening()]
    for number in (1, 2):
        events.append(writer.mariadb_gtid(number))
        for n in range(12 // number):
            schema, _, table = TABLES[n % 3].partition(".")
            events.append(writer.table_map([INT], schema=schema, table=table, optional=KEYED))
            events.append(writer.squeezed(plain.rows(23, 1, images(500))))
        events.append(writer.xid())
    return events


def sequencer(start, last, partitions=1):
    return Sequencer(
        Checkpoint(start),
        last,
        interceptor=Interceptor(ShopIsMapped()),
        partitioner=Partitioner("order", partitions),
        codec=BinlogRowCodec(),
        serializer=AsText(),
    )


@pytest.mark.parametrize("binlog", [payload_binlog, squeezed_binlog])
def test_every_row_has_a_position_of_its_own(binlog):
    events = binlog()
    entries, _ = entries_of(events)
    assert sum(map(len, events)) < 6000  # fewer bytes than rows
    records = sequencer(START, [None]).records(entries).records
    positions = [position(record).order for record in records]
    assert len(positions) == 4000 + 2000 + 4
    assert all(a < b for a, b in pairwise(positions))
    ids = [int(value_of(r).decode().rpartition("] ")[2].split()[0]) for r in records]
    first = next(i for i, r in enumerate(records) if position(r).ordinal == LAST)
    assert all(a < b for a, b in pairwise(ids[: first + 1]))


@pytest.mark.parametrize("binlog", [payload_binlog, squeezed_binlog])
def test_a_relay_that_dies_between_two_rows_goes_on_behind_them(binlog):
    entries, _ = entries_of(binlog())
    whole = sequencer(START, [None]).records(entries).records
    for cut in (1, 2, 500, 501, 777, 4001, 4002, 4003, len(whole) - 1):
        last = [position(whole[cut - 1])]
        rest = sequencer(START, last).records(entries).records
        assert rest == whole[cut:]


def test_without_compression_it_is_the_distance():
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN")]
    for n in range(6):
        events.append(writer.table_map([INT], optional=KEYED))
        events.append(writer.rows(30, 1, images(n + 1)))
    entries, _ = entries_of([*events, writer.xid()])
    ordinals = Ordinals()
    ordinals.begin(START)
    for entry in entries[1:]:
        assert isinstance(entry.position, BinlogPosition)
        distance = entry.position.offset - START.offset
        assert ordinals.advance(entry, entry.position) == distance == ordinals.last


def test_damage_is_reported():
    entry = Entry(EntryKind.ROWS, START, 0.0, payload=b"\0" * 4 + b"\xa6" + b"\0" * 40)
    with pytest.raises(FatalError, match="damaged"):
        Ordinals().advance(entry, START)
