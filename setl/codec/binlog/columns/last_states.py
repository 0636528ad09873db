"""The last change of each key among row images, without decoding rows.

Keys are compared by their bytes where these say the same as their values, else by their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setl.codec.binlog.columns.decoded import values_of
from setl.codec.binlog.columns.finding import FoundRows, UnfitRowsError
from setl.codec.binlog.columns.layout import ColumnLayout
from setl.codec.binlog.columns.offsets import ColumnValues, Spans
from setl.codec.binlog.columns.window import Positions, Window
from setl.codec.charset import is_utf8
from setl.model.schema import Kind

# Not DECIMAL, which has a negative zero, nor FLOAT; nor moments, whose bytes may say one time in
# two ways if they make no sense.
_NUMBERED: Final = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT, Kind.DATE})


class LastStates(NamedTuple):
    """What is left of changes: of each key its last one, in stream order.

    Attributes:
        upserts: numbers of the images that are left of rows that are there in the end.
        deletes: numbers of images that have the keys of rows that are not.
        changes: numbers of the last image of each change.
    """

    upserts: NDArray[np.int64]
    deletes: NDArray[np.int64]
    changes: NDArray[np.int64]


def _has_comparable_bytes(column: ColumnLayout) -> bool:
    """Whether two values of a column, not NULL, are one exactly if their bytes are."""
    if column.converted:
        return False
    if column.kind is Kind.TEXT:
        return is_utf8(column.detail.charset)
    # BINARY(n) loses zero bytes at its end, and nothing says that it loses all of them.
    plain = column.kind is Kind.BINARY and column.detail.column.width <= 0
    return plain or column.kind in _NUMBERED


def last_states(found: FoundRows, values: ColumnValues, key: Sequence[int]) -> LastStates:
    """The last change of each key.

    Args:
        found: the images.
        values: the values of all of them.
        key: indexes of the columns that are the key.

    Raises:
        UnfitRowsError: a key is NULL, or an update moves a row away from a key to which the same
            event has moved another one, see `setl.transform.compaction`.
        ValueError, LookupError, struct.error, zlib.error: a key makes no sense.
    """
    for column in key:
        if column in values.nulls:
            at = int(found.starts[int(np.argmax(values.nulls[column]))])
            raise UnfitRowsError("a value that identifies a row is NULL", at)
    events, count = found.events, len(found.starts)
    updated = found.updated[events]
    changes = stated = np.arange(count, dtype=np.int64)
    gone = found.deleted[events]
    codes = _codes(values, key)
    if updated.any():
        # An event has images of updates or none, so pairs begin at even numbers in it.
        firsts = np.searchsorted(events, np.arange(len(found.kinds)))
        after = updated & ((changes - firsts[events]) & 1 == 1)
        changed = np.flatnonzero(after)
        moved = changed[codes[changed] != codes[changed - 1]] - 1
        counted = ~updated | after
        changes = stated = np.flatnonzero(counted)
        if len(moved):
            _refuse_swaps(found, codes, stated, moved)
            # Under its former key such a row is deleted.
            counted[moved] = gone[moved] = True
            stated = np.flatnonzero(counted)
    last = np.full(int(codes.max(initial=0)) + 1, -1, np.int64)
    np.maximum.at(last, codes[stated], stated)
    last = np.sort(last[last >= 0])
    return LastStates(last[~gone[last]], last[gone[last]], changes)


def _refuse_swaps(
    found: FoundRows, codes: NDArray[np.int64], changes: NDArray[np.int64], left: NDArray[np.int64]
) -> None:
    """Raise UnfitRowsError if a row leaves a key that its event has given to another one before.

    Args:
        found: the images.
        codes: of each image its key.
        changes: numbers of the last image of each change.
        left: numbers of the images with the keys from which rows have moved away.
    """
    size = int(codes.max()) + 1
    given, first = np.unique(found.events[changes] * size + codes[changes], return_index=True)
    wanted = found.events[left] * size + codes[left]
    nearest = np.minimum(np.searchsorted(given, wanted), len(given) - 1)
    swapped = (given[nearest] == wanted) & (changes[first[nearest]] < left)
    if swapped.any():
        at = int(found.starts[left[int(np.argmax(swapped))]])
        raise UnfitRowsError("rows of one event exchange their keys", at)


def _codes(values: ColumnValues, key: Sequence[int]) -> NDArray[np.int64]:
    """A number for each image, the same for the same key; not above the number of images."""
    codes: NDArray[np.int64] | None = None
    for column in key:
        own, count = _column_codes(values, column)
        # Two numbers below that of the images fit into one of 64 bits.
        codes = own if codes is None else _encoded(pa.array(codes * count + own))[0]
    if codes is None:
        raise ValueError("a key has at least one column")
    return codes


def _column_codes(values: ColumnValues, column: int) -> tuple[NDArray[np.int64], int]:
    if not _has_comparable_bytes(values.layout.columns[column]):
        numbers: dict[Any, int] = {}
        own = [numbers.setdefault(value, len(numbers)) for value in values_of(values, column)]
        return np.array(own, np.int64), len(numbers)
    if values.layout.columns[column].size < 0:
        return _encoded(texts(values.window, values.spans(column)))
    return _encoded(pa.array(values.numbers(column)))


def _encoded(array: pa.Array) -> tuple[NDArray[np.int64], int]:
    """A number for each value of an array, and how many there are."""
    encoded = array.dictionary_encode()
    codes: NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, len(encoded.dictionary)


def texts(window: Window, spans: Spans) -> pa.Array:
    """Values with their lengths in front of them as an array, whose buffer is the window's.

    Raises:
        OverflowError: the payload is longer than an array's offsets can say.
    """
    return slices(window.bytes, spans.starts, spans.stops)


def slices(
    data: NDArray[np.uint8], starts: Positions, stops: Positions, order: Positions | None = None
) -> pa.Array:
    """Pieces of some bytes, which follow each other, as an array.

    Args:
        data: the bytes.
        starts: where each piece begins.
        stops: where each ends.
        order: numbers of the pieces that the array has, in its order; None for all as they are.

    Raises:
        OverflowError: there are more bytes than an array's offsets can say.
    """
    if len(data) >= 1 << 31:
        raise OverflowError(f"{len(data)} bytes are more than an array holds")
    count = len(starts)
    # What lies between two pieces is an element, too.
    bounds = np.zeros(2 * count + 1, np.int32)
    bounds[:-1:2], bounds[1::2] = starts, stops
    bounds[-1] = bounds[-2] if count else 0
    array = pa.Array.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    numbers = np.arange(0, 2 * count, 2) if order is None else order * 2
    return array.take(pa.array(numbers.astype(np.int32)))
