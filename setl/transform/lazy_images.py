"""Compaction of changes whose rows are not decoded yet.

Only the last change of a busy row is written, and most updates leave keys as they are.
What is kept of such a change is its key and where in the stream's bytes its row lies; rows that
are still the last of their keys in the end are decoded then. Everything else about a change (keys
that move, images that lack values, rows of a schema that has changed) is `Compactor`'s: it takes
in what is kept here before it takes in what comes after, so that both see one order.

A row that cannot be decoded is found when it has to be decoded: one that was overwritten never is.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from setl.codec.scanning import RowScanner, Scanned
from setl.errors import DataError
from setl.model.change import Row
from setl.transform.compaction import Compactor
from setl.transform.survivors import Survivors

_DAMAGED: Final = (ValueError, LookupError, struct.error, zlib.error, DataError)


class UndecodedRowError(Exception):
    """A row that is the last of its key cannot be decoded."""


class LatestImages:
    """Stands in front of a `Compactor`, for the changes that a `RowScanner` finds.

    Changes are only put one behind the other as they come. Which of them is the last of its key is
    told once, by one dictionary, which costs a third of keeping that up to date with each change.
    """

    def __init__(self, compactor: Compactor) -> None:
        self._compactor = compactor
        # All of these are of one scanner at a time. Of each change, see `Scanned`:
        self._scanner: RowScanner | None = None
        self._keys: list[Any] = []
        self._rows: list[Row | int | None] = []
        self._versions: list[int] = []
        # Each payload, and how many changes there are up to its end.
        self._payloads: list[bytes] = []
        self._ends: list[int] = []

    def take(self, scanner: RowScanner, payload: bytes, scanned: Scanned) -> None:
        """Take changes in that follow all that were taken in before, here or by the compactor.

        Raises:
            UndecodedRowError, ConfigurationError: as `hand_on`, for what was taken in before.
        """
        if scanner is not self._scanner:
            self.hand_on()
            self._scanner = scanner
        self._keys += scanned.keys
        self._rows += scanned.rows
        self._versions += scanned.versions
        self._payloads.append(payload)
        self._ends.append(len(self._keys))

    def alone(self) -> Survivors | None:
        """What survives, if everything that was to be taken in was taken in here.

        It is what `Compactor.survivors` would say, and takes half as long to say.

        Returns:
            None if the compactor has to be asked, after `hand_on`.

        Raises:
            UndecodedRowError: as `hand_on`.
        """
        scanner = self._scanner
        if scanner is None or not self._compactor.untouched:
            return None
        left = Survivors(scanner.schema, scanner.key)
        add_row, add_version = left.own_upserts.append, left.upsert_versions.append
        single = len(scanner.key) == 1
        for key, row, version in self._states(scanner):
            if row is None:
                left.deletes.append((key,) if single else key)
                left.delete_versions.append(version)
            else:
                add_row(row)
                add_version(version)
        return left

    def hand_on(self) -> None:
        """Let the compactor take in what was taken in here.

        Raises:
            UndecodedRowError: a row cannot be decoded; nothing here is of use then.
            ConfigurationError: the table has no key.
        """
        scanner = self._scanner
        if scanner is None or not self._keys:
            return
        states = list(self._states(scanner))
        self._keys, self._rows, self._versions = [], [], []
        self._payloads, self._ends = [], []
        self._compactor.add_states(scanner.schema, states)

    def _states(self, scanner: RowScanner) -> Iterator[tuple[Any, Row | None, int]]:
        """The last change of each key, in stream order: key, row or None for a delete, version.

        Raises:
            UndecodedRowError: a row cannot be decoded.
        """
        keys, rows, versions, read = self._keys, self._rows, self._versions, scanner.row
        last = sorted(dict(zip(keys, range(len(keys)), strict=True)).values())
        begin = 0
        try:
            for payload, end in zip(self._payloads, self._ends, strict=True):
                stop = bisect_left(last, end, begin)
                for i in last[begin:stop]:
                    row = rows[i]
                    yield keys[i], read(payload, row) if isinstance(row, int) else row, versions[i]
                begin = stop
        except _DAMAGED as error:
            raise UndecodedRowError from error
