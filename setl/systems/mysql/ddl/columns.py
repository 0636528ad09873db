"""Refuses schema changes that a target with other columns cannot take."""

from __future__ import annotations

from setl.channel.routes.routing import Route
from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Action, TableDdl, column_words
from setl.errors import FatalError


def refuse_columns(ddl: TableDdl, route: Route) -> None:
    """Refuse a statement about columns that reach the target in another form, or not at all.

    Words are compared, not understood, so that a statement is rather refused than misread.

    Raises:
        FatalError: it names such a column, or creates a table that should have some.
    """
    special = {c.lower() for c in (*route.exclude, *route.renames, *route.expressions)}
    special |= {c.lower() for c in route.renames.values()}
    if route.include is None and not special:
        return
    if ddl.action is Action.CREATE:
        raise _refused(ddl, "the mapping changes the columns of the new table")
    named = column_words(ddl.tokens[ddl.body :]) & special
    if named:
        raise _refused(ddl, f"the mapping does not pass {', '.join(sorted(named))} as it is")
    if route.include is not None:
        passing = {c.lower() for c in route.include}
        for clause in ddl.clauses() if ddl.action is Action.ALTER else ():
            for column in (name_of(tokens[0]) for tokens in clause.columns):
                if column and column.lower() not in passing:
                    raise _refused(ddl, f"`include` does not pass {column}")


def _refused(ddl: TableDdl, why: str) -> FatalError:
    return FatalError(f"this schema change cannot be passed on: {why}: {ddl.text[:300]}")
