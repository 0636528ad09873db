"""The ports between a connection that streams a binlog and whoever reads its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mysql_event_stream import PollResult


class EventReader(Protocol):
    """Takes the events of one stream, in order, each once. What it raises ends the stream."""

    def read_rows(self, data: bytes, at: int, *, checksum: bool) -> int:
        """Take what it can of a connection's bytes at `at`, where a packet begins.

        Args:
            data: packets, the last one perhaps in part.
            at: where the next one begins.
            checksum: whether events end with a checksum, which then is for this reader to check.

        Returns:
            Where the first packet begins that it leaves to `read`.
        """
        ...

    def read(self, event: bytes, *, checksum: bool) -> None:
        """Take an event, whose checksum was checked."""
        ...

    def heartbeat(self) -> None:
        """The server is there and has nothing to send."""
        ...


class DeliveringClient(Protocol):
    """Reads the binlog of one server from one place. All but `stop` belong to one thread.

    Nothing is connected again by itself: whatever goes wrong ends the stream with an error.
    """

    def connect(self) -> None:
        """Log in."""
        ...

    def start(self) -> None:
        """Ask for the stream."""
        ...

    def deliver(self, to: EventReader) -> None:
        """Hand on the events that have come; waits for one."""
        ...

    @property
    def arriving(self) -> int:
        """Bytes that came of an event that is not whole yet, 0 if there is none; any thread."""
        ...

    def stop(self) -> None:
        """End the connection; from any thread."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class EventClient(DeliveringClient, Protocol):
    """A client whose events can be looked at one by one, too."""

    @property
    def sent_to(self) -> int:
        """The offset, with 32 bits, up to which the last heartbeat says all was sent; 0 before it.

        It is of the file of the event before.
        """
        ...

    def poll_batch(self) -> Sequence[PollResult]:
        """The events that have come, one by one; waits for one."""
        ...
