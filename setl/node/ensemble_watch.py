"""Looks at each server of ZooKeeper: one that is gone is not noticed by a session with another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from arbiter.access import Tls
from arbiter.certificates import Certificate, certificates_in, signed_by
from arbiter.errors import Contact
from arbiter.servers import Answer
from setl.alarms.zookeeper_facts import CertificateKind
from setl.log import fields
from setl.node.ensemble import CertificateSeen, Looks, ServerSeen, after_look, seen_of


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
    certificates = [_seen("client", tls.certificate, min(own, key=_end))] if own else []
    certificates += [
        _seen("server", address, chain[0]) for address, chain in shown.items() if chain
    ]
    for name in sorted({each.subject for each in authorities}):
        named = (each for each in authorities if each.subject == name)
        certificates.append(_seen("authority", name, min(named, key=_end)))
    return tuple(certificates)


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


_log = logging.getLogger(__name__)

_EVERY_SECONDS = 30.0
_ANSWER_SECONDS = 2.0

Asks = Callable[[str, int, float], Answer]
"""What the server at host and port says within so many seconds; never raises."""


class EnsembleWatch:
    """Looks every half a minute, from a thread of its own, and holds nothing else up.

    With fewer than two addresses a session tells all of it, except how long certificates last.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        contact: Callable[[], Contact],
        asks: Asks,
        tls: Tls | None = None,
    ) -> None:
        """Nothing is looked at before `start`.

        Args:
            servers: host and port of each.
            contact: how well this node reaches ZooKeeper now.
            asks: asks one server.
            tls: encryption, None for none.
        """
        looked_at = servers if tls is not None or len(servers) > 1 else ()
        self._asked = {_address(host, port): (host, port) for host, port in looked_at}
        self._servers = tuple(self._asked) if len(servers) > 1 else ()
        self._tls = tls
        self._shown: dict[str, tuple[Certificate, ...]] = {}
        self._refused: dict[str, str] = {}
        self._certificates: tuple[CertificateSeen, ...] | None = None if tls else ()
        self._contact = contact
        self._asks = asks
        self._looks: Looks = ()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="ensemble-watch", daemon=True)

    def start(self) -> None:
        """Begin to look, if there is something to look at."""
        if self._asked:
            self._thread.start()

    def stop(self) -> None:
        """Look no more; returns at once."""
        self._stopping.set()

    def seen(self) -> tuple[ServerSeen, ...]:
        """What is known of each server, nothing while there is no session; from any thread."""
        looks = self._looks if self._has_session() else ()
        return seen_of(self._servers, looks, self._refused)

    def certificates(self) -> tuple[CertificateSeen, ...] | None:
        """What is needed to connect, None before the first look; from any thread.

        What a server has shown last stays known while it does not answer.
        """
        return self._certificates

    def look(self) -> None:
        """One look at every server."""
        before, session = self._lost(), self._has_session()
        answers = {
            address: self._asks(host, port, _ANSWER_SECONDS)
            for address, (host, port) in self._asked.items()
            if not self._stopping.is_set()
        }
        self._look_at_certificates(answers)
        if not self._servers:
            return
        silent = [address for address, answer in answers.items() if not answer.serves]
        session = session and self._has_session()
        refused = bool(self._refused)
        self._looks = after_look(
            self._looks, self._servers, silent, session=session, refused=refused
        )
        if not self._looks:
            return
        after = self._lost()
        for address in sorted(after - before):
            why = self._refused.get(address, "")
            extra = fields(server=address, error=why) if why else fields(server=address)
            _log.warning("a ZooKeeper server does not answer", extra=extra)
        for address in sorted(before - after):
            _log.info("a ZooKeeper server answers again", extra=fields(server=address))

    def _look_at_certificates(self, answers: Mapping[str, Answer]) -> None:
        self._refused = {at: answer.refused for at, answer in answers.items() if answer.refused}
        if self._tls is None:
            return
        for address, answer in answers.items():
            if answer.refused and answer.chain:
                # Not verified, so that it stands alone; its authorities are those from before.
                self._shown[address] = (answer.chain[0], *self._shown.get(address, ())[1:])
            elif answer.chain:
                self._shown[address] = answer.chain
        self._certificates = certificates_of(self._tls, self._shown)

    def _lost(self) -> set[str]:
        seen = seen_of(self._servers, self._looks)
        return {each.address for each in seen if each.answers is False}

    def _has_session(self) -> bool:
        return self._contact() is Contact.CONNECTED

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self.look()
            except Exception:  # noqa: BLE001 - a defect must not end the looking
                _log.exception("a look at ZooKeeper's servers failed unexpectedly")
            self._stopping.wait(_EVERY_SECONDS)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
