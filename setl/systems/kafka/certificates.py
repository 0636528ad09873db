"""When the certificates of brokers expire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from setl.systems.certificates import certificate_at
from setl.systems.expiry import Expiration


def broker_certificates(brokers: Sequence[str], ca: str) -> Sequence[Expiration]:
    """Of each broker that a channel file names; none where `ssl_ca` is not given.

    Raises:
        TransientError: a broker does not answer.
    """
    found: list[Expiration] = []
    for broker in brokers if ca else ():
        host, _, port = broker.rpartition(":")
        seen = certificate_at(host.strip("[]"), int(port), ca)
        if seen is not None:
            found.append(replace(seen, of=broker))  # as the file writes it, with its brackets
    return found
