"""MariaDB's compressed events, made byte by byte; a server's own are in the integration tests."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.binlog.inflation import images_bytes, inflated_rows
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import DataError, FatalError
from setl.model.entry import EntryKind
from tests.unit.codec.binlog_events import EventWriter, entries_of, names

INT = (3, b"")


def images(values):
    return [b"\0" + struct.pack("<i", value) for value in values]


def transaction(writer, *squeezed):
    table = writer.table_map([INT], optional=names("id"))
    return [*writer.opening(), writer.mariadb_gtid(7), table, *squeezed, writer.xid()]


def plain_rows(kind, values):
    return EventWriter(mariadb=True, checksum=False).rows(kind, 1, images(values))


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("kind", [23, 24, 25, 30, 31, 32])
def test_compressed_rows(checksum, kind):
    writer = EventWriter(mariadb=True, checksum=checksum)
    plain = plain_rows(kind, range(300, 400))
    events = transaction(writer, writer.squeezed(plain))
    entries, _ = entries_of(events, checksum=checksum)
    assert [e.kind.name for e in entries] == ["BEGIN", "ROWS", "COMMIT"]
    rows = entries[1]
    assert rows.payload == events[-2]
    assert rows.rows == (50 if kind in (24, 31) else 100)
    codec = BinlogRowCodec()
    uncompressed = EventWriter(mariadb=True, checksum=checksum)
    expected, _ = entries_of(
        transaction(uncompressed, uncompressed.rows(kind, 1, images(range(300, 400)))),
        checksum=checksum,
    )
    got = codec.decode(rows.payload, rows.context)
    assert got.images == codec.decode(expected[1].payload, expected[1].context).images
    inflated = inflated_rows(rows.payload, checksum=checksum)
    assert (inflated[4], inflated[19:]) == (kind, plain[19:])
    assert struct.unpack_from("<I", inflated, 9)[0] == len(inflated)
    assert images_bytes(rows.payload) == 500


def test_compressed_statements():
    writer, plain = EventWriter(mariadb=True), EventWriter(mariadb=True, checksum=False)
    text = f"ALTER TABLE orders ADD größe INT /* {'x' * 400} */"
    events = [
        *writer.opening(),
        writer.mariadb_gtid(7, flags=1),
        writer.squeezed(plain.query(text)),
        writer.mariadb_gtid(8),
        writer.squeezed(plain.query("COMMIT")),
    ]
    entries, _ = entries_of(events)
    assert [e.kind.name for e in entries] == ["DDL", "BEGIN", "COMMIT"]
    assert (entries[0].schema, entries[0].table, entries[0].statement) == ("shop", "orders", text)
    insert = writer.squeezed(plain.query("INSERT INTO t VALUES (1)"))
    entries, _ = entries_of([*events, insert])
    assert entries[-2].statement == "INSERT INTO t VALUES (1)"


def test_rows_of_one_size_are_counted_exactly_though_few_are_looked_at():
    writer = EventWriter(mariadb=True)
    counts = [1, 7, 250] * 50
    squeezed = [writer.squeezed(plain_rows(23, range(n))) for n in counts]
    entries, _ = entries_of(transaction(writer, *squeezed))
    assert [e.rows for e in entries if e.kind is EntryKind.ROWS] == counts


@pytest.mark.parametrize(
    ("at", "byte", "said"),
    [(29, 0x02, "unknown way"), (29, 0xA2, "unknown way"), (32, 0, "uncompressed")],
)
def test_damage_is_reported(at, byte, said):
    writer = EventWriter(mariadb=True)
    event = bytearray(writer.squeezed(plain_rows(23, range(100))))
    event[at] = byte
    with pytest.raises(FatalError, match=said):
        entries_of(transaction(EventWriter(mariadb=True), bytes(event)))


@given(st.integers(0, 200), st.integers(0, 7))
def test_flipped_bits_never_give_other_rows_in_silence(at, bit):
    writer = EventWriter(mariadb=True)
    good = writer.squeezed(plain_rows(23, range(100)))
    entries, _ = entries_of(transaction(EventWriter(mariadb=True), good))
    context = entries[1].context
    event = bytearray(good)
    at = 29 + at % (len(event) - 33)  # behind the bitmap, in front of the checksum
    event[at] ^= 1 << bit
    codec = BinlogRowCodec()
    expected = codec.decode(good, context)
    try:
        got = codec.decode(bytes(event), context)
    except DataError:
        return
    assert got == expected  # a bit that means nothing, such as the level in zlib's header
