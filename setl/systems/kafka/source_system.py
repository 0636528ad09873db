"""A topic of change records as a source: see `setl.systems.port.SourceSystem`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from typing import Final, Literal

from typing_extensions import override

from setl.bulk.source_reader import SourceTables
from setl.channel.file import KafkaSource, OffsetStart, Pipeline
from setl.channel.routes.routing import Router
from setl.clock import SystemClock
from setl.codec.dts.row_chunks import MOST_BYTES, MOST_RECORDS
from setl.errors import ConfigurationError
from setl.model.position import KafkaPosition, Position
from setl.relay.ports import RelayedTables
from setl.select.checkpoints.note import Notes
from setl.select.checkpoints.owner import Owner
from setl.select.checkpoints.turn import Turns
from setl.select.heartbeat import Heartbeat
from setl.select.source import ReplaceableStore, Source
from setl.select.start_point import StartPoint
from setl.systems.expiry import Expiration, StreamRetention
from setl.systems.finding import Report
from setl.systems.kafka.checkpoints import KafkaCheckpointStore
from setl.systems.kafka.formats import header_reader
from setl.systems.kafka.peek import TopicPeek
from setl.systems.kafka.preflight.mark_probe import check_marks_arrive
from setl.systems.kafka.preflight.records import check_records
from setl.systems.kafka.preflight.source import check_commits, check_kafka_source
from setl.systems.kafka.source.access import PartitionAccess
from setl.systems.kafka.source.group import GroupMembership
from setl.systems.kafka.source.positions import (
    parse_topic_start,
    position_to_reach,
    topic_distance,
    topic_passed,
)
from setl.systems.kafka.source.row_chunks import Mixing
from setl.systems.kafka.source.subscription import DtsKafkaSource
from setl.systems.kafka.stream_retention import topic_retention
from setl.systems.kafka.tls import broker_certificates
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.preflight.load_limits import check_threads_running
from setl.systems.mysql.preflight.origin import check_tables, open_origin
from setl.systems.mysql.reading.document_lookup import MysqlDocuments
from setl.systems.mysql.reading.row_lookup import MysqlRows
from setl.systems.mysql.reading.tables import opened_tables
from setl.systems.mysql.write_stop import MysqlWriteStop
from setl.systems.pipeline_check import PipelineCheck
from setl.systems.port import SourceSystem
from setl.systems.seen_record import SeenRecord, Wanted
from setl.systems.write_stop import WriteStop
from setl.transform.documents import DocumentSource
from setl.transform.rereading import RowSource

_TIMEOUT: Final = 5.0  # seconds to wait for any answer of a broker


class KafkaSourceSystem(SourceSystem):
    """The `SourceSystem` of a subscription; its `database` is asked what no record says."""

    unit: Literal["bytes", "records"] = "records"
    reads_backwards = True

    def __init__(self, config: KafkaSource) -> None:
        """Nothing is connected yet."""
        self._config = config

    @override
    def stream(self, pipeline: Pipeline, channel: str, nid: str) -> Source:
        config = self._config
        if config.partitions is not None:
            raise ConfigurationError(
                f"the pipeline stands for {config.partitions}, one for each partition",
                hint="`setl apply` its channel file again, which deals it out",
                pipeline=f"{channel}/{pipeline.name}",
            )
        rows, size = min(MOST_RECORDS, pipeline.batch_rows), min(MOST_BYTES, pipeline.batch_bytes)
        return DtsKafkaSource(config, mixing=Mixing(rows, size, Router(pipeline).mixes))

    @override
    def turns(self, source: Source) -> Turns | None:
        return source.group if isinstance(source, DtsKafkaSource) else None

    def heartbeat(self) -> Heartbeat | None:
        """See `SourceSystem.heartbeat`; DTS sends its own."""
        return None

    def checkpoints(
        self, pipeline: Pipeline, owner: Owner, notes: Notes, turns: Turns | None = None
    ) -> ReplaceableStore | None:
        """See `SourceSystem.checkpoints`: commits of the group `sid`."""
        if not self._config.sid:
            return None
        return KafkaCheckpointStore(
            self._config,
            notes,
            owner,
            generation=pipeline.generation,
            member=turns if isinstance(turns, GroupMembership) else None,
        )

    @property
    def has_end(self) -> bool:
        """See `SourceSystem.has_end`; records come some time after their commits."""
        return False

    @override
    def tables(self, *, logged: bool = False) -> AbstractContextManager[SourceTables] | None:
        database = self._config.database
        return None if database is None else opened_tables(mysql_endpoint(database), logged=logged)

    @override
    def write_stop(self) -> WriteStop | None:
        database = self._config.database
        return None if database is None else MysqlWriteStop(mysql_endpoint(database))

    @override
    def rows(self, *, logged: bool = False) -> RowSource | None:
        database = self._config.database
        return None if database is None else MysqlRows(mysql_endpoint(database), logged)

    @override
    def documents(self) -> DocumentSource | None:
        database = self._config.database
        return None if database is None else MysqlDocuments(mysql_endpoint(database))

    def relayed_tables(self) -> RelayedTables | None:
        """See `SourceSystem.relayed_tables`; a relay reads a binlog."""
        return None

    @override
    def parse_start_point(self, text: str) -> StartPoint:
        return parse_topic_start(text)

    @override
    def find_position(
        self, pipeline: Pipeline, channel: str, nid: str, start_point: StartPoint
    ) -> Position:
        asked = KafkaSourceSystem(self._config.model_copy(update={"start": start_point.start}))
        source = asked.stream(pipeline, channel, nid)
        try:
            found = source.initial()
        finally:
            source.close()
        if isinstance(start_point.start, OffsetStart):
            access = PartitionAccess(self._config, _TIMEOUT, SystemClock())
            with access.asking() as reader:
                access.search(reader).check_between(start_point.start.offset)
        return found

    def position_to_reach(self, pipeline: Pipeline, channel: str, nid: str, text: str) -> Position:
        """See `SourceSystem.position_to_reach`: now, or an offset.

        The end of a topic that is written exactly once lies behind a mark that is no record; the
        next record, a heartbeat at the latest, takes a pipeline past it.
        """
        if text.strip() == "now":
            source = self.stream(pipeline, channel, nid)
            try:
                return source.latest()
            finally:
                source.close()
        return position_to_reach(parse_topic_start(text), self._config)

    @override
    def passed(self, reached: Position, position: Position) -> bool:
        return topic_passed(reached, position)

    @override
    def distance(self, position: Position, latest: Position) -> int | None:
        return topic_distance(position, latest)

    def retention(self, position: Position) -> StreamRetention | None:
        """See `RemovingSource.retention`."""
        if not isinstance(position, KafkaPosition):
            return None
        return topic_retention(self._config, position)

    def expirations(self) -> Sequence[Expiration]:
        """See `ExpiringSystem.expirations`: of the brokers."""
        return broker_certificates(self._config.brokers, self._config.ssl_ca)

    @override
    def records(
        self,
        partitions: Sequence[int],
        start_point: StartPoint | None,
        wanted: Wanted,
        *,
        last: int,
        follow: bool,
    ) -> Generator[SeenRecord | None]:
        with TopicPeek(self._config, partitions) as topic:
            if start_point is None:
                yield from topic.last(last, wanted, follow=follow)
            else:
                yield from topic.read_from(start_point, follow=follow)

    @override
    def preflight(self, check: PipelineCheck, report: Report) -> None:
        check_kafka_source(self._config, report, read=check.partitions)
        if check.pipeline.checkpoint == "kafka":
            check_commits(self._config, report)
        database = self._config.database
        server = None if database is None else open_origin(check, database, report)
        if server is not None:
            with report.failing():
                check_tables(check, server, report)
                check_threads_running(server, check.pipeline, report, reads_binlog=False)
        if self._config.stands_alone:
            with report.failing():
                header_reader(self._config)  # whether there is the format, whatever brokers answer
                check_records(self._config, check, report)
        elif check.comes_back:
            check_marks_arrive(self._config, report, probe=check.probe)
