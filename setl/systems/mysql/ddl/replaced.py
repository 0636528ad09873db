"""Refuses schema changes that put another table in a table's place, while both sites write it.

A row that the target's clients have written may be on its way to the source meanwhile. There it
would come to the new table. At the target it stands in the old one, which is gone, or has another
name: it would be at one site alone, and nothing would say so. (Where the source has no table of
that name, the pipeline back stops at the row.)

A table that was empty when it left its name holds no such row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from pymysql.connections import Connection

from setl.codec.sql.table_ddl import Action, TableDdl, parse_table_ddl
from setl.systems.mysql.ddl.advice import not_replicated
from setl.systems.mysql.ddl.context import ChangeContext
from setl.systems.mysql.ddl.plan import Step
from setl.systems.mysql.ddl.table_state import Name, has_rows

REPLACED_TABLE: Final = "replaced-table"
"""What `accept` of a pipeline calls it, see `setl.systems.finding.FOUND_LATER`."""

HELD_ROWS: Final = "held rows"
"""Stands in the record of a statement that took a name from a table with rows."""

_DONE: Final = (
    "SELECT statement, looks FROM retl.setl_ddl WHERE pipeline = %s AND state = 'done'"
    " ORDER BY version, step"
)


class _Names(NamedTuple):
    """What a statement does to names.

    Attributes:
        freed: names that their tables leave → what these are called then.
        taken: names that a table gets.
    """

    freed: dict[Name, Name]
    taken: tuple[Name, ...]


class ReplacedTables:
    """The tables of one pipeline. pymysql's errors pass through."""

    def __init__(self, context: ChangeContext) -> None:
        """Connect to nothing yet."""
        self._context = context

    @property
    def _connection(self) -> Connection[Any]:
        return self._context.connection

    def refuse(self, step: Step) -> None:
        """Refuse a step that puts another table in a table's place."""
        names = _names(step.ddl)
        if names is None:
            return
        accepts = self._context.target.accepts
        taken = [name for name in names.taken if not accepts(REPLACED_TABLE, ".".join(name))]
        if not names.freed:
            # Where one is there, nothing is made.
            taken = [name for name in taken if has_rows(self._connection, name) is None]
        left = self._left(names) if taken else set[Name]()
        for name in taken:
            if name in names.freed or name in left:
                shown = ".".join(name)
                raise not_replicated(
                    f"it puts another table instead of {shown}, and rows that clients of the target"
                    " wrote may be on their way to the source's new table",
                    step.statement,
                    "Have nobody write to the table, let both pipelines catch up, and make the"
                    " change on the target by hand, after SET SESSION sql_log_bin = 0; then compare"
                    " with `setl verify`. For a table that only the source's clients write, name"
                    f" {REPLACED_TABLE}@{shown} under `accept` in the channel file, and store it"
                    " with `setl apply --no-check`, since the target may lack the table",
                )

    def digest(self, step: Step) -> str:
        """What to write down of a step that was done: `HELD_ROWS`, or "" for nothing."""
        names = _names(step.ddl)
        if names is None or not names.freed:
            return ""
        held = any(has_rows(self._connection, name) for name in names.freed.values())
        return HELD_ROWS if held else ""

    def _left(self, names: _Names) -> set[Name]:
        """Names that tables with rows have left, and to which these do not come back now."""
        left: dict[Name, Name] = {}
        with self._connection.cursor() as cursor:
            cursor.execute(_DONE, (self._context.ticket.pipeline_key,))
            for statement, digest in cursor.fetchall():
                done = _names(parse_table_ddl(str(statement), ""))
                if done is not None:
                    left = {old: to for old, to in left.items() if old not in done.taken}
                    left |= done.freed if digest == HELD_ROWS else {}
        back = {(to, old) for old, to in names.freed.items()}
        return {old for old, to in left.items() if (old, to) not in back}


def _names(ddl: TableDdl | None) -> _Names | None:
    """What a statement that runs at a target does to names; None if nothing."""
    if ddl is None:
        return None
    if ddl.action is Action.CREATE:
        return _Names({}, tuple(ddl.tables[:1]))
    pairs = _pairs(ddl.tables) if ddl.action is Action.RENAME else ()
    if ddl.action is Action.ALTER and len(ddl.tables) > 1:
        pairs = [(ddl.tables[0], ddl.tables[1])]
    return _renamed(pairs)


def _pairs(names: Sequence[Name]) -> Iterator[tuple[Name, Name]]:
    return zip(names[::2], names[1::2], strict=True)


def _renamed(pairs: Iterable[tuple[Name, Name]]) -> _Names | None:
    called: dict[Name, Name] = {}  # what a table was called before → what it is called then
    for old, new in pairs:
        before = next((first for first, now in called.items() if now == old), old)
        called[before] = new
    called = {old: new for old, new in called.items() if old != new}
    return _Names(called, tuple(called.values())) if called else None
