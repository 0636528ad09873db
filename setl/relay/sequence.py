"""Sequencer: entries of a binlog in, records of a topic out, in order and each one once.

For the same entries it gives the same records at the same places, wherever it starts: that is
what a relay that takes over relies on to find out what is in the topic already, and readers
to drop what they have seen. So the places must not depend on when something was read, in how
many pieces, or on what else a run had seen before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from setl.codec.binlog.event import COMPRESSED_ROWS
from setl.codec.binlog.inflation import images_bytes
from setl.codec.dts.relayed import HEARTBEAT, RelayPosition
from setl.codec.row_codec import RowCodec, single_entries
from setl.errors import FatalError, SetlError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition
from setl.model.unlogged_columns import unlogged_error
from setl.relay.interceptor import Forwarding, Interceptor
from setl.relay.partitioning import Partitioner
from setl.relay.serializer import Serializer, binlog_position, record_id
from setl.relay.topic_contents import TailsAhead, TopicContents
from setl.relay.transaction import Outgoing, RowsEntry, Transaction, relay_transaction

_FILE_START = 4  # behind the magic number that every binlog file begins with


class Sequenced(NamedTuple):
    """What became of some entries.

    Attributes:
        records: to be sent in this order; the order within each partition has to be kept.
        heartbeats: entries of ``retl.xdual``, undecoded; they do not pass.
        rows: row changes that pass, marks not counted, those in the topic already included.
        statements: schemas of statements that were logged instead of rows and do not pass, one
            for each.
    """

    records: list[Outgoing]
    heartbeats: list[Entry]
    rows: int
    statements: list[str]


class Sequencer:
    """Goes through the entries of one stream. Not thread-safe; of no use after an error."""

    def __init__(
        self,
        start: Checkpoint,
        last: Sequence[RelayPosition | None],
        *,
        interceptor: Interceptor,
        partitioner: Partitioner,
        codec: RowCodec,
        serializer: Serializer,
    ) -> None:
        """Go on from a checkpoint that `checkpoint` gave, or from the pipeline's first one.

        Args:
            start: where the entries begin. Nothing before it is missing from the topic.
            last: the position of the last record in each partition, None for an empty one.
            interceptor: decides what passes.
            partitioner: decides where to.
            codec: decodes rows that pass.
            serializer: writes records.

        Raises:
            FatalError: the checkpoint is none of a binlog, or the number of partitions differs.
        """
        if len(last) != partitioner.partitions:
            raise FatalError(
                f"{len(last)} partitions are there and {partitioner.partitions} were expected",
                hint="The topic was changed meanwhile; start the relay again",
            )
        self._boundary = binlog_position(start.resume)
        self._start = start
        self._interceptor = interceptor
        self._partitioner = partitioner
        self._codec = codec
        self._serializer = serializer
        self._parts = serializer.parts
        self._contents = TopicContents(last)
        self._ahead = TailsAhead(self._boundary, start.generation, last)
        self._partitions = range(len(last))
        self._rows = self._ended_rows = start.rows
        self._timestamp = start.timestamp
        self._opening: Entry | None = None  # the BEGIN of the open transaction, or its first rows
        self._newest: Entry | None = None  # the last entry of it so far
        self._transaction: Transaction | None = None
        self._ordinals = Ordinals()

    @property
    def inside(self) -> bool:
        """Whether a transaction is open after what was seen so far."""
        return self._opening is not None

    @property
    def checkpoint(self) -> Checkpoint:
        """Where to go on once every record given out so far is in the topic."""
        start = self._start
        return Checkpoint(
            self._boundary,
            timestamp=self._timestamp,
            generation=start.generation,
            rows=self._ended_rows,
            requested=start.requested,
        )

    def records(self, entries: Sequence[Entry]) -> Sequenced:
        """Take the next entries in.

        Raises:
            DataError: a row cannot be decoded or written.
            FatalError: the entries are none of a binlog, or leave a file inside a transaction.
            PositionLostError: the topic has what the source has no more, see `TailsAhead`.
        """
        result = Sequenced([], [], 0, [])
        before = self._rows
        for entry in entries:
            if entry.kind is EntryKind.HEARTBEAT:
                self._idle(entry)
                continue
            try:
                if entry.kind is EntryKind.ROWS:
                    # Each event has a position of its own, however they were joined when read.
                    for single in single_entries(self._codec, entry):
                        self._take(single, result)
                else:
                    self._take(entry, result)
            except SetlError as error:
                error.at(schema=entry.schema, table=entry.table, position=entry.position)
                raise
        return result._replace(rows=self._rows - before)

    def heartbeat(self, seconds: float) -> list[Outgoing]:
        """A heartbeat for every partition, none inside a transaction.

        Those that are ahead, since a former leader came further, get none until it is reached.

        Args:
            seconds: the time, in seconds since 1970 UTC.
        """
        if self._opening is not None:
            return []
        name = relay_transaction(
            self._start.generation,
            self._boundary,
            self._boundary.origin,
            format_name=self._serializer.format,
        )
        position = RelayPosition(name, HEARTBEAT).encoded()
        ident = record_id(self._boundary)
        value, key = self._serializer.heartbeat(ident, self._boundary, int(seconds))
        there = self._contents.ordinals(name)
        # One that is there already may be repeated: what it says is the time.
        return [
            Outgoing(partition, value, position, key, int(seconds * 1000))
            for partition in self._partitions
            if there[partition] <= HEARTBEAT
        ]

    def _take(self, entry: Entry, result: Sequenced) -> None:
        kind = entry.kind
        if kind is EntryKind.ROWS:
            if self._opening is None:
                self._open(entry)
            before, last = self._ordinals.last, self._ordinal(entry)
            count = self._forward_rows(entry, last, result)
            if self._ahead:
                # Rows of tables that are not mapped are not counted, since nobody decodes them.
                self._has(before + 1 if count is None else last - count + 1, last)
            self._newest = entry
        elif kind is EntryKind.BEGIN:
            self._close_early(result)
            self._open(entry)
        elif kind is EntryKind.STATEMENT:
            if schema := self._interceptor.skipped_statement(entry):
                result.statements.append(schema)
            if self._opening is None:
                self._open(entry)
        elif kind is EntryKind.COMMIT:
            if self._transaction is not None:
                result.records.extend(self._transaction.commit(entry, self._ordinal(entry)))
            self._end_at(entry)
        else:
            self._ddl(entry, result)

    def _forward_rows(self, entry: Entry, ordinal: int, result: Sequenced) -> int | None:
        """Returns how many rows it has, None if they do not pass."""
        forwarding, group = self._interceptor.table(entry.schema, entry.table)
        if forwarding is Forwarding.ROWS:
            changes = self._codec.decode(entry.payload, entry.context)
            if changes.schema.unlogged:
                # Whoever reads a record takes columns that it lacks for unchanged.
                raise unlogged_error(changes.schema.name, changes.schema.unlogged)
            partitioned = self._partitioner.partition(changes, group)
            self._rows += len(changes.images)
            rows = RowsEntry(entry, changes, ordinal)
            result.records.extend(self._begun(entry).rows(rows, partitioned))
            return len(changes.images)
        if forwarding is Forwarding.MARK:
            mark = RowsEntry(entry, self._codec.decode(entry.payload, entry.context), ordinal)
            result.records.extend(self._begun(entry).mark(mark))
            return len(mark.changes.images)
        if forwarding is Forwarding.HEARTBEAT:
            result.heartbeats.append(entry)
        return None

    def _ddl(self, entry: Entry, result: Sequenced) -> None:
        opening = self._opening
        skips = self._interceptor.ddl(entry)
        if opening is not None and opening.kind is EntryKind.BEGIN:
            # CREATE TABLE … SELECT: the rows follow, and with them the COMMIT.
            ordinal = self._ordinal(entry)
            self._has(ordinal, ordinal)
            if skips:
                result.records.extend(self._begun(entry).ddl(entry, ordinal))
            self._newest = entry
            return
        self._close_early(result)
        self._open(entry)
        if skips:
            result.records.extend(self._begun(entry).alone(entry, self._ordinal(entry)))
        self._end_at(entry)

    def _has(self, first: int, last: int) -> None:
        """The transaction has, or may have, all records with these ordinals."""
        self._ahead.has(first * self._parts, (last + 1) * self._parts - 1)

    def _begun(self, entry: Entry) -> Transaction:
        """The open transaction, of which `entry` passes."""
        if self._transaction is None:
            self._transaction = Transaction(
                self._boundary,
                generation=self._start.generation,
                opening=self._opening or entry,
                first=entry,
                contents=self._contents,
                serializer=self._serializer,
            )
        return self._transaction

    def _open(self, entry: Entry) -> None:
        position = binlog_position(entry.position)
        if position.file != self._boundary.file:
            self._move_to(position, self._boundary.gtid)
        self._opening = self._newest = entry
        self._ordinals.begin(self._boundary)
        if self._ahead:
            self._ahead.begins(entry.transaction)

    def _ordinal(self, entry: Entry) -> int:
        return self._ordinals.advance(entry, binlog_position(entry.position))

    def _close_early(self, result: Sequenced) -> None:
        """End a transaction of which no COMMIT comes."""
        newest = self._newest
        if newest is None:
            return
        if self._transaction is not None:
            result.records.extend(self._transaction.commit(newest, self._ordinals.last))
        self._end_at(newest)

    def _end_at(self, entry: Entry) -> None:
        if self._ahead:
            self._ahead.ends()
        self._boundary = binlog_position(entry.position)
        if self._ahead:
            self._ahead.at_boundary(self._boundary)
        self._timestamp = max(self._timestamp, entry.timestamp)
        self._ended_rows = self._rows
        self._opening = self._newest = self._transaction = None

    def _idle(self, entry: Entry) -> None:
        """A heartbeat of the stream: only one that begins a file is a boundary.

        Others lie behind statements that change nothing. A run that started there would name
        the next transaction otherwise than one that came by.
        """
        position = binlog_position(entry.position)
        if position.file == self._boundary.file:
            return
        if self._opening is not None:
            raise FatalError(
                f"the binlog goes on in {position.file} inside a transaction",
                hint="Check the binlog with mysqlbinlog on the source",
                position=self._boundary,
            )
        self._move_to(position, position.gtid)

    def _move_to(self, position: BinlogPosition, gtid: str) -> None:
        """Go on at the beginning of another file, with these GTIDs executed."""
        self._boundary = BinlogPosition(position.file, _FILE_START, gtid, position.origin)
        self._ahead.at_boundary(self._boundary)


class Ordinals:
    """Counts along one transaction after another.

    What an entry ends with has the distance in the binlog from the boundary before the transaction
    to there, and the rows of an entry have the numbers up to that one: any row takes a byte at
    least. Where the binlog is compressed it may take less, and rows are counted as the bytes that
    they would take otherwise. Both are the same whatever tables are mapped, and known without
    decoding those that are not.
    """

    def __init__(self) -> None:
        """No transaction has begun."""
        self._begin = 0
        self.last = 0

    def begin(self, boundary: BinlogPosition) -> None:
        """A transaction begins behind a boundary."""
        self._begin = boundary.offset
        self.last = 0

    def advance(self, entry: Entry, position: BinlogPosition) -> int:
        """The ordinal of what the next entry ends with; every entry has to be given.

        Raises:
            FatalError: it is compressed, and damaged.
        """
        size = 1
        if entry.kind is EntryKind.ROWS:
            payload = entry.payload
            size = len(payload)
            if size > 4 and payload[4] in COMPRESSED_ROWS:
                size = _plain_bytes(payload)
        self.last = max(position.offset - self._begin, self.last + size)
        return self.last


def _plain_bytes(event: bytes) -> int:
    try:
        return images_bytes(event)
    except (ValueError, LookupError) as error:
        raise FatalError(
            f"a compressed event in the binlog is damaged: {error}",
            hint="Check the binlog with mysqlbinlog --verify-binlog-checksum on the source",
        ) from error
