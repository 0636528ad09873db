"""Finds where the images of records begin, without reading values.

All records are gone over together, one field after the other. What they say of their table is
mostly the same bytes in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setl.codec.columns.images import FoundRows, RowImages, UnfitRowsError
from setl.codec.columns.window import Positions, Window
from setl.codec.dts.columns.form import DtsForm
from setl.codec.dts.columns.offsets import numbers_at, sizes_at
from setl.codec.dts.described import NOTHING, described
from setl.codec.dts.middle import NEVER, SOURCES
from setl.codec.dts.row_chunks import LOW_32_BITS, run_of
from setl.codec.dts.scan import MISREADS, Misread, positions_end
from setl.codec.dts.table_identity import OPERATION_BYTES, TableIdentity, read_identity
from setl.model.change import Op

_INSERT, _UPDATE, _DELETE, _OTHER = range(4)
_KINDS: Final = {Op.INSERT: _INSERT, Op.UPDATE: _UPDATE, Op.DELETE: _DELETE}
_OPERATIONS: Final = np.full(256, _OTHER, np.uint8)
for _byte, _op in OPERATION_BYTES.items():
    _OPERATIONS[_byte] = _KINDS[_op]
_WORD: Final = 8  # bytes that are compared at once


def find_rows(
    form: DtsForm, payloads: Sequence[tuple[int, bytes]], *, logical_names: bool
) -> FoundRows:
    """Find the images of records of one table, see `RowCodec.find_rows`.

    Args:
        form: how their images lie.
        payloads: see there.
        logical_names: see `setl.codec.dts.rows.DtsRowCodec`.

    Raises:
        UnfitRowsError, UnfitValuesError, LookupError: records are damaged, of another table or
            form, or lack values.
    """
    window = Window(b"".join([payload for _, payload in payloads]))
    begins, ends, versions = _records(payloads)
    at = begins
    for _ in ("version", "id", "sourceTimestamp"):
        _, at = numbers_at(window, at)
    for _ in ("sourcePosition", "safeSourcePosition", "sourceTxid"):
        _, at = sizes_at(window, at)
    source, at = numbers_at(window, at)
    _require((source >= 0) & (source < SOURCES), begins, "a record is of no known source")
    _, at = sizes_at(window, at)
    kinds = _OPERATIONS[window.bytes[at]]
    _require(kinds != _OTHER, begins, "a record holds no row")
    images = _Tables(form.identity, window, logical_names=logical_names).ends(begins, at + 1)
    return _found(form, window, _Records(kinds, images, ends, versions))


def _records(
    payloads: Sequence[tuple[int, bytes]],
) -> tuple[Positions, Positions, NDArray[np.int64]]:
    """Where each record of all payloads together begins and ends, and its version."""
    begins, ends, versions = list[int](), list[int](), list[int]()
    base = 0
    # Lists, since most payloads may be of few records.
    for version, payload in payloads:
        first, behind, low = run_of(payload)
        if not first:
            first, behind, low = [0], [len(payload)], [0]
        elif behind[-1] != len(payload):
            raise UnfitRowsError("a run of records ends too early", base)
        begins += [base + at for at in first]
        ends += [base + at for at in behind]
        versions += [version - (low[-1] - offset & LOW_32_BITS) for offset in low]
        base += len(payload)
    return np.array(begins), np.array(ends), np.array(versions)


class _Records(NamedTuple):
    """Records of one table.

    Attributes:
        kinds: what each does.
        at: where the two images of each begin, or what stands for one that is not there.
        ends: where each ends.
        versions: of each.
    """

    kinds: NDArray[np.uint8]
    at: Positions
    ends: Positions
    versions: NDArray[np.int64]


def _found(form: DtsForm, window: Window, records: _Records) -> FoundRows:
    """The images of records."""
    kinds, at, ends, versions = records
    images = RowImages(form, window)
    inserted, updated, deleted = kinds == _INSERT, kinds == _UPDATE, kinds == _DELETE
    _require((window.bytes[at] == 0) | ~inserted, at, "an insert has an image before it")
    firsts = np.cumsum(1 + updated) - 1 - updated
    starts = np.empty(len(kinds) + int(updated.sum()), np.int64)
    starts[firsts] = at + inserted
    if updated.any():
        starts[firsts[updated] + 1] = form.values(images, at[updated]).stops
    values = form.values(images, starts)
    last = values.stops[firsts + updated]
    _require(window.bytes[last[deleted]] == 0, at[deleted], "a delete has an image behind it")
    _require(last + deleted <= ends, at, "an image goes on behind the end of its record")
    events = np.repeat(np.arange(len(kinds), dtype=np.int64), 1 + updated)
    return FoundRows(form, window, starts, values, events, updated, deleted, versions)


def _require(holds: NDArray[np.bool_], positions: Positions, message: str) -> None:
    if not holds.all():
        raise UnfitRowsError(message, int(positions[int(np.argmin(holds))]))


class _Tables:
    """Reads what records say of their table, which has to be the same one in all of them."""

    def __init__(self, identity: TableIdentity, window: Window, *, logical_names: bool) -> None:
        self._identity = identity
        self._window = window
        self._logical_names = logical_names
        self._said = NEVER  # what the last record said
        self._described = NOTHING

    def ends(self, begins: Positions, at: Positions) -> Positions:
        """Where what they say ends, and the images begin.

        Args:
            begins: where the records begin.
            at: where it begins, behind the operation.

        Raises:
            UnfitRowsError: one is of another table, or cannot be read.
        """
        data = self._window.payload
        self._end(int(begins[0]), int(at[0]))
        found = at + len(self._said)
        for i in np.flatnonzero(~self._same(at)).tolist():
            begin, own = int(begins[i]), int(at[i])
            if not data.startswith(self._said, own):
                self._end(begin, own)
            found[i] = own + len(self._said)
        return found

    def _same(self, at: Positions) -> NDArray[np.bool_]:
        """Which records say the same as the last one."""
        said, window = self._said, self._window
        alike = at + len(said) <= window.size
        at = np.where(alike, at, 0)
        whole = len(said) // _WORD * _WORD
        words = window.view("<u8")
        for offset in range(0, whole, _WORD):
            alike &= words[at + offset] == int.from_bytes(said[offset : offset + _WORD], "little")
        for offset in range(whole, len(said)):
            alike &= window.bytes[at + offset] == said[offset]
        return alike

    def _end(self, begin: int, at: int) -> None:
        """Read what a record says, if it is of this table."""
        data = self._window.payload
        try:
            end = self._described.end_of_same(data, at)
            if end < 0:
                offsets = positions_end(data, begin)
                _, identity, end = read_identity(data, offsets, logical_names=self._logical_names)
                if identity != self._identity:
                    raise Misread
                self._described = described(data, at, end)
        except MISREADS as error:
            raise UnfitRowsError("a record is of another table, or damaged", begin) from error
        self._said = data[at:end]
