"""What is said of connections to a cluster that somebody else could read."""

import pytest

from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.finding import Report
from setl.systems.search_index.preflight.target import check_transport


@pytest.mark.parametrize(
    ("hosts", "authority", "says"),
    [
        (("http://127.0.0.1:9200", "http://localhost:9200"), "", ""),
        (("https://es1:9200",), "", ""),
        (("https://es1:9200", "http://user:secret@es2:9200"), "", "row (es2)"),
        (("http://es1:9200",), "/ca.pem", "`ca_certs` has no effect"),
    ],
)
def test_connections_without_tls_that_leave_this_machine(hosts, authority, says):
    report = Report("here")
    check_transport(ElasticEndpoint(hosts, ca_certs=authority), report)
    said = "".join(finding.what for finding in report.findings)
    assert [f.code for f in report.findings] == (["tls-missing"] if says else [])
    assert says in said
    assert "secret" not in said
