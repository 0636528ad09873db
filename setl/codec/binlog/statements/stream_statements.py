"""What the statements in a binlog mean: ends of transactions, schema changes, what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from setl.codec.binlog.refused import (
    taken_back,
    unknown_statement,
)
from setl.codec.binlog.statements.query import parse_query, parse_session
from setl.codec.binlog.transactions.prepared import PreparedTransactions
from setl.codec.binlog.transactions.stream_position import StreamPosition
from setl.codec.binlog.transactions.transaction_bounds import TransactionBounds
from setl.codec.sql.folded_names import with_folded_names
from setl.codec.sql.statement import (
    Statement,
    StatementKind,
    parse_statement,
    quoting_of,
)
from setl.codec.sql.tokens import Quoting
from setl.model.entry import Entry, EntryKind
from setl.model.session import StatementSession

_COMMON: Final = {
    "BEGIN": Statement(StatementKind.BEGIN),
    "COMMIT": Statement(StatementKind.COMMIT),
}
_NO_SESSION: Final = StatementSession()


class Begin(Protocol):
    """Begins a transaction with this event, if none is open."""

    def __call__(self, event: bytes, seconds: int, /, *, xa: bool) -> Sequence[Entry]:
        """Returns the entries that are complete with it."""
        ...


class StreamStatements:
    """Reads the QUERY events of one stream.

    Attributes:
        mariadb: whether MariaDB wrote the binlog.
    """

    def __init__(
        self,
        position: StreamPosition,
        bounds: TransactionBounds,
        prepared: PreparedTransactions,
        begin: Begin,
        *,
        folds_names: bool,
    ) -> None:
        """Nothing is read yet.

        Args:
            position: where the stream is, behind the event that is read.
            bounds: the transaction that it is in.
            prepared: its XA transactions.
            begin: begins a transaction.
            folds_names: see `BinlogHeaderReader`.
        """
        self.mariadb = False
        self._position = position
        self._bounds = bounds
        self._prepared = prepared
        self._begin = begin
        self._as_named = with_folded_names if folds_names else _as_written

    def read(self, event: bytes, seconds: int, *, checksum: bool) -> Sequence[Entry]:
        """The entries that are complete with a statement.

        Args:
            event: the QUERY event.
            seconds: when it was written.
            checksum: whether its last four bytes are a checksum.

        Raises:
            FatalError: it cannot be replicated.
            LookupError, ValueError, struct.error: the event is damaged.
        """
        schema, text = parse_query(event, checksum=checksum)
        statement = _COMMON.get(text)
        session = _NO_SESSION
        if statement is None:
            session = parse_session(event, mariadb=self.mariadb)
            quoting = quoting_of(session)
            text = self._as_named(text, quoting)
            statement = parse_statement(text, schema, quoting)
        entries: Sequence[Entry] = ()
        match statement.kind:
            case StatementKind.BEGIN | StatementKind.XA_START:
                entries = self._begin(event, seconds, xa=statement.kind is StatementKind.XA_START)
            case StatementKind.COMMIT | StatementKind.XA_COMMIT:
                entries = self._bounds.commit(seconds)
            case StatementKind.ROLLBACK:
                entries = self._bounds.rollback(seconds, text)
            case StatementKind.SAVEPOINT:
                self._bounds.savepoint(statement.name)
            case StatementKind.ROLLBACK_TO_SAVEPOINT:
                self._bounds.rollback_to(statement.name, text)
            case StatementKind.DDL if not self._bounds.announced:
                entries = self._ddl(statement, session, text, seconds)
            case StatementKind.UNKNOWN:
                raise unknown_statement(schema, text, self._position.position)
            case StatementKind.ROWS:
                entries = self._rows(session, text, seconds)
            case StatementKind.XA_ROLLBACK:
                entries = self._xa_rollback(seconds, text)
            case StatementKind.HARMLESS | StatementKind.DDL if not self._bounds.is_open:
                entries = (self._bounds.end(EntryKind.HEARTBEAT, seconds),)
            case _:
                pass
        return entries

    def _rows(self, session: StatementSession, text: str, seconds: int) -> Sequence[Entry]:
        entry = Entry(
            EntryKind.STATEMENT,
            self._position.inside,
            float(seconds),
            session.schema,
            transaction=self._bounds.transaction,
            statement=text,
            session=session,
        )
        if self._bounds.is_open:
            return self._bounds.emit(entry)
        return (entry, self._bounds.end(EntryKind.COMMIT, seconds))

    def _ddl(
        self, statement: Statement, session: StatementSession, text: str, seconds: int
    ) -> Sequence[Entry]:
        schema, table = statement.tables[0] if statement.tables else (session.schema, "")
        # CREATE TABLE ... SELECT stands inside a transaction, whose rows follow.
        transaction = self._bounds.transaction
        if not self._bounds.is_open:
            self._bounds.end(EntryKind.DDL, seconds)
        position = self._position.inside if self._bounds.is_open else self._position.position
        return self._bounds.emit(
            Entry(
                EntryKind.DDL,
                position,
                float(seconds),
                schema,
                table,
                transaction,
                statement=text,
                session=session,
            )
        )

    def _xa_rollback(self, seconds: int, text: str) -> Sequence[Entry]:
        if self._bounds.is_open or self._prepared.takes_back(text, self._position.position):
            raise taken_back(text, self._position.position, self._bounds.transaction)
        return (self._bounds.end(EntryKind.COMMIT, seconds),)


def _as_written(text: str, _: Quoting) -> str:
    return text
