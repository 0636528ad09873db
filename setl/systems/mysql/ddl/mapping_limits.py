"""Refuses schema changes that a table cannot take because of the mapping of its rows or columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from setl.channel.routes.routing import Route
from setl.codec.sql.names import name_of
from setl.codec.sql.table_ddl import Action, Clause, TableDdl, column_words
from setl.codec.sql.tokens import Token
from setl.systems.mysql.ddl.advice import not_replicated
from setl.systems.mysql.ddl.left_out import named_key


def refuse_removal(ddl: TableDdl, route: Route, *, gathers: bool) -> None:
    """Refuse a statement that removes rows of a table with a conflict policy, or those of others.

    The binlog does not say which rows. So of a row that the other site writes meanwhile nobody can
    tell whether that write has seen the removal. It would stay at one site alone.
    """
    if gathers and (removes_rows(ddl) or ddl.action is Action.DROP):
        raise not_replicated(
            f"it removes rows of a table that go to {'.'.join(route.target)}, where rows of other"
            " tables go, too, and does not say which",
            ddl.text,
            "Remove those that came from this table on the target with DELETE, in a channel of"
            " two directions after SET SESSION sql_log_bin = 0",
        )
    if gathers and (column := _dropped_column(ddl)):
        raise not_replicated(
            f"it drops the column {column} of a table that goes to {'.'.join(route.target)}, where"
            " rows of other tables go, too, which lose it as well",
            ddl.text,
            "If all these tables lose it, drop it at the target{by_hand}. Else leave it there,"
            " as NULL or with a default, and do only the rest of the statement, if there is any",
        )
    if route.conflict is None or not removes_rows(ddl):
        return
    raise not_replicated(
        "it removes rows of a table with a conflict policy, and does not say which",
        ddl.text,
        "In the future, use DELETE, for which the policy decides. For this one: have nobody"
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


def _dropped_column(ddl: TableDdl) -> str:
    """A column that a statement drops, "" if it drops none."""
    dropping = (
        (c for c in ddl.clauses() if c.words[0] == "DROP") if ddl.action is Action.ALTER else ()
    )
    return next((name_of(column[0]) for clause in dropping for column in clause.columns), "")


def refuse_columns(ddl: TableDdl, route: Route) -> None:
    """Refuse a statement about columns that reach the target in another form, or not at all.

    Words are compared, not understood, so that a statement is rather refused than misread.
    """
    special = {c.lower() for c in (*route.exclude, *route.renames, *route.expressions)}
    special |= {c.lower() for c in route.renames.values()}
    if route.include is None and not special:
        return
    if ddl.action is Action.CREATE:
        raise not_replicated("the mapping changes the columns of the new table", ddl.text)
    tokens = ddl.tokens[ddl.body :]
    if ddl.action is Action.ALTER:  # where a key need not have the name of its column
        tokens = tuple(t for c in ddl.clauses() if not named_key(c) for t in c.tokens)
    named = column_words(tokens) & special
    if named:
        raise not_replicated(
            f"the mapping does not pass {', '.join(sorted(named))} as it is", ddl.text
        )
    if route.include is not None:
        ddl_context = {c.lower() for c in route.include}
        for clause in ddl.clauses() if ddl.action is Action.ALTER else ():
            for column in (name for tokens in clause.columns for name in _names(clause, tokens)):
                if column.lower() not in ddl_context:
                    raise not_replicated(f"`include` does not pass {column}", ddl.text)


def _names(clause: Clause, tokens: Sequence[Token]) -> Iterator[str]:
    """The names that a column has before and behind a clause."""
    yield name_of(tokens[0])
    new = {"CHANGE": 1, "RENAME": 2}.get(clause.words[0], 0)
    if new and new < len(tokens):
        yield name_of(tokens[new])
