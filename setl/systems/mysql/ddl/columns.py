"""Refuses schema changes that a target with other columns cannot take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from setl.channel.routes.routing import Route
from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Action, Clause, TableDdl, column_words
from setl.codec.sql.tokens import Token
from setl.errors import FatalError
from setl.systems.mysql.ddl.left_out import named_key


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
    tokens = ddl.tokens[ddl.body :]
    if ddl.action is Action.ALTER:  # where a key need not have the name of its column
        tokens = tuple(t for c in ddl.clauses() if not named_key(c) for t in c.tokens)
    named = column_words(tokens) & special
    if named:
        raise _refused(ddl, f"the mapping does not pass {', '.join(sorted(named))} as it is")
    if route.include is not None:
        ddl_context = {c.lower() for c in route.include}
        for clause in ddl.clauses() if ddl.action is Action.ALTER else ():
            for column in (name for tokens in clause.columns for name in _names(clause, tokens)):
                if column.lower() not in ddl_context:
                    raise _refused(ddl, f"`include` does not pass {column}")


def _names(clause: Clause, tokens: Sequence[Token]) -> Iterator[str]:
    """The names that a column has before and behind a clause."""
    yield name_of(tokens[0])
    new = {"CHANGE": 1, "RENAME": 2}.get(clause.words[0], 0)
    if new and new < len(tokens):
        yield name_of(tokens[new])


def _refused(ddl: TableDdl, why: str) -> FatalError:
    return FatalError(f"this schema change cannot be replicated: {why}: {ddl.text[:300]}")
