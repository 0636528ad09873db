"""How near strangers come to a node's HTTP interface: addresses, hosts, and trusted proxies."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_WITH_PORT = re.compile(r"\[(?P<six>[^\]]*)\](:\d+)?|(?P<four>[\d.]+):\d+")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")


@dataclass(frozen=True, slots=True)
class Exposure:
    """What of the HTTP interface is reached from where.

    Attributes:
        probes: host and port at which probes are answered, too, apart from everything else; None
            for nowhere.
        behind: the proxies that are believed what they say of their clients.
        hosts: names by which it is asked for, beside those of the machine; ``*.NAME`` for all
            below a name.
    """

    probes: tuple[str, int] | None = None
    behind: tuple[Network, ...] = ()
    hosts: tuple[str, ...] = ()

    def is_proxy(self, address: str) -> bool:
        """Whether an address is that of a proxy that the configuration names."""
        found = address_of(address) if self.behind else None
        return found is not None and any(found in network for network in self.behind)


def address_of(text: str) -> Address | None:
    """An IP address, also one with a port; None if it is something else."""
    bare = text.strip()
    if found := _WITH_PORT.fullmatch(bare):
        bare = found["six"] or found["four"]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if address.version == 6 else None
    return mapped or address


def networks(text: str) -> tuple[Network, ...]:
    """The parts of ADDRESS[,ADDRESS], each an address or a network.

    Raises:
        ValueError: one is something else.
    """
    parsed: list[Network] = []
    for each in items(text):
        try:
            parsed.append(ipaddress.ip_network(each))
        except ValueError:
            wanted = "must be addresses or networks, such as 10.0.0.9,10.1.0.0/16"
            raise ValueError(wanted) from None
    return tuple(parsed)


def host_names(text: str) -> tuple[str, ...]:
    """The parts of HOST[,HOST].

    Raises:
        ValueError: one is no name of a host.
    """
    found = tuple(items(text))
    if not all(_HOST.fullmatch(each) for each in found):
        raise ValueError("must be names of hosts, such as setl.example.org,*.setl-nodes")
    return found


def items(text: str) -> list[str]:
    """What stands between commas."""
    return [each.strip() for each in text.split(",") if each.strip()]


def host_and_port(text: str) -> tuple[str, int]:
    """The parts of HOST:PORT.

    Raises:
        ValueError: it is something else.
    """
    host, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError("must be HOST:PORT, such as 0.0.0.0:8080")
    return host or "127.0.0.1", int(port)
