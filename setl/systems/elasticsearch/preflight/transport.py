"""Checks whether somebody could read or change the traffic between setl and a cluster."""

from __future__ import annotations

from urllib.parse import urlsplit

from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.finding import Report
from setl.systems.tls_findings import NOT_ENCRYPTED, TLS_MISSING, stays_here


def check_transport(endpoint: ElasticEndpoint, report: Report) -> None:
    """Report connections without TLS that leave this machine.

    With TLS the client always compares the certificate, to the system's authorities if no others
    are named.
    """
    addresses = [urlsplit(host) for host in endpoint.hosts]
    plain = [
        address
        for address in addresses
        if address.scheme == "http" and not stays_here(address.hostname or "")
    ]
    if plain:
        unused = ". `ca_certs` has no effect there" if endpoint.ca_certs else ""
        report.warning(
            f"{NOT_ENCRYPTED} ({', '.join(str(address.hostname) for address in plain)}){unused}",
            "Write https:// in `hosts`, and `ca_certs` where the authority is your own",
            code=TLS_MISSING,
        )
