"""One connection that reads the end of a binlog for several streams.

A stream begins on a connection of its own. Between two transactions it may subscribe to the
shared connection, if that has kept the bytes which follow the stream's place. The bytes are the
same on both, so nothing but the connection changes for who reads them.
"""

from __future__ import annotations

import copy
import logging
import struct
import threading
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from mysql_event_stream import MesConnectionError, MesError

from setl.clock import Clock, SystemClock
from setl.codec.binlog.event import ARTIFICIAL_FLAG, EVENT_HEADER, HEADER_BYTES, ROWS, EventType
from setl.codec.binlog.runs import offset_behind
from setl.errors import FatalError, SetlError, TransientError
from setl.log import fields
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog.client import DeliveringClient, EventReader
from setl.systems.mysql.binlog.dump import check_event

_LOG = logging.getLogger(__name__)

_KEPT: Final = 16 * 1024 * 1024
_FULL_PACKET: Final = 0xFF_FFFF
_UNUSED: Final = 30.0  # seconds that nobody needs to take a subscription, until a connection ends
_PAUSE: Final = 10.0  # seconds until the next connection, after one that nobody could use
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


class Behind(Exception):  # noqa: N818 - no error: its stream goes on by itself
    """What follows a subscription is not kept any more."""


class Subscription(Protocol):
    """One stream's place at a shared connection.

    Order: events come as the server sent them, each once, from the place on at which the
    subscription begins. A slow stream delays nobody: what is kept is bounded, and who is too far
    behind for it loses the subscription. Crash: a subscription keeps nothing that is not in
    the binlog.
    """

    def deliver(self, to: EventReader) -> None:
        """Hand on what has come; waits for something.

        Raises:
            Behind: what follows was dropped. Nothing was handed on since the last call.
            MesError, MesConnectionError, SetlError: the shared connection ended with it. Each
                subscription gets an error of its own, after all that came before.
        """
        ...

    def leave(self) -> None:
        """End the subscription, from any thread, and twice if need be; the others notice nothing.

        The last one to leave ends the connection.
        """
        ...


