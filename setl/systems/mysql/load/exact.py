"""Loads a table whose rows can collide, so that none is lost silently (I21).

Such a table has more than the one unique key that finds its rows, or one that may take two keys
of the source for one. Unique values move from row to row there, and whether the source has the
same constraint, a stream does not say.

Why it is right
    One task writes all rows of the table in one transaction, and keeps there how far it has come
    (`setl.systems.mysql.sink.loaded`). So the target's rows are those of the source at that
    position, S(p), never a mixture. A load that is delivered again may begin before p. Then only
    what lies beyond p is applied, since the last changes of keys up to p have been. A load brings
    S(p) to S(r). Let X be a row that it writes, and Y a row of the target in the way of X: equal to
    the target, in some unique key, but not the row with X's key, byte by byte. Either the load
    changes or deletes Y's key, so that Y is not as it will be: it goes first, and its own row comes
    after. Or it does not: then X and Y both are in S(r), the target cannot hold both, and neither
    may go. That is an error, the same that a replica has (1062).

    Nothing is removed but rows with keys of the load, compared byte by byte. The target may hold
    rows that are not from this stream: somebody writes there, or the stream has gone back to an
    earlier position (a new generation). If they conflict with it, that is the same error. They
    stay.

How it is done
    First all deletes. Then upserts that refuse to touch another row (`statements._on_duplicate`).
    Nearly always this is all. If one is refused, rows of the load are in each other's way:

    * Rows that fill the table are all deleted by their keys and inserted. What is refused now
    conflicts
      with a row that stays. If it is put aside, its own row stays as it was, too.
    * Otherwise columns that only the target has would be lost. Rows that are refused are tried
      again behind the others, as long as that brings some of them in; what is left goes in a
      circle, and only these rows are made again.
    * Rows that lack columns (`TargetChanges.partial`) cannot be made again, and are refused.

While a table is loaded as a whole (`LoadTicket.catching_up`)
    Its rows were read at different positions, all ahead of the stream: the target is a mixture
    until the stream has come to the last of them. Let X be written and Y be in its way. The source
    refuses the two together, too: that is looked at before. So one of them is older, and the source
    has changed or deleted it before it had the other. If Y is the older one, it may go. If Y is the
    newer one, its change lies ahead in the stream, and brings it in again, whole. So whatever
    conflicts with it goes (``REPLACE``). Where rows do not
    fill the table, columns that only the target has would be lost, and it is an error as above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pymysql.connections import Connection

from setl.errors import CollisionError, DataError
from setl.model.change import Row, TargetChanges
from setl.systems.mysql.load.delete_insert import DeleteInsertRows, delete_insert_rows
from setl.systems.mysql.load.row_statement import Limits
from setl.systems.mysql.load.rows import Refuse, write_or_raise, write_rows
from setl.systems.mysql.load.statements import Strategy, TableWrites, replacing

RefuseOf = Callable[[TargetChanges], Refuse]
"""What is told of the faulty upserts of a change."""


@dataclass(frozen=True, slots=True)
class ExactLoad:
    """Upserts of one table, inside the load's transaction. Deletes have been done.

    Attributes:
        connection: its session.
        parts: the changes, and how each shape of rows is written.
        limits: of statements.
        refuse: what is told of faulty rows; may raise.
        catching_up: see `LoadTicket.catching_up`.
    """

    connection: Connection[Any]
    parts: Sequence[tuple[TableWrites, TargetChanges]]
    limits: Limits
    refuse: RefuseOf
    catching_up: frozenset[str] = frozenset()

    def run(self) -> None:
        """Write; raises what `write_rows` raises."""
        renews = any(plan.strategy is Strategy.DELETE_INSERT for plan, _ in self.parts)
        if not renews:
            try:
                for plan, change in self.parts:
                    write_or_raise(self.connection, plan.inserts, change.upserts, self.limits)
            except DataError:
                # What was written before it may be written again.
                pass
            else:
                return
        if all(plan.fills and not change.partial for plan, change in self.parts):
            everything = [list(range(len(change.upserts))) for _, change in self.parts]
            self._delete_insert(everything, catching_up=self.catching_up)
            return
        self._write_in_turns()

    def _write_in_turns(self) -> None:
        # Those of RENEW have no key of the target that would find them, and are always made again.
        waiting = [list(range(len(change.upserts))) for _, change in self.parts]
        renewed = [plan.strategy is Strategy.DELETE_INSERT for plan, _ in self.parts]
        left = sum(map(len, waiting))
        while left:
            for at, (plan, change) in enumerate(self.parts):
                if not renewed[at]:
                    waiting[at] = self._attempt(plan, change, waiting[at])
            before, left = left, sum(map(len, waiting))
            if left == before:
                break
        self._delete_insert(waiting)

    def _delete_insert(
        self, numbers: Sequence[Sequence[int]], catching_up: frozenset[str] = frozenset()
    ) -> None:
        parts: list[DeleteInsertRows] = []
        for (plan, change), own in zip(self.parts, numbers, strict=True):
            rows = [change.upserts[i] for i in own]
            removes = change.source in catching_up
            written = replace(plan, inserts=replacing(plan.inserts)) if removes else plan
            refuse = _numbered(own, self.refuse(change))
            parts.append(DeleteInsertRows(written, change.key, rows, refuse, change.partial))
        delete_insert_rows(self.connection, parts, self.limits)

    def _attempt(
        self, plan: TableWrites, change: TargetChanges, numbers: Sequence[int]
    ) -> list[int]:
        """Write these rows; returns those that others conflict with."""
        refused: list[int] = []
        refuse = self.refuse(change)

        def take(index: int, error: DataError) -> None:
            if isinstance(error, CollisionError):
                refused.append(numbers[index])
            else:
                refuse(numbers[index], error)

        self._write(plan, [change.upserts[i] for i in numbers], take)
        return refused

    def _write(self, plan: TableWrites, rows: Sequence[Row], refuse: Refuse) -> None:
        write_rows(self.connection, plan.inserts, rows, self.limits, refuse)


def _numbered(numbers: Sequence[int], refuse: Refuse) -> Refuse:
    return lambda index, error: refuse(numbers[index], error)
