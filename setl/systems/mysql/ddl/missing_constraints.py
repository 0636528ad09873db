"""Leaves out of an ALTER TABLE the foreign keys to drop that its target's table has not.

Tables that setl makes have none (see `setl.systems.mysql.creation.plan`), nor has a copy by LIKE.
Where one is missing already, it is as if it had been dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pymysql.connections import Connection

from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Action, Clause, TableDdl
from setl.systems.mysql.ddl.plan import Name

_CONSTRAINTS: Final = (
    "SELECT CONSTRAINT_NAME, CONSTRAINT_TYPE FROM information_schema.TABLE_CONSTRAINTS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_COLUMNS: Final = (
    "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
# How servers call a foreign key that its statement gives no name.
_GENERATED: Final = re.compile(r".*_ibfk_\d+", re.DOTALL)
_DROPS: Final = (("DROP", "FOREIGN", "KEY"), ("DROP", "CONSTRAINT"))


def drops_foreign_keys(ddl: TableDdl) -> bool:
    """Whether a statement may drop foreign keys by their names."""
    return ddl.action is Action.ALTER and any(_dropped(clause)[1] for clause in ddl.clauses())


def without_missing(connection: Connection[Any], ddl: TableDdl, table: Name) -> str:
    """The statement without the foreign keys that the table has not; "" if nothing is left.

    Args:
        connection: to the target; pymysql's errors pass through.
        ddl: an ALTER TABLE.
        table: the target's table.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CONSTRAINTS, table)
        held = {str(name).lower(): str(kind) for name, kind in cursor.fetchall()}
        cursor.execute(_COLUMNS, table)
        columns = {str(name).lower() for (name,) in cursor.fetchall()}
    # MariaDB calls the CHECK of a column like the column, which nobody can drop by itself.
    held = {name: kind for name, kind in held.items() if kind != "CHECK" or name not in columns}
    clauses = list(ddl.clauses())
    remaining = [clause for clause in clauses if not _is_missing(clause, held)]
    if len(remaining) == len(clauses):
        return ddl.text
    texts = [ddl.text[c.tokens[0].start : c.tokens[-1].end] for c in remaining]
    return ddl.text[: ddl.tokens[ddl.body].start] + ", ".join(texts) if remaining else ""


def _is_missing(clause: Clause, held: Mapping[str, str]) -> bool:
    """Whether a clause drops what a table has not, and no other name may be meant.

    A table's foreign keys without a name may have other numbers at the target than at the source,
    and its CHECKs other names.
    """
    foreign, name = _dropped(clause)
    if not name or name in held:
        return False
    keys = [other for other, kind in held.items() if kind == "FOREIGN KEY"]
    if _GENERATED.fullmatch(name) and any(map(_GENERATED.fullmatch, keys)):
        return False
    return foreign or "CHECK" not in held.values()


def _dropped(clause: Clause) -> tuple[bool, str]:
    """Whether a clause says FOREIGN KEY, and the name in lower case of what it drops; "" if none.

    One with IF EXISTS needs nobody's help.
    """
    for words in _DROPS:
        if clause.words[: len(words)] == words and len(clause.tokens) == len(words) + 1:
            return words == _DROPS[0], name_of(clause.tokens[-1]).lower()
    return False, ""
