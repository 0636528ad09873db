"""What is known of ZooKeeper's servers; `setl list` needs it, and not what all other facts do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ZooKeeperFacts:
    """One server of the ensemble that keeps the cluster.

    Attributes:
        address: host and port, as nodes were given them.
        answers: whether it answers; None if nobody knows.
        silent_for: the nodes that it does not answer.
        servers: how many servers there are, as far as nodes were given them.
        lost: how many of them do not answer a node.
    """

    address: str
    answers: bool | None
    silent_for: tuple[str, ...] = ()
    servers: int = 0
    lost: int = 0

    @property
    def way_out(self) -> str:
        """What to do if it does not answer."""
        return (
            "See whether it runs and has joined the others, and whether these nodes reach its port"
        )

    @property
    def sentence(self) -> str:
        """That it does not answer, and what that means."""
        see = "sees" if len(self.silent_for) == 1 else "see"
        spare = self.servers - self.lost - (self.servers // 2 + 1)
        left = (
            f"{spare} more may be lost" if spare > 0 else "no more may be lost, or no node can lead"
        )
        return (
            f"ZooKeeper server {self.address} does not answer; {', '.join(self.silent_for)} {see}"
            f" it so; {self.lost} of {self.servers} servers lost: {left}"
        )
