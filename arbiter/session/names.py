"""Looks up the names of servers while a session begins, since kazoo does not say which are unknown.

kazoo leaves out a server whose name it cannot resolve. Whoever waits would learn no reason.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Self

_PAUSE = 1.0  # seconds between two look-ups of a name that was not known


class NameLookups:
    """Tells of names that cannot be looked up, inside a `with` block.

    Looking up may take long. So it is done in a thread, which nobody waits for.
    """

    def __init__(
        self, servers: Iterable[tuple[str, int]], unknown: Callable[[str, OSError], None]
    ) -> None:
        """Look up nothing yet.

        Args:
            servers: hosts and ports.
            unknown: takes ``host:port`` and the error, each time a look-up fails; must not block.
        """
        self._left: list[tuple[str, int]] = [
            (host, port) for host, port in servers if not _is_address(host)
        ]
        self._unknown = unknown
        self._over = threading.Event()

    def __enter__(self) -> Self:
        if self._left:
            threading.Thread(target=self._run, name="arbiter-names", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _run(self) -> None:
        while self._left:
            self._left = [server for server in self._left if not self._is_known(*server)]
            if self._over.wait(_PAUSE):
                return

    def _is_known(self, host: str, port: int) -> bool:
        try:
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            if not self._over.is_set():
                self._unknown(f"{host}:{port}", error)
            return False
        except UnicodeError as error:  # a label of more than 63 letters
            self._unknown(f"{host}:{port}", OSError(str(error)))
        return True


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
