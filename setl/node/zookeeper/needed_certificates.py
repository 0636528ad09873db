"""The certificates that nodes need for ZooKeeper, as nodes tell them. Pure, and quick to import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from setl.alarms.zookeeper_facts import CertificateFacts, CertificateKind


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
    found: dict[tuple[str, ...], CertificateFacts] = {}
    for nid, answer in sorted(answers.items()):
        for seen in (answer or {}).get("zookeeper_certificates") or ():
            facts = CertificateFacts(
                seen["kind"], str(seen["of"]), (nid,), seen["begins"], seen["expires"]
            )
            key = (facts.kind, facts.of, nid if facts.kind == "client" else "")
            found[key] = _joined(found.get(key), facts)
    yield from (found[key] for key in sorted(found))


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
