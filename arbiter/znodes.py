"""What the arbiter needs of ZooKeeper: a tree of versioned znodes, seen through one session.

The parts of `arbiter.arbiter.Arbiter` are written against this, so that their rules run unchanged
over ZooKeeper and over the memory of a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from arbiter.errors import ArbiterError, Contact, Unreachable


class Exists(ArbiterError):  # noqa: N818 - as in arbiter.errors
    """There is such a znode already."""


class Missing(ArbiterError):  # noqa: N818
    """There is no such znode, or none above it."""


class Changed(ArbiterError):  # noqa: N818
    """The znode has another version than the caller read."""


class SessionOver(Unreachable):
    """The session in which the caller decided this is over; nothing was sent."""


class Silent(Unreachable):
    """The connection looks alive, but the answer did not come in time."""


@dataclass(frozen=True, slots=True)
class Znode:
    """A znode as it was read.

    Attributes:
        data: its content.
        version: counts its changes, from 0; starts again when it is deleted and created.
        created: zxid of its creation; no two znodes ever have the same.
        owner: id of the session it ends with, 0 if it is persistent.
        changed: when its content was written last, seconds since 1970 UTC by ZooKeeper's clock.
    """

    data: bytes
    version: int
    created: int
    owner: int
    changed: float


class Session(Protocol):
    """What is known of one session with ZooKeeper, without asking. Thread-safe."""

    @property
    def session_timeout(self) -> float:
        """Seconds after which a silent session is declared dead, as granted by the arbiter."""
        ...

    def contact(self) -> Contact:
        """What is known now; never blocks. LOST stays until the next successful `announce`."""
        ...

    def last_contact(self) -> float:
        """`time.monotonic` of the last moment at which the session was surely alive.

        A process must stop writing before ``last_contact() + session_timeout`` (I3), whether
        or not a callback told it so.
        """
        ...

    def problem(self) -> str:
        """Why the last attempts to reach the servers failed; "" in contact, or if nobody knows."""
        ...

    def session_id(self) -> int:
        """Id of the current session, 0 while there is none."""
        ...

    def watch(self, wake: Callable[[], None]) -> None:
        """Call `wake`, which must not block, when contact, a channel or a leader lock changes."""
        ...

    def close(self) -> None:
        """End the session at once. Does nothing if there is none; never raises."""
        ...


class Znodes(Session, Protocol):
    """The tree, through one session. Thread-safe; every call has a limit.

    A call that names a session is only sent in that session: a request that waited while the
    session ended must not be carried out in the name of the next one. Versions alone do not
    rule that out, since a znode that somebody else created meanwhile may have the same.

    Raises, besides what each call says: Unreachable, with its effect unknown; Denied.
    """

    def rejoined(self, session: int) -> None:
        """The node is announced in `session`: its contact is LOST no longer."""
        ...

    def create(
        self,
        path: str,
        data: bytes,
        *,
        ephemeral: bool = False,
        session: int = 0,
    ) -> Znode:
        """Create a znode; raises Exists, or Missing if there is nothing above it."""
        ...

    def create_and_write(
        self,
        path: str,
        data: bytes,
        other: tuple[str, bytes, int],
        *,
        session: int,
    ) -> Znode:
        """Create an ephemeral znode and replace the content of another one: both, or neither.

        Args:
            path: the znode to create.
            data: its content.
            other: the other one's path, its new content, and the version that it has.
            session: the session it is sent in and the znode ends with.

        Raises:
            Exists: the first is there already, whatever the other one is.
            Changed: the other one has another version.
            Missing: there is no other one, or nothing above the first.
        """
        ...

    def append(self, path: str, data: bytes) -> str:
        """Create a persistent znode whose name is that of `path` and a number that only grows.

        Returns its name, without the folder. Raises Missing if there is no folder.
        """
        ...

    def read(self, path: str) -> Znode | None:
        """A znode, None if there is none."""
        ...

    def read_all(self, paths: Sequence[str]) -> list[Znode | None]:
        """Several znodes, each read by itself, in the order of `paths`."""
        ...

    def children(self, path: str) -> list[str]:
        """Names of the znodes below `path`, sorted; empty if there is no such path."""
        ...

    def children_all(self, paths: Sequence[str]) -> list[list[str]]:
        """`children` of several paths, each read by itself, in the order of `paths`."""
        ...

    def write(self, path: str, data: bytes, version: int, *, session: int = 0) -> int:
        """Replace the content if the version is still `version`; returns the new one.

        Raises:
            Changed: it has another version.
            Missing: there is no such znode.
        """
        ...

    def delete(self, path: str, version: int, *, session: int = 0) -> None:
        """Delete a znode if its version is still `version`; raises Changed or Missing."""
        ...

    def delete_all(self, expected: Sequence[tuple[str, int]]) -> None:
        """Delete znodes in this order if each still has its version: all of them, or none.

        Raises:
            Changed: one has another version, is gone, or has znodes below it by then.
        """
        ...

    def news(self) -> int | None:
        """A number that differs as soon as anything may have changed that decisions depend on.

        It is for what `arbiter.reading` reads: as long as the number is the same, what was read
        after it was first given still holds. What another session changes counts once its watch
        has fired, which is as soon as a read could show it but for a moment. None: there is
        nothing that would tell of changes now.
        """
        ...

    def last_change(self) -> int | None:
        """The number of the last change to any znode that this session has heard of; never blocks.

        As long as it is the same, nothing has changed at all, up to the last answer of a server.
        None: it is not known.
        """
        ...
