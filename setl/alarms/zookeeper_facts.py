"""What is known of ZooKeeper's servers and certificates; `setl list` needs no other facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from setl.alarms.judgement import CRITICAL_PART, seconds_before
from setl.operate.units import duration

CertificateKind = Literal["client", "authority", "server"]
"""Whose a certificate is: a node's own, that of an authority, or a server's."""


_HINTS: dict[CertificateKind, str] = {
    "client": "Put a new certificate and its key into the node's files; it takes them when it"
    " connects next, and need not be started again",
    "server": "Put a new certificate into the server's key store; a ZooKeeper before 3.9 must be"
    " started again, one server after the other",
    "authority": "Have all of them trust a second authority, renew the certificates from it, then"
    " remove the first: see “Another authority” on the page Ports and secrets",
}


@dataclass(frozen=True, slots=True)
class ZooKeeperFacts:
    """One server of the ensemble that keeps the cluster.

    Attributes:
        address: host and port, as nodes were given them.
        answers: whether it answers; None if nobody knows.
        silent_for: the nodes that it does not answer.
        servers: how many servers there are, as far as nodes were given them.
        lost: how many of them do not answer a node.
        refused: which certificate a node or the server does not accept, and why; "" for none.
    """

    address: str
    answers: bool | None
    silent_for: tuple[str, ...] = ()
    servers: int = 0
    lost: int = 0
    refused: str = ""

    @property
    def hint(self) -> str:
        """What to do if it does not answer."""
        if self.refused:
            return (
                "Renew what has expired; each side must trust the authority of the other's"
                " certificate"
            )
        return (
            "See whether it runs and has joined the others, and whether these nodes reach its port"
        )

    @property
    def sentence(self) -> str:
        """That it does not answer, and what that means."""
        return f"ZooKeeper {self.words}"

    @property
    def words(self) -> str:
        """The same where ZooKeeper is named already."""
        see = "sees" if len(self.silent_for) == 1 else "see"
        spare = self.servers - self.lost - (self.servers // 2 + 1)
        left = "no more may be lost, or no node can lead"
        if spare > 0:
            left = f"{spare} more may be lost"
        elif self.lost == self.servers:
            left = "a node that loses its connection cannot come back"
        what = f"cannot be used: {self.refused}" if self.refused else "does not answer"
        return (
            f"server {self.address} {what}; {', '.join(self.silent_for)} {see}"
            f" it so; {self.lost} of {self.servers} servers lost: {left}"
        )


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """A certificate without which a node cannot connect to ZooKeeper.

    Attributes:
        kind: whose it is.
        of: the file of a node's own, the name of an authority, or the address of a server.
        nodes: the nodes that have it, or have seen it.
        begins: since when it is valid, seconds since 1970 UTC.
        expires: until when.
    """

    kind: CertificateKind
    of: str
    nodes: tuple[str, ...]
    begins: float
    expires: float

    @property
    def subject(self) -> str:
        """What an alarm about it is about."""
        if self.kind == "client":
            return f"{self.of} of node {self.nodes[0]}"
        return f"authority {self.of}" if self.kind == "authority" else f"ZooKeeper {self.of}"

    def expires_soon(self, now: float) -> bool:
        """Whether people have to know of it now."""
        return self.expires - now < self._before

    def critical(self, now: float) -> bool:
        """Whether there is hardly any time left."""
        return self.expires - now < self._before / CRITICAL_PART

    def sentence(self, now: float) -> str:
        """When it expires, and what that means; without a stop."""
        left = self.expires - now
        when = f"expires in {duration(left)}" if left > 0 else "has expired"
        nodes = ", ".join(self.nodes)
        if self.kind == "client":
            return (
                f"the certificate {self.of} of node {nodes} for ZooKeeper {when}; then it cannot"
                " connect again once its connection breaks"
            )
        if self.kind == "server":
            return (
                f"the certificate of ZooKeeper server {self.of} {when}; then nodes cannot connect"
                " to it"
            )
        return (
            f"the certificate of the authority {self.of}, which {nodes}"
            f" {'needs' if len(self.nodes) == 1 else 'need'} for ZooKeeper, {when}; then they"
            " cannot connect again once their connections break"
        )

    @property
    def hint(self) -> str:
        """What to do."""
        return _HINTS[self.kind]

    @property
    def _before(self) -> float:
        return seconds_before(self.begins, self.expires)
