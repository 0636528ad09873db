"""How near strangers come to a node's HTTP interface."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exposure:
    """What of the HTTP interface is reached from where.

    Attributes:
        probes: host and port at which probes are answered, too, apart from everything else; None
            for nowhere.
    """

    probes: tuple[str, int] | None = None


def host_and_port(text: str) -> tuple[str, int]:
    """The parts of HOST:PORT.

    Raises:
        ValueError: it is something else.
    """
    host, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError("must be HOST:PORT, such as 0.0.0.0:8080")
    return host or "127.0.0.1", int(port)
