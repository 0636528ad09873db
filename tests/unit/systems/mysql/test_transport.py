"""What is said of connections that somebody else could read."""

from types import SimpleNamespace
from typing import Any

import pytest

from setl.systems.finding import Report
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.preflight.endpoints import check_transport


@pytest.mark.parametrize(
    ("host", "authority", "cipher", "said"),
    [
        ("db1", "", "TLS_AES_256", "TLS without `ssl_ca`"),
        ("10.0.0.7", "", "", "not encrypted"),
        ("db1", "/ca.pem", "TLS_AES_256", ""),
        ("127.0.0.1", "", "", ""),
        ("localhost", "", "", ""),
        ("::1", "", "", ""),
    ],
)
def test_connections_that_leave_this_machine(host, authority, cipher, said):
    server: Any = SimpleNamespace(
        endpoint=MysqlEndpoint(host, ssl_ca=authority), rows=lambda _: [("Ssl_cipher", cipher)]
    )
    report = Report("here")
    check_transport(server, report)
    assert [f.level for f in report.findings] == (["warning"] if said else [])
    assert said in "".join(f.what for f in report.findings)


def test_a_password_for_whoever_answers():
    server: Any = SimpleNamespace(
        endpoint=MysqlEndpoint("db1", insecure_login=True), rows=lambda _: [("Ssl_cipher", "")]
    )
    report = Report("here")
    check_transport(server, report)
    (finding,) = report.findings
    assert "whoever answers in its place gets the password" in finding.what
