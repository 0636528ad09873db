"""What nodes see of ZooKeeper's servers and certificates. Pure, and quick to import."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from setl.alarms.zookeeper_facts import CertificateFacts, CertificateKind, ZooKeeperFacts

LOOKS = 2
"""Looks one after the other at which a server must be silent until it counts as lost."""

Looks = tuple[frozenset[str], ...]
"""The servers that were silent at each of the last looks, the oldest first."""


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """A server of ZooKeeper.

    Attributes:
        address: host and port.
        answers: whether it answers; None if that is not known yet, or nothing can be
            said since this node has no session or reaches none of them.
        refused: which certificate is not accepted, if it does not answer for that.
    """

    address: str
    answers: bool | None = None
    refused: str = ""


def after_look(
    looks: Looks,
    servers: Collection[str],
    silent: Collection[str],
    *,
    session: bool,
    refused: bool = False,
) -> Looks:
    """The looks that count after one more.

    Without a session, or if all servers are silent, it is this node that has lost them, or they
    are all gone. That is told otherwise, and such a look says nothing about one server.

    Args:
        looks: those before.
        servers: all addresses.
        silent: those that did not answer this time.
        session: whether this node had its session during the look.
        refused: whether one of them is silent since a certificate is not accepted. Then all may be
            so while the session goes on, until its connection breaks.
    """
    if not session or (len(silent) == len(servers) and not refused):
        return ()
    return (*looks, frozenset(silent))[-LOOKS:]


def seen_of(
    servers: Sequence[str], looks: Looks, refused: Mapping[str, str] = MappingProxyType({})
) -> tuple[ServerSeen, ...]:
    """What the looks say of each server. One look at which it is silent changes nothing.

    Args:
        servers: all addresses.
        looks: those that count.
        refused: which certificates are not accepted, by address.
    """
    found = (ServerSeen(each, _answers(each, looks)) for each in servers)
    return tuple(
        replace(each, refused=refused.get(each.address, "")) if each.answers is False else each
        for each in found
    )


def _answers(server: str, looks: Looks) -> bool | None:
    if any(server not in silent for silent in looks):
        return True
    return False if len(looks) == LOOKS else None


def servers_in(answers: Mapping[str, Mapping[str, Any] | None]) -> Iterator[ZooKeeperFacts]:
    """What all nodes together say of each server.

    A server that one node cannot reach counts as lost: that node may need it next.

    Args:
        answers: each live node's status by nid, None if it does not answer.
    """
    silent_for: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    known: set[str] = set()
    for nid, answer in sorted(answers.items()):
        for seen in (answer or {}).get("zookeeper") or ():
            nodes = silent_for.setdefault(str(seen["address"]), [])
            if seen["answers"] is not None:
                known.add(str(seen["address"]))
            if seen["answers"] is False:
                nodes.append(nid)
                refused.setdefault(str(seen["address"]), str(seen.get("refused") or ""))
    lost = sum(map(bool, silent_for.values()))
    for address, nodes in sorted(silent_for.items()):
        answers_ = not nodes if address in known else None
        why = refused.get(address, "")
        yield ZooKeeperFacts(address, answers_, tuple(nodes), len(silent_for), lost, why)


def lost_in(answers: Mapping[str, Mapping[str, Any] | None]) -> list[ZooKeeperFacts]:
    """The servers that a node finds lost."""
    return [each for each in servers_in(answers) if each.answers is False]


@dataclass(frozen=True, slots=True)
class CertificateSeen:
    """A certificate without which this node cannot connect.

    Attributes:
        kind: whose it is.
        of: this node's file, the name of an authority, or the address of a server.
        begins: since when it is valid, seconds since 1970 UTC.
        expires: until when.
    """

    kind: CertificateKind
    of: str
    begins: float
    expires: float


def needed_in(answers: Mapping[str, Mapping[str, Any] | None]) -> Iterator[CertificateFacts]:
    """The certificates that nodes need, each once.

    Of a server or an authority that has been renewed where one node looks and not where another
    does, the one counts that ends first.

    Args:
        answers: each live node's status by nid, None if it does not answer.
    """
    certificates: dict[tuple[str, ...], CertificateFacts] = {}
    for nid, answer in sorted(answers.items()):
        for seen in (answer or {}).get("zookeeper_certificates") or ():
            facts = CertificateFacts(
                seen["kind"], str(seen["of"]), (nid,), seen["begins"], seen["expires"]
            )
            key = (facts.kind, facts.of, nid if facts.kind == "client" else "")
            certificates[key] = _joined(certificates.get(key), facts)
    yield from (certificates[key] for key in sorted(certificates))


def expiring_in(
    answers: Mapping[str, Mapping[str, Any] | None], now: float
) -> list[CertificateFacts]:
    """Those that expire soon."""
    return [each for each in needed_in(answers) if each.expires_soon(now)]


def all_known(answers: Iterable[Mapping[str, Any] | None]) -> bool:
    """Whether each node has told its certificates; who has not looked yet tells None."""
    return all(answer and answer.get("zookeeper_certificates") is not None for answer in answers)


def _joined(one: CertificateFacts | None, other: CertificateFacts) -> CertificateFacts:
    if one is None or other.expires < one.expires:
        return other
    if other.expires > one.expires:
        return one
    return CertificateFacts(one.kind, one.of, (*one.nodes, *other.nodes), one.begins, one.expires)
