"""Reads what a DTS record is and where it belongs, without decoding its row (DESIGN §4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from setl.codec.dts.middle import operation_at, source_end
from setl.codec.dts.scan import MISREADS, extent_at, places_end, seconds_of
from setl.codec.dts.wire import MALFORMED, is_whole_record, read_common, read_front, read_tagged
from setl.codec.sql.statement import parse_statement
from setl.errors import DataError, FatalError
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

# INSERT, UPDATE and DELETE as they stand in the bytes, and what stands before a table's name.
_CHANGES: Final = frozenset({0, 2, 4})
_NAMED: Final = 2

MOCK_BYTES: Final = 48
"""DTS replaces records that a subscription filters out by fillers of at most this size."""

FULL_LOAD: Final = "INIT"
"""`Entry.statement` of a row of a full load, which was read from its table and not changed."""

_SCHEMA_TAG: Final = "l_db_name"
_TABLE_TAG: Final = "l_tb_name"
_TABLE_TAG_BYTES: Final = _TABLE_TAG.encode()

LOGICAL_TAGS: Final = (_SCHEMA_TAG, _TABLE_TAG)
"""The tags by which a row is of another table than ``objectName`` says, see `row_name`."""

# Offsets after which a full load without transactions may resume, so that the checkpoint moves
# on though no COMMIT comes. Multiples, so that reading again finds the same boundaries.
_LOADED_TOGETHER: Final = 512

_ESCAPED_DOT: Final = "\\u002E"  # six characters, inside a part of objectName
_NAMES_KEPT: Final = 4096

_names: dict[str, tuple[str, str]] = {}


def read_header(value: bytes, position: KafkaPosition, *, logical_names: bool = True) -> Entry:
    """Read the front of one Kafka value.

    Rows cost 5 to 10 µs whatever their width; BEGIN is read up to its tags, since the GTID is
    there and nowhere else, and DDL is read in full.

    Args:
        value: the record's value; empty for a record without one.
        position: the place after the record. If its timestamp is 0, the entry's position has
            the record's own.
        logical_names: see `row_name`.

    Returns:
        The entry, with `value` as payload of rows. INIT (a row of a full load) is a rows
        entry with that word as `statement`. DDL names only a schema; its table is the first one
        in the statement, "" if there is none. ROLLBACK and ABORT are COMMIT entries with that
        word as `statement`: what is right then depends on the rows before it, see
        `DtsHeaderReader`. Fillers and everything that carries no change are heartbeats, so that
        the position moves on.

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
    position = _timed(position, seconds)
    if operation in _ROWS:
        if not name:
            raise _malformed(position, f"a record of operation {operation} names no table")
        if logical_names and _TABLE_TAG_BYTES in value:  # as a tag, or in a value of the row
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


