"""Makes entries of the records of one partition where each record stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol
from zlib import crc32

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from setl.codec.dts.relayed import HEADER
from setl.codec.keyed_record import key_and_value, keyed
from setl.codec.record_header import HeaderReader, RecordHeader
from setl.errors import FatalError, SetlError
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.model.session import StatementSession
from setl.systems.kafka.record import TopicPartition
from setl.systems.kafka.source.row_chunks import RowChunk

_MOST_DELETED: Final = 10_000  # keys whose tombstones may still come
# Records after a start whose deletes may stand before it, where several connectors write a topic.
_UNSURE: Final = 100
_COMPACTED: Final = (
    "The topic is compacted, and Kafka has removed records: set `cleanup.policy=delete` for it."
    " Then load the table again: `setl load PIPELINE --replace`. If it is not compacted, and a"
    " transform of the connector drops deletes, set `tombstones.on.delete=false` for the connector,"
    " and move on with `setl position reset PIPELINE --to` the end"
)


class Entries(Protocol):
    """Makes entries of a partition's records, in order.

    Attributes:
        next: offset of the next record.
        time: commit time of the last record that had one.
    """

    next: int
    time: int

    def of(self, records: Sequence[Message]) -> tuple[list[Entry], SetlError | None]:
        """The entries of the next records, and the error in place of the one behind them."""
        ...

    def is_repeat(self, record: Message) -> bool:
        """Take in a record before the position; whether it repeats one before it."""
        ...


class StandaloneEntries:
    """An `Entries` in which rows that follow each other are joined, and a COMMIT stands behind.

    Rows of one table and second are joined as those of DTS are. Nothing says where a transaction
    of the source ends, so each record is one: a checkpoint may lie behind any of them.

    A tombstone repeats, for brokers that remove older records of its key, the delete before it.
    Where that is not there, it was removed itself, and others with it.
    """

    def __init__(
        self,
        partition: TopicPartition,
        origin: KafkaOrigin,
        position: KafkaPosition,
        headers: HeaderReader,
    ) -> None:
        """Begin at a position.

        Args:
            partition: which.
            origin: of the topic, for positions.
            position: where reading begins.
            headers: reads the records' headers.
        """
        self._partition = partition
        self._origin = origin
        self._headers = headers
        self.next = position.offset
        self.time: int = position.timestamp
        self._deleted: dict[bytes | None, None] = {}  # keys, the last one deleted at the end
        self._seen = 0  # records since the position

    def of(self, records: Sequence[Message]) -> tuple[list[Entry], SetlError | None]:
        """See `Entries.of`."""
        entries: list[Entry] = []
        chunk: RowChunk | None = None
        rows = 0
        failure: SetlError | None = None
        for record in records:
            offset, key, value = record.offset(), record.key(), record.value()
            try:
                header = self._read(key, value)
                if key is None and value is None:
                    header = header._replace(seconds=_relayed_at(record))
            except SetlError as error:
                topic, number = self._partition
                failure = error.at(position=f"{topic}[{number}]@{offset}")
                break
            self.next = offset + 1
            if header.kind is EntryKind.ROWS:
                table, payload = (header.schema, header.table), keyed(key, value or b"")
                if (
                    chunk is None
                    or chunk.timestamp != header.seconds
                    or not chunk.takes(table, offset, payload)
                ):
                    self._end(chunk, rows, entries)
                    chunk, rows = RowChunk(table, header.seconds, offset, payload), 0
                rows += header.rows
                continue
            self._end(chunk, rows, entries)
            chunk, rows = None, 0
            entries += self._other(header, offset, value or b"")
        self._end(chunk, rows, entries)
        return entries, failure

    def is_repeat(self, record: Message) -> bool:
        """See `Entries.is_repeat`; nothing tells that."""
        with suppress(SetlError):  # it was passed over
            self._read(record.key(), record.value())
        return False

    def _read(self, key: bytes | None, value: bytes | None) -> RecordHeader:
        header = self._headers.read(key, value)
        if header.tombstone:
            if key not in self._deleted and self._seen >= _UNSURE:
                raise FatalError("a tombstone without the delete that it repeats", hint=_COMPACTED)
        elif header.deletes:
            self._deleted.pop(key, None)
            self._deleted[key] = None
            if len(self._deleted) > _MOST_DELETED:
                del self._deleted[next(iter(self._deleted))]
        self._seen += 1
        return header

    def _end(self, chunk: RowChunk | None, rows: int, entries: list[Entry]) -> None:
        """Add what a chunk holds, if there is one."""
        if chunk is None:
            return
        self.time = int(chunk.timestamp) or self.time
        _, value = key_and_value(chunk.values[-1])
        position = self._position(chunk.last, value)
        entries.append(chunk.entry(position)._replace(rows=rows))
        entries.append(Entry(EntryKind.COMMIT, position, chunk.timestamp))

    def _other(self, header: RecordHeader, offset: int, value: bytes) -> list[Entry]:
        """The entries of a record without rows."""
        self.time = header.seconds or self.time
        position, seconds = self._position(offset, value), float(header.seconds)
        if header.kind is EntryKind.HEARTBEAT:
            return [Entry(EntryKind.HEARTBEAT, position, seconds)]
        entry = Entry(
            header.kind,
            position,
            seconds,
            header.schema,
            header.table,
            statement=header.statement,
            session=StatementSession(header.default_schema),
        )
        if header.kind is EntryKind.STATEMENT:
            return [entry, Entry(EntryKind.COMMIT, position, seconds)]
        return [entry]

    def _position(self, offset: int, value: bytes) -> KafkaPosition:
        """The position behind a record."""
        topic, partition = self._partition
        return KafkaPosition(topic, partition, offset + 1, self.time, crc32(value), self._origin)


def _relayed_at(record: Message) -> int:
    """When a relay wrote a heartbeat, seconds since 1970: it has written all before that time.

    0 for another record, and where the topic has the time of the broker instead of the relay's.
    """
    sort, milliseconds = record.timestamp()
    relayed = any(name == HEADER for name, _ in record.headers() or ())
    return milliseconds // 1000 if relayed and sort == TIMESTAMP_CREATE_TIME else 0
