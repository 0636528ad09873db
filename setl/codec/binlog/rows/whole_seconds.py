"""Refuses times of MariaDB's old format that have, or may have, fractions of a second.

See `setl.codec.binlog.tables.old_times`. Layouts: ``Field_timestamp_hires``,
``Field_datetime_hires`` and ``Field_time_hires`` in ``field.cc`` of MariaDB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from setl.codec.binlog.tables.old_times import HINT, LIKELY_NONE, UNSURE
from setl.codec.binlog.tables.row_schema import TableDetail
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn, value_bytes
from setl.codec.binlog.values.value_number import Reader
from setl.codec.binlog.values.value_time import time_reader
from setl.errors import ConfigurationError
from setl.model.change import Value

_OLD: Final[Mapping[int, tuple[int, ...]]] = {
    ColumnType.TIMESTAMP: (5, 6, 7),
    ColumnType.TIME: (4, 5, 6),
    ColumnType.DATETIME: (6, 7, 8),
}
"""Bytes of values with fractions: of the fewest digits, of more, of most."""

_WHOLE: Final = 0  # tried as the length of a value without a fraction
_TRIED: Final = 100_000  # images, of all readings together
_UNITS: Final = (100, 100_000, 1_000_000)  # of a second at most, by `_OLD`
_SECONDS_OF_TIME: Final = 2 * (839 * 3600)  # from the first to the last
_SECONDS_OF_DATETIME: Final = ((9999 * 13 + 12) * 32 + 32) * 86_400


def fractions_refused(table: TableDetail, index: int, digits: str) -> ConfigurationError:
    """The error for a column that has, or may have, fractions in the old format."""
    kind, name = ColumnType(table.columns[index].type).name, table.schema.columns[index].name
    if digits in UNSURE:
        what = f"may be a {kind} with fractions of a second, and the source has it so no more,"
    else:
        what = f"is a {kind}({digits})"
    return ConfigurationError(
        f"column {name} {what} in MariaDB's format of 5.3 (of tables from before 10.1, or made"
        " with mysql56_temporal_format=OFF), whose digits the binlog does not record",
        hint=HINT,
        schema=table.schema.schema,
        table=table.schema.table,
        column=name,
    )


def refusing_fractions(table: TableDetail, index: int, digits: str) -> Reader:
    """A reader that raises `fractions_refused`: all rows of the table are like that."""

    def read(_: bytes, __: int) -> tuple[Value, int]:
        raise fractions_refused(table, index, digits)

    return read


def lengths_tried(column: WireColumn, digits: str) -> tuple[int, ...]:
    """The bytes that a time of the old format may have: `_WHOLE`, or with a fraction.

    Args:
        column: a time.
        digits: one of `UNSURE`.
    """
    sizes = _OLD[column.type]
    if digits == LIKELY_NONE:
        # As long as one of whole seconds, which `_Readings` knows by its digits.
        sizes = tuple(size for size in sizes if size != value_bytes(column))
    return (_WHOLE, *sizes)


class Images(NamedTuple):
    """The images of a row event.

    Attributes:
        event: the event.
        at: where its images begin.
        end: where they end.
        sides: for each image that takes turns, the places of the columns that it has.
    """

    event: bytes
    at: int
    end: int
    sides: Sequence[Sequence[int]]


def see_whole_seconds(
    table: TableDetail, unsure: Mapping[int, Sequence[int]], images: Images
) -> None:
    """Refuse images that can be read otherwise than with times of whole seconds.

    Args:
        table: their table, of MariaDB.
        unsure: for the position of each time whose digits are not known, `lengths_tried`.
        images: the images.

    Raises:
        ConfigurationError: see `fractions_refused`.
    """
    if _Readings(images, table.columns, table.nullable, unsure).have_fraction():
        raise fractions_refused(table, min(unsure), LIKELY_NONE)


class _Readings:
    """All ways in which the images of an event can be read.

    Eight bytes that are a date and time as whole seconds hardly ever are something else: of times
    with fractions one in millions looks so. So where a DATETIME has no digits now, and all images
    can be read as whole seconds, such a value stays where it is in every other reading.
    """

    def __init__(
        self,
        images: Images,
        columns: Sequence[WireColumn],
        nullable: int,
        unsure: Mapping[int, Sequence[int]],
    ) -> None:
        self._images = images
        self._columns = columns
        self._nullable = nullable
        self._unsure = dict(unsure)
        self._whole = {i: time_reader(columns[i]) for i in unsure}
        self._telling = {
            i
            for i, sizes in unsure.items()
            if columns[i].type == ColumnType.DATETIME and value_bytes(columns[i]) not in sizes
        }
        self._anchors: dict[tuple[int, int], int] = {}
        self._left = _TRIED

    def have_fraction(self) -> bool:
        """Whether there is another way than to read all times as whole seconds.

        Also if there is not even that way: what decodes them looks less closely.
        """
        anchors: dict[tuple[int, int], int] = {}
        whole = dict.fromkeys(self._unsure, _WHOLE)
        number, at = 0, self._images.at
        while at < self._images.end:
            end, _ = self._behind(number, at, whole, anchors)
            if end < 0:
                return True
            number, at = number + 1, end
        self._anchors = anchors
        self._unsure.update(dict.fromkeys((i for _, i in anchors), (_WHOLE,)))
        return self._otherwise(0, self._images.at, {})

    def _otherwise(self, number: int, at: int, sizes: Mapping[int, int]) -> bool:
        """Whether there is a way to the end in which a time has a fraction.

        Args:
            number: of an image.
            at: where it begins.
            sizes: bytes of the times that had a value so far, by their indexes.
        """
        while at < self._images.end:
            self._left -= 1
            if self._left < 0:
                return True
            at, unsized = self._behind(number, at, sizes, {})
            if unsized is not None:
                return any(
                    self._otherwise(number, at, {**sizes, unsized: size})
                    for size in self._unsure[unsized]
                )
            if at < 0:
                return False
            number += 1
        whole = not number % len(self._images.sides) and at == self._images.end
        return whole and any(sizes.values())

    def _behind(
        self, number: int, at: int, sizes: Mapping[int, int], found: dict[tuple[int, int], int]
    ) -> tuple[int, int | None]:
        """Where an image ends that begins at `at`; -1 if it cannot be read so.

        If a time comes whose bytes `sizes` does not have: where it began, and that time's index.

        Args:
            number: of the image.
            at: where it begins.
            sizes: bytes of its times.
            found: gets the places of values that tell what they are.
        """
        event, _, end, sides = self._images
        there = sides[number % len(sides)]
        start = at
        nulls, at = self._nulls(at, len(there))
        if nulls < 0:
            return -1, None
        for n, i in enumerate(there):
            if nulls >> n & 1:
                if not self._nullable >> i & 1:
                    return -1, None
                continue
            if i in self._unsure and i not in sizes:
                return start, i
            if self._anchors.get((number, i), at) != at:
                return -1, None
            size = sizes.get(i, _WHOLE) or value_bytes(self._columns[i])
            if size < 0:
                size = int.from_bytes(event[at : at - size], "little") - size
            if at + size > end or (i in sizes and not self._is_time(i, sizes[i], at)):
                return -1, None
            if i in self._telling and any(event[at : at + size]):
                found[number, i] = at
            at += size
        return at, None

    def _nulls(self, at: int, count: int) -> tuple[int, int]:
        """A bit for each column that is NULL, and where values begin; -1 if it is no image."""
        values = at + (count + 7) // 8
        bits = int.from_bytes(self._images.event[at:values], "little")
        # MariaDB sets the bits behind the last column's.
        unused = (1 << 8 * (values - at) - count) - 1
        return (bits if bits >> count == unused else -1), values

    def _is_time(self, index: int, size: int, at: int) -> bool:
        """Whether a value of so many bytes may be a time."""
        event = self._images.event
        if size == _WHOLE:
            try:
                self._whole[index](event, at)
            except ValueError:
                return False
            return True
        number = int.from_bytes(event[at : at + size], "big")
        kind = self._columns[index].type
        units = _UNITS[_OLD[kind].index(size)]
        if kind == ColumnType.TIMESTAMP:
            return number & (1 << 8 * (size - 4)) - 1 < units
        seconds = _SECONDS_OF_TIME if kind == ColumnType.TIME else _SECONDS_OF_DATETIME
        return number < seconds * units
