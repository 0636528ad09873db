"""Tells what a schema change did that failed at its source, and is in the binlog all the same.

MariaDB drops the old table of a CREATE OR REPLACE TABLE before it makes the new one. Where that
fails then, it logs the statement with its error: a replica fails likewise, and has no table either.
Of all other statements that fail, both families log none, or what they did.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from setl.codec.sql.table_ddl import Action, Role, TableDdl
from setl.model.session import StatementSession

# Somebody ended the statement, or its server: the new table may be there.
_ENDED: Final = frozenset({1028, 1053, 1077, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1927, 1969})


def as_it_came_out(ddl: TableDdl, session: StatementSession) -> TableDdl:
    """The statement that does what a statement did: DROP for a new table that failed."""
    if not session.error or session.error in _ENDED or not ddl.replaces:
        return ddl
    names = tuple(name for name in ddl.names if name.role is Role.SUBJECT)
    return replace(ddl, action=Action.DROP, names=names, conditional=True, replaces=False)
