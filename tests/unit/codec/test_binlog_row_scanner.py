"""Rows read by code made for their table, against what the readers of their columns say."""

import struct
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.binlog.rows.column_reading import DAMAGED
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.rows.row_code import ColumnCode, images_text
from setl.codec.binlog.rows.row_scanner import TableRows
from setl.codec.binlog.tables.table_map import value_bytes
from setl.model.change import Op
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from tests.unit.codec.binlog_events import (
    SIGNABLE,
    EventWriter,
    entries_of,
    field,
    names,
    packed,
    stored,
)

# Type and metadata of a column, as a TABLE_MAP event has them.
TYPES = [
    (1, b""),  # TINYINT
    (2, b""),
    (3, b""),
    (8, b""),
    (9, b""),  # MEDIUMINT
    (4, b"\4"),  # FLOAT
    (5, b"\x08"),
    (13, b""),  # YEAR
    (10, b""),  # DATE
    *[(18, bytes([digits])) for digits in range(7)],  # DATETIME
    *[(17, bytes([digits])) for digits in range(7)],  # TIMESTAMP
    *[(19, bytes([digits])) for digits in range(7)],  # TIME
    (7, b""),
    (11, b""),
    (12, b""),
    *[
        (246, bytes([p, s]))
        for p, s in [(1, 0), (9, 2), (12, 2), (30, 4), (10, 5), (65, 30), (4, 4)]
    ],
    (15, b"\x14\0"),  # VARCHAR with one byte of length
    (15, b"\x14\4"),  # with two
    (254, b"\xfe\x14"),  # CHAR or BINARY
    *[(252, bytes([width])) for width in (1, 2, 3, 4)],
    (16, b"\3\2"),  # BIT(19)
    (254, b"\xf7\1"),  # ENUM
    (254, b"\xf8\1"),  # SET
]
LABELLED = {(254, b"\xf7\1"): 6, (254, b"\xf8\1"): 5}


class Table(NamedTuple):
    """A table whose first column is an INT, its key."""

    context: tuple
    plain: BinlogRowCodec  # reads each value by its reader
    fast: BinlogRowCodec
    codes: tuple[ColumnCode, ...] | None


