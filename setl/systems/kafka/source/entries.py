"""Makes entries of the records of one partition, in order."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Final
from zlib import crc32

from confluent_kafka import Message

from setl.codec.dts.header_reader import DtsHeaderReader
from setl.errors import SetlError
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.systems.kafka.record import TopicPartition
from setl.systems.kafka.source.relay_repeats import RelayRepeats
from setl.systems.kafka.source.row_chunks import Mixing, OpenRowChunks, RowChunk

# Records of a run after which it is worth looking how many more are alike.
_WORTH: Final = 4


class RecordEntries:
    """What is remembered from record to record, from a position on.

    Reading the Kafka headers of a record costs as much as all else that is done with it. So of what
    a relay wrote, they are only read at both ends of a stretch in which the ids of one transaction
    grow. Nothing between these ends is repeated, since a relay writes the records of a transaction
    in the order of their ids. If another relay has put a record in between, the id falls back
    behind it, or the stretch ends with that record. Then all headers are read.

    Attributes:
        next: offset of the next record.
        time: commit time of the last record that had one.
    """

    def __init__(
        self,
        partition: TopicPartition,
        origin: KafkaOrigin,
        position: KafkaPosition,
        *,
        logical_names: bool,
        mixing: Mixing | None = None,
    ) -> None:
        """Begin at a position, between two transactions.

        Args:
            partition: which.
            origin: of the topic, for positions.
            position: where reading begins.
            logical_names: see `setl.codec.dts.header.row_name`.
            mixing: which runs may lie between each other; None for none.
        """
        self._mixing = mixing
        self._partition = partition
        self._origin = origin
        self._headers = DtsHeaderReader(logical_names=logical_names)
        self._repeats = RelayRepeats(*partition)
        self.next = position.offset
        self.time: int = position.timestamp
        self._last: Entry | None = None  # the last entry
        self._row_time: float = 0.0  # commit time of rows that are told by the record before them

    def of(self, records: Sequence[Message]) -> tuple[list[Entry], SetlError | None]:
        """The entries of the next records, at least one.

        Returns:
            Entries, and the error that stands where the next one would be, if there is one.
        """
        before = copy(self._headers), copy(self._repeats), self.time, self._last, self._row_time
        try:
            return self._of(records, each=False)
        except _AmbiguousError:
            self._headers, self._repeats, self.time, self._last, self._row_time = before
            return self._of(records, each=True)

    def is_repeat(self, record: Message) -> bool:
        """Take in a record before the position; whether it repeats one before it."""
        headers = record.headers()
        return bool(headers) and self._repeats.is_repeat(record.offset(), headers)

    def _of(  # noqa: PLR0915 - calls would cost more than what they would do
        self, records: Sequence[Message], *, each: bool
    ) -> tuple[list[Entry], SetlError | None]:
        """See `of`; with `each` all Kafka headers are looked at."""
        headers, table_of_row, is_repeat = self._headers, self._headers.table_of_row, self.is_repeat
        entries = list[Entry]()
        values = [record.value() or b"" for record in records]
        offsets = [record.offset() for record in records]
        run: RowChunk | None = None  # that of the record before
        chunks = OpenRowChunks(self._mixing)
        streak = 0  # records of its table that follow each other
        failure: SetlError | None = None
        unseen: Message | None = None  # the record before, if its Kafka headers were not looked at
        in_relayed_range = False  # whether a stretch has begun in which they need not be
        try:
            at, end = 0, len(records)
            bare = 0  # from the next one up to there, no record has Kafka headers
            # Tables of records told ahead, the last one that of the record before `known`.
            ahead, known = list[tuple[str, str]](), 0
            while at < end:
                record, value = records[at], values[at]
                table = ahead[at - known] if at < known else table_of_row(value)
                if in_relayed_range and headers.grows:
                    unseen = record
                else:
                    self._see(unseen)
                    unseen, in_relayed_range = None, False
                    if is_repeat(record):
                        at += 1
                        continue
                    in_relayed_range = not each and self._repeats.is_relayed
                offset = offsets[at]
                at += 1
                if table is None:
                    run, streak = self._other(offset, value, chunks, entries), 1
                elif run is None or not run.takes(table, offset, value):
                    other = None if run is None else chunks.beside(run, table, offset, value)
                    if other is None:
                        self._end(chunks.take(), entries)
                        other = chunks.only(RowChunk(table, self._row_time, offset, value))
                    if run is not None and at >= known:
                        # Where a transaction changes tables, it is likely to change them again.
                        ahead = headers.tables_ahead(values, at, end)
                        known = at + len(ahead)
                    run, streak = other, 1
                elif (streak := streak + 1) >= _WORTH and at >= known:
                    if not in_relayed_range:
                        bare = _bare_until(records, max(at, bare))
                    first = at
                    at += headers.rows_alike(values, at, end if in_relayed_range else bare)
                    if at > first:
                        unseen = records[at - 1] if in_relayed_range else None
                        run = self._take(run, offsets[first:at], values[first:at], chunks, entries)
            self.next = offsets[-1] + 1
        except SetlError as error:
            failure = error
        self._see(unseen)
        self._end(chunks.take(), entries)
        return entries, failure

    def _take(
        self,
        run: RowChunk,
        offsets: list[int],
        values: list[bytes],
        chunks: OpenRowChunks,
        entries: list[Entry],
    ) -> RowChunk:
        """Take in records of rows of the run's table; gives the run that the last one is in."""
        while True:
            count = run.takes_of(offsets, values)
            if count == len(values):
                return run
            self._end(chunks.take(), entries)
            run = chunks.only(RowChunk(run.table, run.timestamp, offsets[count], values[count]))
            offsets, values = offsets[count + 1 :], values[count + 1 :]

    def _see(self, unseen: Message | None) -> None:
        """Look at the Kafka headers of a record that ends a stretch, if there is one.

        Raises:
            _AmbiguousError: something else may be in the stretch.
        """
        if unseen is not None and not self._repeats.goes_on(unseen.headers() or ()):
            raise _AmbiguousError

    def _other(
        self, offset: int, value: bytes, chunks: OpenRowChunks, entries: list[Entry]
    ) -> RowChunk | None:
        """Take in a record of which only reading it tells what it is; gives a run it begins."""
        entry = self._headers.read(value, self._position(offset, value))
        ends = entry.kind is EntryKind.COMMIT and not self._headers.boundary
        self._end(chunks.take(whole=ends), entries)
        if self._headers.boundary and self._last is not None:
            entries.append(Entry(EntryKind.COMMIT, self._last.position, self._last.timestamp))
        self._row_time = entry.timestamp
        if entry.kind is EntryKind.ROWS and not entry.statement:
            return chunks.only(
                RowChunk((entry.schema, entry.table), entry.timestamp, offset, value)
            )
        if entry.kind is EntryKind.BEGIN:
            chunks.begin()
        else:
            chunks.leave()
        self._last = entry = self._dated(entry)
        entries.append(entry)
        return None

    def _end(self, chunks: Sequence[RowChunk], entries: list[Entry]) -> None:
        """Add what runs hold; nothing is added to them afterwards."""
        for run in chunks:
            self.time = int(run.timestamp) or self.time
            position = self._position(run.offsets[-1], run.values[-1], self.time)
            self._last = entry = run.entry(position)
            entries.append(entry)

    def _position(self, offset: int, value: bytes, seconds: int = 0) -> KafkaPosition:
        """The position behind a record.

        Without a timestamp, it gets the record's when it is read.
        """
        topic, partition = self._partition
        return KafkaPosition(topic, partition, offset + 1, seconds, crc32(value), self._origin)

    def _dated(self, entry: Entry) -> Entry:
        """An entry whose position can be found again by time."""
        if entry.timestamp:
            self.time = int(entry.timestamp)
            return entry
        # A filler; or a row of a full load, if nobody noted when it was read.
        position = entry.position
        assert isinstance(position, KafkaPosition)
        return entry._replace(position=replace(position, timestamp=self.time))


def _bare_until(records: Sequence[Message], begin: int) -> int:
    """The index of the first record from one on that has Kafka headers."""
    for at in range(begin, len(records)):
        if records[at].headers():
            return at
    return len(records)


class _AmbiguousError(Exception):
    """Something was written between records of a transaction that may repeat what was before."""
