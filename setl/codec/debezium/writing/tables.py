"""Writes rows of a table as change events; what is the same in all of them, once."""

from __future__ import annotations

import re
from json.encoder import encode_basestring
from typing import Final

from setl.codec.binlog_tables import BinlogTable, binlog_table, whole
from setl.codec.debezium.writing.columns import MISFITS, NULL, debezium_column, key_check
from setl.codec.debezium.writing.schemas import envelope, struct, wrapping
from setl.errors import DataError
from setl.model.change import Row

_MAX_TABLES: Final = 1024
_NOT_IN_TOPICS: Final = re.compile(r"[^a-zA-Z0-9._-]")
_BARE: Final = (b"", b"")


class DebeziumTable:
    """Writes keys and row images of a table.

    Attributes:
        around_value: what stands before and behind the payload of a value.
    """

    def __init__(
        self,
        table: BinlogTable,
        prefix: str,
        connector: str,
        *,
        schemas: bool,
        exact_decimals: bool,
    ) -> None:
        """Prepare for a table; see `setl.relay.debezium.DebeziumSerializer`."""
        schema = table.schema
        columns = [debezium_column(c, exact_decimals=exact_decimals) for c in table.columns]
        self._schema = schema
        self._names = [
            f"{',' if i else ''}{encode_basestring(name)}:" for i, name in enumerate(schema.names)
        ]
        self._write = [column.write for column in columns]
        self._key = schema.key
        self._key_names = [
            f"{',' if i else ''}{encode_basestring(schema.names[at])}:"
            for i, at in enumerate(schema.key)
        ]
        self._checks = [
            (i, check)
            for i, at in enumerate(schema.key)
            if (check := key_check(schema.columns[at].kind)) is not None
        ]
        # As topics of Debezium are named, where such a character stands for any that they cannot
        # have. Its schemas are named after them.
        name = _NOT_IN_TOPICS.sub("_", f"{prefix}.{schema.schema}.{schema.table}")
        fields = [
            {**column.schema, "field": field}
            for column, field in zip(columns, schema.names, strict=True)
        ]
        self._around_key = self.around_value = _BARE
        if schemas:
            keys = struct([fields[i] for i in schema.key], name=f"{name}.Key")
            self._around_key = wrapping(keys)
            self.around_value = wrapping(envelope(name, connector, fields))

    def key(self, row: Row) -> bytes | None:
        """The key of a row; None if the table has none.

        Raises:
            DataError: the image is without it, or a value cannot be written.
        """
        if not self._key:
            return None
        values = whole(tuple([row[i] for i in self._key]), self._schema)
        try:
            for i, check in self._checks:
                check(values[i])
            text = "".join(
                [
                    f"{name}{NULL if value is None else self._write[i](value)}"
                    for name, i, value in zip(self._key_names, self._key, values, strict=True)
                ]
            )
            before, behind = self._around_key
            return before + f"{{{text}}}".encode() + behind
        except MISFITS as error:
            raise self._misfit(row, error) from error

    def image(self, row: Row | None) -> str:
        """One image of a row, as JSON.

        Raises:
            DataError: it is not in full, or a value cannot be written.
        """
        if row is None:
            return NULL
        values = whole(row, self._schema)
        try:
            text = "".join(
                [
                    name + (NULL if value is None else write(value))
                    for name, value, write in zip(self._names, values, self._write, strict=True)
                ]
            )
            text.encode()  # a surrogate is refused here, with the column's name
        except MISFITS as error:
            raise self._misfit(row, error) from error
        return f"{{{text}}}"

    def _misfit(self, row: Row, error: Exception) -> DataError:
        fields = {"schema": self._schema.schema, "table": self._schema.table}
        for name, value, write in zip(self._schema.names, row, self._write, strict=False):
            try:
                if value is not None:
                    write(value).encode()
            except MISFITS:
                fields["column"] = name
                break
        return DataError(
            f"a value cannot be written as Debezium's: {error}",
            hint="Change the value, or leave the table out; `format: dts` has every value",
            **fields,
        )


class DebeziumTables:
    """The tables of a binlog, by the description that it gives of each."""

    def __init__(self, prefix: str, connector: str, *, schemas: bool, exact_decimals: bool) -> None:
        """Begin without any; see `DebeziumTable`."""
        self._prefix = prefix
        self._connector = connector
        self._schemas = schemas
        self._exact_decimals = exact_decimals
        self._tables: dict[tuple[bytes, ...], DebeziumTable] = {}

    def table(self, context: tuple[bytes, ...]) -> DebeziumTable:
        """The table of rows with this `Entry.context`.

        Raises:
            DataError: the description cannot be understood.
        """
        found = self._tables.get(context)
        if found is None:
            if len(self._tables) >= _MAX_TABLES:
                self._tables.clear()
            found = self._tables[context] = DebeziumTable(
                binlog_table(context),
                self._prefix,
                self._connector,
                schemas=self._schemas,
                exact_decimals=self._exact_decimals,
            )
        return found
