"""Writes the common part of a table's records once for all rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from setl.codec.binlog.tables.hidden import visible_schema
from setl.codec.binlog.tables.row_schema import described_table
from setl.codec.binlog.tables.table_map import WireColumn
from setl.codec.dts.avro_bytes import END, NULL, block_bytes, long_bytes, text_bytes
from setl.codec.dts.image_writer import ABSENT_VALUE, MISFITS, NULL_VALUE, column_writer
from setl.errors import DataError
from setl.model.change import ABSENT, Row
from setl.model.schema import RowSchema

UniqueKeys = Callable[[str, str], Mapping[str, Sequence[str]]]
"""Given schema and table, the columns of each unique key but the primary one, by its name."""

_MAX_TABLES: Final = 1024
_NAMED: Final = long_bytes(1)  # the branch of objectName's union
_LISTED: Final = long_bytes(2)  # the branch array, of fields and images


class TableForm:
    """Writes what is the same in every record of a table, and images of its rows.

    Attributes:
        schema: the table and its columns.
        name: ``objectName``.
        keys_tag: key and value of the tag ``pk_uk_info``.
        fields: the list of columns.
    """

    def __init__(
        self,
        schema: RowSchema,
        columns: Sequence[WireColumn],
        unique: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Prepare for a table.

        Args:
            schema: the table as its rows are decoded.
            columns: how each column lies in the binlog, in the same order.
            unique: further unique keys and their columns, which no binlog names. They may be
                those of another time than the rows: a key with a column that the table has
                not is left out.
        """
        writers = [column_writer(w, c) for w, c in zip(columns, schema.columns, strict=True)]
        names = schema.names
        keys = {"PRIMARY": [names[i] for i in schema.key]} if schema.key else {}
        for key, members in (unique or {}).items():
            if set(members) <= set(names):
                keys.setdefault(key, list(members))
        text = json.dumps(keys, ensure_ascii=False, separators=(",", ":"))
        self.schema = schema
        self.name = object_name(schema.schema, schema.table)
        self.keys_tag = text_bytes("pk_uk_info") + text_bytes(text)
        self.fields = _LISTED + block_bytes(
            [text_bytes(n) + long_bytes(w.number) for n, w in zip(names, writers, strict=True)]
        )
        self._count = _LISTED + long_bytes(len(writers))
        self._write = [writer.write for writer in writers]

    def image(self, row: Row) -> bytes:
        """One image of a row.

        Raises:
            DataError: a value is none of its column's kind; it names the column.
        """
        try:
            values = [
                NULL_VALUE if value is None else ABSENT_VALUE if value is ABSENT else write(value)
                for value, write in zip(row, self._write, strict=True)
            ]
        except MISFITS as error:
            raise self._misfit(row, error) from error
        return self._count + b"".join(values) + END

    def _misfit(self, row: Row, error: Exception) -> DataError:
        log_fields = {"schema": self.schema.schema, "table": self.schema.table}
        for name, value, write in zip(self.schema.names, row, self._write, strict=False):
            if value is not None and value is not ABSENT:
                try:
                    write(value)
                except MISFITS:
                    log_fields["column"] = name
                    break
        return DataError(f"a value cannot be written as a DTS record: {error}", **log_fields)


class DtsTableForms:
    """The form of each table, by the description that a binlog gives of it."""

    def __init__(self, unique: UniqueKeys | None = None) -> None:
        """Begin without any.

        Args:
            unique: tells unique keys, and is asked each time the binlog describes a table
                again, which it does after every DDL of it; None knows of none.
        """
        self._unique = unique
        self._forms: dict[tuple[bytes, ...], TableForm] = {}

    def form(self, context: tuple[bytes, ...]) -> TableForm:
        """The form for the rows of an entry with this `Entry.context`.

        Raises:
            DataError: the description cannot be understood.
        """
        return self._forms.get(context) or self._prepare(context)

    def _prepare(self, context: tuple[bytes, ...]) -> TableForm:
        table = described_table(context)
        schema = visible_schema(table, context[0])
        unique = self._unique(schema.schema, schema.table) if self._unique else None
        form = TableForm(schema, table.columns[: len(schema.columns)], unique)
        if len(self._forms) >= _MAX_TABLES:
            self._forms.clear()
        self._forms[context] = form
        return form


def object_name(*parts: str) -> bytes:
    r"""``objectName``: parts with dots between them, a dot inside one as ``\u002E``."""
    if not any(parts):
        return NULL
    return _NAMED + text_bytes(".".join([part.replace(".", "\\u002E") for part in parts]))
