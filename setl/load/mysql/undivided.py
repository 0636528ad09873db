"""Tables of a target that one task writes, since unique values can move from row to row in them.

They have a unique key besides the one that identifies their rows. Why that is so,
`setl.transform.placement.spreads` says.
"""

from __future__ import annotations

from collections.abc import Iterable

from setl.clock import Clock
from setl.load.mysql.sink import MysqlSinkSettings
from setl.load.worker import SinkSettings
from setl.mysql.catalog import read_unique_keys
from setl.mysql.connection import connect

_SECONDS = 60.0
"""How long an answer counts; a table may get a unique key at any time."""

Name = tuple[str, str]
"""Schema and table."""


class UndividedTables:
    """Asks the target, and remembers for a minute. Used by one thread at a time."""

    def __init__(self, settings: SinkSettings, clock: Clock) -> None:
        """Ask nobody yet; only a MySQL target has such tables."""
        self._endpoint = settings.endpoint if isinstance(settings, MysqlSinkSettings) else None
        self._clock = clock
        self._known: dict[Name, bool] = {}
        self._until = 0.0

    def among(self, tables: Iterable[Name]) -> frozenset[Name]:
        """Which of these tables are undivided; one that does not exist is not.

        Raises:
            SetlError: the target does not answer.
        """
        if self._endpoint is None:
            return frozenset()
        if self._clock.monotonic() >= self._until:
            self._known.clear()
            self._until = self._clock.monotonic() + _SECONDS
        tables = frozenset(tables)
        unknown = tables - self._known.keys()
        if unknown:
            connection = connect(self._endpoint)
            try:
                for schema, table in unknown:
                    keys = read_unique_keys(connection, schema, table).values()
                    self._known[schema, table] = undivided(keys)
            finally:
                connection.close()
        return frozenset(table for table in tables if self._known[table])


def undivided(keys: Iterable[tuple[str, ...]]) -> bool:
    """Whether two of a table's unique keys are independent of each other.

    A key that holds another whole is no more than that one: its values cannot move alone.
    """
    sets = [frozenset(key) for key in keys]
    smallest = min(sets, key=len, default=frozenset[str]())
    return any(not key >= smallest for key in sets)
