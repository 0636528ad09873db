"""The ports of a relay: the log that it appends to, and what it asks its source alongside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from setl.codec.dts.relayed import RelayPosition


class RelayLog(Protocol):
    """Where a relay writes its records.

    Order: the records of a partition are kept in the order in which they were appended, without
    a gap. Records that several partitions got have no order among each other.

    Crash: what `flush` returned for is there. Of what was appended since, readers may see
    nothing, all, or a part, but from each partition always a first part: if a record is there,
    so is everything appended to that partition before it. `take_over` tells where each ends.

    Errors: after any error of `append` or `flush` nothing more can be appended, and both keep
    raising it. `take_over` restarts, with the same object or another one; the caller then
    reads its source again from the places that it returns. How a record is repeated after a lost
    answer is the log's business: with `delivery: transactional` or `idempotent` it is there once,
    with `one_in_flight` it may be there again, right after its batch.

    Former leaders: with `transactional` nothing that one sends after `take_over` returned is ever
    seen. Otherwise what it had sent before it noticed may still arrive, between the records of
    the new leader: it repeats places or comes before its turn, and leaves no gap, so a reader
    that drops every record whose place does not grow sees what one leader would have written.
    The last record is then not always the farthest; a checkpoint beyond it is to be believed.

    Threads: one thread calls all of this, except `abandon`, which may come from any.
    """

    def take_over(self) -> tuple[RelayPosition | None, ...]:
        """Become the one who appends, then find out what is there.

        The log is made if it is missing. A crash in the middle leaves it without a writer, and
        with everything that had been flushed.

        Returns:
            The position of the last record of each partition; None for one without records, whether
            it never had any or all are expired.

        Raises:
            ConfigurationError: the last record of a partition was not written by a relay; or a
                setting, the account or a privilege is wrong.
            DataError: it was written by a release of setl that this one does not understand.
            TransientError: no answer within the limit.
            FencedError: another leader took over meanwhile, or `abandon` was called.
        """
        ...

    def append(
        self,
        partition: int,
        value: bytes | None,
        position: bytes,
        key: bytes | None,
        timestamp_ms: int,
    ) -> None:
        """Queue one record; waits while the queue is full.

        Args:
            partition: from 0, less than the number that `take_over` returned.
            value: the record, None for a tombstone.
            position: the encoded `RelayPosition`, for its header.
            key: of the record, None without one.
            timestamp_ms: its time in milliseconds since 1970-01-01 UTC.

        Raises:
            FencedError: another leader took over, or `abandon` was called.
            TransientError: the queue has no room within the limit, or a record that was appended
                earlier cannot be written just now.
            DataError: this record or an earlier one is refused for good, for example too large.
            ConfigurationError: as for `take_over`.
        """
        ...

    def flush(self) -> None:
        """Wait until all that was appended is on all in-sync replicas, and readers see it.

        Readers may see none of it before: the caller decides how old a record may get. Brokers
        may show it a moment later, when a commit that is decided has reached every partition.
        Returns at once if nothing was appended since the last call, without asking anybody.

        Raises:
            As `append`. It is unknown then what readers see; `take_over` tells.
        """
        ...

    def abandon(self) -> None:
        """Send as little as possible from now on: leadership is lost.

        What is queued is dropped, and every call, also one under way in another thread, raises
        FencedError soon. Does not wait. The log has still to be closed.
        """
        ...

    def close(self) -> None:
        """Drop what is not flushed, and the connections. Safe to call twice."""
        ...


class RelayedTables(Protocol):
    """What the source says about itself and its tables, asked for each time."""

    def server_version(self) -> str:
        """The version as the server tells it. Raises SetlError."""
        ...

    def unique_keys(self, schema: str, table: str) -> Mapping[str, tuple[str, ...]]:
        """Columns of each unique key but the primary one, by its name.

        They are those of today, and the rows may be of yesterday; whoever writes them into
        records leaves out what does not fit.

        Raises:
            TransientError: the source does not answer.
            ConfigurationError: it refuses the account.
        """
        ...
