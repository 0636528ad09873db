"""Finds the definitions of columns in the statements that make or change them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from setl.codec.sql.names import listed, name_of
from setl.codec.sql.table_ddl import Action, TableDdl
from setl.codec.sql.tokens import Token
from setl.errors import ConfigurationError
from setl.model.schema import Column
from setl.systems.mysql.catalog import ColumnRow, column_of

_NO_COLUMNS: Final = frozenset({
    "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK",
    "VECTOR", "PERIOD", "LIKE",
})  # fmt: skip


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


class DeclaredColumn(NamedTuple):
    """A column as a statement defines it.

    Attributes:
        tokens: from its (new) name on.
        new: whether it was not there before.
    """

    tokens: Sequence[Token]
    new: bool

    @property
    def name(self) -> str:
        """Its name."""
        return name_of(self.tokens[0])

    def outside(self) -> Iterator[int]:
        """Indexes of the tokens behind the name that stand in no parentheses."""
        depth = 0
        for at, token in enumerate(self.tokens):
            depth += token.word == "("
            if at and not depth and token.word != ")":
                yield at
            depth -= token.word == ")"


def declared_columns(ddl: TableDdl) -> Iterator[DeclaredColumn]:
    """The columns that a CREATE or ALTER TABLE defines, in order."""
    if ddl.action is Action.CREATE:
        for item in created_items(ddl):
            if is_column(item):
                yield DeclaredColumn(item, new=True)
    elif ddl.action is Action.ALTER:
        for clause in ddl.clauses():
            verb = clause.words[0]
            if verb in ("ADD", "MODIFY", "CHANGE"):
                for column in clause.columns:
                    yield DeclaredColumn(column[verb == "CHANGE" :], verb == "ADD")


def is_column(item: Sequence[Token]) -> bool:
    """Whether what stands between two commas of a CREATE TABLE is a column."""
    return bool(name_of(item[0])) and item[0].word not in _NO_COLUMNS


def created_items(ddl: TableDdl) -> Iterator[Sequence[Token]]:
    """The columns, keys and constraints in the first parentheses of a CREATE TABLE."""
    tokens = ddl.tokens[ddl.body : ddl.body + closing_of(ddl)]
    return listed(tokens[1:]) if tokens and tokens[0].word == "(" else iter(())


def created_options(ddl: TableDdl) -> Sequence[Token]:
    """What stands behind them, without the partitions."""
    behind = ddl.tokens[ddl.body + closing_of(ddl) + 1 :]
    end = next((at for at, t in enumerate(behind) if t.word == "PARTITION"), len(behind))
    return behind[:end]


def closing_of(ddl: TableDdl) -> int:
    """How far behind the subject the first parentheses of a CREATE TABLE close; 0 if none do."""
    depth = 0
    for at, token in enumerate(ddl.tokens[ddl.body :]):
        depth += (token.word == "(") - (token.word == ")")
        if token.word == ")" and not depth:
            return at
    return 0


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
