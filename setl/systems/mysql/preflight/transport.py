"""Checks whether somebody could read or change the traffic between setl and a server."""

from __future__ import annotations

from setl.systems.finding import Report
from setl.systems.mysql.server import Server
from setl.systems.tls_findings import NOT_ENCRYPTED, TLS_MISSING, TLS_UNVERIFIED, stays_here

_FIX = (
    "Name the authority of the server's certificate as `ssl_ca`, so that nobody else can answer in"
    " its position"
)


def check_transport(server: Server, report: Report) -> None:
    """Report a connection that leaves this machine and is not known to reach the server."""
    endpoint = server.endpoint
    if endpoint.ssl_ca or stays_here(endpoint.host):
        return
    taken = "; whoever answers in its place gets the password" if endpoint.insecure_login else ""
    (row,) = server.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    if row[1]:
        report.warning(
            f"TLS without `ssl_ca`: nobody looks at the server's certificate{taken}",
            _FIX,
            code=TLS_UNVERIFIED,
        )
    else:
        report.warning(NOT_ENCRYPTED + taken, _FIX, code=TLS_MISSING)
