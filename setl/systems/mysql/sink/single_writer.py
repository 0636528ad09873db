"""Tables that only one task may write, because their rows can collide.

They have a unique key besides the one that identifies their rows, or one that takes two keys of
the source for one. Why that is so, `setl.transform.placement.spreads` says. A table that is not
found here in time is found by the sink, which refuses to write it beside other tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from setl.clock import Clock
from setl.errors import ConfigurationError
from setl.model.schema import Kind, RowSchema
from setl.systems.mysql.catalog import folds_names, read_table
from setl.systems.mysql.connection import MysqlEndpoint, connect

_SECONDS = 60.0
"""How long an answer counts; a table may get a unique key at any time."""

Name = tuple[str, str]
"""Schema and table."""


class MysqlSingleWriterTables:
    """Asks the target, and remembers for a minute. Used by one thread at a time."""

    def __init__(self, endpoint: MysqlEndpoint, clock: Clock) -> None:
        """Ask nobody yet."""
        self._endpoint = endpoint
        self._clock = clock
        self._known: dict[Name, bool] = {}
        self._reported: set[Name] = set()
        self._until = 0.0
        self._names: dict[Name, Name] = {}  # in lower case -> as they came first
        self._version = 0

    def add(self, table: Name) -> None:
        """Count a table among them, because a sink has found it to be one."""
        self._reported.add(table)

    def among(self, tables: Iterable[Name]) -> frozenset[Name]:
        """Which of these tables have a single writer; one that does not exist is not.

        Raises:
            SetlError: the target does not answer.
        """
        if self._clock.monotonic() >= self._until:
            self._known.clear()
            self._until = self._clock.monotonic() + _SECONDS
        tables = frozenset(tables)
        unknown = tables - self._known.keys()
        if unknown:
            connection = connect(self._endpoint)
            try:
                for schema, table in unknown:
                    described = read_table(connection, schema, table)
                    self._known[schema, table] = described is not None and single_writer(described)
            finally:
                connection.close()
        return frozenset(t for t in tables if self._known[t] or t in self._reported)

    def check_name_collisions(self, tables: Iterable[Name], version: int) -> None:
        """See `SingleWriterTables.check_name_collisions`; asks only where two names are alike."""
        if version != self._version:
            self._version = version
            self._names.clear()
        for name in tables:
            schema, table = name
            first = self._names.setdefault((schema.lower(), table.lower()), name)
            if first != name and self._folds_names():
                raise ConfigurationError(
                    f"{'.'.join(first)} and {'.'.join(name)} are one table at the target, whose"
                    " names have no case (lower_case_table_names): their rows would become one",
                    hint="Give one of them another name with `to`, or leave it out with `except`",
                ).at(server=self._endpoint)

    def _folds_names(self) -> bool:
        with closing(connect(self._endpoint)) as connection:
            return folds_names(connection)


def single_writer(described: RowSchema) -> bool:
    """Whether rows of a table can conflict with rows with other keys.

    A key that holds another whole is no more than that one: its values cannot move alone. Text of
    a key is compared as the table's collation has it, whatever the source's.
    """
    if described.odd_keys or described.overlapless:
        return True
    keys = [key for key in (described.key, *described.unique) if key]
    smallest = min(map(frozenset, keys), key=len, default=frozenset[int]())
    columns = [described.columns[i] for i in smallest]
    loose = any(c.kind is Kind.TEXT and not c.binary_order for c in columns)
    return loose or any(not smallest.issubset(key) for key in keys)
