"""The tables of ``sql/conflict.sql`` as a load reads and writes them.

All functions run inside the load's transaction; pymysql's errors pass through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.load.conflicts.agreement import Told
from setl.model.change import Row
from setl.model.conflict import Values, values_of, values_text

KEPT: Final = 10_000
"""Decisions of a pipeline that stay listed, the newest."""

TRIM_EVERY: Final = 1_000
"""Decisions after which a load looks whether there are too many."""

_SOME: Final = 500
_OVERDUE = 60  # seconds; longer than an exchange takes, unless the other pipeline stands still

_THROUGH = "SELECT through FROM retl.setl_applied WHERE pipeline = %s FOR UPDATE"
_APPLIED = (
    "INSERT INTO retl.setl_applied (pipeline, through) VALUES (%s, %s)"
    " ON DUPLICATE KEY UPDATE through = VALUES(through)"
)
_QUESTIONS = (
    "SELECT row_key, asks, deleted, asked_at < NOW(6) - INTERVAL %s SECOND"
    " FROM retl.setl_question WHERE pipeline = %s AND schema_name = %s AND table_name = %s"
    " AND row_key IN ({})"
)
_ASK = (
    "INSERT INTO retl.setl_question (pipeline, asks, schema_name, table_name, row_key, deleted)"
    " VALUES (%s, %s, %s, %s, %s, %s)"
)
_CLOSE = "DELETE FROM retl.setl_question WHERE pipeline = %s AND asks = %s"
_TELL = (
    "INSERT INTO retl.setl_conflict (pipeline, schema_name, table_name, row_key, column_names,"
    " policy, winner, version, asks, answers, incoming, held, result, deleted)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
_OLDEST_KEPT = (
    "SELECT id FROM retl.setl_conflict WHERE pipeline = %s ORDER BY id DESC LIMIT 1 OFFSET %s"
)
_TRIM = "DELETE FROM retl.setl_conflict WHERE pipeline = %s AND id < %s ORDER BY id LIMIT %s"


class Question(NamedTuple):
    """An open question.

    Attributes:
        asks: its id.
        deleted: the row whose deletion it is about, if it is about one.
        overdue: whether it has waited too long for its answer.
    """

    asks: str
    deleted: dict[str, Any] | None
    overdue: bool


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
        """A row by its columns' names."""
        return dict(zip(self.columns, row, strict=True))


def applied_through(cursor: Cursor, pipeline: str) -> int:
    """Up to which version the pipeline's changes are here; locks it against another load."""
    cursor.execute(_THROUGH, (pipeline,))
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def set_applied(cursor: Cursor, pipeline: str, through: int) -> None:
    """Say that the pipeline's changes are here up to a version."""
    cursor.execute(_APPLIED, (pipeline, through))


def open_questions(cursor: Cursor, table: Table, keys: Sequence[Row]) -> dict[str, Question]:
    """Open questions about these keys, by `Table.key_text`."""
    found: dict[str, Question] = {}
    for some in _pieces([table.key_text(key) for key in keys]):
        places = ", ".join(["%s"] * len(some))
        cursor.execute(_QUESTIONS.format(places), (_OVERDUE, table.pipeline, *table.name, *some))
        for text, asks, deleted, overdue in cursor.fetchall():
            found[str(text)] = Question(str(asks), values_of(deleted), bool(int(overdue)))
    return found


def close_questions(cursor: Cursor, pipeline: str, questions: Sequence[str]) -> None:
    """Forget questions that are answered or dropped."""
    cursor.executemany(_CLOSE, [(pipeline, asks) for asks in questions])


def tell(cursor: Cursor, table: Table, messages: Sequence[Told], open_: Mapping[Row, str]) -> None:
    """Write decisions down, which sends them to the other site; keep open questions.

    Args:
        cursor: of the load's connection.
        table: whose rows were decided about.
        messages: the decisions, in their order.
        open_: key → id of the question that is open about it now.
    """
    names = json.dumps(table.columns)
    for one in messages:
        key = table.key_text(one.key)
        cursor.execute(
            _TELL,
            (
                table.pipeline, *table.name, key, names, table.policy, one.winner.value,
                one.version, one.asks, one.answers, table.row_text(one.incoming),
                table.row_text(one.current), table.row_text(one.result),
                table.row_text(one.deleted),
            ),
        )  # fmt: skip
        if one.asks and open_.get(one.key) == one.asks:
            deleted = table.row_text(one.deleted)
            cursor.execute(_ASK, (table.pipeline, one.asks, *table.name, key, deleted))


def trim_conflicts(connection: Connection[Any], pipeline: str, keep: int = KEPT) -> int:
    """Delete all but the newest decisions of a pipeline; returns how many were deleted.

    Each statement is a transaction of its own if the connection commits by itself. What is
    deleted is not needed by anybody: only inserted rows say something to the other site.
    """
    deleted = 0
    with connection.cursor(Cursor) as cursor:
        cursor.execute(_OLDEST_KEPT, (pipeline, max(0, keep - 1)))
        row = cursor.fetchone()
        if row is None:
            return 0
        limit = int(row[0]) + (0 if keep else 1)
        while True:
            done = cursor.execute(_TRIM, (pipeline, limit, _SOME))
            deleted += done
            if done < _SOME:
                return deleted


def _pieces(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(values), _SOME):
        yield values[first : first + _SOME]


NewId = Callable[[], str]
"""Gives an id that no question ever had."""
