"""Serializer: the bytes of a relay's records, and the ids that they carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from setl.clock import Clock
from setl.codec.binlog.transactions.author import author_of
from setl.codec.dts.record_writer import DtsRecordWriter, TransactionFacts, TransactionRecords
from setl.codec.dts.table_form import DtsTableForms
from setl.errors import FatalError
from setl.model.change import DecodedRows
from setl.model.entry import Entry
from setl.model.position import BinlogPosition, Position, binlog_file_number

_FILE_ID_BITS: Final = 40  # of the id, for the position in a file; files are numbered above them


class TransactionSerializer(Protocol):
    """Writes the records of one transaction, or of one DDL statement."""

    def begin(self, ident: int, entry: Entry) -> bytes:
        """A BEGIN; `entry` is the one that the transaction begins with, rows if need be."""
        ...

    def rows(self, first_id: int, entry: Entry, changes: DecodedRows) -> Sequence[bytes]:
        """A record for each of `changes`, which are rows of `entry`; ids count up."""
        ...

    def ddl(self, ident: int, entry: Entry) -> bytes:
        """A DDL statement."""
        ...

    def commit(self, ident: int, entry: Entry) -> bytes:
        """A COMMIT; `entry` is the last of the transaction, rows if need be."""
        ...


class Serializer(Protocol):
    """Writes records of one stream."""

    def transaction(
        self, begin: BinlogPosition, opening: Entry, first: Entry
    ) -> TransactionSerializer:
        """For a transaction behind the boundary `begin`.

        Args:
            begin: the boundary.
            opening: its BEGIN entry, or its first rows if it has none.
            first: the first of its entries that passes.
        """
        ...

    def heartbeat(self, ident: int, position: BinlogPosition, seconds: int) -> bytes:
        """A heartbeat: all before `position` was sent; `seconds` since 1970 UTC."""
        ...


class DtsSerializer:
    """The `Serializer` of DTS records."""

    def __init__(self, writer: DtsRecordWriter, forms: DtsTableForms, clock: Clock) -> None:
        """Write with `writer`; records say when they were read, by `clock`."""
        self._writer = writer
        self._forms = forms
        self._clock = clock

    def transaction(
        self, begin: BinlogPosition, opening: Entry, first: Entry
    ) -> DtsTransactionSerializer:
        """See `Serializer.transaction`."""
        author = author_of(opening.payload)
        facts = TransactionFacts(
            begin,
            int(self._clock.now() * 1000),
            first.transaction,
            thread_id=author.thread_id,
            server_id=author.server_id,
        )
        return DtsTransactionSerializer(self._writer.transaction(facts), self._forms)

    def heartbeat(self, ident: int, position: BinlogPosition, seconds: int) -> bytes:
        """See `Serializer.heartbeat`."""
        return self._writer.heartbeat(
            ident, seconds=seconds, position=position, read_ms=int(self._clock.now() * 1000)
        )


class DtsTransactionSerializer:
    """The `TransactionSerializer` of DTS records."""

    def __init__(self, records: TransactionRecords, forms: DtsTableForms) -> None:
        """See `DtsSerializer.transaction`."""
        self._records = records
        self._forms = forms

    def begin(self, ident: int, entry: Entry) -> bytes:
        """See `TransactionSerializer.begin`."""
        return self._records.begin(
            ident, seconds=int(entry.timestamp), position=binlog_position(entry.position)
        )

    def rows(self, first_id: int, entry: Entry, changes: DecodedRows) -> Sequence[bytes]:
        """See `TransactionSerializer.rows`."""
        return self._records.rows(
            self._forms.form(entry.context),
            changes,
            first_id=first_id,
            seconds=int(entry.timestamp),
            position=binlog_position(entry.position),
        )

    def ddl(self, ident: int, entry: Entry) -> bytes:
        """See `TransactionSerializer.ddl`."""
        return self._records.ddl(
            ident,
            # A session without a schema writes names in full, and any of them will do.
            entry.default_schema or entry.schema,
            entry.statement,
            seconds=int(entry.timestamp),
            position=binlog_position(entry.position),
        )

    def commit(self, ident: int, entry: Entry) -> bytes:
        """See `TransactionSerializer.commit`."""
        return self._records.commit(
            ident, seconds=int(entry.timestamp), position=binlog_position(entry.position)
        )


def record_id(position: BinlogPosition) -> int:
    """The id of what stands at a position of the binlog; grows along it.

    Inside a transaction ids count on from its boundary, by `setl.relay.sequence`. In one that
    is compressed they grow beyond its end, and may be found again in the next ones.
    """
    return (binlog_file_number(position.file) << _FILE_ID_BITS) + position.offset


def binlog_position(position: Position) -> BinlogPosition:
    """The position, if it is one of a binlog.

    Raises:
        FatalError: it is not.
    """
    if isinstance(position, BinlogPosition):
        return position
    raise FatalError(
        f"a relay cannot go on from {position}, which is no place in a binlog",
        hint="Reset the position: it was kept for another kind of source",
    )
