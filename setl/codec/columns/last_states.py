"""The last change of each key among row images, without decoding rows.

Keys are compared by their bytes where these say the same as their values, else by their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setl.codec.columns.images import FoundRows, UnfitRowsError
from setl.codec.columns.values import ColumnValues, encoded


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


def last_states(found: FoundRows, key: Sequence[int]) -> LastStates:
    """The last change of each key.

    Args:
        found: the images.
        key: indexes of the columns that are the key.

    Raises:
        UnfitRowsError: a key is NULL, or an update moves a row away from a key to which the same
            event has moved another one, see `setl.transform.compaction`.
        ValueError, LookupError, struct.error, zlib.error: a key makes no sense.
    """
    values = found.values
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
        firsts = np.searchsorted(events, np.arange(len(found.updated)))
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
        own, count = values.codes(column)
        # Two numbers below that of the images fit into one of 64 bits.
        codes = own if codes is None else encoded(pa.array(codes * count + own))[0]
    if codes is None:
        raise ValueError("a key has at least one column")
    return codes
