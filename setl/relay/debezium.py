"""Debezium's change events as a format of a relay.

There are none of transactions, and heartbeats have neither key nor value: Debezium's consumers
take such records for tombstones, and would take any other for a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from setl.clock import Clock
from setl.codec.binlog.transactions.author import author_of
from setl.codec.debezium.writing.events import DebeziumEvents, TransactionSource
from setl.model.change import DecodedRows
from setl.model.entry import Entry
from setl.model.position import BinlogPosition
from setl.relay.formats import RecordFormat
from setl.relay.serializer import Message, Messages, binlog_position


def debezium_serializer(form: RecordFormat, version: str, clock: Clock) -> DebeziumSerializer:
    """The serializer for a stream of a server of this version."""
    options = form.options
    return DebeziumSerializer(
        options["prefix"] or form.topic,
        clock,
        mariadb="mariadb" in version.lower(),
        schemas=options["schemas"],
        exact_decimals=options["decimals"] == "string",
        schema_changes=form.schema_changes,
    )


class DebeziumSerializer:
    """The `Serializer` of Debezium's events."""

    format = "debezium"
    parts = 4  # one more than a row that moves to another key: an ordinal is easy to read then

    def __init__(
        self,
        prefix: str,
        clock: Clock,
        *,
        mariadb: bool,
        schemas: bool = False,
        exact_decimals: bool = False,
        schema_changes: bool = False,
    ) -> None:
        """Write as the connector's settings say; events say when they were read, by `clock`.

        Args:
            prefix: what Debezium calls the server, its topic.prefix.
            clock: see above.
            mariadb: whether it is the connector for MariaDB.
            schemas: whether each record has its schema.
            exact_decimals: whether a DECIMAL is text; see `KafkaTarget.decimals`.
            schema_changes: see `setl.relay.formats.RecordFormat`.
        """
        self._events = DebeziumEvents(
            prefix, mariadb=mariadb, schemas=schemas, exact_decimals=exact_decimals
        )
        self._clock = clock
        self._schema_changes = schema_changes

    def transaction(
        self,
        begin: BinlogPosition,  # noqa: ARG002
        opening: Entry,
        first: Entry,
    ) -> DebeziumTransactionSerializer:
        """See `Serializer.transaction`."""
        source = TransactionSource(
            first.transaction,
            author_of(opening.payload).thread_id,
            int(self._clock.now() * 1_000_000) * 1000,
        )
        return DebeziumTransactionSerializer(
            self._events, source, schema_changes=self._schema_changes
        )

    def heartbeat(
        self,
        ident: int,  # noqa: ARG002
        position: BinlogPosition,  # noqa: ARG002
        seconds: int,  # noqa: ARG002
    ) -> Message:
        """See `Serializer.heartbeat`."""
        return Message(None)


class DebeziumTransactionSerializer:
    """The `TransactionSerializer` of Debezium's events."""

    def __init__(
        self, events: DebeziumEvents, source: TransactionSource, *, schema_changes: bool
    ) -> None:
        """See `DebeziumSerializer.transaction`."""
        self._events = events
        self._source = source
        self._schema_changes = schema_changes

    def begin(self, ident: int, entry: Entry) -> Messages:  # noqa: ARG002
        """See `TransactionSerializer.begin`."""
        return ()

    def rows(
        self,
        first_id: int,  # noqa: ARG002
        entry: Entry,
        changes: DecodedRows,
        first: int = 0,
    ) -> Sequence[Messages]:
        """See `TransactionSerializer.rows`."""
        position = binlog_position(entry.position)
        events = self._events.rows(self._source, entry, position, changes, first)
        return [[Message(value, key) for value, key in each] for each in events]

    def ddl(self, ident: int, entry: Entry) -> Messages:  # noqa: ARG002
        """See `TransactionSerializer.ddl`."""
        if not self._schema_changes:
            return ()
        position = binlog_position(entry.position)
        schema = entry.default_schema or entry.schema
        return (Message(*self._events.schema_change(self._source, entry, position, schema)),)

    def commit(self, ident: int, entry: Entry) -> Messages:  # noqa: ARG002
        """See `TransactionSerializer.commit`."""
        return ()
