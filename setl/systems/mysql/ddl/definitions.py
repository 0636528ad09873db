"""Reads column definitions from ALTER TABLE, for targets that do not run the statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Action, TableDdl
from setl.codec.sql.tokens import Token
from setl.errors import ConfigurationError
from setl.model.schema import Column
from setl.systems.mysql.catalog import ColumnRow, column_of

# Other names of types, as information_schema has them.
_TYPES: Final = {
    **dict.fromkeys(("BOOL", "BOOLEAN", "INT1"), "tinyint"),
    **dict.fromkeys(("INTEGER", "INT3", "INT4", "MIDDLEINT"), "int"),
    **dict.fromkeys(("INT8", "SERIAL"), "bigint"),
    **dict.fromkeys(("DEC", "NUMERIC", "FIXED", "NUMBER"), "decimal"),
    **dict.fromkeys(("REAL", "FLOAT8", "FLOAT4"), "double"),
    **dict.fromkeys(("CHARACTER", "NCHAR", "NVARCHAR", "NATIONAL", "VARCHARACTER"), "varchar"),
    "LONG": "mediumtext",
}


def defined_columns(ddl: TableDdl) -> Iterator[Column]:
    """The columns that an ALTER TABLE adds or defines again; not those of unknown types."""
    if ddl.action is not Action.ALTER:
        return
    for clause in ddl.clauses():
        verb = clause.words[0]
        if verb in ("ADD", "MODIFY", "CHANGE"):
            for tokens in clause.columns:
                column = _column(tokens[verb == "CHANGE" :])
                if column is not None:
                    yield column


def _column(tokens: Sequence[Token]) -> Column | None:
    if len(tokens) < 2 or not name_of(tokens[0]):
        return None
    kind = _TYPES.get(tokens[1].word, tokens[1].text.lower())
    words = [token.word for token in tokens]
    unsigned = " unsigned" if {"UNSIGNED", "SERIAL", "ZEROFILL"} & set(words) else ""
    row = ColumnRow(name_of(tokens[0]), kind, kind + unsigned, 10, 0, None, "")
    try:
        return column_of(row)
    except ConfigurationError:
        return None  # the first row with it says what it is
