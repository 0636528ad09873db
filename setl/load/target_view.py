"""What a look at a target finds while a pipeline may wait for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LockWait:
    """One of our connections waits for a lock.

    Attributes:
        waiting: our connection.
        seconds: how long it has waited.
        table: ``schema.table`` of the lock, "" if not known.
        holder: the connection in its way, 0 if that cannot be seen.
        who: ``user@host`` of the holder, or the leadership for which it writes; "" if unknown.
        held: seconds since the holder's transaction began.
        doing: what the holder does: its command and state.
    """

    waiting: int
    seconds: float = 0.0
    table: str = ""
    holder: int = 0
    who: str = ""
    held: float = 0.0
    doing: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that runs, of one of our connections where nothing else is said.

    Attributes:
        connection: its id.
        seconds: how long it has run.
        state: what the server says that it is doing.
    """

    connection: int
    seconds: float
    state: str


@dataclass(frozen=True, slots=True)
class TargetView:
    """The target, as a look at it found it.

    Attributes:
        name: what it is and where.
        error: why it does not answer, "" if it does.
        waits: connections of this leadership that wait for a lock, and for whom.
        statements: their statements that run.
        open: how many have a transaction open and run nothing.
        gone: connections that this leadership recorded and the target does not have.
        hanging: a commit of anybody that does not end; others wait for what it holds.
        rejecting: how it says that it is too busy, "" if it does not.
        blind: what could not be seen, and why.
        movement: differs between two looks if something advanced there.
    """

    name: str = "the target"
    error: str = ""
    waits: tuple[LockWait, ...] = ()
    statements: tuple[Statement, ...] = ()
    open: int = 0
    gone: tuple[int, ...] = ()
    hanging: Statement | None = None
    rejecting: str = ""
    blind: str = ""
    movement: Hashable = None


LookAtTarget = Callable[[int], TargetView]
"""Looks at a target for the connections of an epoch. Blocks for some seconds at most."""
