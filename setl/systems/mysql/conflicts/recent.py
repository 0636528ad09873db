"""Stores what a site knows of the other site's rows, and tells it: ``retl.setl_recent``.

All functions run inside the load's transaction; pymysql's errors pass through.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pymysql.cursors import Cursor

from setl.errors import DataError
from setl.model.change import Row
from setl.model.conflict import (
    ConflictPolicy,
    History,
    SiteWrites,
    row_from,
    site_writes_from,
    site_writes_text,
    site_writes_values,
    value_of,
    values_object,
)
from setl.systems.mysql.conflicts.agreement import RowMemory
from setl.systems.mysql.conflicts.outcome import Guess
from setl.systems.mysql.conflicts.tables import Table

MAX_ROWS: Final = 1_000_000
"""Rows of which a pipeline keeps something for the other site at most, the newest."""

COUNT_EVERY: Final = 20_000
"""Numbers given out after which a load looks whether there are too many."""

_SOME: Final = 500
_HEAD: Final = 20_000  # bytes of a statement besides the writes and what is kept

_READ_PROGRESS = "SELECT seen, number FROM retl.setl_passed WHERE pipeline = %s"
_SET_PROGRESS = (
    "INSERT INTO retl.setl_passed (pipeline, seen, number) VALUES (%s, %s, %s)"
    " ON DUPLICATE KEY UPDATE seen = VALUES(seen), number = VALUES(number)"
)
_OF_TABLE = (
    "SELECT row_key, number, kept, said FROM retl.setl_recent"
    " WHERE pipeline = %s AND schema_name = %s AND table_name = %s"
)
_OF_KEYS = f"{_OF_TABLE} AND row_key IN ({{}})"
_STORED_KEYS = (
    "SELECT row_key FROM retl.setl_recent WHERE pipeline = %s AND schema_name = %s"
    " AND table_name = %s AND kept IS NOT NULL AND row_key IN ({})"
)
_UNDECIDED = f"{_OF_TABLE} AND number <= %s AND plain = 0"
_UNDECIDED_TABLES = (
    "SELECT schema_name, table_name, column_names, policy, MIN(row_key) FROM retl.setl_recent"
    " WHERE pipeline = %s AND number <= %s AND plain = 0"
    " GROUP BY schema_name, table_name, column_names, policy"
)
_RECORD = (
    "INSERT INTO retl.setl_recent (pipeline, number, through, passed, schema_name, table_name,"
    " row_key, column_names, policy, said, kept, plain)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
_STORE = "UPDATE retl.setl_recent SET kept = %s, plain = %s WHERE pipeline = %s AND number = %s"
_FORGET = "DELETE FROM retl.setl_recent WHERE pipeline = %s AND number IN ({})"
_FORGET_PROGRESS = "DELETE FROM retl.setl_recent WHERE pipeline = %s AND row_key = ''"
_OLDEST_STORED = (
    "SELECT number FROM retl.setl_recent WHERE pipeline = %s ORDER BY number DESC LIMIT 1 OFFSET %s"
)
_FORGET_OLD = "DELETE FROM retl.setl_recent WHERE pipeline = %s AND number < %s"
_FORGET_PLAIN = "DELETE FROM retl.setl_recent WHERE pipeline = %s AND number <= %s AND plain = 1"


class Progress(NamedTuple):
    """How far two sites have come with each other.

    Attributes:
        seen: up to which position of the target's stream the source has taken it in.
        number: the last number that was given out in ``retl.setl_recent``.
    """

    seen: int = 0
    number: int = 0


class Numbered(NamedTuple):
    """What a site keeps of a row, and the number under which it told so."""

    number: int
    memory: RowMemory


class RowReport(NamedTuple):
    """What is to be told about a row.

    Attributes:
        key: values of the key columns.
        writes: what the source did, None for nothing.
        memory: what is kept.
        held: the row that this site holds against one of the source's that was read.
    """

    key: Row
    writes: SiteWrites | None
    memory: RowMemory
    held: Row | None = None


class ProgressMark(NamedTuple):
    """What all that a load tells has in common.

    Attributes:
        through: up to which version it takes the source in; 0 if it wrote nothing.
        passed: up to which number it has read what the source told.
    """

    through: int
    passed: int


def progress(cursor: Cursor, pipeline: str) -> Progress:
    """How far the sites have come; the lock of `tables.applied_through` guards it."""
    cursor.execute(_READ_PROGRESS, (pipeline,))
    row = cursor.fetchone()
    return Progress(int(row[0]), int(row[1])) if row else Progress()


def set_progress(cursor: Cursor, pipeline: str, reached: Progress) -> None:
    """Write down how far the sites have come."""
    cursor.execute(_SET_PROGRESS, (pipeline, *reached))


def stored_of(cursor: Cursor, table: Table, keys: Sequence[Row]) -> dict[Row, Numbered]:
    """What is kept of these keys."""
    by_key: dict[Row, Numbered] = {}
    by_text = {table.key_text(key): key for key in keys}
    for some in _pieces(list(by_text)):
        statement = _OF_KEYS.format(", ".join(["%s"] * len(some)))
        cursor.execute(statement, (table.pipeline, *table.name, *some))
        for text, number, memory, writes in cursor.fetchall():
            if memory is not None:
                by_key[by_text[str(text)]] = Numbered(int(number), _memory(table, memory, writes))
    return by_key


def stored_keys(cursor: Cursor, table: Table, keys: Sequence[Row], ending: str) -> set[Row]:
    """Those of these keys of which something is kept; the SELECTs end with `ending`."""
    stored: set[Row] = set()
    by_text = {table.key_text(key): key for key in keys}
    for some in _pieces(list(by_text)):
        statement = _STORED_KEYS.format(", ".join(["%s"] * len(some))) + ending
        cursor.execute(statement, (table.pipeline, *table.name, *some))
        stored.update(by_text[_text(text)] for (text,) in cursor.fetchall())
    return stored


def undecided(cursor: Cursor, table: Table, passed: int) -> dict[Row, Numbered]:
    """What is kept up to a number, of rows whose outcome is to be looked at once more."""
    cursor.execute(_UNDECIDED, (table.pipeline, *table.name, passed))
    by_key: dict[Row, Numbered] = {}
    for text, number, memory, writes in cursor.fetchall():
        named = json.loads(text)
        key = tuple(value_of(named[name]) for name in table.key)
        by_key[key] = Numbered(int(number), _memory(table, memory, writes))
    return by_key


def undecided_tables(cursor: Cursor, pipeline: str, passed: int) -> list[History]:
    """Histories without changes, of the tables that `undecided` would find rows of."""
    cursor.execute(_UNDECIDED_TABLES, (pipeline, passed))
    histories: list[History] = []
    for schema, table, columns, policy, key in cursor.fetchall():
        newest_of_source, from_home, newest = json.loads(policy)
        rules = ConflictPolicy(newest_of_source, from_home=bool(from_home))
        names = tuple(json.loads(columns))
        histories.append(History((schema, table), rules, newest, names, tuple(json.loads(key))))
    return histories


def record(
    cursor: Cursor,
    table: Table,
    position: ProgressMark,
    reports: Sequence[RowReport],
    *,
    history: History,
    number: int,
    packet: int,
) -> int:
    """Tell the source what was taken in, and keep it; returns the last number given out.

    Raises:
        DataError: a row does not fit into one statement, of `packet` bytes at most.
    """
    names, policy = json.dumps(table.columns), _policy_text(history)
    rows: list[tuple[Any, ...]] = []
    for report in reports:
        number += 1
        writes = None if report.writes is None else _writes_text(table, report.writes, report.held)
        memory = _memory_text(table, report.memory, report.writes)
        # Quotes and backslashes are escaped in a statement, so it may be twice as long.
        if 2 * (len(writes or "") + len(memory)) + _HEAD > packet:
            raise DataError(
                f"a row with a conflict policy is too large: what is told of it to the other site"
                f" does not fit into the {packet} bytes that the target accepts",
                hint="Raise max_allowed_packet at both sites, or take the conflict policy away",
                table=".".join(table.name),
                key=table.key_text(report.key)[:200],
            )
        rows.append((
            table.pipeline, number, *position, *table.name, table.key_text(report.key), names,
            policy, writes, memory, int(report.memory.plain),
        ))  # fmt: skip
    if rows:
        cursor.executemany(_RECORD, rows)
    return number


def record_progress(cursor: Cursor, pipeline: str, position: ProgressMark, number: int) -> int:
    """Tell the source how far this site has read; returns the number given out.

    One such row is left: it is in the binlog, which is all that it was written for.
    """
    cursor.execute(_FORGET_PROGRESS, (pipeline,))
    cursor.execute(
        _RECORD, (pipeline, number + 1, 0, position.passed, "", "", "", "[]", "", None, None, 1)
    )
    return number + 1


def keep(cursor: Cursor, table: Table, numbered: Sequence[Numbered]) -> None:
    """Keep something else under a number; the source is not told."""
    if numbered:
        rows = [
            (_memory_text(table, m), int(m.plain), table.pipeline, number) for number, m in numbered
        ]
        cursor.executemany(_STORE, rows)


def forget(cursor: Cursor, pipeline: str, numbers: Sequence[int]) -> None:
    """Keep nothing under these numbers."""
    for some in _pieces(numbers):
        statement = _FORGET.format(", ".join(["%s"] * len(some)))
        cursor.execute(statement, (pipeline, *some))


def forget_plain(cursor: Cursor, pipeline: str, passed: int) -> None:
    """Forget, up to a number, what cannot make another outcome."""
    cursor.execute(_FORGET_PLAIN, (pipeline, passed))


def forget_old(cursor: Cursor, pipeline: str, most: int = MAX_ROWS) -> int:
    """Forget all but the newest; returns of how many rows something was forgotten."""
    cursor.execute(_OLDEST_STORED, (pipeline, most - 1))
    row = cursor.fetchone()
    return cursor.execute(_FORGET_OLD, (pipeline, int(row[0]))) if row else 0


def _policy_text(history: History) -> str:
    return json.dumps([history.policy.newest, history.policy.from_home, history.newest])


def _writes_text(table: Table, writes: SiteWrites, held: Row | None) -> str:
    if held is None:
        return site_writes_text(writes, table.columns)
    values = site_writes_values(writes, table.columns)
    return json.dumps({**values, "held": _object(table, held)})


def _memory_text(table: Table, memory: RowMemory, writes: SiteWrites | None = None) -> str:
    """What is kept as text; most often it is the writes, which are written once."""
    values: dict[str, Any] = {"through": memory.through}
    if memory.theirs != writes:
        values["theirs"] = site_writes_values(memory.theirs, table.columns)
    if memory.ours is not None:
        values["ours"] = site_writes_values(memory.ours, table.columns)
    if memory.left != memory.theirs.row:
        values["left"] = _object(table, memory.left)
    if memory.guess is not None:
        values["guess"] = {"row": _object(table, memory.guess.row), "seen": memory.guess.seen}
    return json.dumps(values)


def _memory(table: Table, text: str, writes: str | None) -> RowMemory:
    values = json.loads(text)
    whole = values["theirs"] if "theirs" in values else json.loads(str(writes))
    theirs = site_writes_from(whole, table.columns)
    guess = values.get("guess")
    return RowMemory(
        theirs,
        site_writes_from(values["ours"], table.columns) if "ours" in values else None,
        _row(table, values["left"]) if "left" in values else theirs.row,
        int(values["through"]),
        guess and Guess(_row(table, guess["row"]), int(guess["seen"])),
    )


def _object(table: Table, row: Row | None) -> dict[str, Any] | None:
    return values_object(None if row is None else table.values(row))


def _row(table: Table, values: dict[str, Any] | None) -> Row | None:
    """A row; a column of today that it does not have is absent."""
    return row_from(values, table.columns)


def _pieces(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(values), _SOME):
        yield values[first : first + _SOME]


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
