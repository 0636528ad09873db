"""Decisions about conflicts, for people."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from setl.model.conflict import values_of
from setl.systems.mysql.conflicts.tables import trim_conflicts
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating

_LIST = (
    "SELECT id, found_at, schema_name, table_name, row_key, policy, winner, version, incoming,"
    " held, result FROM retl.setl_conflict WHERE pipeline = %s AND winner <> 'both'"
)


@dataclass(frozen=True, slots=True)
class Conflict:
    """One decision; rows are JSON objects, None where there was no row.

    Attributes:
        id: grows with time.
        found_at: when, seconds since 1970 by the target's clock.
        table: ``schema.table`` of the target.
        key: the row's key.
        policy: ``home`` or ``newest: column``.
        winner: ``source`` or ``target``; ``forgot``, with no row, where too many rows waited for
            the other site.
        version: place of the change in the source.
        incoming: what the source said.
        held: what the target held.
        result: what the target held afterwards.
    """

    id: int
    found_at: float
    table: str
    key: dict[str, Any]
    policy: str
    winner: str
    version: int
    incoming: dict[str, Any] | None
    held: dict[str, Any] | None
    result: dict[str, Any] | None


def list_conflicts(
    endpoint: MysqlEndpoint, pipeline: str, *, table: str = "", limit: int = 20
) -> list[Conflict]:
    """The newest decisions of a pipeline in which one side lost, the newest last.

    Args:
        endpoint: the pipeline's target.
        pipeline: ``channel/pipeline``.
        table: only this ``schema.table`` of the target, "" for all.
        limit: how many at most.

    Raises:
        SetlError: the target cannot be asked.
    """
    of_table = " AND CONCAT(schema_name, '.', table_name) = %s" if table else ""
    statement = f"{_LIST}{of_table} ORDER BY id DESC LIMIT %s"
    values = (pipeline, *([table] if table else []), limit)
    with (
        closing(connect(endpoint)) as connection,
        translating(endpoint),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement, values)
        rows: list[tuple[Any, ...]] = list(cursor.fetchall())
    return [_conflict(row) for row in reversed(rows)]


def trim_listed(endpoint: MysqlEndpoint, pipeline: str, keep: int) -> int:
    """Delete all but the newest decisions of a pipeline; returns how many were deleted.

    Raises:
        SetlError: the target cannot be asked.
    """
    with closing(connect(endpoint)) as connection, translating(endpoint):
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
