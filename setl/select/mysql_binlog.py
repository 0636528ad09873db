"""The binlog of a MySQL or MariaDB server as a `Source`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Literal

from mysql_event_stream import BinlogClient, MesConnectionError, MesError

from setl.clock import Clock, SystemClock
from setl.codec.binlog.event import EVENT_HEADER, EventType
from setl.codec.binlog.header import BinlogHeaderReader
from setl.config.channel import BinlogStart, GtidStart
from setl.errors import FatalError, TransientError
from setl.model.entry import Entry
from setl.model.position import BinlogPosition, Position
from setl.mysql.connection import MysqlEndpoint
from setl.select.binlog_errors import is_lost, translate
from setl.select.binlog_server import BinlogServer, Progress
from setl.select.binlog_stream import BinlogStream, StreamLimits, open_client

_TRANSACTION = frozenset((EventType.GTID, EventType.ANONYMOUS_GTID, EventType.MARIADB_GTID))
_GTID_SEARCH = 60.0  # seconds that finding a GTID in the binlogs may take


class MysqlBinlogSource:
    """Reads a server's binlog from a file and offset on; see `Source`.

    Streams are always opened by file and offset, the one way in which a server sends exactly
    what follows a position; a start by GTID is looked up once and becomes such a position.
    Nothing is connected again behind the pipeline's back: a lost connection is an error of
    `read`, and the pipeline opens the source again from its own checkpoint.

    `open`, `read` and `initial` belong to one thread; `latest` and `close` to any.
    """

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        server_id: int,
        start: Literal["latest", "earliest"] | BinlogStart | GtidStart = "latest",
        limits: StreamLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            endpoint: the server and the account.
            server_id: see `setl.select.identity.replica_id`.
            start: where a pipeline without a checkpoint begins.
            limits: bounds of time and memory.
            clock: for the limit of looking a GTID up.
        """
        self._endpoint = endpoint
        self._server_id = server_id
        self._start = start
        self._limits = limits or StreamLimits()
        self._clock = clock or SystemClock()
        self._server = BinlogServer(endpoint, timeout=self._limits.silence)
        self._stream: BinlogStream | None = None
        self._lock = threading.Lock()

    def initial(self) -> Position:
        """See `Source.initial`."""
        if isinstance(self._start, BinlogStart):
            return self._server.at(self._start.file, self._start.offset)
        if isinstance(self._start, GtidStart):
            return self._after(self._start.gtid)
        return self._server.earliest() if self._start == "earliest" else self._server.latest()

    def open(self, position: Position) -> None:
        """See `Source.open`."""
        if not isinstance(position, BinlogPosition):
            raise FatalError(
                f"the checkpoint {position} is not one of a binlog",
                hint="Reset the position: it was kept for another kind of source",
            )
        self.close()
        self._server.check(position)
        stream = BinlogStream(
            self._endpoint,
            self._server_id,
            position,
            limits=self._limits,
            server=self._server,
            clock=self._clock,
        )
        with self._lock:
            self._stream = stream
        try:
            stream.open()
        except BaseException:
            self.close()
            raise

    def read(self, limit: int, timeout: float) -> Sequence[Entry]:
        """See `Source.read`."""
        with self._lock:
            stream = self._stream
        if stream is None:
            raise TransientError("the source is not open", server=self._endpoint)
        return stream.read(limit, timeout)

    def latest(self) -> Position:
        """See `Source.latest`."""
        return self._server.latest()

    def close(self) -> None:
        """See `Source.close`."""
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _after(self, gtid: str) -> BinlogPosition:
        """The place where the first transaction stands that `gtid` does not name."""
        latest = self._server.latest()
        progress = self._server.progress(gtid)
        if progress is Progress.BEHIND:
            raise self._server.lost(
                f"the source has not executed all of the GTIDs {gtid} to start after", latest
            )
        if progress is Progress.THERE:
            return latest
        client = open_client(self._endpoint, self._server_id, self._limits, gtid)
        try:
            client.connect()
            client.start()
            return self._first_transaction(client, gtid)
        except (MesError, MesConnectionError) as error:
            if is_lost(error):
                raise self._server.lost(
                    f"the source has purged what follows the GTIDs {gtid}: {error}", latest
                ) from error
            raise translate(error, self._server_id).at(server=self._endpoint) from error
        finally:
            client.close()

    def _first_transaction(self, client: BinlogClient, gtid: str) -> BinlogPosition:
        reader = BinlogHeaderReader(BinlogPosition("", 0))
        deadline = self._clock.monotonic() + _GTID_SEARCH
        while self._clock.monotonic() < deadline:
            for event in client.poll_batch():
                if event.data is None:
                    continue
                _, kind, _, size, end, _ = EVENT_HEADER.unpack_from(event.data)
                if kind in _TRANSACTION:
                    return BinlogPosition(reader.position.file, end - size, gtid)
                reader.read(event.data, checksum=event.checksum_enabled)
        raise TransientError(
            f"the place of the GTIDs {gtid} was not found within {_GTID_SEARCH:g} s",
            server=self._endpoint,
        )