def table_of(types, *, unsigned=0, nullable=-1, mariadb=False, checksum=True):
    writer = EventWriter(mariadb=mariadb, checksum=checksum)
    optional = names(*[f"c{n}" for n in range(len(types))]) + field(8, b"\0")
    bits = unsigned.to_bytes(8, "big")
    signable = sum(kind in SIGNABLE for kind, _ in types)
    optional += (
        field(1, bits.ljust(signable // 8 + 1, b"\0")[: (signable + 7) // 8])
        + field(2, packed(45))
        + field(10, packed(45))
    )
    for kind in (5, 6):
        count = sum(LABELLED.get(t) == kind for t in types)
        optional += field(kind, (packed(3) + b"\1a\1b\1c") * count) if count else b""
    event = writer.table_map(types, optional=optional, nullable=nullable)
    context = (writer.format_description(), event)
    plain, fast = BinlogRowCodec(), BinlogRowCodec()
    fast.schema(b"", context)
    rows = fast._decoders[context].rows
    plain.schema(b"", context)
    plain._decoders[context] = plain._decoders[context]._replace(rows=None)
    return Table(context, plain, fast, rows and rows.columns)


def value(draw, code):
    size = value_bytes(code.wire)
    if size >= 0:
        return draw(st.binary(min_size=size, max_size=size))
    text = draw(st.text(max_size=6)).encode()[: 255 if size == -1 else None]
    return len(text).to_bytes(-size, "little") + text


def image(draw, codes, nullable, key=None):
    nulls, data = 0, b""
    for i, code in enumerate(codes):
        if i and nullable >> i & 1 and draw(st.booleans()):
            nulls |= 1 << i
        elif i == 0 and key is not None:
            data += key
        else:
            data += value(draw, code)
    unused = draw(st.booleans()) * (256 - (1 << (len(codes) % 8 or 8)))
    width = (len(codes) + 7) // 8
    bitmap = bytearray(nulls.to_bytes(width, "little"))
    bitmap[-1] |= unused & 255  # a server sets the bits of no column
    return bytes(bitmap) + data


def said(read):
    try:
        return read()
    except DAMAGED:
        return "damaged"
    except Exception as error:  # noqa: BLE001
        return str(error)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_code_reads_what_readers_read_whatever_the_bytes(data):
    types = [(3, b""), *data.draw(st.lists(st.sampled_from(TYPES), max_size=12))]
    nullable = data.draw(st.integers(0, (1 << len(types)) - 1)) & ~1
    table = table_of(types, unsigned=data.draw(st.integers(0, 2**64 - 1)), nullable=nullable)
    images = [image(data.draw, table.codes, nullable) for _ in range(data.draw(st.integers(0, 4)))]
    writer = EventWriter()
    event = writer.rows(30, len(types), images)
    if data.draw(st.integers(0, 9)) == 0:  # and where it ends too early
        event = writer.event(30, event[19 : -4 - data.draw(st.integers(1, 8))])
    plain = said(lambda: table.plain.decode(event, table.context))
    fast = said(lambda: table.fast.decode(event, table.context))
    assert repr(fast) == repr(plain)
    if not isinstance(plain, str) and table.codes:
        rows = rows_of_table(table.fast, table.context)
        for (_, row), raw in zip(plain.images, images, strict=False):
            alone = said(lambda raw=raw: rows.image(raw, 0))
            # It may leave bytes that make no sense to the readers.
            assert alone == "damaged" or repr(alone) == repr(row)


def scanner_of(codec, context, key):
    scanner = codec.scanner(context, key)
    assert scanner is not None
    return scanner


def rows_of_table(codec, context):
    rows = codec._decoders[context].rows
    assert rows is not None
    return rows


def test_code_reads_what_a_server_wrote():
    events, reported = stored("every_type")
    start = BinlogPosition(reported["start"]["file"], reported["start"]["offset"])
    entries, _ = entries_of(events, start)
    fast, plain = BinlogRowCodec(), BinlogRowCodec()
    seen = 0
    for entry in (e for e in entries if e.kind is EntryKind.ROWS):
        context, payload = entry.context, entry.payload
        plain.schema(payload, context)
        plain._decoders[context] = plain._decoders[context]._replace(rows=None)
        rows = [after for _, after in plain.decode(payload, context).images]
        scanned = scanner_of(fast, context, lambda _: (0,)).scan(payload, 0, 7)
        assert scanned.reached == len(payload)
        assert repr(scanned.rows) == repr(rows)
        assert scanned.keys == [row[0] for row in rows if row]
        assert set(scanned.versions) == {7}
        seen += len(rows)
    assert seen > 5


INT_TEXT = [(3, b""), (15, b"\x14\0"), (3, b"")]


def row_image(key, text, number):
    nulls = (text is None) << 1 | (number is None) << 2
    data = bytes([nulls]) + struct.pack("<i", key)
    if text is not None:
        data += bytes([len(text.encode())]) + text.encode()
    return data + (b"" if number is None else struct.pack("<i", number))


rows_of = st.tuples(
    st.integers(0, 4), st.none() | st.text(max_size=4), st.none() | st.integers(-9, 9)
)
changes = st.one_of(
    st.tuples(st.just("insert"), st.lists(rows_of, min_size=1, max_size=3)),
    st.tuples(st.just("delete"), st.lists(rows_of, min_size=1, max_size=3)),
    st.tuples(st.just("update"), st.lists(st.tuples(rows_of, rows_of), min_size=1, max_size=3)),
    st.tuples(st.just("same key"), st.lists(st.tuples(rows_of, rows_of), min_size=1, max_size=3)),
    st.tuples(st.just("left out"), st.lists(rows_of, min_size=1, max_size=2)),
)
KINDS = {"insert": 23, "delete": 25, "update": 24, "same key": 24, "left out": 25}


def event_of(writer, what, rows, *, second):
    images, present = [], None
    for row in rows:
        if what == "left out":
            images.append(b"\0" + struct.pack("<i", row[0]))
            present = b"\1"
        elif what in ("insert", "delete"):
            images.append(row_image(*row))
        else:
            before, after = row
            images.append(row_image(*before))
            images.append(row_image(before[0] if what == "same key" else after[0], *after[1:]))
    return writer.rows(KINDS[what] + (7 if second else 0), 3, images, present=present)


@given(
    st.lists(changes, max_size=6),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([4, 2**32 - 150]),
)
def test_a_scan_says_what_decoding_says_up_to_what_is_out_of_the_ordinary(
    run, second, checksum, filled, offset
):
    table = table_of(INT_TEXT, checksum=checksum)
    writer = EventWriter(checksum=checksum, offset=offset, filled=filled)
    payload = b"".join(event_of(writer, *change, second=second) for change in run)
    scanned = scanner_of(table.fast, table.context, lambda _: (0,)).scan(payload, 0, 10_000)
    expected, reached = [], 0
    scanner = scanner_of(table.fast, table.context, lambda _: (0,))
    for (older, record), (what, _) in zip(table.plain.records(payload), run, strict=False):
        decoded = table.plain.decode(record, table.context)
        moved = decoded.op is Op.UPDATE and any(b and a and b[0] != a[0] for b, a in decoded.images)
        if what == "left out" or moved:
            break
        for before, after in decoded.images:
            row = after or before
            assert row
            expected.append((row[0], after, 10000 - older))
        reached += len(record)
    assert scanned.reached == reached
    found = [
        (key, scanner.row(payload, row) if isinstance(row, int) else row, version)
        for key, row, version in zip(scanned.keys, scanned.rows, scanned.versions, strict=True)
    ]
    assert found == expected


@pytest.mark.parametrize("size", [0, 18, 10**6, 2**31])
def test_a_size_that_makes_no_sense_ends_the_scan(size):
    table = table_of(INT_TEXT)
    event = event_of(EventWriter(), "insert", [(1, "a", 2)], second=True)
    broken = event[:9] + struct.pack("<I", size) + event[13:]
    scanned = scanner_of(table.fast, table.context, lambda _: (0,)).scan(event + broken, 0, 5)
    assert (scanned.keys, scanned.reached) == ([1], len(event))


def test_a_null_in_the_key_or_where_none_can_be_is_not_guessed_at():
    table = table_of(INT_TEXT, nullable=0b100)
    event = EventWriter().rows(30, 3, [b"\2" + struct.pack("<ii", 1, 2)])
    scanned = scanner_of(table.fast, table.context, lambda _: (0,)).scan(event, 0, 5)
    assert (scanned.keys, scanned.reached) == ((), 0)
    assert table.fast.decode(event, table.context).images == [(None, (1, None, 2))]


def test_keys_of_several_columns_come_in_their_order():
    table = table_of([(3, b""), (15, b"\x14\0"), (15, b"\x14\4")])
    data = b"\0" + struct.pack("<i", 5) + b"\1x" + b"\1\0y"
    event = EventWriter().rows(30, 3, [data])
    scanned = scanner_of(table.fast, table.context, lambda _: (2, 0)).scan(event, 0, 1)
    assert scanned.keys == [("y", 5)]


def test_tables_of_very_many_columns_are_read_by_readers():
    table = table_of([(3, b"")] * 600)
    assert table.fast.scanner(table.context, lambda _: (0,)) is None
    event = EventWriter().rows(30, 600, [b"\0" * 75 + struct.pack("<i", 7) * 600])
    assert table.fast.decode(event, table.context).images == [(None, (7,) * 600)]


def test_text_of_the_code_holds_nothing_of_the_stream():
    table = table_of(INT_TEXT)
    assert table.codes is not None
    text, _ = images_text(table.codes)
    assert "c0" not in text
    assert TableRows(table.codes).image(row_image(3, "ö", None), 0) == (3, "ö", None)
