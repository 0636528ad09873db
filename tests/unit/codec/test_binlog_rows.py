import contextlib
import struct
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn, digit_bytes, value_bytes
from setl.codec.binlog.values.value_number import decimal_reader, shortest_float
from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, Op
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.model.schema import COLUMN_KINDS, Kind
from setl.printable import text_of_bytes
from tests.unit.codec.binlog_events import (
    EventWriter,
    entries_of,
    field,
    labels,
    names,
    packed,
    stored,
)
from tests.unit.codec.binlog_server import comparable

INT = (3, b"")


def decode(
    columns, images, *, optional, kind=30, mariadb=False, extra=b"", present=None, filled=False
):
    """Decode one hand-made event."""
    writer = EventWriter(mariadb=mariadb, filled=filled)
    format_description = writer.format_description()
    table_map = writer.table_map(columns, optional=optional)
    event = writer.rows(kind, len(columns), images, extra=extra, present=present)
    return BinlogRowCodec().decode(event, (format_description, table_map))


def test_events_captured_from_a_server():
    events, said = stored("every_type")
    start = BinlogPosition(said["start"]["file"], said["start"]["offset"])
    entries, _ = entries_of(events, start)
    codec = BinlogRowCodec()
    rows = [codec.decode(e.payload, e.context) for e in entries if e.kind is EntryKind.ROWS]
    schema = rows[0].schema
    assert list(schema.names) == said["columns"]
    expected = [
        tuple(bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for v in row)
        for row in said["rows"]
    ]
    got = [comparable(schema, after) for r in rows for _, after in r.images]
    assert got == expected
    assert len(got) > 5
    assert {c.kind for c in schema.columns} == set(COLUMN_KINDS) - {Kind.JSON}


def test_mysql_rows_with_extra_data():
    rows = decode(
        [INT, (15, struct.pack("<H", 40))],
        [b"\0" + struct.pack("<i", -5) + b"\2hi", b"\2" + struct.pack("<i", 6)],
        optional=names("id", "name") + field(2, packed(45)) + field(8, b"\0"),
        extra=b"\0\5abc",
    )
    assert rows.op is Op.INSERT
    assert rows.schema.key == (0,)
    assert rows.images == [(None, (-5, "hi")), (None, (6, None))]


@pytest.mark.parametrize("kind", [30, 31, 32])
def test_bits_behind_the_last_column_mean_nothing(kind):
    """MySQL 9.7 sets them in the bitmap of the columns that are there."""
    image = b"\xf8" + struct.pack("<iii", 1, 2, 3)
    images = [image] * (2 if kind == 31 else 1)
    rows = decode([INT] * 3, images, optional=names("a", "b", "c"), kind=kind, filled=True)
    before = None if kind == 30 else (1, 2, 3)
    assert rows.images == [(before, None if kind == 32 else (1, 2, 3))]


@pytest.mark.parametrize(("mariadb", "kind"), [(False, 242), (True, 255)])
def test_a_binary_type_that_a_family_lists_among_those_with_a_charset(mariadb, kind):
    """VECTOR of MySQL 9 and the spatial types of MariaDB; the others are not listed."""
    text = (15, struct.pack("<H", 40))
    columns = [INT, (kind, b"\4"), text, text, text]
    charsets = field(2, packed(45) + packed(0) + packed(63) + packed(2) + packed(8))
    image = struct.pack("<iI", 1, 4) + b"abcd" + b"\2\xc3\xbc" + b"\1\xfc" + b"\2\xc3\xbc"
    optional = names("id", "v", "a", "b", "c") + charsets
    rows = decode(columns, [b"\0" + image], optional=optional, mariadb=mariadb)
    assert rows.images == [(None, (1, b"abcd", "ü", "ü", "ü"))]


@pytest.mark.parametrize("filled", [False, True])
def test_columns_that_an_image_leaves_out_are_absent(filled):
    rows = decode(
        [INT, INT, INT],
        [b"\2" + struct.pack("<i", 1)],
        optional=names("a", "b", "c"),
        present=b"\5",
        kind=32,
        filled=filled,
    )
    assert rows.images == [((1, ABSENT, None), None)]


def test_a_hidden_column_may_be_left_out_of_whole_images():
    """As MariaDB 11.8 does in updates of tables with a unique key over long values."""
    rows = decode(
        [INT, (8, b"")],
        [b"\0" + struct.pack("<i", 1)] * 2,
        optional=names("id", "DB_ROW_HASH_1") + field(8, b"\0"),
        present=b"\1",
        kind=24,
        mariadb=True,
    )
    assert rows.images == [((1,), (1,))]


@pytest.mark.parametrize(
    ("kind", "present", "after", "images"),
    [
        (30, 0b01, None, [(1,)]),
        (31, 0b11, 0b01, [(1, 2), (1,)]),  # perhaps a REPLACE
        (31, 0b01, 0b01, [(5,), (6,), (1,), (1,)]),
        (39, 0b11, 0b01, [(1, 2), (1,)]),
    ],
)
def test_images_that_do_not_say_what_became_of_a_column_are_refused(kind, present, after, images):
    with pytest.raises(DataError, match=r"leaves columns out.*binlog_row_image='FULL'") as caught:
        decode_keyed(kind, present, after, images)
    assert caught.value.where["table"] == "orders"


