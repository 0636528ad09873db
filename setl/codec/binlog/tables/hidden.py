"""Columns that MariaDB adds to tables by itself and logs with their rows.

A UNIQUE key over long values, such as a BLOB's, is kept as a hash of them in a column behind all
others. No statement can name it, and no other server would know it.

Source: ``make_unique_key_name_with_hash`` and ``add_hash_field`` in ``sql_table.cc`` of MariaDB.
"""

from __future__ import annotations

import re
from typing import Final

from setl.codec.binlog.event import is_mariadb
from setl.codec.binlog.tables.row_schema import TableDetail
from setl.codec.binlog.tables.table_map import ColumnType
from setl.model.change import DecodedRows
from setl.model.schema import RowSchema

_NAME: Final = re.compile(r"DB_ROW_HASH_\d+")


def looks_hidden(name: str) -> bool:
    """Whether a column has the name of a hidden one; people may choose it, too."""
    return _NAME.fullmatch(name) is not None


def visible_schema(table: TableDetail, format_description: bytes) -> RowSchema:
    """The columns of a table that statements can name; the schema itself if these are all.

    Args:
        table: what the binlog says of the table.
        format_description: the event that says whose binlog it is.
    """
    columns = table.schema.columns
    count = len(columns)
    while count and is_mariadb(format_description) and _is_hidden(table, count - 1):
        count -= 1
    if count == len(columns):
        return table.schema
    return RowSchema(table.schema.schema, table.schema.table, columns[:count], table.schema.key)


def _is_hidden(table: TableDetail, index: int) -> bool:
    number = table.columns[index].type == ColumnType.LONGLONG
    return number and looks_hidden(table.schema.columns[index].name)


def without_hidden(rows: DecodedRows, schema: RowSchema) -> DecodedRows:
    """Rows as `visible_schema` has them."""
    count = len(schema.columns)
    pairs = [
        (None if before is None else before[:count], None if after is None else after[:count])
        for before, after in rows.images
    ]
    return DecodedRows(schema, rows.op, pairs)
