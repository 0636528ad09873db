"""The binlog of a MySQL or MariaDB server as a `Source`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from setl.channel.fields.endpoints import LoadStart
from setl.channel.file import BinlogStart, GtidStart
from setl.clock import Clock, SystemClock
from setl.codec.binlog.transactions.prepared import Matters, everything
from setl.errors import FatalError, PositionLostError, SetlError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry
from setl.model.position import BinlogOrigin, BinlogPosition, Position, binlog_file_number
from setl.select.identity import temporary_server_id
from setl.select.source import Blocked, PassesBy, absorbs_nothing
from setl.systems.mysql.binlog.errors import StreamRefusedError
from setl.systems.mysql.binlog.next_transaction import next_transaction
from setl.systems.mysql.binlog.search import BinlogSearch
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.shared_reader import SharedReaders
from setl.systems.mysql.binlog.stream import (
    BinlogStream,
    StreamLimits,
    cut_files,
    earlier_prepares,
)
from setl.systems.mysql.connection import MysqlEndpoint

_LOG = logging.getLogger(__name__)

_QUIET = 10.0  # seconds without entries after which the server is asked where its binlog ends


class MysqlBinlogSource:
    """Reads a server's binlog from a file and offset on; see `Source`.

    Streams are always opened by file and offset, the one way in which a server sends exactly
    what follows a position. A start by GTID is looked up once and becomes such a position, and
    so does the position on a server that replaced the one read before.
    Nothing is connected again behind the pipeline's back: a lost connection is an error of
    `read`, and the pipeline opens the source again from its own checkpoint.

    `initial`, `locate`, `open` and `read` belong to one thread; `latest` and `close` to any.
    """

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        server_id: int,
        start: Literal["latest", "earliest"] | BinlogStart | GtidStart | LoadStart = "latest",
        limits: StreamLimits | None = None,
        clock: Clock | None = None,
        *,
        shared: SharedReaders | None = None,
        matters: Matters = everything,
        mixes: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Nothing is connected yet.

        Args:
            endpoint: the server and the account.
            server_id: see `setl.select.identity.replica_id`; of the stream. Where the server
                sends nothing at all to it, later streams have an id of their own.
            start: where a pipeline without a checkpoint begins.
            limits: bounds of time and memory.
            clock: for the limits of searches and of silence.
            shared: where to read with other sources once the end of the binlog is reached; None
                to read alone.
            matters: whether rows of a table go anywhere; an XA transaction without such rows may
                be rolled back after it was prepared. Called by a thread of the source's.
            mixes: see `BinlogHeaderReader`; likewise.
        """
        self._endpoint = endpoint
        self._server_id = server_id
        self._start = start
        self._limits = limits or StreamLimits()
        self._clock = clock or SystemClock()
        self._shared = shared
        self._matters = matters
        self._mixes: Callable[[str], bool] = mixes
        self._server = BinlogServer(endpoint, timeout=self._limits.silence)
        self._search = BinlogSearch(endpoint, self._limits, self._server, self._clock)
        self._cut = cut_files(endpoint, self._limits, self._server)
        self._earlier = earlier_prepares(endpoint, self._limits, self._server, matters)
        self._stream: BinlogStream | None = None
        self._moved = 0.0  # when the stream was last seen to move
        self._ahead: BinlogPosition | None = None
        self._arriving = 0  # see `BinlogStream.arriving`, as it was last seen
        self._lock = threading.Lock()

    def keep_order(self, of: Callable[[str], bool]) -> None:
        """See `setl.systems.port.OrderedSource`."""
        before = self._mixes

        def mixes(schema: str) -> bool:
            return before(schema) and not of(schema)

        self._mixes = mixes

    def initial(self) -> Position:
        """See `Source.initial`."""
        if isinstance(self._start, GtidStart):
            return self._search.after(self._start.gtid)
        if isinstance(self._start, BinlogStart):
            position = self._search.with_gtids(
                self._server.at(self._start.file, self._start.offset)
            )
        elif self._start == "earliest":
            position = self._server.earliest()
        else:
            position = self._search.end()
        return self._search.identified(position)

    def locate(self, checkpoint: Checkpoint) -> Checkpoint:
        """See `Source.locate`."""
        position = _binlog_position(checkpoint.resume)
        other_position = self._search.resume(position)
        if other_position is position:
            return checkpoint
        if checkpoint.applied is not None or checkpoint.transaction:
            self._search.see_begun(checkpoint.transaction, position)
        read_to = None if checkpoint.load is None else checkpoint.load.unreached
        if isinstance(read_to, BinlogPosition) and read_to.gtid:
            # Rows of whole tables may be ahead of the stream.
            self._search.see_begun(read_to.gtid, position)
        moved = checkpoint.moved_to(other_position, exact=True)  # GTIDs tell
        if (
            position.origin
            and other_position.origin
            and position.origin.server == other_position.origin.server
        ):
            _LOG.warning(
                "%s: the source no longer has %s. All that was in it and before it is applied, as"
                " GTIDs %s say, which are those before its oldest binlog; so reading goes on there,"
                " at %s, as generation %d",
                self._endpoint,
                position,
                other_position.gtid,
                other_position,
                moved.generation,
            )
            return moved
        _LOG.warning(
            "%s: the position %s was of server %s; server %s answers now and has all its GTIDs, "
            "so reading goes on there at %s behind GTID %s, as generation %d",
            self._endpoint,
            checkpoint,
            position.origin.server if position.origin else "?",
            other_position.origin.server if other_position.origin else "?",
            other_position,
            other_position.gtid,
            moved.generation,
        )
        return moved

    def open(self, position: Position) -> None:
        """See `Source.open`."""
        position = _binlog_position(position)
        self.close()
        server = self._server.for_stream(position)
        # What follows is of the server that answers now, whoever wrote the file.
        origin = (position.origin or BinlogOrigin(server.identity))._replace(server=server.identity)
        position = replace(position, origin=origin)
        stream = BinlogStream(
            self._endpoint,
            self._server_id,
            position,
            limits=self._limits,
            server=self._server,
            cut=self._cut,
            shared=self._shared,
            folds_names=server.folds_names,
            matters=self._matters,
            mixes=self._mixes,
            earlier=self._earlier,
        )
        with self._lock:
            self._stream = stream
        self._moved, self._ahead = self._clock.monotonic(), None
        try:
            stream.open()
        except BaseException:
            self.close()
            raise

    def read(
        self, limit: int, timeout: float, absorbs: PassesBy = absorbs_nothing
    ) -> Sequence[Entry]:
        """See `Source.read`."""
        with self._lock:
            stream = self._stream
        if stream is None:
            raise TransientError("the source is not open", server=self._endpoint)
        position = stream.position
        try:
            entries = stream.read(limit, timeout, absorbs)
        except TransientError:
            if stream.unanswered:
                self._server_id = temporary_server_id()
            raise
        except FatalError as error:
            self._say_more(error, stream)
            raise
        arriving, self._arriving = self._arriving, stream.arriving
        # A server that has reset its binlogs sends heartbeats, but no part of any event.
        moved = entries or stream.position != position  # by what was absorbed
        if moved or self._arriving > arriving or self._earlier.looking:
            self._moved, self._ahead = self._clock.monotonic(), None
        elif self._clock.monotonic() - self._moved >= _QUIET:
            self._look_ahead(stream.position)
        return entries

    def _say_more(self, error: FatalError, stream: BinlogStream) -> None:
        """Add to an error of the stream what the server can tell.

        Raises:
            PositionLostError: it has not got the position any more.
            TransientError: it cannot be asked now, or is another one.
        """
        position = stream.position
        if isinstance(error, StreamRefusedError | PositionLostError):
            # MySQL says of a binlog that was reset that it cannot read it, or finds no next one.
            if position.origin and position.origin.server != self._server.identity():
                text = "another server answers since the binlog was opened"
                raise TransientError(text, server=self._endpoint, position=position) from error
            known = replace(position, gtid="") if stream.inside else position
            if self._search.resume(known) is not known:
                text = "the binlog goes on in another file; the position is looked up again"
                raise TransientError(text, server=self._endpoint, position=position) from error
        elif stream.inside and (named := str(position)) in error.hint:
            with suppress(SetlError):
                behind = next_transaction(self._endpoint, position)
                error.hint = error.hint.replace(named, str(behind))

    def latest(self) -> Position:
        """See `Source.latest`."""
        return self._server.latest()

    def sizes(self) -> Sequence[tuple[int, int]]:
        """See `Source.sizes`."""
        return [(binlog_file_number(file.name), file.size) for file in self._server.files()]

    def behind(self) -> int | None:
        """See `Source.behind`; a binlog counts bytes, not records."""
        return None

    def close(self) -> None:
        """See `Source.close`."""
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def release(self) -> None:
        """See `Source.release`."""
        self.close()

    def waiting_for(self) -> str:
        """See `Source.waiting_for`."""
        return ""

    def blocked(self) -> Blocked | None:
        """See `Source.blocked`; a binlog holds whole transactions."""
        return None

    def shared(self) -> bool:
        """See `Source.shared`."""
        stream = self._stream
        return stream is not None and stream.shared

    def _look_ahead(self, position: BinlogPosition) -> None:
        """See that a idle stream is at the end of the binlog.

        After RESET MASTER, a server goes on sending heartbeats on the streams it has, and
        nothing else until the new binlog is longer than the old one was.
        """
        latest = self._server.latest()
        ahead, self._ahead = self._ahead, latest
        self._moved = self._clock.monotonic()
        # The stream was there before the server was asked for its end. The other way round,
        # what was written just now may be on its way, but not what was there at the last look.
        if position.order <= latest.order and (ahead is None or position.order >= ahead.order):
            return
        raise TransientError(
            f"the source sends nothing and its binlog ends at {latest}",
            hint="The binlogs were reset, or the connection stalls; the position is looked up "
            "again",
            server=self._endpoint,
            position=position,
        )


def _binlog_position(position: Position) -> BinlogPosition:
    if isinstance(position, BinlogPosition):
        return position
    raise FatalError(
        f"the checkpoint {position} is not one of a binlog",
        hint="Reset the position: it was kept for another kind of source",
    )
