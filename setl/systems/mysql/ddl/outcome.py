"""Tells what a schema change came to at its source, where its text says something else.

Of statements that fail, both families log none, or what these did, but one. MariaDB drops the old
table of a CREATE OR REPLACE TABLE before it makes the new one. Where that fails then, it logs the
statement with its error: a replica fails likewise, and has no table either.

MySQL logs CREATE TABLE IF NOT EXISTS also of a table that is there. InnoDB's part in a statement
shows in the event, and there is none then. MariaDB does not log it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from setl.codec.sql.table_ddl import Action, Role, TableDdl
from setl.model.session import StatementSession

# Somebody ended the statement, or its server: the new table may be there.
_ENDED: Final = frozenset({1028, 1053, 1077, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1927, 1969})
# Engines that take part in MySQL's atomic DDL.
_ATOMIC: Final = frozenset({"INNODB", "NDB", "NDBCLUSTER"})


def as_it_came_out(ddl: TableDdl, session: StatementSession) -> TableDdl:
    """The statement that does what a statement did.

    DROP for a table that could not be replaced; CREATE TABLE IF NOT EXISTS without the condition
    if it has made the table.
    """
    if session.error and session.error not in _ENDED and ddl.replaces:
        names = tuple(name for name in ddl.names if name.role is Role.SUBJECT)
        return replace(ddl, action=Action.DROP, names=names, conditional=True, replaces=False)
    made = session.mariadb or session.committed or ddl.rows_follow
    if ddl.action is Action.CREATE and made:
        return replace(ddl, conditional=False)
    return ddl


def did_nothing(ddl: TableDdl, session: StatementSession) -> bool:
    """Whether a statement found its table there, and left it as it was."""
    if ddl.action is not Action.CREATE or not ddl.conditional or session.mariadb is not False:
        return False
    return not session.committed and not ddl.rows_follow and _engine(ddl) in {*_ATOMIC, ""}


def _engine(ddl: TableDdl) -> str:
    """The engine that a CREATE TABLE names, in upper case; "" for none."""
    depth, words = 0, [token.word or token.name.upper() for token in ddl.tokens]
    for at, word in enumerate(words[:-1]):
        depth += (word == "(") - (word == ")")
        if not depth and word == "ENGINE":
            return words[at + 1] if words[at + 1] != "=" else "".join(words[at + 2 : at + 3])
    return ""
