"""Generates the Python code that reads values of frequent types.

A row is read by text made for its table (see `row_code`), in which a value of these types costs no
call. All other types are read by their functions, which `value_reader` gives; for the types here
the two give the same, and where bytes make no sense these raise what the functions raise or
another of `DAMAGED`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

from setl.codec.binlog.tables.table_map import ColumnType, WireColumn, digit_bytes
from setl.codec.binlog.values.value_number import digit_groups
from setl.codec.temporal import ZERO_DATETIME, clock_text, date_text, day_text

PACKED: Final[dict[int, tuple[str, str]]] = {
    ColumnType.TINY: ("b", "B"),
    ColumnType.SHORT: ("h", "H"),
    ColumnType.LONG: ("i", "I"),
    ColumnType.LONGLONG: ("q", "Q"),
    ColumnType.DOUBLE: ("d", "d"),
}
"""Types that `struct` reads: the letters of their formats, signed and unsigned."""

_MOST_DIGITS: Final = 4  # of a fraction whose texts are all kept
_MAX_DATES: Final = 16_384


class ValueCode(NamedTuple):
    """How one value is read.

    Attributes:
        lines: statements that set ``$value`` from the bytes at ``data[$at]``; ``$raw`` is free to
            use, ``$read`` is the column's reader.
        names: what else they name.
    """

    lines: tuple[str, ...]
    names: dict[str, Any]


def value_code(column: WireColumn, size: int) -> ValueCode:
    """The code for a value of a fixed size, which is not one of `PACKED`."""
    make = _MADE.get(column.type)
    made = None if make is None else make(column, size)
    return made or ValueCode(("$value = $read(data, $at)[0]",), {})


class _Texts(dict[int, str]):
    """Texts of numbers, made when they are first asked for; all are forgotten when too many."""

    def __init__(self, text: Callable[[int], str], most: int) -> None:
        super().__init__()
        self._text = text
        self._most = most

    def __missing__(self, number: int) -> str:
        if len(self) >= self._most:
            self.clear()
        text = self[number] = self._text(number)
        return text


# By the bits of a DATETIME that hold year, month and day: 17 bits of year and month, with the bit
# above them that says "not negative", then five bits of the day.
_DAYS: Final = _Texts(
    lambda bits: date_text(*divmod((bits >> 5) - (1 << 17), 13), bits & 31), _MAX_DATES
)
# By 5 bits of the hour and 6 of the minute. The second is apart, so that there are few texts:
# hardly two rows of a table that is read once have the same time of day.
_MINUTES: Final = _Texts(lambda bits: clock_text(bits >> 6, bits & 63, 0)[:-2], 1 << 11)
_SECONDS: Final = tuple(f"{n:02d}" for n in range(64))
_DATES: Final = _Texts(lambda bits: date_text(bits >> 9, bits >> 5 & 15, bits & 31), _MAX_DATES)
_DAYS_SINCE_1970: Final = _Texts(day_text, _MAX_DATES)
_MINUTES_OF_DAY: Final = _Texts(lambda minute: clock_text(minute // 60, minute % 60, 0)[:-2], 1440)


@cache
def _parts(digits: int) -> tuple[str, ...]:
    """``00`` to ``99``, for two digits."""
    return tuple(f"{n:0{digits}d}" for n in range(10**digits))


_WHOLE: Final = {1: Struct(">B"), 2: Struct(">H"), 4: Struct(">I"), 8: Struct(">Q")}


def _raw(size: int) -> tuple[str, dict[str, Any]]:
    """A statement that sets ``$raw`` from so many bytes, the highest first, and what it names."""
    whole = _WHOLE.get(size)
    if whole is not None:
        return f"($raw,) = whole_{size}(data, $at)", {f"whole_{size}": whole.unpack_from}
    return f'$raw = int.from_bytes(data[$at:$at + {size}], "big")', {}


def _fraction(digits: int) -> tuple[str, dict[str, Any]]:
    """The text of a fraction of a second inside an f-string, from the last bits of ``$raw``.

    Tables raise IndexError for what is more than a second.
    """
    width = (digits + 1) // 2
    if width == 3:
        micros = "($raw & 0xFFFFFF)"
        return f"{{THREE[{micros} // 1000]}}{{THREE[{micros} % 1000]}}", {"THREE": _parts(3)}
    if not width:
        return "000000", {}
    table, mask, zeros = f"PART_{2 * width}", (1 << 8 * width) - 1, "0" * (6 - 2 * width)
    return f"{{{table}[$raw & {mask}]}}{zeros}", {table: _parts(2 * width)}


def _datetime2(column: WireColumn, size: int) -> ValueCode:
    below = (size - 5) * 8
    fraction, names = _fraction(column.length)
    date, minute = f"DAYS[$raw >> {below + 17}]", f"MINUTES[$raw >> {below + 6} & 0x7FF]"
    line = f'$value = f"{{{date}}} {{{minute}}}{{SECONDS[$raw >> {below} & 63]}}.{fraction}"'
    raw, more = _raw(size)
    known = {"DAYS": _DAYS, "MINUTES": _MINUTES, "SECONDS": _SECONDS}
    return ValueCode((raw, line), {**known, **names, **more})


def _timestamp2(column: WireColumn, size: int) -> ValueCode:
    below = (size - 4) * 8
    fraction, names = _fraction(column.length)
    date = f"SINCE_1970[($raw >> {below}) // 86400]"
    minute = f"OF_DAY[($raw >> {below}) // 60 % 1440]"
    second = f"SECONDS[($raw >> {below}) % 60]"
    line = f'$value = f"{{{date}}} {{{minute}}}{{{second}}}.{fraction}" if $raw else ZERO'
    known = {
        "SINCE_1970": _DAYS_SINCE_1970,
        "OF_DAY": _MINUTES_OF_DAY,
        "SECONDS": _SECONDS,
        "ZERO": ZERO_DATETIME,
    }
    raw, more = _raw(size)
    return ValueCode((raw, line), {**known, **names, **more})


def _date(_: WireColumn, __: int) -> ValueCode:
    line = "$value = DATES[data[$at] | data[$at + 1] << 8 | data[$at + 2] << 16]"
    return ValueCode((line,), {"DATES": _DATES})


def _decimal(column: WireColumn, size: int) -> ValueCode | None:
    """Of up to four digits after the point; negative ones are left to the reader."""
    scale = column.scale
    if scale > _MOST_DIGITS:
        return None
    unit, below = 10**scale, digit_bytes(scale) * 8
    groups = [g for g in digit_groups(column.length - scale, scale) if g[0] >= below]
    parts = [(f"$raw >> {at} & {mask}", one // unit) for at, mask, one in groups]
    whole = " + ".join(f"({part}) * {times}" if times > 1 else f"({part})" for part, times in parts)
    table = f"PART_{scale}"
    part = f".{{{table}[$raw & {(1 << below) - 1}]}}" if scale else ""
    raw, names = _raw(size)
    if scale:
        names[table] = _parts(scale)
    line = f'$value = f"{{{whole or 0}}}{part}" if $raw >= 0 else $read(data, $at)[0]'
    return ValueCode((raw, f"$raw -= {1 << size * 8 - 1}", line), names)


_MADE: Final[dict[int, Callable[[WireColumn, int], ValueCode | None]]] = {
    ColumnType.DATETIME2: _datetime2,
    ColumnType.TIMESTAMP2: _timestamp2,
    ColumnType.DATE: _date,
    ColumnType.NEWDATE: _date,
    ColumnType.NEWDECIMAL: _decimal,
}
