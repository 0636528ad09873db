"""Rows of one target table that both sites write: read, decided about, and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pymysql.connections import Connection

from setl.errors import ConfigurationError, DataError, TransientError
from setl.model.change import ABSENT, Row, Value
from setl.model.conflict import COMPARABLE, History, ReadRow, Step, WritesSeen
from setl.model.schema import Column, RowSchema
from setl.systems.mysql.conflicts.missing_columns import defaults_of, missing_columns
from setl.systems.mysql.conflicts.resolve import Rules, age_by
from setl.systems.mysql.conflicts.tables import Table
from setl.systems.mysql.connection import error_number
from setl.systems.mysql.identifiers import identifier
from setl.systems.mysql.load.row_statement import Limits
from setl.systems.mysql.load.rows import write_rows
from setl.systems.mysql.load.statements import Strategy, TableWrites, lacking, plan_writes
from setl.systems.mysql.values.conditions import keyed_conditions
from setl.systems.mysql.values.row_values import decoded, decoders, select_list, undecoded

_DUPLICATE = 1062


class RowAppearedError(TransientError):
    """Somebody inserted a row after it was found missing, so that all is to be read again."""


@dataclass(frozen=True, slots=True)
class ContestedTable:
    """A target table with the steps of a load.

    Attributes:
        described: the table.
        columns: its columns that the source has too and that can be written.
        key: indexes of its primary key in `columns`.
        rules: how to decide about its rows.
        about: a history of it, for its policy.
        steps: the source's changes, in their order, with rows of `columns`.
        writes_seen: what it tells of the target's own, likewise.
        held: rows that it tells of, see `History.held`, likewise.
        rows_read: rows that were read from its table.
    """

    described: RowSchema
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    rules: Rules
    about: History
    steps: tuple[Step, ...]
    writes_seen: tuple[WritesSeen, ...]
    held: tuple[ReadRow, ...] = ()
    rows_read: tuple[ReadRow, ...] = ()

    @classmethod
    def of(
        cls,
        connection: Connection[Any],
        described: RowSchema,
        histories: Sequence[History],
        applied_through: int,
    ) -> ContestedTable:
        """Put together what a load has for one table, without what was applied before.

        pymysql's errors pass through.

        Raises:
            ConfigurationError: the table does not allow a conflict policy.
        """
        _check_keys(described)
        _check_columns(described, histories, applied_through)
        lacked = [list(missing_columns(described, history)) for history in histories]
        missing = {
            column.name: column
            for history, columns in zip(histories, lacked, strict=True)
            if history.read or any(step.version > applied_through for step in history.steps)
            for column in columns
        }
        defaults = defaults_of(connection, described, list(missing.values())) if missing else {}
        named = {name.lower() for history in histories for name in history.columns}
        named.update(defaults)
        columns = tuple(c for c in described.columns if c.name.lower() in named and not c.generated)
        indexes = {c.name.lower(): i for i, c in enumerate(columns)}
        primary = [described.columns[i].name for i in described.key]
        key = tuple(indexes.get(name.lower(), -1) for name in primary)
        if -1 in key:
            raise ConfigurationError(
                f"not all of the key of {described.name} comes from the source",
                hint="`setl check` compares mappings with the tables",
                table=described.name,
            )
        steps: list[Step] = []
        writes_seen: list[WritesSeen] = []
        held: list[ReadRow] = []
        rows_read: list[ReadRow] = []
        for history, without in zip(histories, lacked, strict=True):
            names = [column.name.lower() for column in without]
            given = {indexes[name]: defaults[name] for name in names if name in defaults}
            aligned = _Aligned(history, indexes, primary, len(columns), given)
            steps += [aligned.step(s) for s in history.steps if s.version > applied_through]
            writes_seen += [
                aligned.writes_seen(h) for h in history.writes_seen if h.version > applied_through
            ]
            held += [aligned.held(h) for h in history.held if h.version > applied_through]
            rows_read += map(aligned.read, history.read)
        steps.sort(key=lambda step: step.version)
        writes_seen.sort(key=lambda one: one.version)
        held.sort(key=lambda one: one.version)
        rules = _rules(described, histories[0], indexes, columns)
        row_parts = (tuple(steps), tuple(writes_seen), tuple(held), tuple(rows_read))
        return cls(described, columns, key, rules, histories[0], *row_parts)

    def table(self, pipeline: str) -> Table:
        """For what is written about its rows."""
        names = tuple(column.name for column in self.columns)
        key = tuple(names[i] for i in self.key)
        return Table(
            pipeline,
            (self.described.schema, self.described.table),
            names,
            key,
            self.about.policy.name,
        )

    def read(self, connection: Connection[Any], keys: Sequence[Row]) -> dict[Row, Row]:
        """The rows with these keys, locked until the transaction ends."""
        key_columns = [self.columns[i] for i in self.key]
        index = f"{identifier(self.described.schema)}.{identifier(self.described.table)}"
        head = f"SELECT {select_list(self.columns)} FROM {index} WHERE "
        decode = decoders(self.columns)
        by_key: dict[Row, Row] = {}
        with undecoded(connection) as cursor:
            for condition in keyed_conditions(key_columns, keys):
                cursor.execute(f"{head}{condition.sql} FOR UPDATE", condition.values)
                for raw in cursor.fetchall():
                    row = decoded(decode, raw)
                    by_key[tuple(row[i] for i in self.key)] = row
        return by_key

    def write(
        self,
        connection: Connection[Any],
        before: dict[Row, Row | None],
        after: dict[Row, Row | None],
        limits: Limits,
    ) -> tuple[int, int]:
        """Bring the rows from one state to another; returns how many were written and deleted.

        Raises:
            RowAppearedError: a row that was missing is there.
            DataError: the server refuses a row.
        """
        gone = [key for key, row in after.items() if row is None and before[key] is not None]
        written = [row for key, row in after.items() if row is not None and row != before[key]]
        new = [row for row in written if before[self._key_of(row)] is None]
        old = [row for row in written if before[self._key_of(row)] is not None]
        if gone:
            statement = self._plan(self.columns, self.key).deletes
            write_rows(connection, statement, gone, limits, _refuse)
        if old:
            statement = self._plan(self.columns, self.key).inserts
            write_rows(connection, statement, old, limits, _refuse)
        for present, rows in _by_shape(new).items():
            columns = tuple(self.columns[i] for i in present)
            plan = self._plan(columns, tuple(present.index(i) for i in self.key))
            # Without ON DUPLICATE KEY UPDATE: nothing locks a row that is not there.
            statement = replace(plan.inserts, tail="")
            picked = [tuple(row[i] for i in present) for row in rows]
            write_rows(connection, statement, picked, limits, _refuse)
        return len(written), len(gone)

    def _key_of(self, row: Row) -> Row:
        return tuple(row[i] for i in self.key)

    def _plan(self, columns: tuple[Column, ...], key: tuple[int, ...]) -> TableWrites:
        plan = plan_writes(columns, key, self.described)
        if plan.strategy is not Strategy.UPSERT:
            raise _further_keys(self.described)
        return plan


def _check_keys(described: RowSchema) -> None:
    if not described.key:
        raise ConfigurationError(
            f"{described.name} has no primary key, so conflicts cannot be found in it",
            hint="Give it one, or take the conflict policy away",
            table=described.name,
        )
    if described.unique:
        raise _further_keys(described)


def _check_columns(
    described: RowSchema, histories: Sequence[History], applied_through: int
) -> None:
    """Refuse values for which there is no column.

    What is only told, of the target's own rows, may be of a column that it had once.
    """
    new = [
        history
        for history in histories
        if history.read
        or any(one.version > applied_through for one in (*history.steps, *history.held))
    ]
    given = dict.fromkeys(name for history in new for name in history.columns)
    if missing := lacking(described, given):
        raise ConfigurationError(
            f"the target table lacks the columns {', '.join(missing)}",
            hint="Add them, or leave them out with `exclude` in both pipelines",
            table=described.name,
        )


def _further_keys(described: RowSchema) -> ConfigurationError:
    return ConfigurationError(
        f"{described.name} has a unique key besides its primary key, so two sites can give out the"
        " same value, which no choice between two rows of one key undoes",
        hint="Drop the unique key, or take the conflict policy away",
        table=described.name,
    )


def _rules(
    described: RowSchema, history: History, indexes: dict[str, int], columns: Sequence[Column]
) -> Rules:
    policy = history.policy
    if not policy.newest:
        return Rules(policy.from_home)
    index = indexes.get(history.newest.lower(), -1)
    if index < 0 or columns[index].kind not in COMPARABLE:
        raise ConfigurationError(
            f"the column {history.newest} of {described.name} does not say which row is newer",
            hint="Name a date, a time or a number under `newest`",
            table=described.name,
        )
    return Rules(policy.from_home, age_by(columns[index]), index)


class _Aligned:
    """Rows and keys of a history in the order of the target's columns."""

    def __init__(
        self,
        history: History,
        indexes: dict[str, int],
        primary: Sequence[str],
        width: int,
        given: Mapping[int, Value],
    ) -> None:
        self._targets = [indexes.get(name.lower(), -1) for name in history.columns]
        # What the source's own rows have in columns that it did not have; what is told has not.
        self._given = given
        self._width = width
        named = {name.lower(): i for i, name in enumerate(history.key)}
        self._order = [named.get(name.lower(), -1) for name in primary]
        if -1 in self._order:
            raise ConfigurationError(
                f"the key of {'.'.join(history.target)} is another one than the source's",
                hint="Both tables need the same primary key",
            )
        self._same = self._targets == list(range(width))

    def step(self, step: Step) -> Step:
        before, after = self._whole(step.before), self._whole(step.after)
        return Step(step.version, self._key(step.key), before, after)

    def writes_seen(self, seen: WritesSeen) -> WritesSeen:
        writes = seen.writes._replace(row=self._row(seen.writes.row))
        return WritesSeen(seen.version, self._key(seen.key), writes)

    def read(self, read: ReadRow) -> ReadRow:
        return ReadRow(read.version, self._key(read.key), self._whole(read.row))

    def held(self, held: ReadRow) -> ReadRow:
        return ReadRow(held.version, self._key(held.key), self._row(held.row))

    def _whole(self, values: Row | None) -> Row | None:
        row = self._row(values)
        if row is None or not self._given:
            return row
        return tuple(self._given.get(index, value) for index, value in enumerate(row))

    def _key(self, key: Row) -> Row:
        return tuple(key[i] for i in self._order)

    def _row(self, values: Row | None) -> Row | None:
        if values is None or self._same:
            return values
        aligned: list[Value] = [ABSENT] * self._width
        for index, value in zip(self._targets, values, strict=True):
            if index >= 0:
                aligned[index] = value
        return tuple(aligned)


def _by_shape(rows: Sequence[Row]) -> dict[tuple[int, ...], list[Row]]:
    """Rows by the indexes of the values that they have."""
    shapes: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        present = tuple(i for i, value in enumerate(row) if value is not ABSENT)
        shapes.setdefault(present, []).append(row)
    return shapes


def _refuse(_: int, error: DataError) -> None:
    if error_number(error.__cause__) == _DUPLICATE:
        raise RowAppearedError(
            "a row was inserted at the target at the same moment", **error.where
        ) from error.__cause__
    raise error
