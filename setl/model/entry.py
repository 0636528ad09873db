"""Entries: records of the source stream as Select sees them, headers read, rows undecoded."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from setl.model.position import Position
from setl.model.session import StatementSession


class EntryKind(Enum):
    """What a record of the stream is."""

    BEGIN = "begin"
    ROWS = "rows"
    COMMIT = "commit"
    DDL = "ddl"
    STATEMENT = "statement"  # changes rows, and was logged in their place
    HEARTBEAT = "heartbeat"


class Entry(NamedTuple):
    """One record of the source stream, or a run: rows records of one table that follow each other.

    A NamedTuple, since one is made for every record but those of runs.

    Attributes:
        kind: what it is.
        position: where the stream goes on after it; of a run, after its last record.
        timestamp: when the source committed it, seconds since 1970 UTC (whole seconds both in
            MySQL's binlog and in DTS).
        schema: schema (database) of the rows or the DDL, of a STATEMENT the session's; "" where
            there is none.
        table: table of the rows, "" where there is none.
        transaction: GTID of the transaction it belongs to, "" if unknown.
        rows: number of row changes in it; for binlog events an estimate of at least 1, since
            the exact number takes decoding.
        payload: the record's bytes as they came, those of a run one behind the other (see
            `setl.codec.row_codec.RowCodec.records`); rows are decoded from it in Spark tasks. Of a
            BEGIN in a binlog, the event, which says who wrote the transaction; else empty.
        context: other bytes that decoding needs, shared between entries (binlog: the
            FORMAT_DESCRIPTION and TABLE_MAP events).
        statement: the text of DDL or of a STATEMENT, else "".
        session: of these, the session that ran it, as far as the stream tells; else None.
    """

    kind: EntryKind
    position: Position
    timestamp: float
    schema: str = ""
    table: str = ""
    transaction: str = ""
    rows: int = 0
    payload: bytes = b""
    context: tuple[bytes, ...] = ()
    statement: str = ""
    session: StatementSession | None = None

    @property
    def default_schema(self) -> str:
        """Of DDL and statements, the schema of names without one."""
        return self.schema if self.session is None else self.session.schema
