"""Decodes the rows of DTS records, in Spark tasks and, for rows of ``retl``, in the driver."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from setl.codec.dts.header import row_name
from setl.codec.dts.image import ImageColumn
from setl.codec.dts.wire import MALFORMED, read_common
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, Value
from setl.model.schema import Column, RowSchema

_TABLES_KEPT: Final = 1024
_SCHEMAS_KEPT: Final = 64  # of one table; each thing learned about a column makes another one
_OPERATIONS: Final = {
    "INSERT": Op.INSERT,
    "INIT": Op.INSERT,
    "UPDATE": Op.UPDATE,
    "DELETE": Op.DELETE,
}
_KEYS_TAG: Final = "pk_uk_info"


class DtsRowCodec:
    """A `setl.codec.port.RowCodec` for payloads of `setl.codec.dts.header.read_header`.

    It remembers, for each table and list of columns, what their values were so far, so that
    a column that is NULL in a record keeps its kind.
    """

    def __init__(self, *, logical_names: bool = True) -> None:
        """Know nothing yet.

        Args:
            logical_names: whether rows of DRDS and PolarDB-X are of their logical table, see
                `setl.codec.dts.header.row_name`; the headers must have been read likewise.
        """
        self._logical_names = logical_names
        self._tables: dict[tuple[Any, ...], _Table] = {}

    def decode(self, payload: bytes, context: tuple[bytes, ...]) -> DecodedRows:  # noqa: ARG002
        """See `setl.codec.port.RowCodec.decode`; a record needs no context."""
        try:
            record: dict[str, Any] = read_common(payload)
        except MALFORMED as error:
            raise DataError(
                f"not a DTS record: {len(payload)} bytes, {error or type(error).__name__}"
            ) from error
        table = self._table(record)
        op = _OPERATIONS.get(record["operation"])
        if op is None:
            raise DataError(f"a record of operation {record['operation']} holds no row")
        before = None if op is Op.INSERT else table.row(record["beforeImages"], "before")
        after = None if op is Op.DELETE else table.row(record["afterImages"], "after")
        return DecodedRows(table.schema(), op, [(before, after)])

    def schema(self, payload: bytes, context: tuple[bytes, ...]) -> RowSchema:
        """See `setl.codec.port.RowCodec.schema`; what a column is, only its values say."""
        return self.decode(payload, context).schema

    def _table(self, record: dict[str, Any]) -> _Table:
        tags: dict[str, str] = record["tags"]
        name = row_name(record["objectName"] or "", tags if self._logical_names else {})
        if not isinstance(record["fields"], list):
            raise DataError("a DTS record of a row names no columns", table=".".join(name))
        fields = cast("list[dict[str, Any]]", record["fields"])
        keys = tags.get(_KEYS_TAG, "")
        columns: tuple[tuple[str, int], ...] = tuple(
            [(field["name"], field["dataTypeNumber"]) for field in fields]
        )
        identity = (name, keys, columns)
        table = self._tables.get(identity)
        if table is None:
            if len(self._tables) >= _TABLES_KEPT:
                self._tables.clear()
            table = self._tables[identity] = _Table(name, keys, columns)
        return table


class _Table:
    """One table as its records describe it, for one list of columns."""

    def __init__(
        self, name: tuple[str, str], keys: str, columns: tuple[tuple[str, int], ...]
    ) -> None:
        self._schema, self._table = name
        self._columns = [ImageColumn(name, number) for name, number in columns]
        self._key, self._unique = _keys(keys, [name for name, _ in columns], ".".join(name))
        self._learned = -1
        self._known: dict[tuple[Column, ...], RowSchema] = {}
        self._current = RowSchema(self._schema, self._table, ())

    def schema(self) -> RowSchema:
        """The schema as far as it is known now; the same object as long as it is the same."""
        learned = sum([column.changes for column in self._columns])
        if learned != self._learned:
            self._learned = learned
            columns = tuple([column.column for column in self._columns])
            if len(self._known) >= _SCHEMAS_KEPT:
                self._known.clear()
            self._current = self._known.setdefault(
                columns, RowSchema(self._schema, self._table, columns, self._key, self._unique)
            )
        return self._current

    def row(self, image: object, side: str) -> Row:
        """One image: a value for each column, or a DataError that names the column."""
        if not isinstance(image, list):
            raise self._error(f"a DTS record has no {side} image")
        raws = cast("list[dict[str, Any] | str | None]", image)
        if len(raws) != len(self._columns):
            raise self._error(
                f"a DTS record has {len(raws)} values in its {side} image "
                f"for {len(self._columns)} columns"
            )
        row: list[Value] = []
        for raw, column in zip(raws, self._columns, strict=True):
            if raw is None:
                row.append(None)
            elif isinstance(raw, str):
                row.append(ABSENT if raw == "NONE" else None)
            else:
                try:
                    row.append(column.read(raw))
                except (LookupError, ValueError, OverflowError) as error:
                    name = column.column.name
                    raise self._error(f"a value cannot be decoded: {error}").at(
                        column=name
                    ) from error
        return tuple(row)

    def _error(self, message: str) -> DataError:
        return DataError(message, schema=self._schema, table=self._table)


def _keys(
    text: str, names: list[str], table: str
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Indexes of the primary key's columns, and of those of every other unique key.

    The tag is JSON: key name → column names, the primary key under ``PRIMARY``.
    """
    if not text:
        return (), ()
    try:
        keys: dict[str, list[str]] = json.loads(text)
        by_name = {name: i for i, name in enumerate(names)}
        folded = {name.casefold(): i for i, name in enumerate(names)}
        indexes = {
            key: tuple(by_name.get(c, folded[c.casefold()]) for c in columns)
            for key, columns in keys.items()
        }
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(
            f"the tag {_KEYS_TAG} of a DTS record does not fit its columns: {text[:200]!r}",
            table=table,
        ) from error
    primary = indexes.pop("PRIMARY", ())
    return primary, tuple(indexes.values())
