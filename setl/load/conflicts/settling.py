"""One load of the rows that both sites write: all of it in one transaction of the target.

The order of what the source says counts, also between tables, and what is delivered again must
be told from what is new, since it could undo what was written at the target meanwhile. So one
task takes all of it, and says in the same transaction how far it has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.load.conflicts import tables
from setl.load.conflicts.agreement import Kept, settle
from setl.load.conflicts.contested_rows import ContestedTable
from setl.load.conflicts.resolve import Winner
from setl.load.conflicts.tables import NewId
from setl.load.mysql.statements import Limits
from setl.load.port import Loaded
from setl.model.change import Row
from setl.model.conflict import History
from setl.model.schema import RowSchema


@dataclass(frozen=True, slots=True)
class Settled:
    """What a load did.

    Attributes:
        upserts: rows written.
        deletes: rows deleted.
        source: conflicts that the source's row won.
        target: conflicts that the target's row won.
        told: rows written to ``retl.setl_conflict``.
    """

    upserts: int = 0
    deletes: int = 0
    source: int = 0
    target: int = 0
    told: int = 0

    def loaded(self, seconds: float) -> Loaded:
        """The same as every sink reports it."""
        return Loaded(
            upserts=self.upserts,
            deletes=self.deletes,
            seconds=seconds,
            conflicts_source=self.source,
            conflicts_target=self.target,
        )

    def __add__(self, other: Settled) -> Settled:
        return Settled(
            self.upserts + other.upserts,
            self.deletes + other.deletes,
            self.source + other.source,
            self.target + other.target,
            self.told + other.told,
        )


def settle_histories(
    connection: Connection[Any],
    pipeline: str,
    histories: Sequence[History],
    described: dict[tuple[str, str], RowSchema],
    *,
    new_id: NewId,
    limits: Limits,
) -> Settled:
    """Apply what the source says, inside the transaction that is open; pymysql's errors pass.

    Args:
        connection: to the target.
        pipeline: ``channel/pipeline``.
        histories: what the source says, in source order within each.
        described: the tables that they are about.
        new_id: gives ids of questions.
        limits: of statements.

    Raises:
        RowAppearedError: the transaction has to be begun anew.
        ConfigurationError: a table does not allow what its policy needs.
        DataError: the target refuses a row.
    """
    settled = Settled()
    with connection.cursor(Cursor) as cursor:
        applied = tables.applied_through(cursor, pipeline)
        for target, table in described.items():
            own = [history for history in histories if history.target == target]
            contested = ContestedTable.of(table, own, applied)
            if contested.steps:
                settled += _settle_table(connection, cursor, contested, pipeline, new_id, limits)
        through = max(step.version for history in histories for step in history.steps)
        if through > applied:
            tables.set_applied(cursor, pipeline, through)
    return settled


def _settle_table(  # noqa: PLR0917 - of one call
    connection: Connection[Any],
    cursor: Cursor,
    contested: ContestedTable,
    pipeline: str,
    new_id: NewId,
    limits: Limits,
) -> Settled:
    table, keys = contested.table(pipeline), contested.keys()
    rows = contested.read(connection, keys)
    questions = tables.open_questions(cursor, table, keys)
    kept: dict[Row, Kept] = {}
    for key in keys:
        question = questions.get(table.key_text(key))
        kept[key] = Kept(rows.get(key))
        if question is not None:
            deleted = contested.row_of(question.deleted)
            kept[key] = Kept(rows.get(key), question.asks, deleted, question.overdue)
    before = dict(kept)
    told = settle(contested.rules, contested.steps, kept, new_id)
    upserts, deletes = contested.write(
        connection,
        {key: one.row for key, one in before.items()},
        {key: one.row for key, one in kept.items()},
        limits,
    )
    closed = [
        one.question
        for key, one in before.items()
        if one.question and kept[key].question != one.question
    ]
    tables.close_questions(cursor, pipeline, closed)
    tables.tell(cursor, table, told, {key: one.question for key, one in kept.items()})
    return Settled(
        upserts,
        deletes,
        sum(one.winner is Winner.SOURCE for one in told),
        sum(one.winner is Winner.TARGET for one in told),
        len(told),
    )
