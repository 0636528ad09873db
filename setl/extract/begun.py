"""The transaction that a checkpoint is inside of, as it comes again."""

from __future__ import annotations

from setl.errors import PositionLostError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.position import Position


class BegunTransaction:
    """Tells which rows of a transaction are applied, and sees that it is the same transaction.

    A server that crashed may have lost the end of its binlog, and a topic the records behind a
    boundary. The boundary is as it was then. What follows it is another transaction, and the
    target has rows that no stream will take back.
    """

    __slots__ = ("_applied", "_checkpoint", "_seen")

    def __init__(self, checkpoint: Checkpoint, applied: Position) -> None:
        """Nothing of it has come again yet.

        Args:
            checkpoint: where reading restarts.
            applied: the last applied place inside the transaction.
        """
        self._checkpoint = checkpoint
        self._applied = applied.order
        self._seen = False

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> BegunTransaction | None:
        """The one that a checkpoint is inside of, None if it is between two transactions."""
        applied = checkpoint.applied
        return None if applied is None else cls(checkpoint, applied)

    def covers(self, entry: Entry) -> bool:
        """See `Checkpoint.covers`."""
        return self._checkpoint.covers(entry)

    def see(self, entry: Entry) -> None:
        """Take in the next entry; of a run that is applied in part, its records.

        Raises:
            PositionLostError: it is of another transaction, or behind the position up to which all
                is applied, and nothing has come that ends there.
        """
        position = entry.position.order
        if entry.kind is EntryKind.ROWS:
            known = self._checkpoint.transaction
            if known and entry.transaction not in ("", known) and not self._seen:
                raise self._lost(f"transaction {entry.transaction} comes there now")
            self._seen = self._seen or position == self._applied
        elif position > self._applied and not self._seen:
            # Records of several runs may lie between each other, but nothing else between them.
            raise self._lost(f"no row ends at {self._checkpoint.applied} now")

    def _lost(self, reason: str) -> PositionLostError:
        begin = self._checkpoint.resume
        gtid = getattr(begin, "gtid", "") or "POSITION"
        what = self._checkpoint.transaction or "a transaction"
        return PositionLostError(
            f"the target has a part of {what}, which followed {begin}, up to"
            f" {self._checkpoint.applied}, and {reason}: the source has lost it",
            hint=f"Go on with `setl position reset PIPELINE --to {gtid}`, and load the tables again"
            " with `setl load PIPELINE --replace`, since nothing takes those rows back",
            position=begin,
        )