class FilePlace(NamedTuple):
    """A place that is the same on two connections only if they read the same file.

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
    def of(cls, position: BinlogPosition) -> FilePlace | None:
        """None if it is not known which file of this name is meant."""
        origin = position.origin
        if origin is None or not origin.created:
            return None
        return cls(position.file, position.offset, origin.writer, origin.created)


@dataclass(slots=True)
class _Piece:
    """Whole packets, or one event that was read by itself.

    Attributes:
        data: the bytes.
        packed: whether they are packets.
        checksum: whether events end with one.
        places: where in the bytes each place is that follows what may end a transaction.
    """

    data: bytes
    packed: bool
    checksum: bool
    places: dict[FilePlace, int] = field(default_factory=dict[FilePlace, int])


class SharedLog(EventReader):
    """The newest bytes of a binlog, in pieces that are numbered on; not thread-safe."""

    def __init__(self, start: BinlogPosition, kept: int = _KEPT) -> None:
        """Nothing is there yet.

        Args:
            start: where the connection begins to read.
            kept: bytes that are kept; the newest piece always is.
        """
        self._file, self._offset = start.file, start.offset
        self._writer = self._created = 0
        self._kept = kept
        self._size = 0
        self._pieces: deque[_Piece] = deque()
        self._first = 0

    @property
    def end(self) -> int:
        """The number of the next piece."""
        return self._first + len(self._pieces)

    def find(self, place: FilePlace) -> tuple[int, int] | None:
        """The piece and the offset in it that follow a place, None if it is not kept."""
        for back, piece in enumerate(reversed(self._pieces), 1):
            at = piece.places.get(place)
            if at is not None:
                number = self.end - back
                return (number + 1, 0) if at == len(piece.data) else (number, at)
        return None

    def piece(self, number: int) -> _Piece:
        """A piece that is there. Raises `Behind` if it was dropped."""
        if number < self._first:
            raise Behind
        return self._pieces[number - self._first]

    def read_rows(self, data: bytes, at: int, *, checksum: bool) -> int:
        """Keep whole packets as they are; see `EventReader.read_rows`."""
        begin, size, places = at, len(data), dict[FilePlace, int]()
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
                places[self._place()] = at - begin
        if at > begin:
            self._keep(_Piece(data[begin:at], packed=True, checksum=checksum, places=places))
        return at

    def read(self, event: bytes, *, checksum: bool) -> None:
        """See `EventReader.read`."""
        seconds, kind, writer, _, following, flags = EVENT_HEADER.unpack_from(event)
        self._pass(following, flags)
        if kind == EventType.ROTATE:
            (offset,) = struct.unpack_from("<Q", event, HEADER_BYTES)
            end = len(event) - 4 if checksum else len(event)
            file = event[HEADER_BYTES + 8 : end].decode("ascii")
            if file != self._file:
                self._writer = self._created = 0
            self._file, self._offset = file, offset
        elif kind == EventType.FORMAT_DESCRIPTION:
            self._writer, self._created = writer, seconds
        piece = _Piece(event, packed=False, checksum=checksum)
        if kind not in _INSIDE:
            piece.places[self._place()] = len(event)
        self._keep(piece)

    def heartbeat(self) -> None:
        """Nobody needs it: the connection itself sees that the server is there."""

    def _pass(self, following: int, flags: int) -> None:
        if following and not flags & ARTIFICIAL_FLAG:
            self._offset = offset_behind(self._offset, following)

    def _place(self) -> FilePlace:
        return FilePlace(self._file, self._offset, self._writer, self._created)

    def _keep(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        self._size += len(piece.data)
        while self._size > self._kept and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft().data)
            self._first += 1


class SharedReader:
    """Reads a binlog in a thread of its own, for its subscribers. Thread-safe."""

    def __init__(
        self,
        client: DeliveringClient,
        start: BinlogPosition,
        ended: Callable[[SharedReader], None],
        clock: Clock,
        kept: int = _KEPT,
    ) -> None:
        """Nothing is read before `begin`.

        Args:
            client: not connected yet; belongs to this reader from now on.
            start: where the client begins.
            ended: told once nobody can take a subscription any more; may be told twice.
            clock: for the end of a connection at which nobody takes a subscription.
            kept: bytes that are kept for slow streams.
        """
        self._client = client
        self._log = SharedLog(start, kept)
        self._ended = ended
        self._clock = clock
        self._since = clock.monotonic()
        self._changed = threading.Condition()
        self._subscriptions = 0
        self._asking: set[Hashable] = set()
        self._over = self._left = False
        self._error: Exception | None = None

    @property
    def left(self) -> bool:
        """Whether it ended because everybody left."""
        return self._left

    def begin(self, name: str) -> None:
        """Read, until there is an error or everybody has left."""
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def take(self, place: FilePlace, who: Hashable = None) -> Subscription | None:
        """A subscription from this place on; None, and `who` waits, if that is not kept."""
        with self._changed:
            found = None if self._over else self._log.find(place)
            if found is None:
                self._asking.add(who)
                return None
            self._asking.discard(who)
            self._subscriptions += 1
            return _Subscription(self, *found)

    def wait(self, subscription: _Subscription) -> _Piece:
        """The next piece of a subscription; raises what `Subscription.deliver` raises."""
        with self._changed:
            self._changed.wait_for(
                lambda: subscription.left or self._over or subscription.number < self._log.end
            )
            if subscription.left:
                raise TransientError("the source was closed")
            if subscription.number < self._log.end:
                return self._log.piece(subscription.number)
            raise copy.copy(self._error) if self._error else TransientError("the source was closed")

    def give_up(self, who: Hashable) -> None:
        """Somebody waits for a subscription no longer; ends the connection if nobody else does."""
        with self._changed:
            if who not in self._asking:
                return
            self._asking.discard(who)
            last = not self._subscriptions and not self._asking and not self._over
            self._left = self._left or last
            self._over = self._over or last
            self._changed.notify_all()
        if last:
            self._ended(self)
            self._client.stop()

    def leave(self, subscription: _Subscription) -> None:
        """See `Subscription.leave`."""
        with self._changed:
            if subscription.left:
                return
            subscription.left = True
            self._subscriptions -= 1
            last = self._subscriptions == 0
            self._left = last and not self._over
            self._over = self._over or last
            self._changed.notify_all()
        if last:
            self._ended(self)
            self._client.stop()

    def _run(self) -> None:
        try:
            self._client.connect()
            self._client.start()
            taking = _Locked(self._log, self._changed)
            while not self._over:
                self._client.deliver(taking)
                self._end_unused()
        except (MesError, MesConnectionError, SetlError) as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - handed to whoever reads
            failure = FatalError(f"reading the binlog failed in an unforeseen way: {error!r}")
            failure.__cause__ = error
            self._fail(failure)
        finally:
            self._client.close()
            self._ended(self)

    def _end_unused(self) -> None:
        with self._changed:
            if not self._subscriptions and self._clock.monotonic() - self._since >= _UNUSED:
                self._over = True

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self._error, self._over = error, True
            self._changed.notify_all()


class _Locked(EventReader):
    """Adds to a log while nobody looks at it, and tells those who wait."""

    def __init__(self, log: SharedLog, changed: threading.Condition) -> None:
        self._log, self._changed = log, changed

    def read_rows(self, data: bytes, at: int, *, checksum: bool) -> int:
        with self._changed:
            end = self._log.read_rows(data, at, checksum=checksum)
            if end > at:
                self._changed.notify_all()
            return end

    def read(self, event: bytes, *, checksum: bool) -> None:
        with self._changed:
            self._log.read(event, checksum=checksum)
            self._changed.notify_all()

    def heartbeat(self) -> None:
        self._log.heartbeat()


class _Subscription(Subscription):
    def __init__(self, reader: SharedReader, number: int, at: int) -> None:
        self._reader = reader
        self.number, self._at = number, at
        self.left = False

    def deliver(self, to: EventReader) -> None:
        piece = self._reader.wait(self)
        at, self._at = self._at, 0
        self.number += 1
        if piece.packed:
            deliver_packets(piece.data, at, piece.checksum, to)
        else:
            to.read(piece.data, checksum=piece.checksum)

    def leave(self) -> None:
        self._reader.leave(self)


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


class SharedReaders:
    """The shared connections of this process, at most one for each server and account."""

    def __init__(self, kept: int = _KEPT, clock: Clock | None = None) -> None:
        """None yet; each keeps so many bytes."""
        self._kept = kept
        self._clock = clock or SystemClock()
        self._paused: dict[Hashable, float] = {}
        self._lock = threading.Lock()
        self._readers: dict[Hashable, SharedReader] = {}

    def take(
        self,
        key: Hashable,
        position: BinlogPosition,
        client: Callable[[], DeliveringClient],
        who: Hashable = None,
    ) -> Subscription | None:
        """A subscription from a transaction boundary on, None as long as there is none.

        Args:
            key: the server and the account.
            position: the boundary.
            client: makes a client that begins there, if nobody reads yet.
            who: waits for a subscription if there is none, until `give_up`.
        """
        place = FilePlace.of(position)
        if place is None:
            return None
        with self._lock:
            reader = self._readers.get(key)
            if reader is None:
                if self._clock.monotonic() < self._paused.get(key, 0.0):
                    return None
                reader = SharedReader(client(), position, self._forget, self._clock, self._kept)
                self._readers[key] = reader
                reader.begin("binlog-shared")
        return reader.take(place, who)

    def give_up(self, who: Hashable) -> None:
        """Somebody waits for a subscription no longer; from any thread."""
        with self._lock:
            readers = list(self._readers.values())
        for reader in readers:
            reader.give_up(who)

    def _forget(self, reader: SharedReader) -> None:
        with self._lock:
            for key, known in list(self._readers.items()):
                if known is reader:
                    del self._readers[key]
                    self._paused.pop(key, None)
                    if not reader.left:
                        self._paused[key] = self._clock.monotonic() + _PAUSE


class SharingClient:
    """Reads alone until it may read with others, and alone again if it is slow."""

    def __init__(
        self,
        alone: Callable[[BinlogPosition], DeliveringClient],
        start: BinlogPosition,
        take: Callable[[BinlogPosition], Subscription | None],
        boundary: Callable[[], BinlogPosition | None],
        latest: Callable[[], BinlogPosition],
        *,
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            alone: makes a client that begins at a place.
            start: the first place.
            take: subscribes to the shared connection.
            boundary: the place after the last event that was handed on, None inside a
                transaction.
            latest: where the binlog ends now.
            give_up: told that no subscription is waited for any more.
        """
        self._alone, self._take = alone, take
        self._boundary, self._latest = boundary, latest
        self._give_up = give_up
        self._client: DeliveringClient | None = alone(start)
        self._goal = start
        self._subscription: Subscription | None = None
        self._stopped = False
        self._lock = threading.Lock()

    @property
    def shared(self) -> bool:
        """Whether it reads with others; from any thread."""
        return self._subscription is not None

    def connect(self) -> None:
        """Log in, and see how far there is to go before reading with others."""
        if self._client is not None:
            self._client.connect()
        self._goal = self._latest()

    def start(self) -> None:
        """See `DeliveringClient.start`."""
        if self._client is not None:
            self._client.start()

    def deliver(self, to: EventReader) -> None:
        """See `DeliveringClient.deliver`."""
        client, subscription = self._client, self._subscription
        if subscription is not None:
            try:
                subscription.deliver(to)
            except Behind:
                self._leave()
        elif client is not None:
            client.deliver(to)
            self._join(client)

    def stop(self) -> None:
        """See `DeliveringClient.stop`."""
        with self._lock:
            self._stopped = True
            client, subscription = self._client, self._subscription
        if subscription is not None:
            subscription.leave()
        self._give_up()
        if client is not None:
            client.stop()

    def close(self) -> None:
        """See `DeliveringClient.close`."""
        self.stop()
        if self._client is not None:
            self._client.close()

    def _join(self, client: DeliveringClient) -> None:
        place = self._boundary()
        if place is None or place.order < self._goal.order:
            return
        subscription = self._take(place)
        if subscription is None:
            return
        with self._lock:
            if self._stopped:
                subscription.leave()
                return
            self._client, self._subscription = None, subscription
        client.close()
        _LOG.info("the binlog is read with other pipelines", extra=fields(position=str(place)))

    def _leave(self) -> None:
        place, subscription = self._boundary(), self._subscription
        if subscription is not None:
            subscription.leave()
        if place is None:
            raise TransientError(
                "reading with other pipelines ended inside a transaction, since this pipeline "
                "was too slow",
                hint="It reads again from its checkpoint, on a connection of its own",
            )
        client = self._alone(place)
        with self._lock:
            self._subscription, self._client = None, client
            if self._stopped:
                raise TransientError("the source was closed")
        _LOG.info(
            "the binlog is read alone, since this pipeline is slower than others",
            extra=fields(position=str(place)),
        )
        self.connect()
        self.start()


SHARED_READERS: Final = SharedReaders()
