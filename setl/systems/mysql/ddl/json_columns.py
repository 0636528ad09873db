"""Gives a MySQL the JSON columns that a MariaDB has: text, as it was written.

MySQL's JSON is another type. It sorts keys, drops all but the last of those that are the same, and
writes numbers anew. So where a statement of a MariaDB says JSON, MySQL gets what that is there:
https://mariadb.com/kb/en/json-data-type/.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Action, TableDdl
from setl.codec.sql.tokens import Token
from setl.systems.mysql.identifiers import quote

_TEXT: Final = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_NO_COLUMNS: Final = frozenset(
    {"KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK"}
)
_GENERATED: Final = frozenset({"GENERATED", "AS"})


def json_as_text(ddl: TableDdl, statement: str) -> str:
    """A statement of a MariaDB with the text that JSON is there, for a MySQL.

    Args:
        ddl: the statement.
        statement: its text.
    """
    changed = [
        (column[1], _type(column, new=new))
        for column, new in _columns(ddl)
        if len(column) > 1 and column[1].word == "JSON"
    ]
    for token, text in reversed(changed):
        statement = f"{statement[: token.start]}{text}{statement[token.end :]}"
    return statement


def _columns(ddl: TableDdl) -> Iterator[tuple[Sequence[Token], bool]]:
    """Definitions of columns, each from its name on, and whether the column is a new one."""
    if ddl.action is Action.CREATE:
        for column in _created(ddl.tokens[ddl.body :]):
            yield column, True
    elif ddl.action is Action.ALTER:
        for clause in ddl.clauses():
            verb = clause.words[0]
            if verb in ("ADD", "MODIFY", "CHANGE"):
                for column in clause.columns:
                    yield column[verb == "CHANGE" :], verb == "ADD"


def _created(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The columns in the first parentheses of a CREATE TABLE."""
    depth = 0
    for at, token in enumerate(tokens):
        first = depth == 1 and tokens[at - 1].word in ("(", ",")
        if first and name_of(token) and token.word not in _NO_COLUMNS:
            yield tokens[at : at + 3]
        depth += (token.word == "(") - (token.word == ")")
        if token.word == ")" and not depth:
            return


def _type(column: Sequence[Token], *, new: bool) -> str:
    # One that is defined anew keeps its CHECK, and a generated one is always valid.
    if not new or (len(column) > 2 and column[2].word in _GENERATED):
        return _TEXT
    return f"{_TEXT} CHECK (json_valid({quote(name_of(column[0]))}))"
