"""The tables of ``sql/conflict.sql`` as a load reads and writes them.

All functions run inside the load's transaction; pymysql's errors pass through.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.model.change import ABSENT, Row
from setl.model.conflict import Values, values_text
from setl.systems.conflicts import MAX_CONFLICTS
from setl.systems.mysql.conflicts.resolve import Winner

TRIM_EVERY: Final = 1_000
"""Decisions after which a load looks whether there are too many."""

FORGOT: Final = "forgot"
"""Stands where the winner does: of the oldest rows, what was kept for the other site is lost."""

_SOME: Final = 500

_THROUGH = "SELECT through FROM retl.setl_applied WHERE pipeline = %s FOR UPDATE"
_APPLIED = (
    "INSERT INTO retl.setl_applied (pipeline, through) VALUES (%s, %s)"
    " ON DUPLICATE KEY UPDATE through = VALUES(through)"
)
_RECORD = (
    "INSERT INTO retl.setl_conflict (pipeline, schema_name, table_name, row_key, column_names,"
    " policy, winner, version, incoming, held, result)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
_OLDEST_STORED = (
    "SELECT id FROM retl.setl_conflict WHERE pipeline = %s ORDER BY id DESC LIMIT 1 OFFSET %s"
)
_TRIM = "DELETE FROM retl.setl_conflict WHERE pipeline = %s AND id < %s ORDER BY id LIMIT %s"


class Decision(NamedTuple):
    """What was decided about a row that both sites had written.

    Attributes:
        key: values of the key columns.
        version: the last change of the source that it was about.
        winner: whose state stays.
        incoming: what the source said.
        current: what the target held.
        result: what the target holds now.
    """

    key: Row
    version: int
    winner: Winner
    incoming: Row | None
    current: Row | None
    result: Row | None


class Table(NamedTuple):
    """A target table, for what is written about its rows.

    Attributes:
        pipeline: ``channel/pipeline``.
        name: schema and table.
        columns: names of the columns of its rows.
        key: names of the key columns.
        policy: see `setl.model.conflict.ConflictPolicy.name`.
    """

    pipeline: str
    name: tuple[str, str]
    columns: tuple[str, ...]
    key: tuple[str, ...]
    policy: str

    def key_text(self, key: Row) -> str:
        """A key as it stands in these tables."""
        return values_text(dict(zip(self.key, key, strict=True))) or ""

    def row_text(self, row: Row | None) -> str | None:
        """A row as it stands in these tables."""
        return None if row is None else values_text(self.values(row))

    def values(self, row: Row) -> Values:
        """A row by its columns' names, without what is absent."""
        return {n: v for n, v in zip(self.columns, row, strict=True) if v is not ABSENT}


def applied_through(cursor: Cursor, pipeline: str) -> int:
    """Up to which version the pipeline's changes are here; locks it against another load."""
    cursor.execute(_THROUGH, (pipeline,))
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def set_applied(cursor: Cursor, pipeline: str, through: int) -> None:
    """Say that the pipeline's changes are here up to a version."""
    cursor.execute(_APPLIED, (pipeline, through))


def list_decisions(cursor: Cursor, table: Table, decisions: Sequence[Decision]) -> None:
    """Write decisions down, for people."""
    if not decisions:
        return
    names = json.dumps(table.columns)
    cursor.executemany(
        _RECORD,
        [
            (
                table.pipeline, *table.name, table.key_text(one.key), names, table.policy,
                one.winner.value, one.version, table.row_text(one.incoming),
                table.row_text(one.current), table.row_text(one.result),
            )
            for one in decisions
        ],
    )  # fmt: skip


def list_forgotten(cursor: Cursor, pipeline: str, rows: int) -> None:
    """Write down, for people, that too many rows waited for the other site."""
    policy = "the opposite pipeline stands still, run setl verify once it has caught up"
    held = json.dumps({"rows forgotten": rows})
    cursor.execute(_RECORD, (pipeline, "", "", "{}", "[]", policy, FORGOT, 0, None, held, None))


def trim_conflicts(connection: Connection[Any], pipeline: str, keep: int = MAX_CONFLICTS) -> int:
    """Delete all but the newest decisions of a pipeline; returns how many were deleted.

    Each statement is a transaction of its own if the connection commits by itself.
    """
    deleted = 0
    with connection.cursor(Cursor) as cursor:
        cursor.execute(_OLDEST_STORED, (pipeline, max(0, keep - 1)))
        row = cursor.fetchone()
        if row is None:
            return 0
        limit = int(row[0]) + (0 if keep else 1)
        while True:
            done = cursor.execute(_TRIM, (pipeline, limit, _SOME))
            deleted += done
            if done < _SOME:
                return deleted