class DtsHeaderReader:
    """Reads the headers of one partition in order, and refuses what cannot be replicated.

    `read_header` looks at one record alone. A ROLLBACK or ABORT takes back rows that were
    delivered before it, and those may be applied already.

    Rows of a full load come without BEGIN and COMMIT, for hours. They were read from a table, so
    they belong to no transaction, neither to one that stands open before them nor to what
    follows. `boundary` says so where the stream does not, and now and then among them.

    Attributes:
        boundary: whether a transaction ends between the record that was read last and the one
            before it, though no record says so.
    """

    def __init__(self, *, logical_names: bool = True) -> None:
        """Start between two transactions; see `row_name` for the names."""
        self.boundary = False
        self._logical_names = logical_names
        self._rows = 0  # since the last boundary
        self._begun = False  # whether a BEGIN stands before them
        self._loading = False  # whether the record before is a row of a full load
        self._loaded = 0  # which of those that are loaded together it is one of
        self._same: _Same | None = None  # what a row behind the one before begins with
        self._tables: dict[bytes, tuple[str, str]] = {}  # by ``objectName`` as it stands

    def read(self, value: bytes, position: KafkaPosition) -> Entry:
        """The next record's entry; see `read_header`.

        Raises:
            DataError: the bytes are no DTS record.
            FatalError: a transaction ends with ROLLBACK or ABORT after rows.
        """
        entry = read_header(value, position, logical_names=self._logical_names)
        self.boundary = False
        loaded = entry.statement == FULL_LOAD and entry.kind is EntryKind.ROWS and not self._begun
        if loaded or self._loading:
            self._full_load(entry, loaded=loaded)
        self._same = None
        if entry.kind is EntryKind.ROWS:
            self._rows += 1
            if not entry.statement:
                self._remember(value, entry)
        elif entry.kind is not EntryKind.HEARTBEAT:
            if entry.kind is EntryKind.COMMIT and entry.statement and self._rows:
                raise FatalError(
                    f"the source took back ({entry.statement}) a transaction of {self._rows} rows "
                    "that it had already delivered",
                    hint="Compare source and target, then move the position past it",
                    position=position,
                )
            self._rows = 0
            self._begun = entry.kind is EntryKind.BEGIN
            if self._begun:
                self._same = _same_as(value)
        return entry

    def table_of_row(self, value: bytes) -> tuple[str, str] | None:
        """Schema and table of the next record, if it is a row like the one before.

        That is one of the same transaction and second, and of a table of which a row was read
        before; it then counts as read. The one before may also be the transaction's BEGIN. So its
        kind and its time are known, and nobody needs an entry of it alone. None for anything else,
        and nothing is changed then: `read` has to say what it is. Rows of full loads, and of
        tables with logical names, are never told so.

        This is what is done with nearly every record of a topic: bytes are compared, 1 µs.
        """
        same = self._same
        if same is None or len(value) <= MOCK_BYTES:
            return None
        try:
            at = places_end(value, 0, same.seconds)
            if not value.startswith(same.origin, at):
                return None
            at += len(same.origin)
            if value[at] not in _CHANGES or value[at + 1] != _NAMED:
                return None
            size = value[at + 2]
            # 0x81: more bytes of the length follow, or it is negative.
            end = extent_at(value, at + 2)[1] if size & 0x81 else at + 3 + (size >> 1)
        except MISREADS:
            return None
        table = self._tables.get(value[at + 1 : end])
        if table is None or (self._logical_names and _TABLE_TAG_BYTES in value):
            return None
        self._rows += 1
        return table

    def _remember(self, value: bytes, entry: Entry) -> None:
        """Remember what the records of rows like this one have in common, if it can be told."""
        self._same = _same_as(value)
        # A value of a row may hold the tag, too.
        if self._same is None or (self._logical_names and _TABLE_TAG_BYTES in value):
            return
        begin = places_end(value)
        operation, end = source_end(value, begin), operation_at(value, begin)[2]
        if len(self._tables) >= _NAMES_KEPT:
            self._tables.clear()
        self._tables[value[operation + 1 : end]] = entry.schema, entry.table

    def _full_load(self, entry: Entry, *, loaded: bool) -> None:
        """Take in the first or a further row of a full load, or what follows the last one."""
        together = _together(entry)
        if self._loading and loaded:
            self.boundary = self._loaded != together
        else:
            # Rows that no COMMIT has ended are of a transaction that has ended all the same.
            self.boundary = self._rows > 0
        if self.boundary:
            self._rows = 0
        self._loading, self._loaded = loaded, together


class _Same(NamedTuple):
    """Bytes that the records of a transaction's rows have in common.

    Attributes:
        seconds: ``sourceTimestamp``.
        origin: ``sourceTxid`` and ``source``, which the operation follows.
    """

    seconds: bytes
    origin: bytes


def _same_as(value: bytes) -> _Same | None:
    """What rows of the transaction and second of a record begin with; None if it is unusual."""
    try:
        begin = places_end(value)
        operation_at(value, begin)
        return _Same(seconds_of(value), value[begin : source_end(value, begin)])
    except MISREADS:
        return None


def _timed(position: KafkaPosition, seconds: int) -> KafkaPosition:
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


def _together(entry: Entry) -> int:
    """The same number for records of a full load between which there is no boundary."""
    return (entry.position.order[1] - 1) // _LOADED_TOGETHER


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
    if len(_names) >= _NAMES_KEPT:
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
    # The position is the place after the record; people look for the record itself.
    return DataError(
        f"not a DTS record: {reason}",
        hint="Check that the topic is the subscription's and holds nothing else",
        position=f"{position.topic}[{position.partition}]@{position.offset - 1}",
    )
