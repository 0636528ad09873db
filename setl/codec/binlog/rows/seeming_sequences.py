"""Tells the rows of MariaDB's sequences from those of tables that were made of one.

``CREATE TABLE … AS SELECT * FROM`` a sequence makes a table with the same description, and only in
part does the binlog tell which of the two it is. A sequence's changes are inserts, and are never
rolled back: in most cases the server logs them in a group of their own, which ends with a COMMIT
statement and no XID event. But a statement outside of a transaction that also changes a table has
them in front of that table's rows. There the source is asked what the table is. If it is gone, it
was a sequence if the group changed other tables, too.

Inserts into a copy without transactions (MyISAM) look like those into a sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from setl.codec.binlog.event import COMPRESSED_ROWS, INSERTS
from setl.codec.binlog.rows.row_chunks import KnownTable

_HELD_BYTES: Final = 32 * 1024 * 1024

IsTable = Callable[[str, str], bool | None]
"""Whether a name is a table's, by schema and name; False if a sequence's, None if nobody's."""


class HeldRows:
    """Row events of tables that look like sequences, held until their group ends.

    Those beyond 32 MiB of one group are not kept: no table but a sequence has so many there.
    """

    def __init__(self, is_table: IsTable) -> None:
        """No group has begun.

        Args:
            is_table: asked where a group does not tell, once a table until a schema changes.
        """
        self._is_table = is_table
        self._known: dict[tuple[str, str], bool | None] = {}
        self._held: list[tuple[bytes, KnownTable]] = []
        self._bytes = 0

    def begin(self, *, ddl: bool) -> None:
        """A group begins; `ddl` if it is, or holds, a schema change."""
        if ddl:
            self._known.clear()
        self.drop()

    def __bool__(self) -> bool:
        """Whether anything is held."""
        return bool(self._held)

    def take(self, event: bytes, table: KnownTable) -> bool:
        """Whether a row event may be a sequence's, and is held back as one.

        Args:
            event: the event.
            table: its table, which looks like a sequence.
        """
        if COMPRESSED_ROWS.get(event[4], event[4]) not in INSERTS:
            return False
        self._bytes += len(event)
        if self._bytes <= _HELD_BYTES:
            self._held.append((event, table))
        return True

    def drop(self) -> None:
        """The group has ended as a sequence's does."""
        self._held.clear()
        self._bytes = 0

    def release(self, *, others: bool) -> list[tuple[bytes, KnownTable]]:
        """What was held back in a group that has ended with an XID event, and is a table's.

        Args:
            others: whether the group has rows of other tables.

        Raises:
            SetlError: what `is_table` raises.
        """
        held = self._held.copy()
        self.drop()
        return [(event, table) for event, table in held if self._is_tables(table, others=others)]

    def _is_tables(self, table: KnownTable, *, others: bool) -> bool:
        name = (table.schema, table.table)
        if name not in self._known:
            self._known[name] = self._is_table(*name)
        found = self._known[name]
        return not others if found is None else found
