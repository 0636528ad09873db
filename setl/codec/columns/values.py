"""What is asked of the values of a table's columns, whatever format they lie in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setl.codec.columns.fields import Field
from setl.codec.columns.texts import Texts
from setl.codec.columns.window import Mask, Positions, Window
from setl.model.change import Value
from setl.model.schema import Kind

WHOLE: Final = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT})
"""Kinds whose values are whole numbers."""


class MadeText(NamedTuple):
    """Text that is made of values, such as that of a date.

    Attributes:
        put: stores the text of each row; returns where it begins in its field, None for at its
            front. It ends where the field does. Raises UnfitValuesError for a value without one.
        width: bytes of the longest text.
        trimmed: whether texts are of several lengths.
    """

    put: Callable[[Field], Positions | None]
    width: int
    trimmed: bool = False


class ColumnValues(Protocol):
    """The values of all columns in some images of one table, by the index of their column.

    Nothing but caches changes from call to call. What asks for a column in a way that its kind has
    not gets an error or nonsense, so whoever asks looks at `kind` first. Values that have no such
    form, or make no sense, are an UnfitValuesError (see `setl.codec.columns.fields`), ValueError,
    LookupError, struct.error or zlib.error; the rows are decoded one by one then, which names the
    faulty one.
    """

    @property
    def window(self) -> Window:
        """The bytes they lie in."""
        ...

    @property
    def count(self) -> int:
        """How many images there are."""
        ...

    @property
    def nulls(self) -> Mapping[int, Mask]:
        """Of each column that has NULLs in these images, which they are."""
        ...

    @property
    def stops(self) -> Positions:
        """Where each image ends."""
        ...

    def kind(self, column: int) -> Kind:
        """How rows hold the values of a column."""
        ...

    def listed(self, column: int) -> list[Any]:
        """The values as rows hold them."""
        ...

    def whole(self, column: int) -> NDArray[Any]:
        """Values of a kind in `WHOLE`, as int64, or as uint64 where they may be larger.

        What stands for a NULL is some number below 2**63.
        """
        ...

    def floating(self, column: int) -> NDArray[np.float64]:
        """Floating-point numbers; what stands for a NULL is some number."""
        ...

    def labels(self, column: int) -> tuple[list[Value], NDArray[np.int64]]:
        """The different values of an ENUM or SET as rows hold them, and which one each row has."""
        ...

    def texts(self, column: int) -> Texts | None:
        """Text (see `require_utf8`) or bytes; None for text that is made, see `made`."""
        ...

    def made(self, column: int) -> MadeText:
        """Text that is made of values: of dates, times and decimals, where `texts` has none."""
        ...

    def micros(self, column: int) -> NDArray[np.uint32] | None:
        """Microseconds of dates and times; None if all are 0. For NULLs any."""
        ...

    def scale(self, column: int) -> int:
        """Digits behind the point that a column of decimals may have."""
        ...

    def codes(self, column: int) -> tuple[NDArray[np.int64], int]:
        """A number for each value, the same for values that are equal, and how many there are."""
        ...

    def require_utf8(self, columns: Sequence[int]) -> None:
        """Raise UnfitValuesError if text of these columns that says to be UTF-8 is not."""
        ...

    def convert(self) -> None:
        """Make whatever can fail to be made, so that nothing fails that is asked for later.

        But for UnfitValuesError, which says that a row is fine and has to be decoded alone.
        """
        ...


def encoded(array: pa.Array) -> tuple[NDArray[np.int64], int]:
    """A number for each value of an array, and how many there are."""
    found = array.dictionary_encode()
    codes: NDArray[np.int64] = found.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, len(found.dictionary)


def encoded_values(held: Sequence[Any]) -> tuple[NDArray[np.int64], int]:
    """As `encoded`, of values that rows hold."""
    numbers: dict[Any, int] = {}
    own = [numbers.setdefault(value, len(numbers)) for value in held]
    return np.array(own, np.int64), len(numbers)


def listed(numbers: NDArray[Any], null: Mask | None) -> list[Any]:
    """Numbers as rows hold them."""
    return with_nulls(numbers.tolist(), null)


def with_nulls(found: list[Any], null: Mask | None) -> list[Any]:
    """Values with those replaced that are NULL."""
    if null is not None:
        for i in np.flatnonzero(null).tolist():
            found[i] = None
    return found


def texts_made(made: MadeText, count: int) -> list[str]:
    """The texts of some rows. Raises UnfitValuesError."""
    memory = np.empty(count * made.width, np.uint8)
    begins = made.put(Field(memory, 0, made.width, count))
    starts = np.arange(0, count * made.width, made.width, dtype=np.int64)
    text, stops = memory.tobytes().decode("latin-1"), (starts + made.width).tolist()
    if begins is not None:
        starts = starts + begins
    return [text[a:b] for a, b in zip(starts.tolist(), stops, strict=True)]


def rows_of(values: ColumnValues, columns: Sequence[int]) -> list[tuple[Any, ...]]:
    """Some values of each row. Raises as `ColumnValues` says."""
    return list(zip(*[values.listed(column) for column in columns], strict=True))
