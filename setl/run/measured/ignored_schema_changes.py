"""The schema changes that were not passed on, for whoever explains a later error by them."""

from __future__ import annotations

from collections.abc import Iterable

_TABLES = 1000
"""Tables of which the last change is kept (I20)."""


class IgnoredSchemaChanges:
    """The last ignored schema change of each table. Not thread-safe: `Progress` guards it."""

    def __init__(self) -> None:
        """There is none."""
        self._texts: dict[str, str] = {}

    def copy(self) -> IgnoredSchemaChanges:
        """The same again, which changes by itself."""
        copied = IgnoredSchemaChanges()
        copied._texts = dict(self._texts)
        return copied

    def add(self, text: str, tables: Iterable[str]) -> None:
        """Note a change that concerns some tables; the oldest are forgotten."""
        for table in tables:
            self._texts.pop(table, None)
            self._texts[table] = text
        while len(self._texts) > _TABLES:
            del self._texts[next(iter(self._texts))]

    def of(self, tables: Iterable[str]) -> str:
        """The last change of one of these tables; "" if none."""
        return next((self._texts[table] for table in tables if table in self._texts), "")
