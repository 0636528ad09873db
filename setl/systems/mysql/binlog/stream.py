"""One connection that streams a binlog, with the thread that reads the events' headers.

`DumpClient` hands out what comes and never reconnects automatically; whatever goes wrong ends
the stream with an error, and the pipeline opens a new one from its own checkpoint.

The server sends a heartbeat on a stream that is idle for 3 s (the client asks for it). A
server that sends nothing for longer than the read timeout is gone, whether or not the
network says so.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mysql_event_stream import MesConnectionError, MesError

from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows.row_chunks import MOST_BYTES
from setl.codec.binlog.transactions.prepared import Matters, everything
from setl.errors import SetlError, TransientError
from setl.model.entry import Entry
from setl.model.position import BinlogPosition
from setl.select.identity import temporary_server_id
from setl.select.source import PassesBy, absorbs_nothing
from setl.systems.mysql.binlog.client import DeliveringClient, EventClient
from setl.systems.mysql.binlog.dump import DumpClient
from setl.systems.mysql.binlog.earlier_prepares import EarlierPrepares
from setl.systems.mysql.binlog.errors import (
    NEW_FILE,
    ends_in_event,
    is_lost,
    translate,
    unforeseen,
)
from setl.systems.mysql.binlog.intake import Intake
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.shared_reader import SharedReaders, Subscription
from setl.systems.mysql.binlog.sharing_client import SharingClient
from setl.systems.mysql.binlog.truncated_files import TruncatedFiles, TruncatedFilesReader
from setl.systems.mysql.connection import MysqlEndpoint


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Bounds of time and memory.

    Attributes:
        silence: seconds without anything from the server, heartbeats included, after which
            it is taken for dead; more than the 3 s between heartbeats.
        entries: entries that may wait to be read.
        bytes: bytes of payload that may wait to be read.
        chunk_events: row events that may come as one entry, see
            `setl.codec.binlog.rows.row_chunks`.
        chunk_bytes: bytes that such an entry may have.
        event_bytes: the largest event that is accepted. Servers put rows together up to 8 KiB;
            a larger event is one row, with both its images.
    """

    silence: float = 10.0
    entries: int = 16_384
    bytes: int = 32 * 1024 * 1024
    chunk_events: int = 1
    chunk_bytes: int = MOST_BYTES
    event_bytes: int = 256 * 1024 * 1024


def open_client(
    endpoint: MysqlEndpoint,
    server_id: int,
    limits: StreamLimits,
    start: BinlogPosition | str,
) -> EventClient:
    """A client for a position in the binlog, or for a set of GTIDs; not connected yet."""
    return DumpClient(
        endpoint,
        server_id,
        start,
        silence=limits.silence,
        event_bytes=limits.event_bytes,
    )


def cut_files(
    endpoint: MysqlEndpoint, limits: StreamLimits, server: BinlogServer
) -> TruncatedFiles:
    """What knows which of a server's files are whole, for one stream after another."""
    return TruncatedFiles(
        endpoint,
        server,
        lambda server_id, position: open_client(endpoint, server_id, limits, position),
    )


