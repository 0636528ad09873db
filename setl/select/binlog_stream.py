"""One connection that streams a binlog, with the thread that reads the events' headers.

`BinlogClient` hands out raw events and never connects again by itself; whatever goes wrong
ends the stream with an error, and the pipeline opens a new one from its own checkpoint.

The server sends a heartbeat on a stream that is idle for 3 s (the client asks for it). A
server that sends nothing for longer than the read timeout is gone, whether or not the
network says so.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mysql_event_stream import (
    BinlogClient,
    MesConnectionError,
    MesError,
    PollResult,
    SslMode,
)

from setl.clock import Clock
from setl.codec.binlog.event import EventType
from setl.codec.binlog.header import BinlogHeaderReader
from setl.errors import FatalError, SetlError, TransientError
from setl.model.entry import Entry
from setl.model.position import BinlogPosition
from setl.mysql.connection import MysqlEndpoint
from setl.select.binlog_client import EventClient, FallbackClient
from setl.select.binlog_dump import MOST_OFFSET, DumpClient
from setl.select.binlog_errors import DROPPED, is_lost, translate
from setl.select.binlog_server import BinlogServer

_POLL_MANY, _POLL_FEW = 1024, 16  # events taken from the client in one piece
_PIECE = 4 * 1024 * 1024  # bytes of rows of a compressed transaction in one piece
_CLIENT_EVENTS = 4096  # raw events queued in native code, usually of at most 8 KiB each


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Bounds of time and memory.

    Attributes:
        silence: seconds without anything from the server, heartbeats included, after which
            it is taken for dead; more than the 3 s between heartbeats.
        entries: entries that may wait to be read.
        bytes: bytes of payload that may wait to be read.
        event_bytes: the largest event that is accepted. Servers put rows together up to 8 KiB;
            a larger event is one row, with both its images.
    """

    silence: float = 10.0
    entries: int = 16_384
    bytes: int = 32 * 1024 * 1024
    event_bytes: int = 256 * 1024 * 1024


def open_client(
    endpoint: MysqlEndpoint,
    server_id: int,
    limits: StreamLimits,
    start: BinlogPosition | str,
) -> EventClient:
    """A client for a place in the binlog, or for a set of GTIDs; not connected yet.

    Raises:
        FatalError: the place cannot be asked for.
    """
    dump = DumpClient(
        endpoint, server_id, start, silence=limits.silence, event_bytes=limits.event_bytes
    )
    if not isinstance(start, str) and start.offset > MOST_OFFSET:
        return dump
    try:
        native = BinlogClient(
            host=endpoint.host,
            port=endpoint.port,
            user=endpoint.user,
            password=endpoint.password,
            server_id=server_id,
            start_gtid=start if isinstance(start, str) else None,
            start_binlog_file=None if isinstance(start, str) else start.file,
            start_binlog_position=None if isinstance(start, str) else start.offset,
            connect_timeout_s=max(1, int(endpoint.connect_timeout)),
            read_timeout_s=max(1, int(limits.silence)),
            # As PyMySQL does with the same endpoint. Without TLS, accounts of MySQL 8 log in
            # with the server's public key, which then has to be fetched.
            ssl_mode=SslMode.VERIFY_IDENTITY if endpoint.ssl_ca else SslMode.DISABLED,
            ssl_ca=endpoint.ssl_ca,
            allow_public_key_retrieval=not endpoint.ssl_ca,
            max_queue_size=_CLIENT_EVENTS,
            max_event_size=limits.event_bytes,
            # The client refuses a queue that has no room for the largest event and 1 MiB.
            max_queue_bytes=limits.event_bytes + 2 * 1024 * 1024,
        )
    except (TypeError, ValueError) as error:
        raise FatalError(f"the binlog cannot be read from {start}: {error}") from error
    return FallbackClient(native, dump)


