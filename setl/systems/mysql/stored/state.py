"""Reads what a MySQL target stores about a pipeline; see ``sql/fence.sql``."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pymysql.connections import Connection

from setl.errors import SetlError
from setl.systems.mysql.cached_connection import once_more_if_cut_off
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating
from setl.systems.stored_state import StoredState

_FENCE = "SELECT epoch, nid FROM retl.setl_fence WHERE pipeline = %s"
_CHECKPOINT = "SELECT epoch, checkpoint, updated_at FROM retl.setl_checkpoint WHERE pipeline = %s"
_FORGET = "DELETE FROM retl.setl_checkpoint WHERE pipeline = %s"


def read_stored_state(endpoint: MysqlEndpoint, pipeline: str) -> StoredState:
    """Read what the target keeps of a pipeline, ``channel/pipeline``; locks nothing.

    Raises:
        TransientError: the server cannot be reached.
        ConfigurationError: the account is refused, or a table is missing.
    """
    connection = connect(endpoint)
    try:
        return _read(endpoint, connection, pipeline)
    finally:
        connection.close()


@contextmanager
def opened_states(endpoint: MysqlEndpoint, pipeline: str) -> Generator[Callable[[], StoredState]]:
    """Reads again and again, on one connection as long as that lasts; belongs to one thread.

    What is given raises what `read_stored_state` raises.
    """
    cached: list[Connection[Any]] = []

    def ask() -> StoredState:
        if not cached:
            cached.append(connect(endpoint))
        try:
            return _read(endpoint, cached[0], pipeline)
        except SetlError:
            cached.pop().close()
            raise

    try:
        yield lambda: once_more_if_cut_off(ask, "a look at a checkpoint", cached=bool(cached))
    finally:
        for connection in cached:
            connection.close()


def _read(endpoint: MysqlEndpoint, connection: Connection[Any], pipeline: str) -> StoredState:
    with translating(endpoint), connection.cursor() as cursor:
        fence = _row(cursor, _FENCE, pipeline)
        checkpoint = _row(cursor, _CHECKPOINT, pipeline)
    cached = StoredState(int(fence[0]), str(fence[1])) if fence else StoredState()
    if checkpoint is None:
        return cached
    epoch, text, at = checkpoint
    # The session's time zone is UTC, see `connect`.
    stored_at = at.replace(tzinfo=UTC).timestamp() if isinstance(at, datetime) else None
    return replace(cached, checkpoint=str(text), stored_by=int(epoch), stored_at=stored_at)


def forget_checkpoint(endpoint: MysqlEndpoint, pipeline: str) -> None:
    """Remove a stored checkpoint that cannot be read. Raises what `read_stored_state` raises."""
    connection = connect(endpoint)
    try:
        with translating(endpoint), connection.cursor() as cursor:
            cursor.execute(_FORGET, (pipeline,))
    finally:
        connection.close()


def _row(cursor: Any, statement: str, pipeline: str) -> tuple[Any, ...] | None:
    cursor.execute(statement, (pipeline,))
    row: tuple[Any, ...] | None = cursor.fetchone()
    return row
