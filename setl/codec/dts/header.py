"""Reads what a DTS record is and where it belongs, without decoding its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from setl.codec.dts.wire import MALFORMED, is_whole_record, read_common, read_front, read_tagged
from setl.codec.sql.statement import parse_statement
from setl.errors import DataError
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition
from setl.model.session import StatementSession

_ROWS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "INIT"})

# Operations that only say that the stream is alive, or that belong to sources other than
# databases with rows; the position moves past them.
_IDLE: Final = frozenset(
    {"HEARTBEAT", "CHECKPOINT", "NOOP", "COMMAND", "FILL", "FINISH", "CONTROL", "RDB"}
)
_ENDS: Final = frozenset({"COMMIT", "ROLLBACK", "ABORT"})

MOCK_BYTES: Final = 48
"""DTS replaces records that a subscription filters out by fillers of at most this size."""

FULL_LOAD: Final = "INIT"
"""`Entry.statement` of a row of a full load, which was read from its table and not changed."""

_SCHEMA_TAG: Final = "l_db_name"
_TABLE_TAG: Final = "l_tb_name"
TABLE_TAG_BYTES: Final = _TABLE_TAG.encode()
"""What the bytes of a row with a logical name hold, and perhaps those of others."""

LOGICAL_TAGS: Final = (_SCHEMA_TAG, _TABLE_TAG)
"""The tags by which a row is of another table than ``objectName`` says, see `row_name`."""

_ESCAPED_DOT: Final = "\\u002E"  # six characters, inside a part of objectName
MAX_NAMES: Final = 4096

_names: dict[str, tuple[str, str]] = {}


def read_header(value: bytes, position: KafkaPosition, *, logical_names: bool = True) -> Entry:
    """Read the front of one Kafka value.

    Rows cost 5 to 10 µs whatever their width; BEGIN is read up to its tags, since the GTID is
    there and nowhere else, and DDL is read in full.

    Args:
        value: the record's value; empty for a record without one.
        position: the position after the record. If its timestamp is 0, the entry's position has
            the record's own.
        logical_names: see `row_name`.

    Returns:
        The entry, with `value` as payload of rows. INIT (a row of a full load) is a rows
        entry with that word as `statement`. DDL names only a schema; its table is the first one
        in the statement, "" if there is none. ROLLBACK and ABORT are COMMIT entries with that
        word as `statement`: what is right then depends on the rows before it, see
        `setl.codec.dts.header_reader`. Fillers and everything that carries no change are
        heartbeats, so that the position moves on.

    Raises:
        DataError: the bytes are no DTS record.
    """
    try:
        front = read_front(value)
        operation: str = front["operation"]
        seconds: int = front["sourceTimestamp"]
        name: str | None = front["objectName"]
    except MALFORMED as error:
        return _unreadable(value, position, error)
    if len(value) <= MOCK_BYTES and not is_whole_record(value):
        return _heartbeat(position, 0)
    position = timed(position, seconds)
    if operation in _ROWS:
        if not name:
            raise _malformed(position, f"a record of operation {operation} names no table")
        if logical_names and TABLE_TAG_BYTES in value:  # as a tag, or in a value of the row
            schema, table = row_name(name, _tags(value, position))
        else:
            schema, table = _names.get(name) or split_name(name)
        mark = FULL_LOAD if operation == FULL_LOAD else ""
        return Entry(
            EntryKind.ROWS, position, float(seconds), schema, table, "", 1, value, (), mark
        )
    return _bare(operation, value, position, seconds, logical_names=logical_names)


def _bare(
    operation: str, value: bytes, position: KafkaPosition, seconds: int, *, logical_names: bool
) -> Entry:
    """The entry of a record without rows."""
    if operation == "BEGIN":
        gtid = _tags(value, position).get("GTID", "")
        return Entry(EntryKind.BEGIN, position, float(seconds), transaction=gtid)
    if operation in _ENDS:
        statement = "" if operation == "COMMIT" else operation
        return Entry(EntryKind.COMMIT, position, float(seconds), statement=statement)
    if operation == "DDL":
        return _ddl(value, position, logical_names=logical_names)
    if operation in _IDLE:
        return _heartbeat(position, seconds)
    raise _malformed(position, f"unknown operation {operation}")


def timed(position: KafkaPosition, seconds: int) -> KafkaPosition:
    """The position, with a record's own time if it has none."""
    if position.timestamp:
        return position
    return KafkaPosition(
        position.topic,
        position.partition,
        position.offset,
        seconds,
        position.record,
        position.origin,
    )


def row_name(name: str, tags: Mapping[str, str]) -> tuple[str, str]:
    """Schema and table of a row as its mapping means them.

    DRDS and PolarDB-X split a table over many databases. ``objectName`` is then one of the parts,
    and two tags tell the logical name, that of the table that people know. Records of other
    sources have no such tags.
    """
    schema, table = _names.get(name) or split_name(name)
    logical = tags.get(_TABLE_TAG)
    return (tags.get(_SCHEMA_TAG) or schema, logical) if logical else (schema, table)


def split_name(name: str) -> tuple[str, str]:
    r"""``objectName`` as schema and table.

    One part is a schema, two are schema and table. Sources that have schemas inside databases
    write three; the last two together are then the table. A dot inside a part is written as
    the six characters ``\u002E``, also at the very end.
    """
    schema, _, table = name.partition(".")
    parts = schema.replace(_ESCAPED_DOT, "."), table.replace(_ESCAPED_DOT, ".")
    if len(_names) >= MAX_NAMES:
        _names.clear()
    _names[name] = parts
    return parts


def _tags(value: bytes, position: KafkaPosition) -> dict[str, str]:
    try:
        return read_tagged(value)["tags"]
    except MALFORMED as error:
        raise _malformed(position, str(error)) from error


def _ddl(value: bytes, position: KafkaPosition, *, logical_names: bool) -> Entry:
    try:
        record: dict[str, Any] = read_common(value)
    except MALFORMED as error:
        raise _malformed(position, str(error)) from error
    statement = record["afterImages"]
    if not isinstance(statement, str):
        raise _malformed(position, "a DDL record has no statement")
    tags: dict[str, str] = record["tags"]
    schema, table = row_name(record["objectName"] or "", tags if logical_names else {})
    session = StatementSession(schema)
    tables = parse_statement(statement, schema).tables
    if any(not named for named, _ in tables):
        # Whether it is of a mapped table nobody could tell, and it would be left out in silence.
        raise _malformed(position, f"DDL that names no schema for its table: {statement[:200]}")
    if tables and not table:
        schema, table = tables[0]
    return Entry(
        EntryKind.DDL,
        position,
        float(record["sourceTimestamp"]),
        schema,
        table,
        tags.get("GTID", ""),
        statement=statement,
        session=session,
    )


def _heartbeat(position: KafkaPosition, seconds: int) -> Entry:
    return Entry(EntryKind.HEARTBEAT, position, float(seconds))


def _unreadable(value: bytes, position: KafkaPosition, error: BaseException) -> Entry:
    if len(value) <= MOCK_BYTES:
        return _heartbeat(position, 0)
    raise _malformed(
        position, f"{len(value)} bytes, {str(error) or type(error).__name__}"
    ) from error


def _malformed(position: KafkaPosition, reason: str) -> DataError:
    # The position is the position after the record; people look for the record itself.
    return DataError(
        f"not a DTS record: {reason}",
        hint="Check that the topic is the subscription's and holds nothing else",
        position=f"{position.topic}[{position.partition}]@{position.offset - 1}",
    )
