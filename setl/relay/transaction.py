"""Turns one transaction into records of the partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from setl.codec.dts.relayed import LAST, RelayTransaction
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.entry import Entry
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.relay.partitioning import FULL_IMAGES, Partitioned, completed
from setl.relay.serializer import Messages, Serializer, binlog_position, record_id
from setl.relay.topic_contents import TopicContents


class Outgoing(NamedTuple):
    """A record to send.

    The arguments of `setl.relay.ports.RelayLog.append`, in their order.

    Attributes:
        partition: where to.
        value: its bytes, None for a tombstone.
        position: the value of its header `setl.codec.dts.relayed.HEADER`.
        key: its key, None if it has none; the partition is chosen here all the same.
        timestamp_ms: when the source wrote it, milliseconds since 1970 UTC.
    """

    partition: int
    value: bytes | None
    position: bytes
    key: bytes | None
    timestamp_ms: int


class RowsEntry(NamedTuple):
    """Rows, the entry they come from, and the ordinal of the last of them; see `Ordinals`."""

    entry: Entry
    changes: DecodedRows
    ordinal: int


def relay_transaction(
    generation: int,
    begin: BinlogPosition,
    origin: BinlogOrigin | None,
    gtid: str = "",
    *,
    format_name: str,
) -> RelayTransaction:
    """How places name the transaction behind a boundary."""
    server, writer, created = origin or BinlogOrigin("")
    return RelayTransaction(
        generation, begin.file, begin.offset, server, writer, created, gtid, format_name
    )


class Transaction:
    """Gives the records of a transaction, from the first thing of it that replicates.

    Each partition that gets anything gets a BEGIN first, then the marks seen so far, and a
    COMMIT at the end, as far as the format has these. What is in the topic already is left out,
    for each partition on its own.
    """

    def __init__(
        self,
        begin: BinlogPosition,
        *,
        generation: int,
        opening: Entry,
        first: Entry,
        contents: TopicContents,
        serializer: Serializer,
    ) -> None:
        """Begin.

        Args:
            begin: the boundary before it.
            generation: of the relay's checkpoint.
            opening: its BEGIN entry, or its first rows if it has none.
            first: the first of its entries that passes, marks included.
            contents: what is in the topic already.
            serializer: writes the records.
        """
        name = relay_transaction(
            generation,
            begin,
            binlog_position(opening.position).origin,
            opening.transaction,
            format_name=serializer.format,
        )
        self._parts = serializer.parts
        self._head = name.encoded()
        self._there = contents.ordinals(name)
        self._repeats = max(self._there) >= 0
        self._begin_id = record_id(begin)
        self._opening = opening
        self._serializer = serializer.transaction(begin, opening, first)
        self._marks: list[tuple[int, Messages, Entry]] = []  # ordinal, records, where from
        self._begun: dict[int, None] = {}  # in the order in which they have begun

    def mark(self, mark: RowsEntry) -> Iterator[Outgoing]:
        """Rows of the mark table: to every partition that has begun, and to those that will.

        Marks alone are nothing to anybody, and begin none.
        """
        entry, changes, last = mark
        first = last - len(changes.images) + 1
        records = self._serializer.rows(self._begin_id + first, entry, changes)
        known = len(self._marks)
        self._marks += [(ordinal, each, entry) for ordinal, each in enumerate(records, first)]
        for partition in self._begun:
            yield from self._marks_to(partition, known)

    def rows(self, rows: RowsEntry, partitioned: Partitioned) -> Iterator[Outgoing]:
        """Rows that pass, each to its partition."""
        entry, changes, last = rows
        first = last - len(changes.images) + 1
        partitions = partitioned.to
        for partition in dict.fromkeys(partitions):
            yield from self._begin_in(partition)
        if partitioned.moved or self._repeats:
            yield from self._one_by_one(rows, partitioned, first)
            return
        records = self._serializer.rows(self._begin_id + first, entry, changes)
        head, timestamp, parts = self._head, _milliseconds(entry), self._parts
        number = first * parts
        for partition, messages in zip(partitions, records, strict=True):
            for part, (value, key) in enumerate(messages, number):
                yield Outgoing(partition, value, b"%b%d" % (head, part), key, timestamp)
            number += parts

    def ddl(self, entry: Entry, ordinal: int) -> Iterator[Outgoing]:
        """DDL inside the transaction, which creates the table that its rows go into."""
        messages = self._serializer.ddl(self._begin_id + ordinal, entry)
        for partition in range(len(self._there)):
            yield from self._begin_in(partition)
            yield from self._records(partition, ordinal * self._parts, messages, entry)

    def commit(self, entry: Entry, ordinal: int) -> Iterator[Outgoing]:
        """Its end, in every partition that has begun; `entry` is its last one."""
        messages = self._serializer.commit(self._begin_id + ordinal, entry)
        for partition in self._begun:
            yield from self._records(partition, LAST, messages, entry)

    def alone(self, entry: Entry, ordinal: int) -> Iterator[Outgoing]:
        """DDL that is all of the transaction: to every partition, without BEGIN and COMMIT."""
        messages = self._serializer.ddl(self._begin_id + ordinal, entry)
        for partition in range(len(self._there)):
            yield from self._records(partition, LAST, messages, entry)

    def _begin_in(self, partition: int) -> Iterator[Outgoing]:
        if partition in self._begun:
            return
        self._begun[partition] = None
        if self._there[partition] < 0:
            messages = self._serializer.begin(self._begin_id, self._opening)
            yield from self._records(partition, 0, messages, self._opening)
        yield from self._marks_to(partition, 0)

    def _marks_to(self, partition: int, known: int) -> Iterator[Outgoing]:
        for ordinal, messages, entry in self._marks[known:]:
            yield from self._records(partition, ordinal * self._parts, messages, entry)

    def _one_by_one(
        self, rows: RowsEntry, partitioned: Partitioned, first: int
    ) -> Iterator[Outgoing]:
        """Rows of an entry that do not all go out as they are."""
        schema, op, images = rows.changes
        for i, (before, after) in enumerate(images):
            ordinal, to = first + i, partitioned.to[i]
            former = partitioned.moved.get(i)
            if former is None:
                change = DecodedRows(schema, op, [(before, after)])
                yield from self._row(to, ordinal, rows.entry, change, i)
                continue
            whole = completed(before, after)
            if ABSENT in whole:
                raise DataError(
                    "a row moves to another key, and what it is there is not said in full",
                    hint=FULL_IMAGES,
                    schema=schema.schema,
                    table=schema.table,
                )
            deleted = DecodedRows(schema, Op.DELETE, [(before, None)])
            inserted = DecodedRows(schema, Op.INSERT, [(None, whole)])
            yield from self._begin_in(former)
            yield from self._row(former, ordinal, rows.entry, deleted, i)
            yield from self._row(to, ordinal, rows.entry, inserted, i)

    def _row(
        self, partition: int, ordinal: int, entry: Entry, change: DecodedRows, index: int
    ) -> Iterator[Outgoing]:
        number = ordinal * self._parts
        if number + self._parts > self._there[partition] + 1:
            (messages,) = self._serializer.rows(self._begin_id + ordinal, entry, change, index)
            yield from self._records(partition, number, messages, entry)

    def _records(
        self, partition: int, first: int, messages: Messages, entry: Entry
    ) -> Iterator[Outgoing]:
        """Records of one thing, as far as the partition lacks them; `first` numbers the first."""
        for number, (value, key) in enumerate(messages, first):
            if number > self._there[partition]:
                position = b"%b%d" % (self._head, number)
                yield Outgoing(partition, value, position, key, _milliseconds(entry))


def _milliseconds(entry: Entry) -> int:
    return int(entry.timestamp * 1000)
