"""The ports between a connection that streams a binlog and whoever reads its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class Watched(Protocol):
    """What another thread may receive for a stream, while the stream's own thread rests.

    Order: what came before the rest, during it and after it is handed on in this order, each once.
    Nothing is lost between two calls: what `deliver_now` leaves is there for
    `DeliveringClient.deliver`.
    """

    def rest(self, receive: Callable[[], bool]) -> None:
        """Let the calling thread rest until its stream needs it, or until `stop`.

        It may return at once, such as where something has come just now.

        Args:
            receive: takes in what has come with `deliver_now`, in another thread, and never waits;
                whether the stream goes on being quiet. What it raises is raised here.

        Raises:
            TransientError: the connection is lost.
        """
        ...

    def deliver_now(self, to: EventReader) -> bool:
        """Hand on what has come, if that takes no time; never waits.

        Returns:
            False if the rest is for `DeliveringClient.deliver` to go on with, errors included.

        Raises:
            What `to` raises, and what `deliver` raises of an event that is damaged.
        """
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
    def watched(self) -> Watched | None:
        """What another thread may receive for, between two `deliver`; None if none may."""
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
