"""Decisions about conflicts, for people."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from setl.model.conflict import values_of
from setl.systems.conflicts import Conflict
from setl.systems.mysql.conflicts.tables import trim_conflicts
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating

_LIST = (
    "SELECT id, found_at, schema_name, table_name, row_key, policy, winner, version, incoming,"
    " held, result FROM retl.setl_conflict WHERE pipeline = %s AND winner <> 'both'"
)
_UNPASSED = "SELECT COUNT(*) FROM retl.setl_recent WHERE pipeline = %s"


class MysqlConflicts:
    """The `setl.systems.conflicts.ConflictList` of a target."""

    def __init__(self, endpoint: MysqlEndpoint) -> None:
        """Nothing is asked yet."""
        self._endpoint = endpoint

    def newest(self, pipeline: str, *, table: str = "", limit: int = 20) -> list[Conflict]:
        """See `ConflictList.newest`."""
        of_table = " AND CONCAT(schema_name, '.', table_name) = %s" if table else ""
        statement = f"{_LIST}{of_table} ORDER BY id DESC LIMIT %s"
        values = (pipeline, *([table] if table else []), limit)
        with (
            closing(connect(self._endpoint)) as connection,
            translating(self._endpoint),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement, values)
            rows: list[tuple[Any, ...]] = list(cursor.fetchall())
        return [_conflict(row) for row in reversed(rows)]

    def unpassed(self, pipeline: str) -> int:
        """See `ConflictList.unpassed`."""
        with (
            closing(connect(self._endpoint)) as connection,
            translating(self._endpoint),
            connection.cursor() as cursor,
        ):
            cursor.execute(_UNPASSED, (pipeline,))
            row = cursor.fetchone()
        return int(row[0]) if row else 0

    def trim(self, pipeline: str, keep: int) -> int:
        """See `ConflictList.trim`."""
        with closing(connect(self._endpoint)) as connection, translating(self._endpoint):
            return trim_conflicts(connection, pipeline, keep)


def _conflict(row: tuple[Any, ...]) -> Conflict:
    number, at, schema, table, key, policy, winner, version, incoming, held, result = row
    # The session's time zone is UTC, see `connect`.
    found_at = at.replace(tzinfo=UTC).timestamp() if isinstance(at, datetime) else 0.0
    return Conflict(
        int(number),
        found_at,
        f"{schema}.{table}",
        values_of(key) or {},
        str(policy),
        str(winner),
        int(version),
        values_of(incoming),
        values_of(held),
        values_of(result),
    )
