"""What a record of a topic is and where it belongs, in formats whose records stand alone."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from setl.codec.sql.statement import parse_statement
from setl.errors import DataError
from setl.model.entry import EntryKind


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


class HeaderReader(Protocol):
    """Reads the headers of one format; each from its record alone."""

    def read(self, key: bytes | None, value: bytes | None) -> RecordHeader:
        """The header of a record.

        Raises:
            DataError: it is no record of this format.
        """
        ...


def ddl_header(statement: str, schema: str, table: str, seconds: int) -> RecordHeader:
    """The header of a schema change.

    Raises:
        DataError: it names no schema for its table, so that nobody could tell whose it is.
    """
    tables = parse_statement(statement, schema).tables
    if any(not named for named, _ in tables):
        raise DataError(f"DDL that names no schema for its table: {statement[:200]}")
    if tables and not table:
        schema, table = tables[0]
    return RecordHeader(EntryKind.DDL, seconds, schema, table, operation="DDL", statement=statement)
