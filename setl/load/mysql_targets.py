"""What a MySQL sink knows about the tables it writes to."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from setl.clock import Clock
from setl.errors import ConfigurationError
from setl.load.mysql_statements import TableWrites, plan_writes
from setl.model.change import TargetChanges
from setl.model.schema import Column
from setl.mysql.catalog import read_table

# A table that gets a further unique key needs other statements, and nothing fails to tell so.
_SECONDS = 60.0

_Shape = tuple[tuple[str, str], tuple[Column, ...], tuple[int, ...]]


class Targets:
    """The statements for each shape of rows, with the table's description read when needed.

    Forgets everything after a minute, so that a change of the target's tables is seen.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._writes: dict[_Shape, TableWrites] = {}
        self._until = 0.0

    def forget(self) -> None:
        """Read all tables again; after a statement found one to be different."""
        self._writes.clear()

    def writes(self, connection: Connection[Any], changes: TargetChanges) -> TableWrites:
        """How these changes are written; reads the table's description outside a transaction.

        Raises:
            ConfigurationError: the table is missing, or does not take these rows.
            SetlError: as `read_table`.
        """
        now = self._clock.monotonic()
        if now >= self._until:
            self._writes.clear()
            self._until = now + _SECONDS
        shape = (changes.target, changes.columns, changes.key)
        known = self._writes.get(shape)
        if known is None:
            schema, table = changes.target
            described = read_table(connection, schema, table)
            if described is None:
                raise ConfigurationError(
                    "the target table does not exist, or the account may not see it",
                    hint="Create it on the target; `setl check` names all that are missing",
                    table=f"{schema}.{table}",
                )
            known = self._writes[shape] = plan_writes(changes.columns, changes.key, described)
        return known
