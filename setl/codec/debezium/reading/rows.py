"""Decodes the rows of Debezium's records."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from typing_extensions import override

from setl.codec.debezium.reading.columns import RecordColumn, columns_of, defaulted_columns
from setl.codec.debezium.reading.envelope import NO_JSON, Envelopes
from setl.codec.debezium.reading.header import OPERATIONS, UNWRAPPED
from setl.codec.json_rows import JsonRowCodec
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, Value
from setl.model.schema import RowSchema

_MAX_TABLES: Final = 256
_MAX_SCHEMAS: Final = 16  # of a table, by their keys
_NO_SCHEMA: Final = (
    "Set `value.converter.schemas.enable=true` for the connector (JsonConverter): without it"
    " records do not say whether a number is a date, a time or a number, nor which text is binary"
)
_UNSEEN: Final = "__debezium_unavailable_value"
"""What stands for a TEXT that the binlog lacks, the default of `unavailable.value.placeholder`."""

_UNSEEN_BYTES: Final = b64encode(_UNSEEN.encode()).decode()
_MARK: Final = _UNSEEN.encode()
_MARK_OF_BYTES: Final = _UNSEEN_BYTES.rstrip("=").encode()  # some writers escape the last character

_ROUTED: Final = "__dbz__physicalTableIdentifier"  # what ByLogicalTableRouter adds to a key
_KEY_HINT: Final = (
    "The key must name the columns of the row's primary key: see `key.converter` and"
    " `message.key.columns` of the connector, and its transforms"
)


class _Table(NamedTuple):
    """A table by one schema.

    Attributes:
        before: columns of the row before a change.
        after: of the row after it; the same.
        schemas: the row's schema for each key.
    """

    columns: tuple[RecordColumn, ...]
    schemas: dict[tuple[str, ...], RowSchema]


class DebeziumRowCodec(JsonRowCodec):
    """Decodes records whose header is one of `setl.codec.debezium.reading.header`.

    What a column is, the record's schema says (I22), and what identifies a row, its key. Columns
    that the connector did not see, as with ``binlog_row_image=NOBLOB``, are `RowSchema.unlogged`.
    """

    def __init__(self) -> None:
        """Know no table yet."""
        self._envelopes = Envelopes()
        self._keys = Envelopes()
        self._tables: dict[tuple[str, str, bytes], _Table] = {}

    @override
    def is_insert(self, glance: bytes) -> bool:
        return b'"op":"r"' in glance or b'"op":"c"' in glance

    @override
    def decode_record(self, key: bytes | None, value: bytes) -> DecodedRows:
        schema, said, known_by = self._envelopes.parts(value)
        source = said.get("source")
        if not isinstance(source, dict):
            raise DataError("a record of Debezium without its source", hint=UNWRAPPED)
        source = cast("dict[str, Any]", source)
        name = str(source.get("db")), str(source.get("table"))
        if schema is None:
            error = DataError("a record of Debezium without a schema", hint=_NO_SCHEMA)
            raise error.at(table=".".join(name))
        try:
            table = self._table(name, schema, known_by)
            # Most records have none, which their bytes tell sooner than a look at each value.
            begin = len(known_by) if value.startswith(known_by) else 0
            marked = value.find(_MARK, begin) >= 0 or value.find(_MARK_OF_BYTES, begin) >= 0
            return self._decoded(name, table, self._key_of(key), said, marked=marked)
        except DataError as error:
            raise error.at(table=".".join(name)) from error.__cause__

    @override
    def defaulted(self, value: bytes) -> Mapping[str, bool]:
        schema, said, _ = self._envelopes.parts(value)
        row: object = said.get("after") or said.get("before")
        if schema is None or not isinstance(row, dict):
            return {}
        values = cast("dict[str, Any]", row)
        return {name: values.get(name) is None for name in defaulted_columns(_row_fields(schema))}

    def _decoded(
        self,
        name: tuple[str, str],
        table: _Table,
        key: tuple[str, ...],
        said: dict[str, Any],
        *,
        marked: bool,
    ) -> DecodedRows:
        operation = OPERATIONS.get(str(said.get("op")))
        before, after = said.get("before"), said.get("after")
        unseen: frozenset[str] = frozenset()
        if marked:
            unseen = frozenset(_unseen(before) + _unseen(after)).difference(key)
        if unseen:
            seen = tuple([each for each in table.columns if each.column.name not in unseen])
            row_schema = replace(_row_schema(name, seen, key), unlogged=tuple(sorted(unseen)))
            table = _Table(seen, {key: row_schema})
        row_schema = table.schemas.get(key)
        if row_schema is None:
            if len(table.schemas) >= _MAX_SCHEMAS:
                table.schemas.clear()
            row_schema = table.schemas[key] = _row_schema(name, table.columns, key)
        if operation == "DELETE":
            if before is None:
                raise DataError("a deleted row of which the record does not say what it was")
            return DecodedRows(row_schema, Op.DELETE, [(_row(table.columns, before), None)])
        if operation is None or after is None:
            raise DataError("a record of Debezium without the row after its change")
        row = _row(table.columns, after)
        if operation == "UPDATE" and before is not None:
            return DecodedRows(row_schema, Op.UPDATE, [(_row(table.columns, before), row)])
        # Without the row before it, an update has its whole new row, under the same key.
        return DecodedRows(row_schema, Op.INSERT, [(None, row)])

    def _table(self, name: tuple[str, str], schema: dict[str, Any], known_by: bytes) -> _Table:
        table = self._tables.get((*name, known_by))
        if table is None:
            if len(self._tables) >= _MAX_TABLES:
                self._tables.clear()
            table = _Table(columns_of(_row_fields(schema)), {})
            self._tables[(*name, known_by)] = table
        return table

    def _key_of(self, key: bytes | None) -> tuple[str, ...]:
        """The columns that the record's key names; none without a key."""
        if key is None:
            return ()
        try:
            said = self._keys.parts(key).said
        except DataError as error:
            error.hint = NO_JSON
            error.message = f"the record's key: {error.message}"
            raise
        return tuple([name for name in said if name != _ROUTED])


