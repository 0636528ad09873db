"""Loads the rows that both sites write, in one transaction of the target.

The order of what the source says counts, also between tables. What is delivered again must be
distinguished from what is new: it could undo what was written at the target meanwhile. So one task
takes all of it, and says in the same transaction how far it has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.model.change import Row
from setl.model.conflict import History, Mark, SiteWrites
from setl.model.loaded import Loaded
from setl.model.schema import RowSchema
from setl.systems.mysql.conflicts import recent, tables
from setl.systems.mysql.conflicts.agreement import (
    NewWrites,
    RowMemory,
    RowOutcome,
    row_outcome,
    row_read,
    site_writes_by_key,
    writes_seen_by_key,
)
from setl.systems.mysql.conflicts.contested_rows import ContestedTable
from setl.systems.mysql.conflicts.outcome import is_unwritten
from setl.systems.mysql.conflicts.recent import Numbered, RowReport
from setl.systems.mysql.conflicts.resolve import Winner, same
from setl.systems.mysql.conflicts.tables import Decision
from setl.systems.mysql.load.row_statement import Limits


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a load did.

    Attributes:
        upserts: rows written.
        deletes: rows deleted.
        source: conflicts that the source's row won.
        target: conflicts that the target's row won.
        reported: rows written to ``retl.setl_conflict``.
    """

    upserts: int = 0
    deletes: int = 0
    source: int = 0
    target: int = 0
    reported: int = 0

    def loaded(self, seconds: float) -> Loaded:
        """The same as every sink reports it."""
        return Loaded(
            upserts=self.upserts,
            deletes=self.deletes,
            seconds=seconds,
            conflicts_source=self.source,
            conflicts_target=self.target,
        )

    def __add__(self, other: Resolved) -> Resolved:
        return Resolved(
            self.upserts + other.upserts,
            self.deletes + other.deletes,
            self.source + other.source,
            self.target + other.target,
            self.reported + other.reported,
        )


def resolve_histories(
    connection: Connection[Any],
    pipeline: str,
    histories: Sequence[History],
    described: dict[tuple[str, str], RowSchema],
    *,
    limits: Limits,
) -> Resolved:
    """Apply what the source says, inside the transaction that is open; pymysql's errors pass.

    Args:
        connection: to the target.
        pipeline: ``channel/pipeline``.
        histories: what the source says, in source order within each, and `undecided_tables`.
        described: the tables that they are about.
        limits: of statements.

    Raises:
        RowAppearedError: the transaction has to be restarted.
        ConfigurationError: a table does not allow what its policy needs.
        DataError: the target refuses a row.
    """
    resolved = Resolved()
    with connection.cursor(Cursor) as cursor:
        applied = tables.applied_through(cursor, pipeline)
        through = max(
            (one.version for h in histories for one in (*h.steps, *h.writes_seen, *h.marks)),
            default=0,
        )
        if through <= applied:
            return resolved
        marks = sorted(
            {mark for h in histories for mark in h.marks if mark.version > applied},
            key=lambda mark: (mark.version, mark.number),
        )
        load = _Load(connection, cursor, pipeline, through, marks, limits)
        contested = [
            ContestedTable.of(
                connection, table, [h for h in histories if h.target == target], applied
            )
            for target, table in described.items()
        ]
        load.forget_processed(contested)
        for one in contested:
            resolved += load.table(one)
        load.finish()
        tables.set_applied(cursor, pipeline, through)
    return resolved


def resolve_read(
    connection: Connection[Any],
    pipeline: str,
    histories: Sequence[History],
    described: dict[tuple[str, str], RowSchema],
    *,
    through: int,
    limits: Limits,
) -> Resolved:
    """Take in rows that were read from the source's tables; see `resolve_histories`.

    Args:
        connection: to the target.
        pipeline: ``channel/pipeline``.
        histories: the rows, and nothing else.
        described: the tables that they are of.
        through: up to which version the source is taken in.
        limits: of statements.
    """
    resolved = Resolved()
    with connection.cursor(Cursor) as cursor:
        tables.applied_through(cursor, pipeline)  # one load at a time
        load = _Load(connection, cursor, pipeline, through, (), limits)
        for target, table in described.items():
            own = [history for history in histories if history.target == target]
            resolved += load.read(ContestedTable.of(connection, table, own, 0))
        load.finish()
    return resolved


