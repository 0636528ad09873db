"""Reads dates and times out of a row (see `setl.codec.binlog.values.value_number` for readers).

Layouts: ``my_time.cc`` in the server. Types without a 2 have no fraction here, see
`setl.codec.binlog.tables.old_times`. Types with a 2 in their name came with MySQL 5.6: bit
fields, highest byte first, with the fraction behind them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.binlog.values.value_number import Reader
from setl.codec.temporal import clock_text, date_text, timestamp_text
from setl.model.change import Value
from setl.model.schema import Kind

MOMENTS: Final = frozenset({Kind.DATE, Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP})
"""Kinds that `time_reader` reads."""

_UINT32_BIG: Final = struct.Struct(">I")
_UINT32: Final = struct.Struct("<I")
_UINT64: Final = struct.Struct("<Q")
_DATETIME_OFFSET: Final = 0x80_0000_0000
_FRACTION_UNITS: Final = (1, 10_000, 100, 1)  # microseconds in one unit of 0 to 3 bytes


def _date(data: bytes, at: int) -> tuple[Value, int]:
    value = data[at] | data[at + 1] << 8 | data[at + 2] << 16
    return date_text(value >> 9, value >> 5 & 15, value & 31), at + 3


def _datetime2_reader(digits: int) -> Reader:
    fraction = (digits + 1) // 2
    size = 5 + fraction
    unit = _FRACTION_UNITS[fraction]
    below = fraction * 8
    fraction_mask = (1 << below) - 1

    def read(data: bytes, at: int) -> tuple[Value, int]:
        end = at + size
        raw = int.from_bytes(data[at:end], "big")
        moment = (raw >> below) - _DATETIME_OFFSET
        year, month = divmod(moment >> 22, 13)
        date = date_text(year, month, moment >> 17 & 31)
        clock = clock_text(moment >> 12 & 31, moment >> 6 & 63, moment & 63)
        return f"{date} {clock}.{(raw & fraction_mask) * unit:06d}", end

    return read


def _timestamp2_reader(digits: int) -> Reader:
    fraction = (digits + 1) // 2
    unit = _FRACTION_UNITS[fraction]

    def read(data: bytes, at: int) -> tuple[Value, int]:
        end = at + 4 + fraction
        seconds: int = _UINT32_BIG.unpack_from(data, at)[0]
        micros = int.from_bytes(data[at + 4 : end], "big") * unit
        return timestamp_text(seconds, micros), end

    return read


def _time2_reader(digits: int) -> Reader:
    fraction = (digits + 1) // 2
    size = 3 + fraction
    unit = _FRACTION_UNITS[fraction]
    below = fraction * 8
    # Negative times are the complement of the whole, fraction included.
    zero = 1 << (size * 8 - 1)
    fraction_mask = (1 << below) - 1

    def read(data: bytes, at: int) -> tuple[Value, int]:
        end = at + size
        raw = int.from_bytes(data[at:end], "big") - zero
        sign = ""
        if raw < 0:
            sign, raw = "-", -raw
        moment = raw >> below
        clock = clock_text(moment >> 12 & 0x3FF, moment >> 6 & 63, moment & 63)
        return f"{sign}{clock}.{(raw & fraction_mask) * unit:06d}", end

    return read


def _old_time(data: bytes, at: int) -> tuple[Value, int]:
    number = int.from_bytes(data[at : at + 3], "little", signed=True)
    sign, number = ("-", -number) if number < 0 else ("", number)
    return f"{sign}{_old_clock(number, 839)}.000000", at + 3


def _old_datetime(data: bytes, at: int) -> tuple[Value, int]:
    (number,) = _UINT64.unpack_from(data, at)
    date, clock = divmod(number, 1_000_000)
    year, month, day = date // 10_000, date // 100 % 100, date % 100
    if year > 9999 or month > 12 or day > 31:
        raise ValueError(f"{number} is no date and time")
    return f"{date_text(year, month, day)} {_old_clock(clock, 24)}.000000", at + 8


def _old_clock(number: int, hours: int) -> str:
    hour, minute, second = number // 10_000, number // 100 % 100, number % 100
    if hour >= hours or minute >= 60 or second >= 60:
        raise ValueError(f"{number} is no time of day")
    return clock_text(hour, minute, second)


def _old_timestamp(data: bytes, at: int) -> tuple[Value, int]:
    return timestamp_text(_UINT32.unpack_from(data, at)[0], 0), at + 4


_READERS: Final[dict[int, Callable[[int], Reader]]] = {
    ColumnType.DATE: lambda _: _date,
    ColumnType.NEWDATE: lambda _: _date,
    ColumnType.TIME: lambda _: _old_time,
    ColumnType.DATETIME: lambda _: _old_datetime,
    ColumnType.TIMESTAMP: lambda _: _old_timestamp,
    ColumnType.TIME2: _time2_reader,
    ColumnType.DATETIME2: _datetime2_reader,
    ColumnType.TIMESTAMP2: _timestamp2_reader,
}


def time_reader(column: WireColumn) -> Reader:
    """The reader of a DATE, TIME, DATETIME or TIMESTAMP column of any age."""
    return _READERS[column.type](column.length)
