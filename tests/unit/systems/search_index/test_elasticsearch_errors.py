"""What kind of error an answer of Elasticsearch is."""

import pytest
from elastic_transport import TlsError

from setl.errors import ConfigurationError, TransientError, UntrustedServerError
from setl.systems.elasticsearch.client import ElasticEndpoint, translate
from setl.systems.search_index.errors import AnswerError, translating

ENDPOINT = ElasticEndpoint(("http://es:9200",))


def not_found(cause, type_, reason):
    error = {"root_cause": [{"type": cause, "reason": "…"}], "type": type_, "reason": reason}
    return AnswerError(404, {"error": error, "status": 404})


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
    ],
)
def test_what_a_reader_may_meet(error, kind):
    """A node that restarts takes what was opened on it along; asked again, all is well."""
    with pytest.raises(kind), translating(ENDPOINT):
        raise error


def test_a_certificate_that_is_not_trusted():
    error = translate(TlsError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"))
    assert isinstance(error, UntrustedServerError)
