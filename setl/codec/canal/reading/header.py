"""Reads what a flat message of Canal is and where it belongs."""

from __future__ import annotations

from typing import Any, Final, cast

from setl.codec.record_header import RecordHeader, ddl_header
from setl.codec.record_json import UNREADABLE, parsed, shape_of
from setl.errors import DataError
from setl.model.entry import EntryKind

_XA_ROLLBACK: Final = "XAROLLBACK"  # of rows that Canal wrote when they were prepared

ROWS: Final = frozenset({"INSERT", "UPDATE", "DELETE"})
"""Types of messages with rows."""

NOT_FLAT: Final = (
    "setl reads Canal's flat messages: set `canal.mq.flatMessage = true` in canal.properties"
)


class CanalHeaderReader:
    """A `setl.codec.record_header.HeaderReader`."""

    def read(self, key: bytes | None, value: bytes | None) -> RecordHeader:  # noqa: ARG002
        """The header of a message; what it says of its rows is left to tasks.

        A message of a type for rows that has none but a statement is of a session that logs
        statements. Others without rows change nothing: statements that rows follow, heartbeats.

        Raises:
            DataError: it is none of Canal.
        """
        if value is None:
            return RecordHeader(EntryKind.HEARTBEAT, operation="TOMBSTONE")
        message = read_message(value)
        type_, schema, table = message["type"], _text(message, "database"), _text(message, "table")
        seconds, sql = _seconds(message.get("es")), _text(message, "sql")
        if message.get("isDdl") or type_ == _XA_ROLLBACK:
            return ddl_header(sql, schema, table, seconds)
        if type_ not in ROWS:
            return RecordHeader(EntryKind.HEARTBEAT, seconds, operation=type_)
        rows = message.get("data")
        if not rows:
            kind = EntryKind.STATEMENT if sql else EntryKind.HEARTBEAT
            return RecordHeader(
                kind,
                seconds,
                schema,
                operation="STATEMENT" if sql else type_,
                statement=sql,
                default_schema=schema,
            )
        if not isinstance(rows, list) or not (schema and table):
            raise DataError("rows of a flat message of Canal that cannot be understood")
        count = len(cast("list[object]", rows))
        return RecordHeader(EntryKind.ROWS, seconds, schema, table, type_, rows=count)


def read_message(value: bytes) -> dict[str, Any]:
    """A flat message.

    Raises:
        DataError: it is none.
    """
    try:
        found = parsed(value)
    except UNREADABLE as error:
        reason = str(error) if value[:1] == b"{" else shape_of(value)
        raise DataError(f"not a flat message of Canal: {reason}", hint=NOT_FLAT) from error
    if isinstance(found, dict):
        message = cast("dict[str, Any]", found)
        if isinstance(message.get("type"), str) and "database" in message and "isDdl" in message:
            return message
    raise DataError("JSON that is no flat message of Canal", hint=NOT_FLAT)


def _text(message: dict[str, Any], name: str) -> str:
    found = message.get(name)
    return found if isinstance(found, str) else ""


def _seconds(milliseconds: object) -> int:
    return milliseconds // 1000 if type(milliseconds) is int and milliseconds > 0 else 0
