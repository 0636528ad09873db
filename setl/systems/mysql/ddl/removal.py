"""Refuses schema changes that remove rows which both sites write."""

from __future__ import annotations

from setl.channel.routes.routing import Route
from setl.codec.sql.table_ddl import Action, TableDdl
from setl.errors import FatalError


def refuse_removal(ddl: TableDdl, route: Route) -> None:
    """Refuse a statement that removes rows of a table with a conflict policy.

    The binlog does not say which rows. So of a row that the other site writes meanwhile nobody can
    tell whether that write has seen the removal. It would stay at one site alone.

    Raises:
        FatalError: it removes rows.
    """
    if route.conflict is None or not removes_rows(ddl):
        return
    raise FatalError(
        "this schema change cannot be passed on: it removes rows of a table with a conflict"
        f" policy, and does not say which: {ddl.text[:300]}",
        hint="In the future, use DELETE, for which the policy decides. For this one: have nobody"
        " write to the table, let both pipelines catch up, and run it on the target, after SET"
        " SESSION sql_log_bin = 0; then compare with `setl verify`",
    )


def removes_rows(ddl: TableDdl) -> bool:
    """Whether a statement removes rows of the table that it is about, and leaves the table."""
    if ddl.action is Action.TRUNCATE or ddl.replaces:
        return True
    if ddl.action is not Action.ALTER:
        return False
    removals = (("DROP", "PARTITION"), ("TRUNCATE", "PARTITION"))
    return any(clause.words[:2] in removals for clause in ddl.clauses())
