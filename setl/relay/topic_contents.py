"""What a topic already holds when a relay goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.codec.dts.relayed import HEARTBEAT, LAST, RelayPosition, RelayTransaction

NOT_EVEN_A_HEARTBEAT: Final = HEARTBEAT - 1


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
