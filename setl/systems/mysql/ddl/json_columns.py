"""Gives a MySQL the JSON columns that a MariaDB has: text, as it was written.

MySQL's JSON is another type. It sorts keys, drops all but the last of those that are the same, and
writes numbers again. So where a statement of a MariaDB says JSON, MySQL gets what that is there:
https://mariadb.com/kb/en/json-data-type/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import TableDdl
from setl.codec.sql.tokens import Token
from setl.systems.mysql.ddl.declared_columns import declared_columns
from setl.systems.mysql.identifiers import quote

_TEXT: Final = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_GENERATED: Final = frozenset({"GENERATED", "AS"})


def json_as_text(ddl: TableDdl, statement: str) -> str:
    """A statement of a MariaDB with the text that JSON is there, for a MySQL.

    Args:
        ddl: the statement.
        statement: its text.
    """
    changed = [
        (column[1], _type(column, new=new))
        for column, new in declared_columns(ddl)
        if len(column) > 1 and column[1].word == "JSON"
    ]
    for token, text in reversed(changed):
        statement = f"{statement[: token.start]}{text}{statement[token.end :]}"
    return statement


def _type(column: Sequence[Token], *, new: bool) -> str:
    # One that is defined again keeps its CHECK, and a generated one is always valid.
    if not new or (len(column) > 2 and column[2].word in _GENERATED):
        return _TEXT
    return f"{_TEXT} CHECK (json_valid({quote(name_of(column[0]))}))"
