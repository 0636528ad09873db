"""One connection that reads the end of a binlog for several streams.

A stream begins on a connection of its own. Between two transactions it may subscribe to the
shared connection, if that has kept the bytes which follow the stream's place. The bytes are the
same on both, so nothing but the connection changes for who reads them.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Hashable
from typing import Final, Protocol

from mysql_event_stream import MesConnectionError, MesError

from setl.clock import Clock, SystemClock
from setl.errors import SetlError, TransientError
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog.client import DeliveringClient, EventReader
from setl.systems.mysql.binlog.errors import unforeseen
from setl.systems.mysql.binlog.shared_log import (
    CACHE_BYTES,
    FilePosition,
    Piece,
    SharedLog,
    deliver_packets,
)

_UNUSED: Final = 30.0  # seconds without a subscription, until a connection ends
_PAUSE: Final = 10.0  # seconds until the next connection, after one that nobody could use


class Subscription(Protocol):
    """One stream's place at a shared connection.

    Order: events come as the server sent them, each once, from the position on at which the
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

    @property
    def arriving(self) -> int:
        """See `DeliveringClient.arriving`; of the shared connection."""
        ...

    def leave(self) -> None:
        """End the subscription, from any thread, and twice if need be; the others notice nothing.

        The last one to leave ends the connection.
        """
        ...


class SharedReader:
    """Reads a binlog in a thread of its own, for its subscribers. Thread-safe."""

    def __init__(
        self,
        client: DeliveringClient,
        start: BinlogPosition,
        ended: Callable[[SharedReader], None],
        clock: Clock,
        capacity: int = CACHE_BYTES,
    ) -> None:
        """Nothing is read before `begin`.

        Args:
            client: not connected yet; belongs to this reader from now on.
            start: where the client begins.
            ended: told once nobody can take a subscription any more; may be told twice.
            clock: for the end of a connection at which nobody takes a subscription.
            capacity: bytes that are kept for slow streams.
        """
        self._client = client
        self._log = SharedLog(start, capacity)
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

    @property
    def arriving(self) -> int:
        """See `DeliveringClient.arriving`."""
        return self._client.arriving

    def begin(self, name: str) -> None:
        """Read, until there is an error or everybody has left."""
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def take(self, position: FilePosition, who: Hashable = None) -> Subscription | None:
        """A subscription from this position on; None, and `who` waits, if that is not kept."""
        with self._changed:
            found = None if self._over else self._log.find(position)
            if found is None:
                self._asking.add(who)
                return None
            self._asking.discard(who)
            self._subscriptions += 1
            return _Subscription(self, *found)

    def wait(self, subscription: _Subscription) -> Piece:
        """The next piece of a subscription; raises what `Subscription.deliver` raises."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_news(subscription))
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
            self._fail(unforeseen(error))
        finally:
            self._client.close()
            self._ended(self)

    def _has_news(self, subscription: _Subscription) -> bool:
        """Whether its own thread has something to do."""
        return subscription.left or self._over or subscription.number < self._log.end

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
        at = self._passed()
        if piece.packed:
            deliver_packets(piece.data, at, piece.checksum, to)
        else:
            to.read(piece.data, checksum=piece.checksum)

    def _passed(self) -> int:
        """Go on to the next piece; returns where in this one it begins."""
        at, self._at = self._at, 0
        self.number += 1
        return at

    @property
    def arriving(self) -> int:
        return self._reader.arriving

    def leave(self) -> None:
        self._reader.leave(self)


class SharedReaders:
    """The shared connections of this process, at most one for each server and account."""

    def __init__(self, capacity: int = CACHE_BYTES, clock: Clock | None = None) -> None:
        """None yet; each keeps so many bytes."""
        self._capacity = capacity
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
        other_position = FilePosition.of(position)
        if other_position is None:
            return None
        with self._lock:
            reader = self._readers.get(key)
            if reader is None:
                if self._clock.monotonic() < self._paused.get(key, 0.0):
                    return None
                reader = SharedReader(client(), position, self._forget, self._clock, self._capacity)
                self._readers[key] = reader
                reader.begin("binlog-shared")
        return reader.take(other_position, who)

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


SHARED_READERS: Final = SharedReaders()
"""Those of this process."""
