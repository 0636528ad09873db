"""The values of a table's columns in its DTS records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setl.codec.charset import is_utf8
from setl.codec.columns import moments
from setl.codec.columns.digits import clocks
from setl.codec.columns.fields import Field, UnfitValuesError
from setl.codec.columns.images import RowImages
from setl.codec.columns.texts import Texts, array_of, in_utf8, parts_of, require_utf8
from setl.codec.columns.values import (
    WHOLE,
    MadeText,
    encoded,
    encoded_values,
    listed,
    texts_made,
    with_nulls,
)
from setl.codec.columns.window import Mask, Positions, Window
from setl.codec.dts.columns.offsets import Located, located
from setl.codec.dts.image import KnownColumn
from setl.model.change import Value
from setl.model.labels import LABELLED
from setl.model.schema import Kind

_MADE: Final = frozenset({Kind.DATE, Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP})
_DATE_PARTS: Final = (9_999, 12, 31)
_CLOCK_PARTS: Final = (23, 59, 59, moments.MOST_MICROS)
_TIME_PARTS: Final = (moments.MOST_HOURS, 59, 59, moments.MOST_MICROS)
_HOUR: Final = 3  # index of a moment's member


class DtsColumns:
    """A `setl.codec.columns.values.ColumnValues` for images of DTS records."""

    def __init__(
        self,
        columns: Sequence[KnownColumn],
        front: bytes,
        images: RowImages,
        starts: Positions,
    ) -> None:
        """Go over the images that begin at these positions.

        Args:
            columns: how the values of each column lie.
            front: what an image begins with.
            images: the bytes.
            starts: the positions.

        Raises:
            UnfitValuesError, LookupError: one lies otherwise.
        """
        self._columns = columns
        self._images = images
        self.count = len(starts)
        self.nulls: dict[int, Mask] = {}
        self._located: list[Located] = []
        self._whole: dict[int, NDArray[Any]] = {}
        self._texts: dict[int, Texts] = {}
        self._checked: set[int] = set()  # columns of moments
        window = self.window
        for offset, byte in enumerate(front):
            if (window.bytes[starts + offset] != byte).any():
                raise UnfitValuesError("an image has another number of values")
        at = starts + len(front)
        for i, column in enumerate(columns):
            found, null, at = located(window, at, column)
            self._located.append(found)
            if null is not None:
                self.nulls[i] = null
        if window.bytes[at].any():
            raise UnfitValuesError("an image does not end behind its values")
        self.stops: Positions = at + 1

    @property
    def window(self) -> Window:
        """See `ColumnValues.window`."""
        return self._images.window

    def kind(self, column: int) -> Kind:
        """See `ColumnValues.kind`."""
        return self._columns[column].column.kind

    def listed(self, column: int) -> list[Any]:
        """See `ColumnValues.listed`."""
        kind, null = self.kind(column), self.nulls.get(column)
        if not self.count:
            return []
        if kind in LABELLED:
            found, which = self.labels(column)
            return [found[number] for number in which.tolist()]
        if kind in WHOLE:
            return listed(self.whole(column), null)
        if kind is Kind.FLOAT:
            return listed(self.floating(column), null)
        if kind in _MADE:
            return with_nulls(list[Any](texts_made(self.made(column), self.count)), null)
        decode, data = self._columns[column].decode, self._images.data
        spans = self._located[column]
        starts, stops = spans.starts.tolist(), spans.stops.tolist()
        return with_nulls([decode(data[a:b]) for a, b in zip(starts, stops, strict=True)], null)

    def whole(self, column: int) -> NDArray[Any]:
        """See `ColumnValues.whole`."""
        found = self._whole.get(column)
        if found is None:
            found = self._whole[column] = self._made_whole(column)
        return found

    def floating(self, column: int) -> NDArray[np.float64]:
        """See `ColumnValues.floating`."""
        numbers: NDArray[np.float64] = self.window.view("<f8")[self._located[column].starts]
        null = self.nulls.get(column)
        return numbers if null is None else np.where(null, 0.0, numbers)

    def labels(self, column: int) -> tuple[list[Value], NDArray[np.int64]]:
        """See `ColumnValues.labels`."""
        null, decode = self.nulls.get(column), self._columns[column].decode
        array = array_of(self.window, self._spans(column))
        if null is not None:
            array = pc.replace_with_mask(array, pa.array(null), pa.scalar(None, pa.binary()))
        found: Any = array.dictionary_encode()
        held: list[Value] = [decode(text) for text in found.dictionary.to_pylist()]
        which: NDArray[np.int64] = found.indices.fill_null(len(held)).to_numpy().astype(np.int64)
        return (held if null is None else [*held, None]), which

    def texts(self, column: int) -> Texts | None:
        """See `ColumnValues.texts`."""
        known = self._columns[column]
        if known.column.kind in _MADE:
            return None
        found = self._texts.get(column)
        if found is None:
            found = self._spans(column)
            if known.column.kind is Kind.DECIMAL:
                self._require_decimals(column, found)
            elif known.column.kind in (Kind.TEXT, Kind.JSON) and not is_utf8(known.charset):
                found = in_utf8(self.window, found, known.charset)
            self._texts[column] = found
        return found

    def made(self, column: int) -> MadeText:
        """See `ColumnValues.made`."""
        kind = self.kind(column)
        if kind is Kind.DATE:
            return MadeText(partial(self._put_date, column), moments.DATE_WIDTH)
        if kind is Kind.TIME:
            return MadeText(partial(self._put_time, column), moments.TIME_WIDTH, trimmed=True)
        put = self._put_stamp if kind is Kind.TIMESTAMP else self._put_datetime
        return MadeText(partial(put, column), moments.MOMENT_WIDTH)

    def micros(self, column: int) -> NDArray[np.uint32] | None:
        """See `ColumnValues.micros`."""
        numbers = self._located[column].numbers
        if not numbers or not numbers[-1].any():
            return None
        micros = np.abs(numbers[-1])
        if (micros > moments.MOST_MICROS).any():
            raise UnfitValuesError("a fraction is more than a second")
        return micros.astype(np.uint32)

    def scale(self, column: int) -> int:
        """See `ColumnValues.scale`; as the texts have them, since not all records count them."""
        offsets, data = parts_of(array_of(self.window, self._spans(column)))
        points = np.flatnonzero(data == ord("."))
        ends = offsets[np.searchsorted(offsets, points, "right")]
        return int((ends - points - 1).max(initial=0))

    def codes(self, column: int) -> tuple[NDArray[np.int64], int]:
        """See `ColumnValues.codes`."""
        known = self._columns[column]
        if known.column.kind in WHOLE:
            return encoded(pa.array(self.whole(column)))
        kind = known.column.kind
        if kind is Kind.BINARY or (kind is Kind.TEXT and is_utf8(known.charset)):
            return encoded(array_of(self.window, self._spans(column)))
        return encoded_values(self.listed(column))

    def require_utf8(self, columns: Sequence[int]) -> None:
        """See `ColumnValues.require_utf8`."""
        require_utf8(self.window, [(self._columns[i].charset, self._spans(i)) for i in columns])

    def convert(self) -> None:
        """See `ColumnValues.convert`."""
        textual: list[int] = []
        for i, known in enumerate(self._columns):
            if not known.member:
                continue
            kind = known.column.kind
            if kind in WHOLE:
                self.whole(i)
            elif kind in LABELLED:
                self.labels(i)
            elif kind in _MADE:
                self._require_moments(i)
            elif kind is not Kind.FLOAT:
                self.texts(i)
                if kind not in (Kind.BINARY, Kind.GEOMETRY):
                    textual.append(i)
        if textual:
            self.require_utf8(textual)

    def _is_null(self, column: int) -> bool:
        """Whether all values of a column are NULL."""
        null = self.nulls.get(column)
        return null is not None and bool(null.all())

    def _spans(self, column: int) -> Texts:
        found = self._located[column]
        return Texts(None, found.starts, found.stops)

    def _require_decimals(self, column: int, texts: Texts) -> None:
        """Refuse numbers that a target's column may have no digits for, or with an exponent."""
        known = self._columns[column].column
        numbers = self._located[column].numbers
        if numbers:
            precision, scale = numbers
            more = (scale > known.scale) | (precision - scale > known.precision - known.scale)
            if more.any():
                raise UnfitValuesError("a decimal has more digits than those before")
        _, data = parts_of(array_of(self.window, texts))
        if (data | np.uint8(0x20) == ord("e")).any():
            raise UnfitValuesError("a decimal has an exponent")

    def _made_whole(self, column: int) -> NDArray[Any]:
        known, null = self._columns[column], self.nulls.get(column)
        if self._is_null(column):
            return np.zeros(self.count, np.int64)
        found = self._located[column]
        if found.numbers:  # the year of a moment
            return found.numbers[0]
        array = array_of(self.window, self._spans(column))
        _, data = parts_of(array)
        # To Arrow there are other numbers as well.
        if not ((data - np.uint8(ord("0")) < 10) | (data == ord("-"))).all():
            raise UnfitValuesError("a number has other letters than digits")
        if null is not None:
            array = pc.replace_with_mask(array, pa.array(null), pa.scalar(b"0"))
        large = known.column.unsigned or known.column.kind is Kind.BIT
        try:
            numbers = array.cast(pa.string()).cast(pa.uint64() if large else pa.int64())
        except pa.ArrowInvalid as error:
            raise UnfitValuesError("a number is too large") from error
        return numbers.to_numpy()

    def _require_moments(self, column: int) -> None:
        """Refuse what is no moment that a server has written, or of another kind."""
        if column not in self._checked:
            self._check_moments(column)
            self._checked.add(column)

    def _check_moments(self, column: int) -> None:
        found, kind = self._located[column], self.kind(column)
        if not found.numbers and not self._is_null(column):
            raise UnfitValuesError("values are no times")
        if not found.numbers:
            return
        if kind is Kind.TIMESTAMP:
            seconds, micros = found.numbers
            if ((seconds < 0) | (seconds >> 32 != 0) | (micros < 0)).any():
                raise UnfitValuesError("a time is out of range")
            self.micros(column)
            return
        date, clock = found.numbers[:_HOUR], found.numbers[_HOUR:]
        if kind is Kind.TIME:
            numbers, most = (*date, *map(np.abs, clock)), (0, 0, 0, *_TIME_PARTS)
        else:
            no_clock = kind is Kind.DATE
            numbers, most = found.numbers, _DATE_PARTS + ((0,) * 4 if no_clock else _CLOCK_PARTS)
        for number, limit in zip(numbers, most, strict=True):
            if ((number < 0) | (number > limit)).any():
                raise UnfitValuesError("a time is out of range")
        hinted = self._columns[column].hinted
        if kind is Kind.DATETIME and self._lacks(column, 0) != (False, False):
            raise UnfitValuesError("a time lacks its date")
        if hinted:
            return
        # Without a type number, a value's parts say what it is.
        expected = (kind is Kind.DATE,) * 2
        if self._lacks(column, _HOUR) != expected or (
            kind is Kind.TIME and self._lacks(column, 0) != (True, True)
        ):
            raise UnfitValuesError("a time is of another kind")

    def _lacks(self, column: int, member: int) -> tuple[bool, bool]:
        """Whether some values that are not NULL, and whether all, lack a member."""
        lacks, null = self._located[column].absent[member], self.nulls.get(column)
        if lacks is None:
            return False, False
        some = lacks if null is None else lacks[~null]
        return bool(some.any()), bool(some.all())

    def _numbers(self, column: int) -> list[NDArray[np.uint32]]:
        """The members of moments, without a sign."""
        self._require_moments(column)
        numbers = self._located[column].numbers
        if not numbers:  # all are NULL
            return [np.zeros(self.count, np.uint32)] * (
                2 if self.kind(column) is Kind.TIMESTAMP else 7
            )
        return [np.abs(number).astype(np.uint32) for number in numbers]

    def _put_date(self, column: int, field: Field) -> None:
        year, month, day, *_ = self._numbers(column)
        moments.put_date(year * np.uint32(moments.MONTHS) + month, day, field)

    def _put_datetime(self, column: int, field: Field) -> None:
        year, month, day, hour, minute, second, micros = self._numbers(column)
        of_day = (hour << np.uint32(12) | minute << np.uint32(6) | second).astype(np.int64)
        months = year * np.uint32(moments.MONTHS) + month
        moments.put_moment(months, day, clocks().take(of_day), micros, field)

    def _put_time(self, column: int, field: Field) -> Positions:
        _, _, _, hour, minute, second, micros = self._numbers(column)
        negative = np.zeros(self.count, np.bool_)
        for number in self._located[column].numbers[_HOUR:]:
            negative |= number < 0
        clock = hour << np.uint32(12) | minute << np.uint32(6) | second
        return moments.put_time(clock, micros, negative, field)

    def _put_stamp(self, column: int, field: Field) -> None:
        seconds, micros = self._numbers(column)
        moments.put_stamp(seconds, micros, field)
