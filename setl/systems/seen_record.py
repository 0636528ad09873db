"""One record of a stream as `setl peek` shows it, and the filter for records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setl.channel.names.patterns import TablePattern
from setl.codec.dts.envelope import FILLER, Envelope
from setl.codec.sql.statement import parse_statement
from setl.model.position import Position
from setl.model.typed import TypedChange

UNREADABLE = "UNREADABLE"
"""Stands as the operation of bytes that are no record, or hold a row that cannot be decoded."""

_OWN_SCHEMA = "retl"


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """A record, or one row of an event of a binlog that changes several.

    Attributes:
        position: in Kafka the record's own; in a binlog the position behind its event, which is
            what ``mysqlbinlog`` calls ``end_log_pos``.
        operation: INSERT, UPDATE, DELETE, INIT (a row of a full load), DDL, BEGIN, COMMIT,
            HEARTBEAT or what else DTS has; `FILLER`; `UNREADABLE`.
        timestamp: when the source committed it, seconds since 1970 UTC; 0 if it does not say.
        schema: of the row or the DDL, "" where there is none.
        table: likewise.
        transaction: GTID of its transaction, "" if unknown.
        size: bytes; 0 if unknown.
        change: the row; None if there is none.
        statement: the text of DDL, else "".
        problem: why it cannot be read, else "".
        payload: the bytes of what cannot be read, else nothing.
        envelope: what else a DTS record says; None for a binlog.
        headers: of the Kafka record.
        written: when Kafka took it, seconds since 1970 UTC; 0 for a binlog.
    """

    position: Position
    operation: str
    timestamp: float = 0.0
    schema: str = ""
    table: str = ""
    transaction: str = ""
    size: int = 0
    change: TypedChange | None = None
    statement: str = ""
    problem: str = ""
    payload: bytes = b""
    envelope: Envelope | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    written: float = 0.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records are shown.

    Attributes:
        tables: only rows and DDL of these tables; empty for all.
        everything: also what changes nothing: BEGIN, COMMIT, heartbeats, fillers; and the rows of
            setl's own tables.
        since: only what was committed at or after this time, seconds since 1970 UTC.
    """

    tables: Sequence[TablePattern] = ()
    everything: bool = False
    since: float = 0.0

    def shows(self, record: SeenRecord) -> bool:
        """Whether a record is wanted. What cannot be read always is: it may be anything."""
        if record.operation == UNREADABLE:
            return True
        if record.timestamp < self.since:
            return False
        if record.change is not None:
            named = (record.schema, record.table)
            return self._named([named]) if self.tables else self._is_foreign([named])
        if record.operation == "DDL":
            touched = _tables_of(record)
            return self._named(touched) if self.tables else self._is_foreign(touched)
        return self.everything

    def _is_foreign(self, tables: Sequence[tuple[str, str]]) -> bool:
        """Whether tables are more than what setl itself writes to: marks, epochs, signs of life."""
        return self.everything or any(schema != _OWN_SCHEMA for schema, _ in tables)

    def _named(self, tables: Sequence[tuple[str, str]]) -> bool:
        return any(p.match(*table) is not None for p in self.tables for table in tables)


def _tables_of(record: SeenRecord) -> Sequence[tuple[str, str]]:
    """The tables that DDL touches."""
    found = parse_statement(record.statement, record.schema).tables
    return found or [(record.schema, record.table)]


__all__ = ["FILLER", "UNREADABLE", "SeenRecord", "Wanted"]
