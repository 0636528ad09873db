"""What counts as one client: an address, or a whole network of IPv6."""

from __future__ import annotations

import ipaddress

LONGEST_NAME = 64
"""Characters of a client's name that are kept; an address has fewer."""


def client_name(client: str) -> str:
    """The name under which a client is counted.

    Whoever has one address of IPv6 has 2^64 of them. Text that is no address stays, shortened.
    """
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client[:LONGEST_NAME]
    if address.version == 6:
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        bare = ipaddress.IPv6Address(int(address))  # without a zone, which a network cannot have
        return str(ipaddress.ip_network((bare, 64), strict=False))
    return str(address)
