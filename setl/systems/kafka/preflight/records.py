"""The checks of a topic in which each record stands alone: what its last records look like."""

from __future__ import annotations

from typing import Final

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.channel.routes.routing import Router
from setl.clock import SystemClock
from setl.codec.keyed_record import keyed
from setl.errors import SetlError
from setl.model.entry import EntryKind
from setl.model.schema import Kind, RowSchema
from setl.systems.finding import Report
from setl.systems.kafka.formats import header_reader
from setl.systems.kafka.reader import TopicReader, open_reader
from setl.systems.kafka.record import Record
from setl.systems.kafka.settings import source_settings
from setl.systems.kafka.stream_retention import topic_setting
from setl.systems.pipeline_check import PipelineCheck
from setl.transform.work import codec_named

_TIMEOUT: Final = 5.0
_LOOKED_AT: Final = 200  # offsets at the topic's end
_AT_ONCE: Final = 500

# What a column is, as the database has it, and as records may not have it.
_LOST: Final = {
    (Kind.DECIMAL, Kind.FLOAT): "`decimal.handling.mode` is double, which rounds",
    (Kind.BINARY, Kind.TEXT): "`binary.handling.mode` is not bytes",
}


def check_records(source: KafkaSource, check: PipelineCheck, report: Report) -> None:
    """Report what of the topic's last records setl will refuse, or should not believe.

    Args:
        source: the topic.
        check: the check that it is a part of; its tables are those of `database`, if it is named.
        report: where to put it.
    """
    if "compact" in topic_setting(source_settings(source), source.topic, "cleanup.policy"):
        report.error(
            f"the topic {source.topic} is compacted: Kafka removes deletes before a pipeline that"
            " is behind, or starts later, has read them",
            "Set `cleanup.policy=delete` for it, with a `retention.ms` beyond what the pipeline"
            " can be behind",
            code="compacted-topic",
            risk=True,
        )
    try:
        reader = open_reader(source, _TIMEOUT)
        try:
            records = _last(reader, source.partition)
        finally:
            reader.close()
    except SetlError:
        return  # the topic's own checks have said so
    _check_rows(source, check, records, report)


def _last(reader: TopicReader, partition: int) -> list[Record]:
    """The records at the topic's end, as far as they come in time."""
    bounds, clock = reader.bounds(partition), SystemClock()
    found: list[Record] = []
    reader.seek({partition: max(bounds.first, bounds.end - _LOOKED_AT)})
    deadline = clock.monotonic() + _TIMEOUT
    while reader.position(partition) < bounds.end and clock.monotonic() < deadline:
        found += reader.poll(_AT_ONCE, 0.5)
    return found


def _check_rows(
    source: KafkaSource, check: PipelineCheck, records: list[Record], report: Report
) -> None:
    headers, codec = header_reader(source), codec_named(source.codec)
    router, seen = Router(check.pipeline), set[tuple[str, str]]()
    for record in reversed(records) if headers is not None else ():
        assert headers is not None
        position = f"{source.topic}[{record.partition}]@{record.offset}"
        try:
            header = headers.read(record.key, record.value)
            table = header.schema, header.table
            if header.kind is not EntryKind.ROWS or table in seen or not router.route(*table):
                continue
            seen.add(table)
            decoded = codec.decode(keyed(record.key, record.value or b""), ())
        except SetlError as error:
            report.error(
                f"the record at {position} cannot be read: {error.at(position=position)}",
                *([error.hint] if error.hint else []),
                code="record-unreadable",
            )
            return
        _check_kinds(decoded.schema, check, report)
    if seen:
        report.ok(f"the last records of {len(seen)} mapped tables can be read")


def _check_kinds(schema: RowSchema, check: PipelineCheck, report: Report) -> None:
    """Compare the columns of a record with those of the database, if it is named."""
    for table in check.tables:
        if (table.schema.schema, table.schema.table) != (schema.schema, schema.table):
            continue
        for column in table.schema.columns:
            index = schema.folded.get(column.name.lower(), -1)
            kind = schema.columns[index].kind if index >= 0 else column.kind
            lost = _LOST.get((column.kind, kind))
            if lost:
                report.at(schema.name).error(
                    f"records write the {column.kind.value} {column.name} as {kind.value}: {lost}",
                    "Change that setting of the connector, and load the table again",
                    code="inexact-records",
                )
