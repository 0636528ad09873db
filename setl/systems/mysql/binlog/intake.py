"""What a stream has read of its connection and not handed on yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from setl.codec.binlog.event import EventType
from setl.codec.binlog.header import BinlogHeaderReader
from setl.model.entry import Entry

_PIECE = 4 * 1024 * 1024  # bytes of rows of a compressed transaction in one piece


class Intake:
    """The `EventReader` of a stream.

    Attributes:
        reader: reads headers.
        heard: whether the server has sent anything, be it a heartbeat.
    """

    def __init__(self, reader: BinlogHeaderReader, put: Callable[[list[Entry]], bool]) -> None:
        """Give `put` what one event has too much of; it returns whether more is wanted."""
        self.reader = reader
        self.heard = False
        self._put = put
        self._entries: list[Entry] = []

    def taken(self) -> list[Entry]:
        """The entries since the last call."""
        entries, self._entries = self._entries, []
        return entries

    def read_rows(self, data: bytes, at: int, *, checksum: bool) -> int:
        """See `EventReader.read_rows`."""
        at, found = self.reader.read_rows(data, at, checksum=checksum)
        self._entries += found
        return at

    def read(self, event: bytes, *, checksum: bool) -> None:
        """See `EventReader.read`."""
        self.heard = True
        found = self.reader.read(event, checksum=checksum)
        if event[4] == EventType.TRANSACTION_PAYLOAD:
            self._put_in_pieces(found)
        else:
            self._entries += found

    def heartbeat(self) -> None:
        """See `EventReader.heartbeat`."""
        self.heard = True

    def _put_in_pieces(self, found: Iterable[Entry]) -> None:
        """Hand on what one event holds, which may be more than may wait."""
        size = 0
        for entry in found:
            self._entries.append(entry)
            size += len(entry.payload)
            if size >= _PIECE:
                size = 0
                if not self._put(self.taken()):
                    return