@pytest.mark.parametrize(
    ("present", "after", "images"),
    [
        (0b01, 0b10, [(1,), (2,)]),  # the key is as it was
        (0b01, 0b01, [(1,), (2,)]),  # the key is another one; compaction looks after the rest
        (0b01, 0b11, [(1,), (1, 2)]),
    ],
)
def test_updates_that_say_what_they_set_are_read(present, after, images):
    rows = decode_keyed(31, present, after, images)
    assert len(rows.images) == 1


@pytest.mark.parametrize(
    ("after", "images", "row"),
    [
        (0b01, [(1, 2), (1,)], (1, 2)),
        (0b01, [(1, 2), (3,)], (3, 2)),
        (0b10, [(1, 2), (4,)], (1, 4)),
    ],
)
def test_updates_of_mariadb_that_say_nothing_twice(after, images, row):
    """With FULL_NODUP, where the image before an update is whole."""
    rows = decode_keyed(24, 0b11, after, images, mariadb=True)
    assert rows.images == [((1, 2), row)]


def test_an_update_of_mariadb_with_the_key_alone_may_be_a_replace():
    with pytest.raises(DataError, match="set to their defaults"):
        decode_keyed(24, 0b01, 0b01, [(1,), (1,)], mariadb=True)


def decode_keyed(kind, present, after, images, *, mariadb=False):
    """Rows of a table of two integers, the first of them the key."""
    writer = EventWriter(mariadb=mariadb)
    context = (
        writer.format_description(),
        writer.table_map([INT, INT], optional=names("id", "n") + field(8, b"\0")),
    )
    body = struct.pack("<IHHH", 9, 0, 1, 2) + b"\2" + bytes([present])
    if kind == 24:  # without the extra data
        body = body[:8] + body[10:]
    body += b"" if after is None else bytes([after])
    for n, image in enumerate(images):
        options = b"\0" if kind == 39 and n % 2 else b""
        body += options + b"\0" + b"".join(struct.pack("<i", value) for value in image)
    return BinlogRowCodec().decode(writer.event(kind, body), context)


def test_a_set_with_a_label_beyond_its_bits():
    """MariaDB does not count labels that are named again, so that one may be the 65th."""
    rows = decode(
        [(254, b"\xf8\x08")],
        [b"\0" + struct.pack("<Q", 1 << 63 | 1), b"\0" + struct.pack("<Q", 2)],
        optional=names("s") + labels(5, [*(f"l{n}" for n in range(64)), "l0"]) + field(11, b"\x2d"),
        mariadb=True,
    )
    assert rows.images == [(None, ("l0,l63",)), (None, ("l1",))]


def test_keys_with_prefixes_do_not_compare_by_bytes():
    binary = (15, struct.pack("<H", 8))
    rows = decode(
        [binary, binary],
        [b"\0\1a\1b"],
        optional=names("a", "b") + field(2, packed(63)) + field(9, b"\1\0\0\3"),
    )
    assert rows.schema.key == (1, 0)
    assert [c.binary_order for c in rows.schema.columns] == [False, True]


def test_tables_without_names_are_refused():
    with pytest.raises(ConfigurationError, match="binlog_row_metadata=FULL") as caught:
        decode([INT], [b"\0\1\0\0\0"], optional=field(1, b"\0"))
    assert caught.value.where == {"schema": "shop", "table": "orders"}


def test_unknown_types_and_collations_are_refused_by_name():
    with pytest.raises(DataError, match="type that is not known") as caught:
        decode([INT, (99, b"")], [b"\0\1\0\0\0"], optional=names("id", "odd"))
    assert caught.value.where["column"] == "odd"
    with pytest.raises(DataError, match="collation that is not known") as caught:
        decode([(15, b"\5\0")], [b"\0\1a"], optional=names("odd") + field(2, packed(1023)))
    assert caught.value.where["column"] == "odd"


def test_text_that_is_none_stays_bytes_and_the_rows_beside_it_are_read():
    text = (15, struct.pack("<H", 8))
    rows = decode(
        [INT, text],
        [b"\0\1\0\0\0" + b"\2a\xff", b"\0\2\0\0\0" + b"\1b"],
        optional=names("id", "odd") + field(2, packed(45)),
    )
    after = [image for _, image in rows.images]
    assert after == [(1, text_of_bytes("utf8mb4", "61FF")), (2, "b")]


def test_a_value_that_cannot_be_decoded_names_its_column():
    text, json = (15, struct.pack("<H", 8)), (245, b"\1")
    with pytest.raises(DataError) as caught:
        decode(
            [INT, text, json],
            [b"\0\1\0\0\0" + b"\1a" + b"\1\xff"],
            optional=names("id", "good", "bad") + field(2, packed(45)),
        )
    assert caught.value.where == {"schema": "shop", "table": "orders", "column": "bad"}


