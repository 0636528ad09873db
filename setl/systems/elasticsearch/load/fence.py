"""Why Elasticsearch needs no fence: every write carries the version of what it writes (I12)."""

from __future__ import annotations


class VersionFence:
    """The `Fence` for Elasticsearch: nothing is raised, since nothing is asked.

    Elasticsearch has no transactions to lock a row in. Instead each document and each delete
    carries an external version taken from the source's order. What a stale leader still sends
    is either what the index holds already or older than it, and older is refused, so that the
    index ends as if it had not been sent.
    """

    def raise_to(self, epoch: int, nid: str) -> None:
        """See `setl.load.sink.Fence.raise_to`; always succeeds."""
        del epoch, nid

    def end_writers(self, epoch: int) -> None:
        """See `setl.load.sink.Fence.end_writers`; there are no connections that hold anything."""
        del epoch
