"""Canal's flat messages as a format of a relay.

Canal writes none of transactions. Heartbeats have neither key nor value, which its consumers skip.
"""

from __future__ import annotations

from collections.abc import Sequence

from setl.clock import Clock
from setl.codec.canal.writing.messages import CanalMessages
from setl.model.change import DecodedRows
from setl.model.entry import Entry
from setl.model.position import BinlogPosition
from setl.relay.formats import RecordFormat
from setl.relay.serializer import Message, Messages


def canal_serializer(form: RecordFormat, version: str, clock: Clock) -> CanalSerializer:  # noqa: ARG001
    """The serializer for a stream of any server."""
    return CanalSerializer(clock, schema_changes=form.schema_changes)


class CanalSerializer:
    """The `Serializer` of Canal's flat messages."""

    format = "canal"
    parts = 1

    def __init__(self, clock: Clock, *, schema_changes: bool = True) -> None:
        """See `setl.relay.formats.RecordFormat`; messages say when they were read, by `clock`."""
        self._messages = CanalMessages()
        self._clock = clock
        self._schema_changes = schema_changes

    def transaction(
        self,
        begin: BinlogPosition,  # noqa: ARG002
        opening: Entry,  # noqa: ARG002
        first: Entry,
    ) -> CanalTransactionSerializer:
        """See `Serializer.transaction`."""
        return CanalTransactionSerializer(
            self._messages,
            first.transaction,
            int(self._clock.now() * 1000),
            schema_changes=self._schema_changes,
        )

    def heartbeat(
        self,
        ident: int,  # noqa: ARG002
        position: BinlogPosition,  # noqa: ARG002
        seconds: int,  # noqa: ARG002
    ) -> Message:
        """See `Serializer.heartbeat`."""
        return Message(None)


class CanalTransactionSerializer:
    """The `TransactionSerializer` of Canal's flat messages."""

    def __init__(
        self, messages: CanalMessages, gtid: str, read_ms: int, *, schema_changes: bool
    ) -> None:
        """See `CanalSerializer.transaction`."""
        self._messages = messages
        self._gtid = gtid
        self._read_ms = read_ms
        self._schema_changes = schema_changes

    def begin(self, ident: int, entry: Entry) -> Messages:  # noqa: ARG002
        """See `TransactionSerializer.begin`."""
        return ()

    def rows(
        self,
        first_id: int,
        entry: Entry,
        changes: DecodedRows,
        first: int = 0,  # noqa: ARG002
    ) -> Sequence[Messages]:
        """See `TransactionSerializer.rows`."""
        values = self._messages.rows(first_id, entry, changes, self._gtid, self._read_ms)
        return [(Message(value),) for value in values]

    def ddl(self, ident: int, entry: Entry) -> Messages:
        """See `TransactionSerializer.ddl`."""
        if not self._schema_changes:
            return ()
        return (Message(self._messages.ddl(ident, entry, self._gtid, self._read_ms)),)

    def commit(self, ident: int, entry: Entry) -> Messages:  # noqa: ARG002
        """See `TransactionSerializer.commit`."""
        return ()
