"""The fence of a target whose every write carries the version of what it writes (I12)."""

from __future__ import annotations

from setl.load.sink import Fence


class VersionFence(Fence):
    """Raises nothing, since nothing is asked: for a target that refuses older versions.

    Elasticsearch has no transactions to lock a row in. Instead each document and each delete
    carries an external version taken from the source's order. What a stale leader still sends
    is either what the index holds already or older than it, and older is refused, so that the
    index ends as if it had not been sent.

    A relay's topic has it too: the relay that takes over has the brokers refuse the former one.
    """

    def raise_to(self, epoch: int, nid: str) -> None:
        """See `Fence.raise_to`; always succeeds."""