def _row_fields(schema: dict[str, Any]) -> object:
    """The fields of the row after a change, which are those of the row before it."""
    fields = schema.get("fields")
    for field in cast("list[object]", fields) if isinstance(fields, list) else ():
        if isinstance(field, dict):
            given = cast("dict[str, Any]", field)
            if given.get("field") == "after":
                return given.get("fields")
    raise DataError("the schema of a record of Debezium has no row after a change", hint=UNWRAPPED)


def _row_schema(
    name: tuple[str, str], columns: tuple[RecordColumn, ...], key: tuple[str, ...]
) -> RowSchema:
    schema = RowSchema(*name, tuple([each.column for each in columns]))
    try:
        indexes = tuple([schema.index[column] for column in key])
    except KeyError as error:
        raise DataError(
            f"the record's key names {error}, which is no column of the row", hint=_KEY_HINT
        ) from error
    return RowSchema(*name, schema.columns, indexes)


def _unseen(image: object) -> list[str]:
    """The columns of a row in whose place the connector wrote that it did not see them."""
    values = cast("dict[str, Any]", image) if isinstance(image, dict) else {}
    if _UNSEEN in values.values() or _UNSEEN_BYTES in values.values():
        return [name for name, value in values.items() if value in (_UNSEEN, _UNSEEN_BYTES)]
    return []


def _row(columns: tuple[RecordColumn, ...], image: object) -> Row:
    if not isinstance(image, dict):
        raise DataError("a row of Debezium that is no object")
    row = cast("dict[str, Any]", image)
    return tuple([_value(column, row) for column in columns])


def _value(column: RecordColumn, row: dict[str, Any]) -> Value:
    name = column.column.name
    if name not in row:
        return ABSENT
    value = row[name]
    if value is None:
        if column.null:
            raise DataError(f"null, which {column.null}", hint=column.hint, column=name)
        return None
    try:
        return column.read(value)
    except (ValueError, OverflowError) as error:
        raise DataError(f"a value cannot be decoded: {error}", column=name) from error
