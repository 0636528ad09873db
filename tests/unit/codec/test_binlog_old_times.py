"""Times in the format of MariaDB 5.3: with fractions they are refused, whatever their bytes."""

import struct
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import ConfigurationError
from tests.unit.codec.binlog_events import VARCHAR, EventWriter, entries_of, names

TIMESTAMP, TIME, DATETIME = 7, 11, 12
TYPES = st.sampled_from((TIMESTAMP, TIME, DATETIME))
FRACTIONS = st.integers(0, 999_999)
CLOCK = st.integers(0, 86_399)
DATES = st.tuples(st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31))


def hires(type_, digits, date, clock, micros):
    """A value as the server writes it."""
    unit = 10 ** (6 - digits)
    if type_ == TIMESTAMP:
        size = (0, 1, 1, 2, 2, 3, 3)[digits]
        return struct.pack(">I", clock * 49_000) + (micros // unit).to_bytes(size, "big")
    if type_ == TIME:
        zero = 839 * 3600 * 1_000_000 // unit
        size = (3, 4, 4, 5, 5, 5, 6)[digits]
        return (zero + (clock * 1_000_000 + micros) // unit).to_bytes(size, "big")
    year, month, day = date
    packed = (((year * 13 + month) * 32 + day) * 86_400 + clock) * 1_000_000 + micros
    return (packed // unit).to_bytes((5, 6, 6, 7, 7, 7, 8)[digits], "big")


def whole(type_, date, clock):
    if type_ == TIMESTAMP:
        return struct.pack("<I", clock * 49_000)
    number = clock // 3600 * 10_000 + clock // 60 % 60 * 100 + clock % 60
    if type_ == TIME:
        return number.to_bytes(3, "little")
    year, month, day = date
    return struct.pack("<Q", (year * 10_000 + month * 100 + day) * 1_000_000 + number)


def decode(types, images, reported=None) -> Any:
    """The rows of (bits of NULL, values) for columns of these types behind an id, and a text."""
    writer = EventWriter(mariadb=True)
    columns = [(3, b""), *((t, b"") for t in types), VARCHAR]
    labels = ["id", *(f"c{i}" for i in range(len(types))), "v"]
    width = (len(columns) + 7) // 8
    unused = (1 << 8 * width) - (1 << len(columns))
    rows = [
        (nulls << 1 | unused).to_bytes(width, "little") + struct.pack("<I", i) + values
        for i, (nulls, values) in enumerate(images)
    ]
    events = [
        *writer.opening(),
        writer.mariadb_gtid(1, flags=12),
        writer.table_map(columns, optional=names(*labels) + b"\2\1\x2d", nullable=-2),
        writer.rows(23, len(columns), rows),
        writer.xid(),
    ]
    known = {} if reported is None else dict(zip(labels[1:], reported, strict=False))
    entries, _ = entries_of(events, digits=lambda *_: known)
    (entry,) = (e for e in entries if e.payload and e.context)
    return BinlogRowCodec().decode(entry.payload, entry.context)


@given(
    st.lists(st.tuples(TYPES, st.integers(1, 6)), min_size=1, max_size=3),
    st.lists(st.tuples(DATES, CLOCK, FRACTIONS, st.binary(max_size=9)), min_size=1, max_size=6),
    st.sampled_from(("told", "unknown", "likely none")),
)
def test_fractions_are_refused_whether_the_digits_are_reported_or_not(columns, rows, reported):
    images = [
        (
            0,
            b"".join(hires(t, d, date, clock, micros) for t, d in columns)
            + struct.pack("<H", len(text))
            + text,
        )
        for date, clock, micros, text in rows
    ]
    if reported == "likely none":
        # A DATETIME(6) that reads as whole seconds is taken for that.
        assume(DATETIME not in (t for t, _ in columns))
    digits = {"told": [str(d) for _, d in columns], "likely none": "-" * len(columns)}.get(reported)
    with pytest.raises(ConfigurationError, match=r"column c0 (is|may be) a ") as caught:
        decode([t for t, _ in columns], images, digits)
    assert "ALTER TABLE … FORCE" in caught.value.hint
    assert "checksum" not in str(caught.value)


def test_three_rows_that_look_like_four_are_refused():
    """3 rows of 12 bytes are 4 of 9."""
    value = hires(TIMESTAMP, 6, (0, 0, 0), 20_000, 0)
    writer = EventWriter(mariadb=True)
    columns = [(3, b""), (TIMESTAMP, b"")]
    rows = [b"\xfc" + struct.pack("<I", i) + value for i in (1, 2, 3)]
    events = [
        *writer.opening(),
        writer.mariadb_gtid(1, flags=12),
        writer.table_map(columns, optional=names("id", "t"), nullable=0),
        writer.rows(23, 2, rows),
        writer.xid(),
    ]
    entries, _ = entries_of(events)
    (entry,) = (e for e in entries if e.payload and e.context)
    with pytest.raises(ConfigurationError, match="column t may be a TIMESTAMP"):
        BinlogRowCodec().decode(entry.payload, entry.context)


@given(
    st.lists(TYPES, min_size=1, max_size=3),
    st.lists(st.tuples(DATES, CLOCK), min_size=1, max_size=6),
    st.sampled_from(("", "0", "-")),
)
def test_whole_seconds_arrive_or_are_refused_where_nobody_can_tell(types, rows, reported):
    images = [
        (0, b"".join(whole(t, date, clock) for t in types) + b"\1\0x") for date, clock in rows
    ]
    try:
        decoded = decode(types, images, reported * len(types) or None)
    except ConfigurationError:
        assert reported != "0"
        return
    assert [after[-1] for _, after in decoded.images] == ["x"] * len(rows)
    if DATETIME in types:
        (year, month, day), _ = rows[0]
        date = decoded.images[0][1][1 + types.index(DATETIME)].split()[0]
        assert date == f"{year:04d}-{month:02d}-{day:02d}"


def test_rows_without_a_time_need_no_digits():
    decoded = decode([TIMESTAMP, DATETIME], [(0b11, b"\1\0x")], "63")
    assert [after for _, after in decoded.images] == [(0, None, None, "x")]
    assert decode([TIMESTAMP, DATETIME], [(0b11, b"\1\0x")]).images == decoded.images


def test_whole_seconds_of_one_row_need_no_digits():
    image = (0, whole(TIMESTAMP, (0, 0, 0), 1000) + b"\1\0x")
    assert decode([TIMESTAMP], [image]).images[0][1][1] == "1971-07-22 03:06:40.000000"


def test_whole_seconds_of_a_datetime_need_no_digits_where_it_has_none_now():
    """Some could be times with six digits as well."""
    image = (0, whole(DATETIME, (2024, 2, 3), 4 * 3600 + 4) + b"\1\0x")
    assert image[1][0] == 4
    with pytest.raises(ConfigurationError):
        decode([DATETIME], [image], "?")
    assert decode([DATETIME], [image], "-").images[0][1][1] == "2024-02-03 04:00:04.000000"


def test_many_columns_of_whole_seconds_need_no_digits():
    types = [DATETIME, TIMESTAMP, TIME] * 5
    values = b"".join(whole(t, (2024, 2, 3), 8 * 3600 + i) for i, t in enumerate(types))
    rows = decode(types, [(0, values + b"\1\0x")] * 300, "-" * 15)
    assert len(rows.images) == 300