def undecided_tables(
    connection: Connection[Any], pipeline: str, histories: Sequence[History]
) -> list[History]:
    """Tables of which rows are to be looked at once more, since the source has passed them.

    As histories that say nothing. Outside a transaction; pymysql's errors pass.
    """
    passed = max((mark.passed for h in histories for mark in h.marks), default=0)
    if not passed:
        return []
    with connection.cursor(Cursor) as cursor:
        return recent.undecided_tables(cursor, pipeline, passed)


class _Load:
    """One load, table after table."""

    def __init__(  # noqa: PLR0917 - of one call
        self,
        connection: Connection[Any],
        cursor: Cursor,
        pipeline: str,
        through: int,
        marks: Sequence[Mark],
        limits: Limits,
    ) -> None:
        self._connection = connection
        self._cursor = cursor
        self._pipeline = pipeline
        self._marks = marks
        self._limits = limits
        self._before = recent.progress(cursor, pipeline)
        self._number = self._before.number
        # By table, of rows of which the source tells something in this load.
        self._remembered: dict[tuple[str, str], dict[Row, Numbered]] = {}
        # How much of what this site told the other has read.
        self._passed = max((mark.passed for mark in marks), default=0)
        self._position = recent.ProgressMark(
            through, max((mark.number for mark in marks), default=0)
        )

    def forget_processed(self, contested: Sequence[ContestedTable]) -> None:
        """Forget what the source has passed, but for rows of which it tells something here."""
        for one in contested:
            table, keys = one.table(self._pipeline), {seen.key for seen in one.writes_seen}
            self._remembered[table.name] = recent.stored_of(self._cursor, table, list(keys))
        if self._passed:
            recent.forget_plain(self._cursor, self._pipeline, self._passed)

    def table(self, contested: ContestedTable) -> Resolved:
        """Resolve the rows of one table."""
        rules, table = contested.rules, contested.table(self._pipeline)
        theirs = site_writes_by_key(rules, contested.steps, self._marks, self._before.seen)
        ours = writes_seen_by_key(rules, contested.writes_seen)
        first: dict[Row, Row | None] = {}
        for step in contested.steps:
            first.setdefault(step.key, step.before)
        memory = self._remembered[table.name]
        memory.update(recent.stored_of(self._cursor, table, list(theirs.keys() - ours.keys())))
        if self._passed:
            memory.update(recent.undecided(self._cursor, table, self._passed))
        held = {one.key: one.row for one in contested.held}
        # In one order for all loads: fewer deadlocks.
        keys = sorted({*theirs, *memory, *held}, key=repr)
        rows = contested.read(self._connection, keys)
        met_by_key: dict[Row, RowOutcome] = {}
        for key in keys:
            old = memory.get(key)
            passed = old is not None and old.number <= self._passed
            new = NewWrites(
                theirs.get(key), first.get(key), ours.get(key), passed, self._position.through
            )
            met = row_outcome(rules, rows.get(key), old.memory if old else None, new)
            if key in held and not new.written:
                reported = row_read(rules, met.row, met.memory, held[key], self._position.through)
                met = reported if reported.is_reported else met
            met_by_key[key] = met
        resolved = self._carried_out(contested, rows, met_by_key)
        self._remember(contested, theirs, memory, met_by_key)
        return resolved

    def read(self, contested: ContestedTable) -> Resolved:
        """Take in rows of one table that were read."""
        rules, rows_read = contested.rules, {one.key: one.row for one in contested.rows_read}
        remembered = recent.stored_of(
            self._cursor, contested.table(self._pipeline), list(rows_read)
        )
        keys = sorted(rows_read, key=repr)
        rows = contested.read(self._connection, keys)
        met_by_key: dict[Row, RowOutcome] = {}
        for key in keys:
            memory = remembered[key].memory if key in remembered else None
            met = row_read(rules, rows.get(key), memory, rows_read[key], self._position.through)
            if met.is_reported:
                met_by_key[key] = met
        resolved = self._carried_out(contested, rows, met_by_key)
        self._remember(contested, {}, {}, met_by_key)
        return resolved

    def _carried_out(
        self,
        contested: ContestedTable,
        rows: dict[Row, Row],
        met_by_key: dict[Row, RowOutcome],
    ) -> Resolved:
        """Write what was decided, and list it."""
        upserts, deletes = contested.write(
            self._connection,
            {key: rows.get(key) for key in met_by_key},
            {key: one.row for key, one in met_by_key.items()},
            self._limits,
        )
        decided = [
            Decision(
                key,
                one.memory.theirs.last if one.memory else self._position.through,
                one.winner,
                one.memory.theirs.row if one.memory else None,
                rows.get(key),
                one.row,
            )
            for key, one in met_by_key.items()
            if one.winner is not None
        ]
        tables.list_decisions(self._cursor, contested.table(self._pipeline), decided)
        return Resolved(
            upserts,
            deletes,
            sum(one.winner is Winner.SOURCE for one in decided),
            sum(one.winner is Winner.TARGET for one in decided),
            len(decided),
        )

    def finish(self) -> None:
        """What is to be done once, after all tables."""
        # One that says nothing but how far it has read is not answered, else it went on for ever.
        if self._number == self._before.number and any(mark.through for mark in self._marks):
            self._number = recent.record_progress(
                self._cursor, self._pipeline, self._position, self._number
            )
        seen = max([self._before.seen, *(mark.through for mark in self._marks)])
        if self._number // recent.COUNT_EVERY > self._before.number // recent.COUNT_EVERY:
            forgotten = recent.forget_old(self._cursor, self._pipeline)
            if forgotten:
                tables.list_forgotten(self._cursor, self._pipeline, forgotten)
        reached = recent.Progress(seen, self._number)
        if reached != self._before:
            recent.set_progress(self._cursor, self._pipeline, reached)

    def _remember(
        self,
        contested: ContestedTable,
        theirs: dict[Row, SiteWrites],
        memory: dict[Row, Numbered],
        met_by_key: dict[Row, RowOutcome],
    ) -> None:
        reported: list[RowReport] = []
        changed: list[Numbered] = []
        forgotten: list[int] = []
        for key, outcome in met_by_key.items():
            old = memory.get(key)
            if outcome.is_reported and outcome.memory is not None:
                reported.append(_report(key, theirs.get(key), outcome.memory))
            elif old is not None and outcome.memory is not None:
                if outcome.memory != old.memory:
                    changed.append(Numbered(old.number, outcome.memory))
                continue
            if old is not None:
                forgotten.append(old.number)
        recent.forget(self._cursor, self._pipeline, forgotten)
        table = contested.table(self._pipeline)
        recent.keep(self._cursor, table, changed)
        self._number = recent.record(
            self._cursor,
            table,
            self._position,
            reported,
            history=contested.about,
            number=self._number,
            packet=self._limits.packet,
        )


def _report(key: Row, theirs: SiteWrites | None, memory: RowMemory) -> RowReport:
    """What is told about a row; of one that was read only if the target's own row stays."""
    ours, left = memory.ours, memory.left
    read = (
        theirs is None and is_unwritten(memory.theirs) and ours is not None and is_unwritten(ours)
    )
    if read and ours is not None and same(left, ours.row) and not same(left, memory.theirs.row):
        return RowReport(key, memory.theirs, memory, left)
    return RowReport(key, theirs, memory)
