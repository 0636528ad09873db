"""What a record of a topic is and where it belongs, in formats whose records stand alone."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from setl.codec.sql.statement import StatementKind, parse_statement, table_ddl
from setl.codec.sql.table_ddl import Role
from setl.errors import DataError
from setl.model.entry import EntryKind
from setl.model.session import StatementSession

_ROLLBACKS: Final = frozenset(
    {StatementKind.ROLLBACK, StatementKind.ROLLBACK_TO_SAVEPOINT, StatementKind.XA_ROLLBACK}
)


class RecordHeader(NamedTuple):
    """One record without its rows.

    Attributes:
        kind: ROWS, DDL or STATEMENT; HEARTBEAT for what changes nothing.
        seconds: when the source committed it, seconds since 1970 UTC; 0 if it does not say.
        schema: of the rows, the DDL or the statement; "" where there is none.
        table: likewise.
        operation: what people call it, such as INSERT or TOMBSTONE.
        rows: changes of rows in it.
        statement: the text of DDL or of a statement, else "".
        deletes: whether it deletes the row that the record's key names.
        tombstone: whether it only repeats, for the brokers, that this row is deleted.
        default_schema: of DDL and statements, the schema of names without one; "" if the record
            does not tell, or there is no such name.
    """

    kind: EntryKind
    seconds: int = 0
    schema: str = ""
    table: str = ""
    operation: str = "HEARTBEAT"
    rows: int = 0
    statement: str = ""
    deletes: bool = False
    tombstone: bool = False
    default_schema: str = ""


class HeaderReader(Protocol):
    """Reads the headers of one format; each from its record alone."""

    def read(self, key: bytes | None, value: bytes | None) -> RecordHeader:
        """The header of a record.

        Raises:
            DataError: it is no record of this format.
        """
        ...


def ddl_header(
    statement: str, schema: str, table: str, seconds: int, *, of_session: bool = False
) -> RecordHeader:
    """The header of what a record calls a schema change.

    Debezium and Canal say which schema the changed table is in, and not which one the session had.
    These are the same where the statement names no schema at all. If it names some, what the
    others are in nobody knows; see `setl.codec.sql.statement.tables_without_schema`.

    Args:
        statement: its text.
        schema: of its table.
        table: its table, "" to take the first one that it names.
        seconds: when it was committed, see `RecordHeader`.
        of_session: whether `schema` is the default one of the session that ran it.

    Raises:
        DataError: it names no schema for its table, so that nobody could tell whose it is; or it
            takes back rows that are in the topic.
    """
    kind, tables, _ = parse_statement(statement, schema)
    if kind in _ROLLBACKS:
        raise DataError(
            f"a transaction was rolled back whose rows the topic may have: {statement[:200]}",
            hint="Go on with `setl position reset PIPELINE --to` the next offset, and compare the"
            " tables with `setl verify --repair`",
        )
    if kind is StatementKind.ROWS:
        return RecordHeader(
            EntryKind.STATEMENT,
            seconds,
            schema,
            operation="STATEMENT",
            statement=statement,
            default_schema=schema,
        )
    if kind not in (StatementKind.DDL, StatementKind.UNKNOWN):
        # Accounts, maintenance, savepoints: no rows and no columns change.
        return RecordHeader(EntryKind.HEARTBEAT, seconds, operation="STATEMENT")
    if any(not named for named, _ in tables):
        raise DataError(f"DDL that names no schema for its table: {statement[:200]}")
    default = schema if of_session or not _names_some_schemas(statement) else ""
    if tables and not table:
        schema, table = tables[0]
    return RecordHeader(
        EntryKind.DDL,
        seconds,
        schema,
        table,
        operation="DDL",
        statement=statement,
        default_schema=default,
    )


def _names_some_schemas(statement: str) -> bool:
    """Whether DDL names a schema for some of its tables, and none for others."""
    ddl = table_ddl(statement, StatementSession())
    names = [] if ddl is None else [n for n in ddl.names if n.role is not Role.REFERENCED]
    return len({bool(name.schema) for name in names}) > 1
