"""What kind of error an answer of Elasticsearch is."""

import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig, TlsError
from elasticsearch import NotFoundError
from elasticsearch.helpers import ScanError

from setl.errors import ConfigurationError, TransientError, UntrustedServerError
from setl.systems.elasticsearch.client import ElasticEndpoint, translating

ENDPOINT = ElasticEndpoint(("http://es:9200",))


def not_found(cause, type_, reason):
    meta = ApiResponseMeta(404, "1.1", HttpHeaders(), 0.0, NodeConfig("http", "es", 9200))
    error = {"root_cause": [{"type": cause, "reason": "…"}], "type": type_, "reason": reason}
    return NotFoundError(type_, meta, {"error": error, "status": 404})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            not_found(
                "search_context_missing_exception",
                "search_phase_execution_exception",
                "all shards failed",
            ),
            TransientError,
        ),
        (
            not_found("index_not_found_exception", "index_not_found_exception", "no such index"),
            ConfigurationError,
        ),
        (TlsError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), UntrustedServerError),
        (ScanError("s", "Scroll request has only succeeded on 1 shards out of 2."), TransientError),
    ],
)
def test_what_a_reader_may_meet(error, kind):
    """A node that restarts takes what was opened on it along; asked again, all is well."""
    with pytest.raises(kind), translating(ENDPOINT):
        raise error
