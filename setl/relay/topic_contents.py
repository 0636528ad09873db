"""What a topic already holds when a relay goes on, and that its source still has all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from setl.codec.dts.relayed import HEARTBEAT, LAST, RelayPosition, RelayTransaction
from setl.errors import PositionLostError
from setl.model.position import BinlogPosition

NOT_EVEN_A_HEARTBEAT: Final = HEARTBEAT - 1

_BEGIN = 0


class TopicContents:
    """Tells, transaction by transaction, up to which ordinal each partition has it.

    Places of a partition only grow, so its last record says it all.
    """

    def __init__(self, last: Sequence[RelayPosition | None]) -> None:
        """Begin with the position of the last record of each partition, None for an empty one."""
        self._last = [(None, 0) if position is None else _split(position) for position in last]
        self._nothing = tuple([NOT_EVEN_A_HEARTBEAT] * len(last))

    def ordinals(self, transaction: RelayTransaction) -> tuple[int, ...]:
        """The last ordinal of a transaction in each partition; of transactions in order."""
        if not self._last:
            return self._nothing
        position, _ = _split(RelayPosition(transaction, 0))
        if all(last is None or last < position for last, _ in self._last):
            self._last = []  # and from now on, since places grow here too
            return self._nothing
        return tuple(
            [
                NOT_EVEN_A_HEARTBEAT
                if last is None or last < position
                else ordinal
                if last == position
                else LAST
                for last, ordinal in self._last
            ]
        )


def _split(position: RelayPosition) -> tuple[tuple[int, int, int], int]:
    *transaction, ordinal = position.order
    generation, file, begin = transaction
    return (generation, file, begin), ordinal


class TailsAhead:
    """Sees that the source still has what the topic has, up to the farthest place in it.

    A server that crashed may have lost the end of its binlog, which it had sent before it was on
    its disk. What it writes in its place later would be taken for what the topic has already, and
    left out there. Places do not depend on when a binlog is read, so each comes again.
    """

    def __init__(
        self, start: BinlogPosition, generation: int, tails: Iterable[RelayPosition | None]
    ) -> None:
        """Nothing has come again yet.

        Args:
            start: the boundary at which reading begins. What is before it is not looked at.
            generation: of the checkpoint there. Places of another one mean something else.
            tails: the places of the last records of partitions.
        """
        same = [tail for tail in tails if tail and tail.transaction.generation == generation]
        ahead = [tail for tail in same if tail.boundary >= start.order]
        self._tails = sorted(ahead, key=lambda tail: tail.order)
        self._seen = start
        self.at_boundary(start)

    def __bool__(self) -> bool:
        """Whether any is still to come."""
        return bool(self._tails)

    def at_boundary(self, boundary: BinlogPosition) -> None:
        """The stream is between two transactions.

        Raises:
            PositionLostError: it has come past a position, and nothing ended there.
        """
        if self._tails and self._tails[0].boundary < boundary.order:
            raise self._lost(self._tails[0], f"the binlog goes on at {boundary} now")
        while self._tails and _is_beat(self._tails[0]) and self._at(self._tails[0], boundary):
            self._tails.pop(0)
        self._seen = boundary

    def begins(self, gtid: str) -> None:
        """A transaction begins at that boundary; its GTID, "" if unknown.

        Raises:
            PositionLostError: the topic has a part of another one.
        """
        for tail in self._tails:
            if not self._at(tail, self._seen):
                break
            known = tail.transaction.gtid
            if known and gtid and known != gtid:
                raise self._lost(tail, f"transaction {gtid} comes there now")
        self.has(_BEGIN, _BEGIN)

    def has(self, first: int, last: int) -> None:
        """The transaction has records with these ordinals, or may have them, both included."""
        self._tails = [
            tail
            for tail in self._tails
            if not (self._at(tail, self._seen) and first <= tail.ordinal <= last)
        ]

    def ends(self) -> None:
        """The transaction is over.

        Raises:
            PositionLostError: it has not the record that the topic has of it.
        """
        self.has(LAST, LAST)
        if self._tails and self._at(self._tails[0], self._seen):
            raise self._lost(self._tails[0], "it ends without the row that the topic has of it")

    @staticmethod
    def _at(tail: RelayPosition, boundary: BinlogPosition) -> bool:
        return tail.boundary == boundary.order

    def _lost(self, tail: RelayPosition, reason: str) -> PositionLostError:
        at = tail.transaction
        what = "a heartbeat" if _is_beat(tail) else f"records of {at.gtid or 'a transaction'}"
        return PositionLostError(
            f"the topic has {what} behind {at.file}:{at.begin}, and {reason}: the source has lost"
            " what it had sent",
            hint="Go on with `setl position reset PIPELINE --to POSITION`, where the source has a"
            " place before that. Whoever reads the topic has rows that no record takes back:"
            " load their tables again with `setl load PIPELINE --replace`, or compare them",
            position=self._seen,
        )


def _is_beat(tail: RelayPosition) -> bool:
    return tail.ordinal <= HEARTBEAT
