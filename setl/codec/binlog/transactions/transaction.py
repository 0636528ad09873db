"""Holds a transaction's entries back until it is known how it ended.

A binlog holds whole transactions, written at their end, yet some of them end with ROLLBACK:
when a transaction also changed something that cannot be taken back, such as a table of an
engine without transactions or a temporary table, the server logs its rows and then the
ROLLBACK. Such rows must not be applied. The same is true of the rows between SAVEPOINT and
ROLLBACK TO.

No ROLLBACK takes DDL back. MariaDB logs one behind the DROP of a table whose CREATE OR REPLACE
TABLE … SELECT failed. Nor is a statement taken back that was logged instead of rows: it may
have changed a table without transactions.

A server that dies while it writes a transaction leaves the beginning of it in the file.
"""

from __future__ import annotations

from collections.abc import Callable

from setl.model.entry import Entry, EntryKind


class OpenTransaction:
    """The entries of the transaction that is being read.

    Memory is bounded: beyond a limit entries are let go early, and from then on the
    transaction cannot be taken back.

    Attributes:
        is_cut: whether its end is known to be missing, so that all of its rows are left out.
    """

    def __init__(self, limit: int, is_whole: Callable[[], bool]) -> None:
        """Nothing is read yet.

        Args:
            limit: hold at most about so many bytes of rows.
            is_whole: asked before rows are let go early: whether the transaction's end is there.
        """
        self._limit = limit
        self._is_whole = is_whole
        self._let_go = False
        self.is_cut = False
        self._held: list[Entry] = []
        self._bytes = 0
        self._released_rows = 0
        self._savepoints: dict[str, tuple[int, int]] = {}

    @property
    def has_rows(self) -> bool:
        """Whether rows were taken in."""
        return bool(self._released_rows) or any(e.kind is EntryKind.ROWS for e in self._held)

    def begin(self, entry: Entry) -> None:
        """A transaction opens with its BEGIN entry."""
        self._held = [entry]
        self._bytes = 0
        self._released_rows = 0
        self._savepoints.clear()
        self._let_go = self.is_cut = False

    def add(self, entry: Entry) -> list[Entry]:
        """Take its next entry in; returns those that cannot be held any longer, often none."""
        if self.is_cut:
            return []
        self._held.append(entry)
        self._bytes += len(entry.payload) + len(entry.statement)
        if self._bytes <= self._limit:
            return []
        if not self._let_go and not self._is_whole():
            self.is_cut = True
            self._held, self._bytes = [], 0
            return []
        self._let_go = True
        return self._release()

    def savepoint(self, name: str) -> None:
        """Remember this position under a name."""
        self._savepoints[name] = self._released_rows, len(self._held)

    def commit(self, entry: Entry) -> list[Entry]:
        """The transaction took effect: everything that was held, and its end."""
        held = self._held
        held.append(entry)
        self._held = []
        return held

    def rollback(self) -> list[Entry] | None:
        """Its rows were taken back: the rest of it; None if some of them were let go already."""
        if self._released_rows:
            return None
        remaining = [held for held in self._held if held.kind is not EntryKind.ROWS]
        self._held = []
        return remaining

    def rollback_to(self, name: str) -> bool:
        """Forget what was read since the savepoint.

        Returns:
            False if some of it was let go already, there is no such savepoint, or it is not sure
            which one is meant.
        """
        released, length = self._savepoints.get(name, (-1, 0))
        meant = sum(_may_be_same(name, known) for known in self._savepoints)
        if released != self._released_rows or meant > 1:
            return False
        # What a statement did to tables without transactions stays.
        self._held[length:] = [
            held for held in self._held[length:] if held.kind is EntryKind.STATEMENT
        ]
        self._bytes = sum(len(entry.payload) + len(entry.statement) for entry in self._held)
        return True

    def _release(self) -> list[Entry]:
        held, self._held = self._held, []
        self._bytes = 0
        self._released_rows += sum(1 for entry in held if entry.kind is EntryKind.ROWS)
        return held


def _may_be_same(one: str, other: str) -> bool:
    """Whether a server may take two names of savepoints for the same one.

    It compares them by the collation of names, ``utf8mb3_general_ci``: character by character,
    and É is e to it. Then the later savepoint replaces the earlier one.
    """
    return len(one) == len(other) and all(
        a == b or not (a.isascii() and b.isascii()) for a, b in zip(one, other, strict=True)
    )
