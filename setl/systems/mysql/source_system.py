"""MySQL and MariaDB as a source: see `setl.systems.port.SourceSystem`."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Literal

from typing_extensions import override

from setl.bulk.source_reader import SourceTables
from setl.channel.file import MysqlSource, Pipeline
from setl.channel.names.patterns import is_system
from setl.channel.routes.routing import Router
from setl.clock import SystemClock
from setl.codec.binlog.rows.row_chunks import MOST_BYTES, MOST_EVENTS
from setl.errors import ConfigurationError
from setl.model.position import BinlogPosition, Position
from setl.relay.ports import RelayedTables
from setl.select.checkpoints.note import Notes
from setl.select.checkpoints.owner import Owner
from setl.select.checkpoints.turn import Turns
from setl.select.heartbeat import Heartbeat
from setl.select.identity import replica_id
from setl.select.source import ReplaceableStore, Source
from setl.select.start_point import StartPoint
from setl.systems.expiry import Expiration, StreamRetention
from setl.systems.finding import Report
from setl.systems.mysql.binlog.positions import (
    binlog_distance,
    find_binlog_position,
    parse_binlog_start,
)
from setl.systems.mysql.binlog.reached import binlog_passed, binlog_position_to_reach
from setl.systems.mysql.binlog.search import BinlogSearch
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.shared_reader import SHARED_READERS
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.binlog.stream import StreamLimits
from setl.systems.mysql.binlog.stream_retention import binlog_retention
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.expirations import expirations
from setl.systems.mysql.heartbeats.shared import SharedHeartbeat
from setl.systems.mysql.peek import BinlogPeek, peek_id
from setl.systems.mysql.preflight.endpoints import check_mysql_source
from setl.systems.mysql.preflight.load_limits import check_threads_running
from setl.systems.mysql.preflight.origin import check_tables, open_origin
from setl.systems.mysql.preflight.statement_effects import StatementEffects
from setl.systems.mysql.reading.document_lookup import MysqlDocuments
from setl.systems.mysql.reading.row_lookup import MysqlRows
from setl.systems.mysql.reading.tables import opened_tables
from setl.systems.mysql.relayed_tables import MysqlRelayedTables
from setl.systems.mysql.server_kind import UPGRADE_SOURCE
from setl.systems.mysql.write_stop import MysqlWriteStop
from setl.systems.pipeline_check import PipelineCheck
from setl.systems.port import SourceSystem
from setl.systems.seen_record import SeenRecord, Wanted
from setl.systems.write_stop import WriteStop
from setl.transform.documents import DocumentSource
from setl.transform.rereading import RowSource

_SMALL_ROW = 64  # bytes, so that a run holds hardly more rows than a batch is to have


class MysqlSourceSystem(SourceSystem):
    """The `SourceSystem` of a server whose binlog is read."""

    unit: Literal["bytes", "records"] = "bytes"
    reads_backwards = False

    def __init__(self, config: MysqlSource) -> None:
        """Nothing is connected yet."""
        self._config = config
        self._endpoint = mysql_endpoint(config)

    @override
    def stream(self, pipeline: Pipeline, channel: str, nid: str) -> Source:
        server_id = self._server_id(pipeline, channel, nid)
        # A chosen id is how a server knows this reader; nobody else's connection has it.
        alone = self._config.server_id is not None or not self._config.shared
        shared = None if alone else SHARED_READERS
        start, router = self._config.start, Router(pipeline)
        return MysqlBinlogSource(
            self._endpoint,
            server_id,
            start,
            stream_limits(pipeline),
            shared=shared,
            matters=partial(_goes_anywhere, router),
            mixes=router.mixes,
        )

    def turns(self, source: Source) -> Turns | None:  # noqa: ARG002
        """See `SourceSystem.turns`; a server serves every replica."""
        return None

    def heartbeat(self) -> Heartbeat | None:
        """See `SourceSystem.heartbeat`: rows of ``retl.xdual``."""
        if not self._config.heartbeat:
            return None
        return SharedHeartbeat(self._endpoint, interval=self._config.heartbeat)

    def checkpoints(
        self,
        pipeline: Pipeline,  # noqa: ARG002
        owner: Owner,  # noqa: ARG002
        notes: Notes,  # noqa: ARG002
        turns: Turns | None = None,  # noqa: ARG002
    ) -> ReplaceableStore | None:
        """See `SourceSystem.checkpoints`; a server keeps nothing of its replicas."""
        return None

    @property
    @override
    def has_end(self) -> bool:
        return True

    @override
    def tables(self, *, logged: bool = False) -> AbstractContextManager[SourceTables]:
        return opened_tables(self._endpoint, logged=logged)

    @override
    def write_stop(self) -> WriteStop:
        return MysqlWriteStop(self._endpoint)

    @override
    def rows(self, *, logged: bool = False) -> RowSource:
        return MysqlRows(self._endpoint, logged)

    @override
    def documents(self) -> DocumentSource:
        return MysqlDocuments(self._endpoint)

    @override
    def relayed_tables(self) -> RelayedTables:
        return MysqlRelayedTables(self._endpoint)

    @override
    def parse_start_point(self, text: str) -> StartPoint:
        return parse_binlog_start(text)

    def find_position(
        self, pipeline: Pipeline, channel: str, nid: str, start_point: StartPoint
    ) -> BinlogPosition:
        """See `SourceSystem.find_position`.

        A time is the beginning of the file that was being written then, since files are all
        that is dated cheaply; what was committed in it before that time is read as well.
        """
        return find_binlog_position(
            self._config, self._server_id(pipeline, channel, nid), start_point
        )

    def position_to_reach(
        self, pipeline: Pipeline, channel: str, nid: str, text: str
    ) -> BinlogPosition:
        """See `SourceSystem.position_to_reach`: now, GTIDs or FILE:OFFSET."""
        del pipeline, channel, nid
        server = BinlogServer(self._endpoint)
        search = BinlogSearch(self._endpoint, StreamLimits(), server, SystemClock())
        return binlog_position_to_reach(text, server, search)

    @override
    def passed(self, reached: Position, position: Position) -> bool:
        return binlog_passed(reached, position)

    @override
    def distance(self, position: Position, latest: Position) -> int | None:
        return binlog_distance(position, latest, BinlogServer(self._endpoint).files())

    def retention(self, position: Position) -> StreamRetention | None:
        """See `RemovingSource.retention`."""
        if not isinstance(position, BinlogPosition):
            return None
        return binlog_retention(self._endpoint, position)

    def expirations(self) -> Sequence[Expiration]:
        """See `ExpiringSystem.expirations`."""
        return expirations(self._endpoint)

    def records(
        self,
        partitions: Sequence[int],  # noqa: ARG002
        start_point: StartPoint | None,
        wanted: Wanted,  # noqa: ARG002
        *,
        last: int,  # noqa: ARG002
        follow: bool,
    ) -> Generator[SeenRecord | None]:
        """See `SourceSystem.records`; what comes from now on, if no place is named."""
        who = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"
        with BinlogPeek(self._config, peek_id(self._config, who)) as binlog:
            yield from binlog.read_from(start_point or StartPoint("latest"), follow=follow)

    def statement_effects(self) -> StatementEffects:
        """See `StatementSource.statement_effects`."""
        return StatementEffects(self._endpoint, SystemClock())

    @override
    def preflight(self, check: PipelineCheck, report: Report) -> None:
        server = open_origin(check, self._config.origin, report)
        if server is not None and server.kind.no_source:
            report.error(server.kind.no_source, UPGRADE_SOURCE, code="old-server")
            check.origin = None
        elif server is not None:
            with report.failing():
                check_mysql_source(server, self._config, Router(check.pipeline), report)
                check_tables(check, server, report)
                check_threads_running(server, check.pipeline, report, reads_binlog=True)

    def _server_id(self, pipeline: Pipeline, channel: str, nid: str) -> int:
        return self._config.server_id or replica_id(channel, pipeline.name, nid)


def stream_limits(pipeline: Pipeline) -> StreamLimits:
    """How much of the stream is joined.

    A run of row events goes into one batch whole, and to one task. No batch is ever cut in a
    transaction that is no larger than a run may be, see `OpenRowChunks`.
    """
    return StreamLimits(
        chunk_events=min(MOST_EVENTS, pipeline.batch_rows),
        chunk_bytes=min(MOST_BYTES, pipeline.batch_bytes, pipeline.batch_rows * _SMALL_ROW),
    )


def _goes_anywhere(router: Router, schema: str, table: str) -> bool:
    """Whether rows of a table may have been replicated.

    What setl's own tables say may have been.
    """
    try:
        return is_system(schema) or bool(router.route(schema, table))
    except ConfigurationError:
        return True
