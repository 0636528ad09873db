"""Reads what a record of Debezium is and where it belongs."""

from __future__ import annotations

from typing import Any, Final, cast

from setl.codec.debezium.reading.envelope import Envelopes
from setl.codec.record_header import RecordHeader, ddl_header
from setl.errors import DataError
from setl.model.entry import EntryKind

WRITER: Final = "setl-"
"""How the version begins that relays of setl give in a record's source."""

CONNECTORS: Final = frozenset({"mysql", "mariadb"})
"""Connectors whose records are read; others have other types and names."""

OPERATIONS: Final = {"c": "INSERT", "u": "UPDATE", "d": "DELETE", "r": "READ"}
"""Operations of rows; READ is a row of a snapshot."""

_NOTHING: Final = b'{"schema":null,"payload":null}'
"""What JsonConverter with schemas writes of a tombstone before Kafka 2.4 (KAFKA-3832)."""

_TRUNCATE: Final = "t"
_MESSAGE: Final = "m"
_NO_SNAPSHOT: Final = frozenset({"none", "false", "incremental"})
UNWRAPPED: Final = (
    "Leave the transform ExtractNewRecordState (`unwrap`) out of the connector: without the"
    " envelope a record says neither its table nor what happened to the row"
)


class DebeziumHeaderReader:
    """A `setl.codec.record_header.HeaderReader`."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._envelopes = Envelopes()

    def read(self, key: bytes | None, value: bytes | None) -> RecordHeader:
        """The header of a record; what it says of its row is left to tasks.

        Records that change no row are heartbeats: those of transactions and of heartbeats,
        messages, and the schema changes of a snapshot, which make tables as they are already.

        Raises:
            DataError: it is none of Debezium, or of a connector that is not read.
        """
        if value is None or value == _NOTHING:
            # Without a key there is nothing that brokers could remove.
            keyed = key is not None
            name = "TOMBSTONE" if keyed else "HEARTBEAT"
            return RecordHeader(EntryKind.HEARTBEAT, operation=name, tombstone=keyed)
        said = self._envelopes.parts(value).said
        source, operation = said.get("source"), said.get("op")
        if not isinstance(source, dict):
            return _without_source(said)
        source = cast("dict[str, Any]", source)
        connector = source.get("connector")
        if connector not in CONNECTORS:
            raise DataError(
                f"a record of Debezium's connector {connector!s:.40}, which is not read",
                hint="setl reads the records of the connectors for MySQL and MariaDB",
            )
        seconds = _seconds(source.get("ts_ms"))
        if isinstance(operation, str):
            return _change(operation, source, seconds)
        if "ddl" in said:
            return _ddl(said, source, seconds)
        raise DataError("a record of Debezium without an operation", hint=UNWRAPPED)


def _change(operation: str, source: dict[str, Any], seconds: int) -> RecordHeader:
    if operation == _MESSAGE:
        return RecordHeader(EntryKind.HEARTBEAT, seconds, operation="MESSAGE")
    schema, table = source.get("db"), source.get("table")
    if not (isinstance(schema, str) and isinstance(table, str) and schema and table):
        raise DataError(f"a record of Debezium's operation {operation:.20} names no table")
    if operation == _TRUNCATE:
        name = table.replace("`", "``")
        return ddl_header(f"TRUNCATE TABLE `{name}`", schema, table, seconds)
    name = OPERATIONS.get(operation, "")
    if not name:
        raise DataError(f"a record of Debezium has the unknown operation {operation:.20}")
    return RecordHeader(
        EntryKind.ROWS, seconds, schema, table, name, rows=1, deletes=name == "DELETE"
    )


def _ddl(said: dict[str, Any], source: dict[str, Any], seconds: int) -> RecordHeader:
    statement, schema = said["ddl"], said.get("databaseName") or ""
    snapshot = str(source.get("snapshot", "false")).lower()
    if not isinstance(statement, str) or snapshot not in _NO_SNAPSHOT:
        return RecordHeader(EntryKind.HEARTBEAT, seconds, operation="SCHEMA")
    of_setl = str(source.get("version", "")).startswith(WRITER)
    return ddl_header(statement, str(schema), "", seconds, of_session=of_setl)


def _without_source(said: dict[str, Any]) -> RecordHeader:
    """Records of heartbeats and of transactions have no source."""
    stamp = _seconds(said.get("ts_ms"))
    if said.keys() == {"ts_ms"}:
        return RecordHeader(EntryKind.HEARTBEAT, stamp)
    if said.get("status") in ("BEGIN", "END") and "event_count" in said:
        return RecordHeader(EntryKind.HEARTBEAT, stamp, operation=f"TRANSACTION {said['status']}")
    raise DataError("a record that is none of Debezium, or without its envelope", hint=UNWRAPPED)


def _seconds(milliseconds: object) -> int:
    return milliseconds // 1000 if type(milliseconds) is int and milliseconds > 0 else 0
