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
from typing import Any, Final

from setl.codec.scanning import RowScanner, Scanned
from setl.errors import DataError
from setl.model.change import Row
from setl.transform.compaction import Compactor
from setl.transform.survivors import Survivors

_DAMAGED: Final = (ValueError, LookupError, struct.error, zlib.error, DataError)

_Place = tuple[Row | int | None, bytes, int]
"""A row, decoded or not, or None for a delete; the payload that it lies in; its version."""


class UndecodedRowError(Exception):
    """A row that is the last of its key cannot be decoded."""


class LatestImages:
    """Stands in front of a `Compactor`, for the changes that a `RowScanner` finds."""

    def __init__(self, compactor: Compactor) -> None:
        self._compactor = compactor
        # Of one scanner at a time. Ordered as the compactor's: by the last change of each key.
        self._latest: dict[Any, _Place] = {}
        self._scanner: RowScanner | None = None

    def take(self, scanner: RowScanner, payload: bytes, scanned: Scanned) -> None:
        """Take changes in that follow all that were taken in before, here or by the compactor.

        Raises:
            UndecodedRowError, ConfigurationError: as `hand_on`, for what was taken in before.
        """
        if scanner is not self._scanner:
            self.hand_on()
            self._scanner = scanner
        latest = self._latest
        for key, row, version in zip(scanned.keys, scanned.rows, scanned.versions, strict=True):
            if key in latest:
                del latest[key]
            latest[key] = (row, payload, version)

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
        add_row, add_version = left.upserts.append, left.upsert_versions.append
        read, single = scanner.row, len(scanner.key) == 1
        try:
            for key, (row, payload, version) in self._latest.items():
                if row is None:
                    left.deletes.append((key,) if single else key)
                    left.delete_versions.append(version)
                    continue
                add_row(read(payload, row) if isinstance(row, int) else row)
                add_version(version)
        except _DAMAGED as error:
            raise UndecodedRowError from error
        return left

    def hand_on(self) -> None:
        """Let the compactor take in what was taken in here.

        Raises:
            UndecodedRowError: a row cannot be decoded; nothing here is of use then.
            ConfigurationError: the table has no key.
        """
        scanner, latest = self._scanner, self._latest
        if scanner is None or not latest:
            return
        self._latest = {}
        read = scanner.row
        try:
            states = [
                (key, read(payload, row) if isinstance(row, int) else row, version)
                for key, (row, payload, version) in latest.items()
            ]
        except _DAMAGED as error:
            raise UndecodedRowError from error
        self._compactor.add_states(scanner.schema, states)
