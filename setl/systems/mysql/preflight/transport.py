"""Checks whether somebody could read or change the traffic between setl and a server."""

from __future__ import annotations

import ipaddress

from setl.systems.finding import Report
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.preflight.server import Server

_FIX = (
    "Name the authority of the server's certificate as `ssl_ca`, so that nobody else can answer in"
    " its place"
)


def check_transport(server: Server, report: Report) -> None:
    """Report a connection that leaves this machine and is not known to reach the server."""
    endpoint = server.endpoint
    if endpoint.ssl_ca or _stays_here(endpoint):
        return
    (row,) = server.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    if row[1]:
        report.warning(
            "TLS without `ssl_ca`: nobody looks at the server's certificate",
            _FIX,
            code="tls-unverified",
        )
    else:
        report.warning(
            "the connection is not encrypted; who can listen reads every row",
            _FIX,
            code="tls-missing",
        )


def _stays_here(endpoint: MysqlEndpoint) -> bool:
    try:
        return ipaddress.ip_address(endpoint.host).is_loopback
    except ValueError:
        return endpoint.host == "localhost"
