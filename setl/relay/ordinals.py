"""Ordinals: numbers of records in their transaction, the same in every replay."""

from __future__ import annotations

from setl.codec.binlog.event import COMPRESSED_ROWS
from setl.codec.binlog.inflation import images_bytes
from setl.errors import FatalError
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition


class Ordinals:
    """Counts along one transaction after another.

    What an entry ends with has the distance in the binlog from the boundary before the transaction
    to there, and the rows of an entry have the numbers up to that one: any row takes a byte at
    least. Where the binlog is compressed it may take less, and rows are counted as the bytes that
    they would take otherwise. Both are the same whatever tables are mapped, and known without
    decoding those that are not.
    """

    def __init__(self) -> None:
        """No transaction has begun."""
        self._begin = 0
        self.last = 0

    def begin(self, boundary: BinlogPosition) -> None:
        """A transaction begins behind a boundary."""
        self._begin = boundary.offset
        self.last = 0

    def advance(self, entry: Entry, position: BinlogPosition) -> int:
        """The ordinal of what the next entry ends with; every entry has to be given.

        Raises:
            FatalError: it is compressed, and damaged.
        """
        size = 1
        if entry.kind is EntryKind.ROWS:
            payload = entry.payload
            size = len(payload)
            if size > 4 and payload[4] in COMPRESSED_ROWS:
                size = _plain_bytes(payload)
        self.last = max(position.offset - self._begin, self.last + size)
        return self.last


def _plain_bytes(event: bytes) -> int:
    try:
        return images_bytes(event)
    except (ValueError, LookupError) as error:
        raise FatalError(
            f"a compressed event in the binlog is damaged: {error}",
            hint="Check the binlog with mysqlbinlog --verify-binlog-checksum on the source",
        ) from error
