"""Columns as an ALTER TABLE defines them, for targets that are not told the statement itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from setl.codec.sql.table_ddl import Action, TableDdl
from setl.codec.sql.tokens import Token
from setl.errors import ConfigurationError
from setl.model.schema import Column
from setl.systems.mysql.catalog import ColumnRow, column_of
from setl.systems.mysql.ddl.columns import NOT_COLUMNS

_CONDITION: Final = frozenset({"IF", "NOT", "EXISTS"})

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
    """The columns that an ALTER TABLE adds or defines anew; not those of unknown types."""
    if ddl.action is not Action.ALTER:
        return
    for words, tokens in ddl.clauses():
        verb = words[0] if words else ""
        if verb not in ("ADD", "MODIFY", "CHANGE"):
            continue
        at = 2 if len(words) > 1 and words[1] == "COLUMN" else 1
        while at < len(tokens) and tokens[at].word in _CONDITION:
            at += 1
        if verb == "CHANGE":
            at += 1
        listed = at < len(tokens) and tokens[at].text == "("
        for definition in _listed(tokens[at + 1 : -1]) if listed else [tokens[at:]]:
            column = _column(definition)
            if column is not None:
                yield column


def _listed(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    depth, first = 0, 0
    for at, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and not depth:
            yield tokens[first:at]
            first = at + 1
    yield tokens[first:]


def _column(tokens: Sequence[Token]) -> Column | None:
    if len(tokens) < 2 or tokens[0].word in NOT_COLUMNS or not tokens[0].name:
        return None
    kind = _TYPES.get(tokens[1].word, tokens[1].text.lower())
    words = [token.word for token in tokens]
    unsigned = " unsigned" if {"UNSIGNED", "SERIAL", "ZEROFILL"} & set(words) else ""
    row = ColumnRow(tokens[0].name, kind, kind + unsigned, 10, 0, None, "")
    try:
        return column_of(row)
    except ConfigurationError:
        return None  # the first row with it says what it is