@pytest.mark.parametrize(
    "images",
    [
        [b"\0\1\0\0"],  # ends inside a value
        [b"\0\1\0\0\0", b"\0"],  # ends after a row began
        [b"\0\1\0\0\0\0\1\0\0\0\0"],
    ],
)
def test_rows_that_end_elsewhere_than_the_event_are_refused(images):
    with pytest.raises(DataError, match="cannot be decoded"):
        decode([INT], images, optional=names("id"))


def test_an_update_with_an_odd_number_of_images_is_refused():
    with pytest.raises(DataError):
        decode([INT], [b"\0\1\0\0\0"] * 3, optional=names("id"), kind=31)


def test_an_event_of_another_table_is_refused():
    writer = EventWriter()
    context = (writer.format_description(), writer.table_map([INT], optional=names("id")))
    with pytest.raises(DataError, match="2 columns where the table has 1"):
        BinlogRowCodec().decode(writer.rows(30, 2, [b"\0" + b"\1" * 8]), context)


def test_the_schema_is_one_object_for_one_context():
    writer = EventWriter()
    context = (writer.format_description(), writer.table_map([INT], optional=names("id")))
    event = writer.rows(30, 1, [b"\0\1\0\0\0"])
    codec = BinlogRowCodec()
    first = codec.decode(event, context)
    again = codec.decode(event, tuple(bytes(bytearray(part)) for part in context))
    assert first == again
    assert first.schema is again.schema


@given(at=st.integers(0, 400), bit=st.integers(0, 7), part=st.integers(0, 2), cut=st.integers(0, 9))
def test_damage_gives_rows_or_a_data_error(at, bit, part, cut):
    writer = EventWriter()
    columns = [INT, (15, struct.pack("<H", 400)), (246, b"\x0c\2"), (18, b"\6"), (254, b"\xf7\1")]
    optional = names("id", "name", "d", "t", "e") + field(2, packed(45)) + labels(6, ["a", "b"])
    optional += field(10, packed(45)) + field(8, b"\0")
    image = b"\0" + struct.pack("<i", 1) + struct.pack("<H", 2) + "é".encode()
    moment = 0x8000000000 | ((2026 * 13 + 1) << 5 | 2) << 17 | 3 << 12 | 4 << 6 | 5
    image += bytes.fromhex("800000000132") + struct.pack(">Q", moment << 24 | 100000) + b"\2"
    parts = [
        writer.format_description(),
        writer.table_map(columns, optional=optional),
        writer.rows(30, 5, [image, image]),
    ]
    rows = BinlogRowCodec().decode(parts[2], (parts[0], parts[1]))
    assert rows.images[0][1] == (1, "é", "1.50", "2026-01-02 03:04:05.100000", "b")
    damaged = bytearray(parts[part])
    damaged[at % len(damaged)] ^= 1 << bit
    parts[part] = bytes(damaged[: len(damaged) - cut])
    with contextlib.suppress(DataError, ConfigurationError):
        BinlogRowCodec().decode(parts[2], (parts[0], parts[1]))


def encoded_decimal(text, precision, scale):
    """A DECIMAL as the server writes it, made from its digits instead of by arithmetic."""
    negative = text.startswith("-")
    whole, _, part = text.lstrip("-").partition(".")
    whole = whole.rjust(precision - scale, "0") if precision > scale else ""
    data = b""
    if len(whole) % 9:
        head, whole = whole[: len(whole) % 9], whole[len(whole) % 9 :]
        data += int(head).to_bytes(digit_bytes(len(head)), "big")
    groups = [whole[i : i + 9] for i in range(0, len(whole), 9)]
    groups += [part[i : i + 9] for i in range(0, len(part), 9)]
    for group in groups:
        data += int(group).to_bytes(digit_bytes(len(group)), "big")
    if negative:
        data = bytes(byte ^ 0xFF for byte in data)
    return bytes([data[0] ^ 0x80]) + data[1:]


@given(st.data())
def test_decimals_of_every_size(data):
    precision = data.draw(st.integers(1, 65))
    scale = data.draw(st.integers(0, min(30, precision)))
    digits = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    with localcontext(prec=70):
        text = format(Decimal(digits).scaleb(-scale), "f")
    column = WireColumn(ColumnType.NEWDECIMAL, precision, scale)
    raw = encoded_decimal(text, precision, scale)
    assert len(raw) == value_bytes(column)
    assert decimal_reader(column)(b"x" + raw + b"y", 1) == (text, 1 + len(raw))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(999999986991104.0)  # 1e15, which Python writes with more characters
def test_floats_keep_their_value_in_four_bytes(value):
    shorter = shortest_float(value)
    assert struct.pack("<f", shorter) == struct.pack("<f", value)
    assert digits_of(shorter) <= digits_of(value)


def digits_of(value):
    """How many it is written with, zeros at its ends aside."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


@pytest.mark.parametrize("text", ["0.1", "3.4028235e+38", "1.17549e-38", "-2.5", "16777216.0"])
def test_floats_read_as_they_were_written(text):
    (widened,) = struct.unpack("<f", struct.pack("<f", float(text)))
    assert shortest_float(widened) == float(text)