class BinlogStream:
    """Entries from one place of a binlog on. Opened once, read by one thread, then closed."""

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        server_id: int,
        start: BinlogPosition,
        *,
        limits: StreamLimits,
        server: BinlogServer,
        clock: Clock,
    ) -> None:
        """Describe a stream; nothing is connected."""
        self._clock = clock
        self._heard = clock.monotonic()
        self._endpoint = endpoint
        self._server_id = server_id
        self._limits = limits
        self._server = server
        self._reader = BinlogHeaderReader(start)
        self._client = open_client(endpoint, server_id, limits, start)
        self._chunks: deque[list[Entry]] = deque()
        self._waiting_entries = self._waiting_bytes = 0
        self._sizes: deque[int] = deque()
        self._error: SetlError | None = None
        self._answered = False
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Connect and begin to read ahead. Raises what `Source.open` raises."""
        try:
            self._client.connect()
            self._client.start()
        except (MesError, MesConnectionError) as error:
            self._client.close()
            raise self._translate(error) from error
        with self._changed:
            if self._closed:
                self._client.close()
                raise _closed()
            self._thread = threading.Thread(
                target=self._feed, name=f"binlog-{self._endpoint}", daemon=True
            )
            self._thread.start()

    @property
    def position(self) -> BinlogPosition:
        """The place after the last event that came, read ahead or not."""
        return self._reader.position

    @property
    def unanswered(self) -> bool:
        """Whether it ended before the server had sent anything, not even a heartbeat."""
        return self._error is not None and not self._answered

    def read(self, limit: int, timeout: float) -> Sequence[Entry]:
        """See `Source.read`."""
        with self._changed:
            self._changed.wait_for(lambda: self._chunks or self._error or self._closed, timeout)
            if self._closed:
                raise _closed()
            if not self._chunks:
                if self._error is not None:
                    raise self._error
                return ()
            entries = self._pop()
            while self._chunks and len(entries) + len(self._chunks[0]) <= limit:
                entries += self._pop()
            self._changed.notify_all()
            return entries

    def close(self) -> None:
        """End the connection and the thread; from any thread, and twice if need be."""
        with self._changed:
            self._closed = True
            self._chunks.clear()
            self._changed.notify_all()
            thread = self._thread
        self._client.stop()
        if thread is not None and thread is not threading.current_thread():
            thread.join(self._limits.silence)

    def _pop(self) -> list[Entry]:
        entries = self._chunks.popleft()
        self._waiting_entries -= len(entries)
        self._waiting_bytes -= self._sizes.popleft()
        return entries

    def _feed(self) -> None:
        """Read ahead until something ends it; runs in the stream's thread."""
        try:
            while not self._closed:
                entries: list[Entry] = []
                # Few at a time where events are large, so that one piece does not hold all.
                large = self._client.queued_bytes > self._limits.bytes
                try:
                    events = self._client.poll_batch(_POLL_FEW if large else _POLL_MANY)
                    self._heard = self._clock.monotonic()
                    self._answered = self._answered or bool(events)
                    self._read_headers(events, entries)
                finally:
                    # What came before an error in the same piece is still good.
                    self._put(entries)
        except (MesError, MesConnectionError) as error:
            self._end(self._too_large(error) or self._translate(error))
        except SetlError as error:
            self._end(error.at(server=self._endpoint, position=self._reader.position))
        except Exception as error:  # noqa: BLE001 - handed to whoever reads
            failure = FatalError(f"reading the binlog failed in an unforeseen way: {error!r}")
            failure.__cause__ = error
            self._end(failure)
        finally:
            self._client.close()

    def _read_headers(self, events: Sequence[PollResult], entries: list[Entry]) -> None:
        read, extend = self._reader.read, entries.extend
        for event in events:
            data = event.data
            if data is None:  # a heartbeat
                continue
            found = read(data, checksum=event.checksum_enabled)
            if data[4] == EventType.TRANSACTION_PAYLOAD:
                self._put_in_pieces(found, entries)
            else:
                extend(found)

    def _put_in_pieces(self, found: Iterable[Entry], entries: list[Entry]) -> None:
        """Hand on what one event holds, which may be more than may wait."""
        size = 0
        for entry in found:
            entries.append(entry)
            size += len(entry.payload)
            if size >= _PIECE:
                self._put(entries.copy())
                entries.clear()
                size = 0
                if self._closed:
                    return

    def _put(self, entries: list[Entry]) -> None:
        if not entries:
            return
        size = sum(len(entry.payload) for entry in entries)
        limits = self._limits
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._closed
                    or (
                        self._waiting_entries < limits.entries
                        and self._waiting_bytes < limits.bytes
                    )
                )
            )
            if self._closed:
                return
            self._chunks.append(entries)
            self._sizes.append(size)
            self._waiting_entries += len(entries)
            self._waiting_bytes += size
            self._changed.notify_all()

    def _end(self, error: SetlError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def _too_large(self, error: MesError | MesConnectionError) -> SetlError | None:
        """The error that the next event exceeds the limit, if that is what happened.

        The client then drops the connection without saying why; trying again would never end.
        """
        if self._closed or DROPPED not in str(error):
            return None
        if self._clock.monotonic() - self._heard > self._limits.silence / 2:
            return None  # it was silence that ended the connection
        place, limit = self._reader.position, self._limits.event_bytes
        try:
            size = self._server.event_size(place)
        except SetlError:
            return None  # the server is gone, which `error` says as well
        if size <= limit:
            return None
        return FatalError(
            f"an event of {size} bytes is larger than the {limit} that are accepted",
            hint="Move the position past it and repair the table by a new load",
            server=self._endpoint,
            position=place,
        )

    def _translate(self, error: MesError | MesConnectionError) -> SetlError:
        place = self._reader.position
        if is_lost(error):
            if self._replaced(place):
                return TransientError(
                    f"another server answers since the binlog was opened: {error}",
                    server=self._endpoint,
                    position=place,
                )
            return self._server.lost(f"the source refuses to go on at {place}: {error}", place)
        failure = translate(error, self._server_id)
        if isinstance(failure, TransientError) and DROPPED in str(error) and not self._answered:
            failure = TransientError(
                f"the source was asked for its binlog and sent nothing: {error}",
                hint="MariaDB lets a reader wait while a former one with the same server id is "
                "stuck, up to net_write_timeout; the next attempt has another id",
            )
        return failure.at(server=self._endpoint, position=place)

    def _replaced(self, place: BinlogPosition) -> bool:
        """Whether another server answers by now, where the place is to be looked up again."""
        try:
            return place.origin is not None and place.origin.server != self._server.identity()
        except SetlError:
            return True  # none answers; whichever does next is to be asked


def _closed() -> TransientError:
    return TransientError("the source was closed")
