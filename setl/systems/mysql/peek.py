"""Reads a server's binlog for `setl peek`, under an id that no pipeline uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from zlib import crc32

from setl.channel.file import MysqlSource
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.transactions.prepared import nothing
from setl.codec.row_codec import single_entries
from setl.errors import ConfigurationError, DataError
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition
from setl.model.typed import typed_changes
from setl.select.start_point import StartPoint
from setl.systems.mysql.binlog.positions import find_binlog_position
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.stream import BinlogStream, StreamLimits, cut_files
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.seen_record import UNREADABLE, SeenRecord

_SLICE = 0.5  # seconds that one read may take
_ENTRIES = 512
_FIRST_ID = 0x7000_0000
_IDS = 0x1000_0000


def peek_id(config: MysqlSource, who: str) -> int:
    """The ``server_id`` with which to look at a binlog.

    A server ends the older of two connections that read its binlog under one id. Those of
    pipelines begin at 2147483648, see `setl.select.identity.replica_id`; these lie below, from
    1879048192 on, and are never the one that the channel file gives the pipeline itself.

    Args:
        config: the source.
        who: tells this process from others, now and before.
    """
    number = crc32(who.encode()) % (_IDS - 1)
    found = _FIRST_ID + number
    return found + 1 if found == config.server_id else found


class BinlogPeek:
    """Reads one binlog, for one thread; a context manager that closes its connections."""

    def __init__(
        self,
        config: MysqlSource,
        server_id: int,
    ) -> None:
        """Nothing is connected yet.

        Args:
            config: of which server.
            server_id: see `peek_id`.
        """
        self._config = config
        self._server_id = server_id
        self._limits = StreamLimits()
        self._stream: BinlogStream | None = None
        self._codec = BinlogRowCodec()

    def __enter__(self) -> BinlogPeek:
        """Nothing is connected before a position is named."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def read_from(self, start_point: StartPoint, *, follow: bool) -> Iterator[SeenRecord | None]:
        """Records from a position on.

        Args:
            start_point: where to begin.
            follow: whether to wait for more at the end of what is there now.

        Yields:
            A record, or None when none came for a moment.

        Raises:
            PositionLostError: the position does not exist.
            ConfigurationError: it is inside a transaction, or the account is refused.
            TransientError: the server does not answer, or the connection was lost.
            FatalError: the binlog holds something other than rows.
        """
        endpoint = mysql_endpoint(self._config)
        server = BinlogServer(endpoint, timeout=self._limits.silence)
        end = None if follow else server.latest()
        start = find_binlog_position(self._config, self._server_id, start_point)
        stream = self._stream = BinlogStream(
            endpoint,
            self._server_id,
            start,
            limits=self._limits,
            server=server,
            cut=cut_files(endpoint, self._limits, server),
            folds_names=server.folds_names(),
            matters=nothing,
        )
        stream.open()
        return self._read(stream, end)

    def _read(
        self, stream: BinlogStream, end: BinlogPosition | None
    ) -> Iterator[SeenRecord | None]:
        while True:
            # Asked before reading: what it counts is then in what is read, or was before.
            come = stream.position
            entries = stream.read(_ENTRIES, _SLICE)
            for entry in entries:
                yield from self._described(entry)
            if not entries:
                if end is not None and come.order >= end.order:
                    return
                yield None

    def _described(self, entry: Entry) -> Iterator[SeenRecord]:
        if entry.kind is not EntryKind.ROWS:
            yield _seen(entry, entry.kind.name)
            return
        for single in single_entries(self._codec, entry):
            yield from self._rows(single)

    def _rows(self, entry: Entry) -> Iterator[SeenRecord]:
        try:
            for change in typed_changes(self._codec.decode(entry.payload, entry.context)):
                yield replace(_seen(entry, change.op.name), change=change)
        except (ConfigurationError, DataError) as error:
            yield replace(_seen(entry, UNREADABLE), problem=str(error), payload=entry.payload)


def _seen(entry: Entry, operation: str) -> SeenRecord:
    return SeenRecord(
        position=entry.position,
        operation=operation,
        timestamp=entry.timestamp,
        schema=entry.schema,
        table=entry.table,
        transaction=entry.transaction,
        size=len(entry.payload),
        statement=entry.statement,
    )
