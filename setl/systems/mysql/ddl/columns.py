"""Whether a schema change means the same to a target whose columns are not those of the source."""

from __future__ import annotations

from setl.channel.routing import Route
from setl.codec.sql.table_ddl import Action, Clause, TableDdl, column_words
from setl.errors import FatalError

_COLUMN_CLAUSES = frozenset({"ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME"})
NOT_COLUMNS = frozenset({
    "INDEX", "KEY", "CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR",
    "CHECK", "PARTITION", "PERIOD", "SYSTEM", "TO", "AS",
})  # fmt: skip
"""Words behind the verb of a clause of ALTER TABLE that is not about a column."""


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
            column = _column_of(clause)
            if column and column.lower() not in passing:
                raise _refused(ddl, f"`include` does not pass {column}")


def _column_of(clause: Clause) -> str:
    """The column that a clause of ALTER TABLE is about, "" if it is about something else."""
    if not clause.words or clause.words[0] not in _COLUMN_CLAUSES:
        return ""
    at = 2 if len(clause.words) > 1 and clause.words[1] == "COLUMN" else 1
    if at == 1 and len(clause.words) > 1 and clause.words[1] in NOT_COLUMNS:
        return ""
    while at < len(clause.tokens) and clause.tokens[at].word in {"IF", "NOT", "EXISTS", "("}:
        at += 1
    return clause.tokens[at].name if at < len(clause.tokens) else ""


def _refused(ddl: TableDdl, why: str) -> FatalError:
    return FatalError(f"this schema change cannot be passed on: {why}: {ddl.text[:300]}")
