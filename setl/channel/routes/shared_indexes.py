"""Several tables in one index: no two rows may become the same document.

What the channel file alone tells is refused when it is read (`setl.channel.rules.mappings`); which
tables a wildcard stands for is known when they are met.
"""

from __future__ import annotations

from typing import Protocol

from setl.channel.names.document_ids import IdTemplate
from setl.errors import ConfigurationError
from setl.model.document import DocumentForm


class IndexRoute(Protocol):
    """What is asked of a route into an index."""

    @property
    def index(self) -> int:
        """Place of its entry in the pipeline's `tables`."""
        ...

    @property
    def target(self) -> tuple[str, str]:
        """("", index)."""
        ...

    @property
    def id(self) -> IdTemplate | None:
        """The template of ids, the table's names filled in."""
        ...


class SharedIndexes:
    """Remembers which tables write into an index; for one router."""

    def __init__(self) -> None:
        # Index → table and entry → fixed text of its ids.
        self._owners: dict[str, dict[tuple[str, str, int], DocumentForm | None]] = {}

    def claim(self, route: IndexRoute, table: tuple[str, str], *, own_ids: bool) -> None:
        """Note that a table writes into an index.

        Args:
            route: how it does.
            table: schema and table.
            own_ids: whether the file says that ids are unique over all tables of the entry.

        Raises:
            ConfigurationError: another table, or another entry for the same one, writes into the
                index too, and two of their documents may have the same id.
        """
        owners = self._owners.setdefault(route.target[1], {})
        form = DocumentForm(route.id.texts, ()) if route.id else None
        for (schema, name, entry), other in owners.items():
            same_table = (schema, name) == table
            if entry == route.index and (own_ids or same_table):
                continue
            if form is None or other is None or not form.distinguishes(other):
                raise ConfigurationError(
                    f"rows of {'.'.join(table)} and of {schema}.{name} may become the same document"
                    f" of index {route.target[1]}",
                    hint=f"In tables[{route.index}] and tables[{entry}], name different indexes"
                    " with `to`, or give `id` a beginning that differs, such as {table}-{id}",
                )
        owners[*table, route.index] = form
