"""What ends some day at a server: its stream, certificates, passwords, room on its disks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from setl.model.position import Position


@dataclass(frozen=True, slots=True)
class StreamRetention:
    """For how long a source still has what follows a position.

    Attributes:
        lost: why it has it no more, as the end of a sentence; "" if it has it.
        written: when the part of the stream was finished that is next to be read, seconds since
            1970 UTC; None while the source is still writing it, so that it cannot be removed.
        retention: seconds for which the source keeps what it has written; None if it does not
            tell, or keeps all.
        now: the time at the source, seconds since 1970 UTC.
    """

    lost: str = ""
    written: float | None = None
    retention: float | None = None
    now: float = 0.0

    def seconds_left(self, retention: float | None = None) -> float | None:
        """Seconds until the source may remove it, at least 0; None if nobody knows of an end.

        Args:
            retention: seconds for which it keeps its stream as a person knows it; the shorter
                time counts.
        """
        known = [each for each in (self.retention, retention) if each is not None]
        if self.written is None or not known:
            return None
        return max(0.0, self.written + min(known) - self.now)


@dataclass(frozen=True, slots=True)
class Expiration:
    """Something that is good until a certain time.

    Attributes:
        what: its kind.
        of: whose it is, such as ``db1:3306`` or ``retl at db1:3306``.
        at: when it expires, seconds since 1970 UTC.
        begins: since when it is good; None if nobody knows.
    """

    what: Literal["certificate", "password"]
    of: str
    at: float
    begins: float | None = None


@dataclass(frozen=True, slots=True)
class ServerDisk:
    """A disk on which a target keeps rows.

    Attributes:
        of: whose it is, such as ``es-3 of es1:9200``.
        size: bytes in all.
        free: bytes that the server may still use.
        needed: bytes that must be free for the server to go on as usual; None if it does not tell.
        last: bytes that must be free for it to take writes at all; None if it does not tell.
    """

    of: str
    size: int
    free: int
    needed: int | None = None
    last: int | None = None


@runtime_checkable
class RemovingSource(Protocol):
    """A source that removes its stream after a while.

    A `SourceSystem` that keeps all, or does not know, leaves it out.
    """

    def retention(self, position: Position) -> StreamRetention | None:
        """For how long it has what follows a position; None where that cannot be known.

        Changes nothing, and reads no rows.

        Raises:
            SetlError: it does not answer, or refuses to tell.
        """
        ...


@runtime_checkable
class ExpiringSystem(Protocol):
    """A source or target of which something expires."""

    def expirations(self) -> Sequence[Expiration]:
        """What expires; what cannot be known is left out.

        Raises:
            SetlError: it does not answer, or refuses the account.
        """
        ...


@runtime_checkable
class DiskTarget(Protocol):
    """A target that tells how much room its disks have."""

    def disks(self) -> Sequence[ServerDisk] | None:
        """The disks on which it keeps rows; None where that cannot be known.

        Raises:
            SetlError: it does not answer.
        """
        ...
