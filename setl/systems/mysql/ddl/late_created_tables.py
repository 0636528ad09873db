"""Tells whether rows missed something that a schema change did to them before their table was made.

With `create: true` and `ddl: pass`, a table is created as the source has it, which may be ahead of
the stream. Rows that the stream brings from before a schema change then go into a table that has it
already. What the source's server did to such rows at the change, nobody does at the target: it
filled a new column, converted values, or removed the rows of a partition.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pymysql.connections import Connection

from setl.codec.sql.names import name_of
from setl.codec.sql.redaction import redacted
from setl.codec.sql.table_ddl import Action, Role, TableDdl
from setl.codec.sql.tokens import Token
from setl.errors import FatalError
from setl.systems.mysql.connection import is_mariadb
from setl.systems.mysql.ddl.context import ChangeContext
from setl.systems.mysql.ddl.effects import Effects, effects_of
from setl.systems.mysql.ddl.mapping_limits import removes_rows
from setl.systems.mysql.ddl.moved_rows import moved_by, table_of_partition
from setl.systems.mysql.ddl.plan import Step
from setl.systems.mysql.ddl.predicates import given_up
from setl.systems.mysql.ddl.table_state import Name, has_rows, kind_of

# Between these, a value that becomes another one is refused when its row is written.
_ADVICE: Final = (
    "The target's table has the change, so only mark it as done as said next. When the pipeline"
    " runs again, load the table with `setl load --replace`"
)
_AS_WRITTEN: Final = frozenset({
    "tinyint", "smallint", "mediumint", "int", "bigint", "decimal",
    "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set",
})  # fmt: skip
_COMPUTED: Final = re.compile(r"\b(?:STORED|VIRTUAL|PERSISTENT) GENERATED\b")


class ExistingColumn(NamedTuple):
    """A column of the target.

    Attributes:
        type: in lower case.
        filled: whether it has a default other than NULL.
        computed: whether it is a generated column.
    """

    type: str
    filled: bool = False
    computed: bool = False


def reason_names_differ(connection: Connection[Any], ddl: TableDdl, later: Collection[Name]) -> str:
    """Why tables that had other names before a RENAME may not be distinguished by now, or ""."""
    left = [(n.schema, n.table) for n in ddl.subjects if kind_of(connection, (n.schema, n.table))]
    # Without them, rows under the new names have been under no other ones.
    if not left or (
        set(left) <= set(later) and not any(has_rows(connection, t) for t in ddl.tables)
    ):
        return ""
    return f"{', '.join(sorted('.'.join(t) for t in left))} had another name before"


def names_taken(
    connection: Connection[Any], ddl: TableDdl, later: Collection[Name]
) -> tuple[Name, ...]:
    """Created tables without rows that have the names which a statement gives.

    Args:
        connection: to the target.
        ddl: a CREATE TABLE or a statement that renames, of the target's tables.
        later: those of its tables that were created after it.

    Returns:
        None of them if the tables that get the names are not there, or were created, too.
    """
    before = {(name.schema, name.table) for name in ddl.subjects}
    if ddl.conditional:  # and perhaps did nothing at the source
        return ()
    if made := table_of_partition(ddl):
        return () if list(later) != [made] or has_rows(connection, made) else (made,)
    if ddl.action is not Action.CREATE:
        if not renames(ddl) or before & set(later):
            return ()
        if not all(kind_of(connection, name) for name in before):
            return ()
    return () if any(has_rows(connection, name) for name in later) else tuple(later)


def renames(ddl: TableDdl) -> bool:
    """Whether a statement gives tables other names."""
    return ddl.action is Action.RENAME or any(n.role is Role.NEW_NAME for n in ddl.names)


def refuse_rows_before(context: ChangeContext, step: Step, later: Collection[Name]) -> None:
    """Refuse to skip a statement that the table has had since it was created."""
    ddl, target = step.ddl, context.connection
    if ddl is None:
        return
    reason, moved = "", moved_by(ddl) is not None
    if renames(ddl):
        reason = reason_names_differ(target, ddl, later)
    held = step.tables if moved else step.tables[:1]
    if not reason and ddl.action is Action.ALTER and any(has_rows(target, t) for t in held):
        all_come = step.source is not None and context.change.unread(step.source)
        # Rows that are read at the source are as they are there.
        if not step.reread and (removes_rows(ddl) or moved or not all_come):
            reason = reason_rows_differ(ddl, existing_columns(target, step.tables[0]))
    if reason:
        raise FatalError(
            "rows of the target may not be as a schema change left them at the source, since setl"
            f" created the table as it was later: {reason}: {redacted(step.statement)[:300]}",
            hint=_ADVICE,
        )


def existing_columns(connection: Connection[Any], name: Name) -> dict[str, ExistingColumn]:
    """The columns of a table, by name in lower case; pymysql's errors pass through."""
    mariadb = is_mariadb(connection)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_DEFAULT, EXTRA FROM information_schema.COLUMNS"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            name,
        )
        return {
            str(column).lower(): ExistingColumn(
                str(kind).lower(),
                default is not None and not (mariadb and default == "NULL"),
                _COMPUTED.search(str(extra)) is not None,
            )
            for column, kind, default, extra in cursor.fetchall()
        }


def reason_rows_differ(ddl: TableDdl, now: Mapping[str, ExistingColumn]) -> str:
    """Why rows from before an ALTER TABLE may not be as it left them at the source, or ""."""
    if removes_rows(ddl):
        return "it removed rows, and does not say which"
    if moved_by(ddl) is not None:
        return "it moved rows between tables"
    if redefined := sorted(given_up(ddl) & now.keys()):
        return f"{', '.join(redefined)} is another column by now"
    effects = effects_of(ddl)
    if effects.numbers or effects.numbered:
        return "it numbered rows"
    if effects.loses:
        return "it removed rows that have the same key"
    return _reason_types_differ(effects, now) or next(filter(None, _doubts_of_new(ddl, now)), "")


def _reason_types_differ(effects: Effects, now: Mapping[str, ExistingColumn]) -> str:
    for name in effects.retyped:
        column = now.get(name)
        if effects.times or column is None or column.type not in _AS_WRITTEN:
            return f"it may have converted values of {name}"
    return ""


def _doubts_of_new(ddl: TableDdl, now: Mapping[str, ExistingColumn]) -> Iterator[str]:
    for clause in ddl.clauses():
        for column in clause.columns if clause.words[0] == "ADD" else ():
            yield _reason_new_column_differs(column, now.get(name_of(column[0]).lower()))


def _reason_new_column_differs(column: Sequence[Token], now: ExistingColumn | None) -> str:
    words = [token.word for token in column]
    name = name_of(column[0])
    if "AS" in words and "DEFAULT" not in words:
        # Computed from the row at the target as well; unless setl made a plain column of it, whose
        # values come with the rows.
        return "" if now is None or now.computed else f"it computed values of {name}"
    if ("ON", "UPDATE") in pairwise(words):
        return f"it gave them no time in {name}, and later updates did"
    at = words.index("DEFAULT") + 1 if "DEFAULT" in words else len(words)
    if words[at : at + 1] not in ([], ["NULL"]):
        return f"it gave them a value in {name}"
    return f"it gave them no value in {name}, and the table does" if now and now.filled else ""
