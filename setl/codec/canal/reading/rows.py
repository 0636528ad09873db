"""Decodes the rows of Canal's flat messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from typing_extensions import override

from setl.codec.canal.reading.columns import BLOB, MessageColumn, message_column
from setl.codec.canal.reading.header import read_message
from setl.codec.json_rows import JsonRowCodec
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, Value
from setl.model.schema import RowSchema

_MAX_TABLES: Final = 256
_OLD: Final = (
    "Canal leaves NULL out before 1.1.2, and so do tools that write its messages again without"
    " null: let them write it"
)
_FULL: Final = "Set binlog_row_image=FULL at the source: Canal writes what the binlog has"


class _Table(NamedTuple):
    """A table as one message describes it."""

    schema: RowSchema
    columns: tuple[MessageColumn, ...]


class CanalRowCodec(JsonRowCodec):
    """Decodes messages whose header is one of `setl.codec.canal.reading.header`.

    What a column is, and what identifies a row, each message says by itself (I22).
    """

    def __init__(self, zone: str = "") -> None:
        """Know no table yet.

        Args:
            zone: time zone of Canal's JVM, see `timestamp_reader`; "" if it is not known.
        """
        self._zone = zone
        self._tables: dict[tuple[Any, ...], _Table] = {}

    @override
    def is_insert(self, glance: bytes) -> bool:
        return b'"type":"INSERT"' in glance

    @override
    def decode_record(self, key: bytes | None, value: bytes) -> DecodedRows:
        message = read_message(value)
        name = str(message.get("database")), str(message.get("table"))
        try:
            table = self._table(name, message)
            return DecodedRows(table.schema, *_changes(table, message))
        except DataError as error:
            raise error.at(table=".".join(name)) from error.__cause__

    def _table(self, name: tuple[str, str], message: dict[str, Any]) -> _Table:
        types: object = message.get("mysqlType")
        keys: object = message.get("pkNames") or []
        numbers: object = message.get("sqlType") or {}
        if not isinstance(types, dict) or not types or not isinstance(keys, list):
            raise DataError(
                "a flat message of Canal without `mysqlType`, so that it does not say what its"
                " values are"
            )
        given = cast("dict[str, object]", types)
        described = {name: each if isinstance(each, str) else "" for name, each in given.items()}
        key = tuple([str(each) for each in cast("list[object]", keys)])
        read_as = cast("dict[str, object]", numbers) if isinstance(numbers, dict) else {}
        blobs = frozenset([each for each, number in read_as.items() if number == BLOB])
        identity = (*name, tuple(described.items()), key, blobs)
        table = self._tables.get(identity)
        if table is None:
            columns = tuple(
                [message_column(c, t, self._zone, as_blob=c in blobs) for c, t in described.items()]
            )
            schema = RowSchema(*name, tuple([each.column for each in columns]))
            missing = [each for each in key if each not in schema.index]
            if missing:
                raise DataError(f"the row lacks {missing[0]}, a column of its key", hint=_FULL)
            indexes = tuple([schema.index[each] for each in key])
            table = _Table(RowSchema(*name, schema.columns, indexes), columns)
            if len(self._tables) >= _MAX_TABLES:
                self._tables.clear()
            self._tables[identity] = table
        return table


_OPS: Final = {"INSERT": Op.INSERT, "UPDATE": Op.UPDATE, "DELETE": Op.DELETE}


def _changes(
    table: _Table, message: dict[str, Any]
) -> tuple[Op, list[tuple[Row | None, Row | None]]]:
    """What happened to the rows of a message, and each of them before and after."""
    rows, op = _objects(message.get("data")), _OPS.get(message["type"])
    if op is Op.INSERT:
        return op, [(None, _whole(_row(table, row), table)) for row in rows]
    if op is Op.DELETE:
        return op, [(_row(table, row), None) for row in rows]
    if op is None:
        raise DataError(f"a message of type {message['type']:.20} holds no row")
    olds = _objects(message.get("old"))
    if len(olds) != len(rows):
        raise DataError("an update of which the message does not say what it changed")
    pairs = zip(rows, olds, strict=True)
    return op, [
        (_row(table, {**row, **old}), _whole(_row(table, row), table)) for row, old in pairs
    ]


def _objects(given: object) -> Sequence[dict[str, Any]]:
    found = cast("list[object]", given) if isinstance(given, list) else []
    if not found or not all(isinstance(each, dict) for each in found):
        raise DataError("rows of a flat message of Canal that cannot be understood")
    return cast("list[dict[str, Any]]", found)


def _row(table: _Table, row: dict[str, Any]) -> Row:
    if len(row) > len(table.columns) or not row.keys() <= table.schema.index.keys():
        raise DataError("a row of a flat message of Canal has columns without a type")
    values = tuple([_value(column, row) for column in table.columns])
    if any(values[index] is ABSENT for index in table.schema.key):
        raise DataError("the row lacks columns of its key", hint=_FULL)
    return values


def _whole(row: Row, table: _Table) -> Row:
    """A row after a change, with all columns that the message describes.

    Raises:
        DataError: it lacks one, which is NULL, or was not logged: nothing tells.
    """
    if ABSENT in row:
        name = table.columns[row.index(ABSENT)].column.name
        raise DataError("the row has no value, and no null either", hint=_OLD, column=name)
    return row


def _value(column: MessageColumn, row: dict[str, Any]) -> Value:
    name = column.column.name
    text = row.get(name, ABSENT)
    if text is ABSENT or text is None:
        return text
    if type(text) is not str:
        raise DataError(f"a value of the type {type(text).__name__} and not text", column=name)
    try:
        return column.read(text)
    except (ValueError, OverflowError, LookupError) as error:
        raise DataError(f"a value cannot be decoded: {error}", column=name) from error
    except DataError as error:
        raise error.at(column=name) from error.__cause__
