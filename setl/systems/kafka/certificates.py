"""When the certificates of brokers expire."""

from __future__ import annotations

from collections.abc import Sequence

from setl.systems.certificates import certificate_expiry
from setl.systems.lasting import Expiration


def broker_certificates(brokers: Sequence[str], ca: str) -> Sequence[Expiration]:
    """Of each broker that a channel file names; none where `ssl_ca` is not given.

    Raises:
        TransientError: a broker does not answer.
    """
    found: list[Expiration] = []
    for broker in brokers if ca else ():
        host, _, port = broker.rpartition(":")
        at = certificate_expiry(host.strip("[]"), int(port), ca)
        if at is not None:
            found.append(Expiration("certificate", broker, at))
    return found
