"""Which certificates this node needs to connect to ZooKeeper's servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from arbiter.access import Tls
from arbiter.certificates import Certificate, certificates_in, signed_by
from setl.alarms.zookeeper_facts import CertificateKind
from setl.node.zookeeper.needed_certificates import CertificateSeen


def certificates_of(
    tls: Tls, shown: Mapping[str, Sequence[Certificate]]
) -> tuple[CertificateSeen, ...]:
    """What this node needs now. Its files are read again: they are renewed while it runs.

    Of the authorities in its file those count that are in use: a file may hold all that the world
    trusts, or one that is to go.

    Args:
        tls: names the files.
        shown: what each server has shown: its certificate, then those that it is trusted by.
    """
    own = certificates_in(tls.certificate) if tls.certificate else ()
    trusted = certificates_in(tls.ca) if tls.ca else ()
    authorities = [*_signers(own, trusted)]
    for chain in shown.values():
        authorities += _signers(chain[:1], trusted)
        authorities += [
            max((above, *_signers([below], trusted)), key=_end) for below, above in pairwise(chain)
        ]
    found = [_seen("client", tls.certificate, min(own, key=_end))] if own else []
    found += [_seen("server", address, chain[0]) for address, chain in shown.items() if chain]
    for name in sorted({each.subject for each in authorities}):
        named = (each for each in authorities if each.subject == name)
        found.append(_seen("authority", name, min(named, key=_end)))
    return tuple(found)


def _signers(
    certificates: Iterable[Certificate], trusted: Sequence[Certificate]
) -> Iterator[Certificate]:
    """Who of those that are trusted has signed each; a renewed one counts for the one before it."""
    for each in certificates:
        signers = [one for one in trusted if signed_by(each, one)]
        if signers:
            yield max(signers, key=_end)


def _end(certificate: Certificate) -> float:
    return certificate.expires


def _seen(kind: CertificateKind, of: str, certificate: Certificate) -> CertificateSeen:
    return CertificateSeen(kind, of, certificate.begins, certificate.expires)
