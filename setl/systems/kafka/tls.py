"""TLS to the brokers: who could read or change the traffic, and when certificates expire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from setl.systems.certificates import certificate_at
from setl.systems.expiry import Expiration
from setl.systems.finding import Report
from setl.systems.tls_findings import NOT_ENCRYPTED, TLS_MISSING, TLS_UNVERIFIED, stays_here

_NO = frozenset({"false", "0", "f"})


def check_transport(settings: Mapping[str, Any], report: Report) -> None:
    """Report connections that leave this machine and are not known to reach the brokers.

    Args:
        settings: librdkafka's.
        report: where to put it.
    """
    brokers = str(settings["bootstrap.servers"]).split(",")
    if all(stays_here(broker.rpartition(":")[0].strip("[]")) for broker in brokers):
        return
    if "SSL" not in str(settings["security.protocol"]).upper():
        report.warning(
            NOT_ENCRYPTED,
            "Name the authority of the brokers' certificates as `ssl_ca`, which turns TLS on",
            code=TLS_MISSING,
        )
    elif str(settings.get("enable.ssl.certificate.verification", True)).lower() in _NO:
        report.warning(
            "TLS without a look at the brokers' certificates",
            "Leave `enable.ssl.certificate.verification` out",
            code=TLS_UNVERIFIED,
        )
    elif str(settings.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        report.warning(
            "TLS without a look at the names in the brokers' certificates: whoever has any"
            " certificate of their authority can answer in their place",
            "Leave `ssl.endpoint.identification.algorithm` (`ssl_check_hostname`) out, and give the"
            " brokers certificates with the names that `brokers` has",
            code=TLS_UNVERIFIED,
        )


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
