"""Looks at each server of ZooKeeper: one that is gone is not noticed by a session with another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from arbiter.arbiter import Contact
from setl.log import fields
from setl.node.ensemble import Looks, ServerSeen, after_look, seen_of

_log = logging.getLogger(__name__)

_EVERY_SECONDS = 30.0
_ANSWER_SECONDS = 2.0

Asks = Callable[[str, int, float], bool]
"""Whether the server at host and port answers within so many seconds; never raises."""


class EnsembleWatch:
    """Looks every half a minute, from a thread of its own, and holds nothing else up.

    With fewer than two addresses there is nothing to look at: a session tells all of it.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        contact: Callable[[], Contact],
        asks: Asks,
    ) -> None:
        """Nothing is looked at before `start`.

        Args:
            servers: host and port of each.
            contact: how well this node reaches ZooKeeper now.
            asks: asks one server.
        """
        several = servers if len(servers) > 1 else ()
        self._servers = {_address(host, port): (host, port) for host, port in several}
        self._contact = contact
        self._asks = asks
        self._looks: Looks = ()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="ensemble-watch", daemon=True)

    def start(self) -> None:
        """Begin to look, if there are servers to choose from."""
        if self._servers:
            self._thread.start()

    def stop(self) -> None:
        """Look no more; returns at once."""
        self._stopping.set()

    def seen(self) -> tuple[ServerSeen, ...]:
        """What is known of each server, nothing while there is no session; from any thread."""
        return seen_of(tuple(self._servers), self._looks if self._has_session() else ())

    def look(self) -> None:
        """One look at every server."""
        before, session = self._lost(), self._has_session()
        silent = [
            address
            for address, (host, port) in self._servers.items()
            if not self._stopping.is_set() and not self._asks(host, port, _ANSWER_SECONDS)
        ]
        session = session and self._has_session()
        self._looks = after_look(self._looks, self._servers, silent, session=session)
        if not self._looks:
            return
        after = self._lost()
        for address in sorted(after - before):
            _log.warning("a ZooKeeper server does not answer", extra=fields(server=address))
        for address in sorted(before - after):
            _log.info("a ZooKeeper server answers again", extra=fields(server=address))

    def _lost(self) -> set[str]:
        seen = seen_of(tuple(self._servers), self._looks)
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