def earlier_prepares(
    endpoint: MysqlEndpoint, limits: StreamLimits, server: BinlogServer, matters: Matters
) -> EarlierPrepares:
    """What looks prepared XA transactions up, for one stream after another."""
    return EarlierPrepares(
        endpoint,
        server,
        lambda server_id, position: open_client(endpoint, server_id, limits, position),
        matters,
    )


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
        cut: TruncatedFiles,
        shared: SharedReaders | None = None,
        folds_names: bool = False,
        matters: Matters = everything,
        mixes: Callable[[str], bool] = lambda _: False,
        earlier: EarlierPrepares | None = None,
    ) -> None:
        """Describe a stream; nothing is connected. It may read with others if they are given.

        What `matters`, and was prepared `earlier`: see
        `setl.codec.binlog.transactions.prepared`. What `mixes`: see `BinlogHeaderReader`.
        """
        self._endpoint = endpoint
        self._server_id = server_id
        self._limits = limits
        self._server = server
        self._cut = cut
        self._reader = BinlogHeaderReader(
            start,
            is_whole=lambda begin: cut.is_whole(begin, lambda: not self._closed),
            chunk_events=limits.chunk_events,
            chunk_bytes=min(limits.chunk_bytes, limits.event_bytes),
            folds_names=folds_names,
            matters=matters,
            mixes=mixes,
            earlier=lambda xid, position: (
                earlier.mattered(xid, position, lambda: not self._closed) if earlier else None
            ),
            is_table=self._is_table,
            digits=self._time_digits,
            versions=self._versions,
            generated=lambda schema, table: (
                server.generated(schema, table) if matters(schema, table) else ()
            ),
        )
        self._intake = Intake(self._reader, self._put)
        self._client: DeliveringClient = (
            self._open_own(start) if shared is None else self._sharing(shared, start)
        )
        self._chunks: deque[list[Entry]] = deque()
        self._waiting_entries = self._waiting_bytes = 0
        self._sizes: deque[int] = deque()
        self._error: SetlError | None = None
        self._absorbs = absorbs_nothing
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
        except SetlError:
            self._client.close()
            raise
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
        """The position after the last event that came, read ahead or not."""
        return self._reader.position

    @property
    def inside(self) -> bool:
        """Whether that position is inside a transaction."""
        return self._reader.inside

    @property
    def arriving(self) -> int:
        """Bytes that came of an event that is not whole yet, 0 if there is none."""
        return self._client.arriving

    @property
    def unanswered(self) -> bool:
        """Whether it ended before the server had sent anything, not even a heartbeat."""
        return self._error is not None and not self._intake.heard

    @property
    def shared(self) -> bool:
        """Whether it is read on a connection that others read, too."""
        return isinstance(self._client, SharingClient) and self._client.shared

    def read(
        self, limit: int, timeout: float, absorbs: PassesBy = absorbs_nothing
    ) -> Sequence[Entry]:
        """See `Source.read`."""
        with self._changed:
            self._absorbs = absorbs
            self._changed.wait_for(lambda: self._chunks or self._error or self._closed, timeout)
            self._absorbs = absorbs_nothing
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

    def _is_table(self, schema: str, table: str) -> bool | None:
        return self._server.is_table(schema, table)

    def _time_digits(self, schema: str, table: str) -> dict[str, str]:
        return self._server.time_digits(schema, table)

    def _versions(self, schema: str, table: str) -> tuple[str, str] | None:
        return self._server.versions(schema, table)

    def _open_own(self, start: BinlogPosition) -> DeliveringClient:
        def begin(position: BinlogPosition) -> DeliveringClient:
            return open_client(self._endpoint, self._server_id, self._limits, position)

        return TruncatedFilesReader(begin, start, lambda: self._reader.position, self._cut)

    def _sharing(self, shared: SharedReaders, start: BinlogPosition) -> DeliveringClient:
        who = object()

        def take(position: BinlogPosition) -> Subscription | None:
            server = position.origin.server if position.origin else ""
            key = (self._endpoint, server, self._limits.silence)
            # No stream's own id: it may read alone at the same time.
            return shared.take(
                key,
                position,
                lambda: open_client(self._endpoint, temporary_server_id(), self._limits, position),
                who,
            )

        return SharingClient(
            self._open_own,
            start,
            take,
            lambda: self._reader.boundary,
            self._server.latest,
            give_up=lambda: shared.give_up(who),
        )

    def _pop(self) -> list[Entry]:
        entries = self._chunks.popleft()
        self._waiting_entries -= len(entries)
        self._waiting_bytes -= self._sizes.popleft()
        return entries

    def _feed(self) -> None:
        """Read ahead until something ends it; runs in the stream's thread."""
        try:
            while not self._closed:
                try:
                    self._client.deliver(self._intake)
                finally:
                    # What came before an error in the same piece is still good.
                    self._put(self._intake.taken())
        except (MesError, MesConnectionError) as error:
            self._end(self._translate(error))
        except SetlError as error:
            failure = error
            if isinstance(error, TransientError) and not self._intake.heard:
                failure = _unanswered(error)
            self._end(failure.at(server=self._endpoint, position=self._reader.position))
        except Exception as error:  # noqa: BLE001 - handed to whoever reads
            self._end(unforeseen(error))
        finally:
            self._client.close()

    def _put(self, entries: list[Entry]) -> bool:
        """Let entries be read, once there is space for them; returns False if nobody reads."""
        if not entries:
            return not self._closed
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
                return False
            if not self._chunks and self._absorbs(entries):
                return True
            size = sum(len(entry.payload) for entry in entries)
            self._chunks.append(entries)
            self._sizes.append(size)
            self._waiting_entries += len(entries)
            self._waiting_bytes += size
            self._changed.notify_all()
        return True

    def _end(self, error: SetlError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def _translate(self, error: MesError | MesConnectionError) -> SetlError:
        position = self._reader.position
        if is_lost(error):
            if self._replaced(position):
                return TransientError(
                    f"another server answers since the binlog was opened: {error}",
                    server=self._endpoint,
                    position=position,
                )
            lost = self._server.lost(
                f"the source refuses to go on at {position}: {error}", position
            )
            if ends_in_event(error):
                lost.hint = f"Unless the file is still being written: {NEW_FILE}"
            return lost
        return translate(error, self._server_id).at(server=self._endpoint, position=position)

    def _replaced(self, position: BinlogPosition) -> bool:
        """Whether another server answers by now, where the position is to be looked up again."""
        try:
            return position.origin is not None and position.origin.server != self._server.identity()
        except SetlError:
            return True  # none answers; whichever does next is to be asked


def _unanswered(error: TransientError) -> TransientError:
    return TransientError(
        f"the source was asked for its binlog and sent nothing: {error.message}",
        hint="MariaDB lets a reader wait while a former one with the same server id is "
        "stuck, up to net_write_timeout; the next attempt has another id",
    )


def _closed() -> TransientError:
    return TransientError("the source was closed")
