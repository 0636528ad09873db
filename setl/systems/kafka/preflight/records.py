"""The checks of a topic in which each record stands alone: what its last records look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from setl.channel.fields.endpoints import MysqlTarget
from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.channel.routes.routing import Router, selected_columns
from setl.clock import SystemClock
from setl.codec.dts.relayed import HEADER
from setl.codec.json_rows import JsonRowCodec
from setl.codec.keyed_record import keyed
from setl.counting import count
from setl.errors import SetlError
from setl.model.entry import EntryKind
from setl.model.schema import Kind, RowSchema
from setl.systems.finding import Report
from setl.systems.kafka.formats import header_reader
from setl.systems.kafka.reader import TopicReader, open_reader
from setl.systems.kafka.record import Record
from setl.systems.kafka.settings import source_settings
from setl.systems.kafka.stream_retention import topic_setting
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.server import Server
from setl.systems.mysql.table_facts import read_columns
from setl.systems.pipeline_check import PipelineCheck
from setl.transform.work import codec_named

_TIMEOUT: Final = 5.0
_LOOKED_AT: Final = 200  # offsets at the topic's end
_AT_ONCE: Final = 500

# Kinds of a column where it is known, and kinds that records may give it in its place.
_LOST: Final = {
    (Kind.DECIMAL, Kind.FLOAT): "`decimal.handling.mode` is double, which rounds",
    (Kind.BINARY, Kind.TEXT): "`binary.handling.mode` is not bytes",
    (Kind.TIMESTAMP, Kind.TEXT): "a converter of the connector (`converters`) writes it so, and"
    " does not say in which time zone",
}
_KINDS: Final = {
    "decimal": Kind.DECIMAL,
    "timestamp": Kind.TIMESTAMP,
    **dict.fromkeys(
        ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), Kind.BINARY
    ),
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
    router, seen = Router(check.pipeline), dict[tuple[str, str], RowSchema]()
    shown = dict[tuple[str, str], Record]()
    for record in reversed(records) if headers is not None else ():
        assert headers is not None
        position = f"{source.topic}[{record.partition}]@{record.offset}"
        try:
            header = headers.read(record.key, record.value)
            table = header.schema, header.table
            if header.kind is not EntryKind.ROWS or table in seen or not router.route(*table):
                continue
            payload = keyed(record.key, record.value or b"")
            seen[table], shown[table] = codec.decode(payload, ()).schema, record
        except SetlError as error:
            report.error(
                f"the record at {position} cannot be read: {error.at(position=position)}",
                *([error.hint] if error.hint else []),
                code="record-unreadable",
            )
            return
    for schema in seen.values():
        known = {t.schema.name: t.schema for t in check.tables}.get(schema.name)
        if known is not None:
            _check_kinds(schema, {c.name.lower(): c.kind for c in known.columns}, report)
    if isinstance(codec, JsonRowCodec):
        _check_nulls(codec, shown, records, report)
    if source.partition or len(check.partitions) > 1:
        _check_order(shown, report)
    if seen:
        _check_target(seen, router, check, report)
        report.ok(f"the last records of {count(len(seen), 'mapped table')} can be read")


def _check_nulls(
    codec: JsonRowCodec,
    seen: Mapping[tuple[str, str], Record],
    records: Sequence[Record],
    report: Report,
) -> None:
    """Report columns for whose NULL a record may have their default.

    Which of the two it has is a setting of the converter: a NULL in any record clears all tables.
    """
    for record in records:
        with suppress(SetlError):
            if any(codec.defaulted(record.value or b"").values()):
                return
    for table, record in seen.items():
        columns = codec.defaulted(record.value or b"")
        if columns:
            report.at(".".join(table)).error(
                "a connector with its default settings writes the default of a column in place of"
                f" NULL; columns that take NULL and have a default: {', '.join(columns)}",
                "Set `value.converter.replace.null.with.default=false` for the connector, load the"
                " table again, and name this finding under `accept`: records do not show the"
                " setting",
                code="null-or-default",
                risk=True,
            )


def _check_order(seen: Mapping[tuple[str, str], Record], report: Report) -> None:
    """Report tables whose rows do not decide which partition a change is in.

    Kafka's key does, and relays of setl do without one. Debezium has no key for a table without
    one. Canal has none at all: it sends schema changes to one partition, and a row whose key
    changes to that of the new key alone.
    """
    for table, record in seen.items():
        if record.key is None and all(name != HEADER for name, _ in record.headers):
            report.at(".".join(table)).error(
                "several partitions are read, and records have no key: changes of one row may be"
                " in several of them, and are then applied in any order",
                "Read a topic of one partition. If the writer keeps all changes of a row in one,"
                " also when its key changes, as Canal does whose `canal.mq.partitionHash` names"
                " tables and no columns, name this finding under `accept`",
                code="order-unknown",
                risk=True,
            )


def _check_target(
    seen: dict[tuple[str, str], RowSchema], router: Router, check: PipelineCheck, report: Report
) -> None:
    """Compare columns with those that they go to, in case nobody says what the source's are."""
    target = check.pipeline.target
    if check.tables or not check.knows_target or not isinstance(target, MysqlTarget):
        return
    with suppress(SetlError), Server.opened(mysql_endpoint(target)) as server:
        for table, schema in seen.items():
            for route in router.route(*table):
                facts = read_columns(server, *route.target)
                selected = selected_columns(route, schema.names)
                kinds = {
                    schema.names[i].lower(): _KINDS.get(facts[name.lower()].data_type)
                    for i, name in selected
                    if name.lower() in facts
                }
                _check_kinds(schema, kinds, report)


def _check_kinds(schema: RowSchema, known: Mapping[str, Kind | None], report: Report) -> None:
    """Compare the columns of a record with their kinds elsewhere, by name in lower case."""
    for column in schema.columns:
        kind = known.get(column.name.lower())
        lost = _LOST.get((kind, column.kind)) if kind is not None else None
        if kind is not None and lost is not None:
            report.at(schema.name).error(
                f"records write the {kind.value} {column.name} as {column.kind.value}: {lost}",
                "Change that setting of the connector, and load the table again",
                code="inexact-records",
                risk=True,
            )
