"""Replicas of a target, for which a load of whole tables may have to wait."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class ReplicaBehind:
    """How far a replica is behind the server whose replica it is.

    Attributes:
        address: which replica.
        seconds: as it says itself; infinite where it does not, see `why`.
        why: why that is not known, as the end of a sentence; else "".
        delay: seconds by which it is kept behind on purpose.
    """

    address: str
    seconds: float
    why: str = ""
    delay: float = 0.0

    def __str__(self) -> str:
        """What somebody waits for, for people."""
        known = f"is {self.seconds:.0f} s behind"
        return f"the replica {self.address} {self.why if math.isinf(self.seconds) else known}"


@runtime_checkable
class ReplicatedTarget(Protocol):
    """A target that knows of replicas of its own."""

    def farthest_replica(self) -> ReplicaBehind | None:
        """The replica that is behind most; None if the channel file names none.

        Asks all of them. One that cannot be asked, or that does not replicate, is behind most: a
        load must not run away from a replica of which nobody knows anything. Raises nothing.
        """
        ...
