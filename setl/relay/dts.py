"""DTS records as a format of a relay."""

from __future__ import annotations

from collections.abc import Sequence

from setl.clock import Clock
from setl.codec.binlog.transactions.author import author_of
from setl.codec.dts.record_writer import DtsRecordWriter, TransactionFacts, TransactionRecords
from setl.codec.dts.table_form import DtsTableForms
from setl.model.change import DecodedRows
from setl.model.entry import Entry
from setl.model.position import BinlogPosition
from setl.relay.serializer import Message, Messages, binlog_position


class DtsSerializer:
    """The `Serializer` of DTS records."""

    format = "dts"
    parts = 1

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

    def heartbeat(self, ident: int, position: BinlogPosition, seconds: int) -> Message:
        """See `Serializer.heartbeat`."""
        return Message(
            self._writer.heartbeat(
                ident, seconds=seconds, position=position, read_ms=int(self._clock.now() * 1000)
            )
        )


class DtsTransactionSerializer:
    """The `TransactionSerializer` of DTS records."""

    def __init__(self, records: TransactionRecords, forms: DtsTableForms) -> None:
        """See `DtsSerializer.transaction`."""
        self._records = records
        self._forms = forms

    def begin(self, ident: int, entry: Entry) -> Messages:
        """See `TransactionSerializer.begin`."""
        value = self._records.begin(
            ident, seconds=int(entry.timestamp), position=binlog_position(entry.position)
        )
        return (Message(value),)

    def rows(
        self,
        first_id: int,
        entry: Entry,
        changes: DecodedRows,
        first: int = 0,  # noqa: ARG002
    ) -> Sequence[Messages]:
        """See `TransactionSerializer.rows`."""
        values = self._records.rows(
            self._forms.form(entry.context),
            changes,
            first_id=first_id,
            seconds=int(entry.timestamp),
            position=binlog_position(entry.position),
        )
        return [(Message(value),) for value in values]

    def ddl(self, ident: int, entry: Entry) -> Messages:
        """See `TransactionSerializer.ddl`."""
        value = self._records.ddl(
            ident,
            # A session without a schema writes names in full, and any of them will do.
            entry.default_schema or entry.schema,
            entry.statement,
            seconds=int(entry.timestamp),
            position=binlog_position(entry.position),
        )
        return (Message(value),)

    def commit(self, ident: int, entry: Entry) -> Messages:
        """See `TransactionSerializer.commit`."""
        value = self._records.commit(
            ident, seconds=int(entry.timestamp), position=binlog_position(entry.position)
        )
        return (Message(value),)
