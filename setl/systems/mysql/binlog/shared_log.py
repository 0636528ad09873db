"""The newest bytes of a binlog, kept for several streams that read on in them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from setl.codec.binlog.event import (
    ARTIFICIAL_FLAG,
    EVENT_HEADER,
    HEADER_BYTES,
    ROWS,
    EventType,
    rotated_to,
)
from setl.codec.binlog.rows.row_chunks import offset_behind
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog.client import EventReader
from setl.systems.mysql.binlog.dump import check_event
from setl.systems.mysql.binlog.errors import translating_damage

CACHE_BYTES: Final = 16 * 1024 * 1024
"""Of the newest events, for streams that are a little behind."""

_FULL_PACKET: Final = 0xFF_FFFF
_HEARTBEATS: Final = frozenset((27, 41))
_APART: Final = _HEARTBEATS | {EventType.FORMAT_DESCRIPTION, EventType.ROTATE}
# No transaction ends with one of these.
_INSIDE: Final = ROWS | {
    EventType.TABLE_MAP,
    EventType.GTID,
    EventType.ANONYMOUS_GTID,
    EventType.GTID_TAGGED,
    EventType.MARIADB_GTID,
}


class Behind(Exception):  # noqa: N818 - no error: its stream continues automatically
    """What follows a subscription is not kept any more."""


class FilePosition(NamedTuple):
    """A position that is the same on two connections only if they read the same file.

    Attributes:
        file: the file's name.
        offset: where in it.
        writer: see `setl.model.position.BinlogOrigin`.
        created: as well.
    """

    file: str
    offset: int
    writer: int
    created: int

    @classmethod
    def of(cls, position: BinlogPosition) -> FilePosition | None:
        """None if it is not known which file of this name is meant."""
        origin = position.origin
        if origin is None or not origin.created:
            return None
        return cls(position.file, position.offset, origin.writer, origin.created)


@dataclass(slots=True)
class Piece:
    """Whole packets, or one event that was read by itself.

    Attributes:
        data: the bytes.
        packed: whether they are packets.
        checksum: whether events end with one.
        positions: where in the bytes each position is that follows what may end a transaction.
    """

    data: bytes
    packed: bool
    checksum: bool
    positions: dict[FilePosition, int] = field(default_factory=dict[FilePosition, int])


class SharedLog(EventReader):
    """The newest bytes of a binlog, in pieces that are numbered on; not thread-safe."""

    def __init__(self, start: BinlogPosition, capacity: int = CACHE_BYTES) -> None:
        """Nothing is there yet.

        Args:
            start: where the connection begins to read.
            capacity: bytes that are kept; the newest piece always is.
        """
        self._file, self._offset = start.file, start.offset
        self._writer = self._created = 0
        self._capacity = capacity
        self._size = 0
        self._pieces: deque[Piece] = deque()
        self._first = 0

    @property
    def end(self) -> int:
        """The number of the next piece."""
        return self._first + len(self._pieces)

    def find(self, position: FilePosition) -> tuple[int, int] | None:
        """The piece and the offset in it that follow a position, None if it is not kept."""
        for back, piece in enumerate(reversed(self._pieces), 1):
            at = piece.positions.get(position)
            if at is not None:
                number = self.end - back
                return (number + 1, 0) if at == len(piece.data) else (number, at)
        return None

    def piece(self, number: int) -> Piece:
        """A piece that is there. Raises `Behind` if it was dropped."""
        if number < self._first:
            raise Behind
        return self._pieces[number - self._first]

    def read_rows(self, data: bytes, at: int, *, checksum: bool) -> int:
        """Keep whole packets as they are; see `EventReader.read_rows`."""
        begin, size, positions = at, len(data), dict[FilePosition, int]()
        while at + 5 + HEADER_BYTES <= size:
            length = int.from_bytes(data[at : at + 3], "little")
            end = at + 4 + length
            if end > size or length == _FULL_PACKET or length <= HEADER_BYTES or data[at + 4]:
                break
            _, kind, _, _, following, flags = EVENT_HEADER.unpack_from(data, at + 5)
            if kind in _APART:
                break
            at = end
            self._pass(following, flags)
            if kind not in _INSIDE:
                positions[self._position()] = at - begin
        if at > begin:
            self._keep(Piece(data[begin:at], packed=True, checksum=checksum, positions=positions))
        return at

    def read(self, event: bytes, *, checksum: bool) -> None:
        """See `EventReader.read`. Raises FatalError if the event is damaged."""
        seconds, kind, writer, _, following, flags = EVENT_HEADER.unpack_from(event)
        self._pass(following, flags)
        if kind == EventType.ROTATE:
            with translating_damage(event, BinlogPosition(self._file, self._offset)):
                file, offset = rotated_to(event, checksum=checksum)
            if file != self._file:
                self._writer = self._created = 0
            self._file, self._offset = file, offset
        elif kind == EventType.FORMAT_DESCRIPTION:
            self._writer, self._created = writer, seconds
        piece = Piece(event, packed=False, checksum=checksum)
        if kind not in _INSIDE:
            piece.positions[self._position()] = len(event)
        self._keep(piece)

    def heartbeat(self) -> None:
        """Nobody needs it: the connection itself sees that the server is there."""

    def _pass(self, following: int, flags: int) -> None:
        if following and not flags & ARTIFICIAL_FLAG:
            self._offset = offset_behind(self._offset, following)

    def _position(self) -> FilePosition:
        return FilePosition(self._file, self._offset, self._writer, self._created)

    def _keep(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._size += len(piece.data)
        while self._size > self._capacity and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft().data)
            self._first += 1


def deliver_packets(data: bytes, at: int, checksum: bool, to: EventReader) -> None:  # noqa: FBT001
    """Hand on the events of whole packets. Raises MesError if one is damaged."""
    while at < len(data):
        at = to.read_rows(data, at, checksum=checksum)
        if at < len(data):
            end = at + 4 + int.from_bytes(data[at : at + 3], "little")
            event = data[at + 5 : end]
            at = end
            if checksum:
                check_event(event)
            to.read(event, checksum=checksum)
