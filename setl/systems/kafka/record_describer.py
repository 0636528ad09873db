"""Shows records of formats in which each record stands alone."""

from __future__ import annotations

from collections.abc import Sequence

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.codec.keyed_record import keyed
from setl.codec.record_header import RecordHeader
from setl.errors import ConfigurationError, SetlError
from setl.model.entry import EntryKind
from setl.model.position import KafkaPosition
from setl.model.typed import TypedChange, typed_changes
from setl.systems.kafka.formats import header_reader
from setl.systems.kafka.record import Record
from setl.systems.seen_record import UNREADABLE, SeenRecord
from setl.transform.work import codec_named


class StandaloneDescriber:
    """Makes of records what is to be seen of them: a row each."""

    def __init__(self, config: KafkaSource) -> None:
        """For a topic of the source's format."""
        headers = header_reader(config)
        if headers is None:
            raise ConfigurationError(f"records of the format {config.format} do not stand alone")
        self._headers = headers
        self._codec = codec_named(config.codec)
        self._topic = config.topic

    def describe(self, record: Record) -> Sequence[SeenRecord]:
        """One record. Never fails: what cannot be read is shown so."""
        header, changes, problem = RecordHeader(EntryKind.HEARTBEAT), list[TypedChange](), ""
        try:
            header = self._headers.read(record.key, record.value)
            if header.kind is EntryKind.ROWS:
                payload = keyed(record.key, record.value or b"")
                changes = list(typed_changes(self._codec.decode(payload, ())))
        except SetlError as error:
            problem = str(error)
        return [
            SeenRecord(
                position=KafkaPosition(self._topic, record.partition, record.offset),
                operation=UNREADABLE if problem else header.operation,
                timestamp=float(header.seconds),
                schema=header.schema,
                table=header.table,
                size=len(record.value or b""),
                change=change,
                statement=header.statement,
                problem=problem,
                payload=(record.value or b"") if problem else b"",
                headers=tuple([(name, value or b"") for name, value in record.headers]),
                written=max(record.timestamp, 0) / 1000,
            )
            for change in changes or (None,)
        ]
