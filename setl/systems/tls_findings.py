"""What is said of connections that somebody on their way could read."""

from __future__ import annotations

import ipaddress
from typing import Final

TLS_MISSING: Final = "tls-missing"
"""Nothing is encrypted; see `setl.systems.finding.Finding.code`."""

TLS_UNVERIFIED: Final = "tls-unverified"
"""It is encrypted, and nobody looks at the server's certificate."""

NOT_ENCRYPTED: Final = "the connection is not encrypted; who can listen reads every row"


def stays_here(host: str) -> bool:
    """Whether a connection to a host does not leave this machine, as far as its name tells."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
