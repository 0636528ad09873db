"""What OpenSearch's client is told and tells: logins, products, refusals, servers that are down."""

import ssl
import sys
from base64 import b64encode

import pytest

from setl.channel.reading import parse_channel
from setl.errors import (
    ConfigurationError,
    FatalError,
    LoginRefusedError,
    NodeNotReadyError,
    TransientError,
    UntrustedServerError,
)
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.finding import Report
from setl.systems.opensearch.endpoint import OpenSearchEndpoint
from setl.systems.registry import system_of
from setl.systems.search_index.client import make_client
from setl.systems.search_index.errors import AnswerError, translating
from setl.systems.search_index.preflight.target import check_search_target
from setl_embedded.certificates import CertificateAuthority
from setl_embedded.ports import free_port
from tests.search_server import SearchServer
from tests.unit.channel.channels import changed
from tests.unit.channel.test_reading import problems_of

TARGET = {"type": "opensearch", "hosts": ["http://o1:9200"]}
OPENSEARCH = {
    "tagline": "The OpenSearch Project: https://opensearch.org/",
    "version": {"distribution": "opensearch", "number": "2.19.1"},
}
ELASTIC = {"tagline": "You Know, for Search", "version": {"number": "8.15.0"}}
COMPATIBLE = {"tagline": OPENSEARCH["tagline"], "version": {"number": "7.10.2"}}


def serving(info, status=200, body=None, *, sign=None):
    """A server of a product, whose requests but ``GET /`` have an answer."""

    def answer(method, path, lines):
        return (200, info) if path == "/" else (status, {} if body is None else body)

    headers = {} if sign is None else {"x-elastic-product": sign}
    return SearchServer(answer, headers)


def test_a_cluster_of_the_product_is_used():
    for info in (OPENSEARCH, COMPATIBLE):
        with serving(info) as server, make_client(OpenSearchEndpoint((server.url,))) as client:
            assert client.health() == ""
            assert client.exists("i")


def test_a_proxy_may_sign_the_answers_of_opensearch():
    """Some do, so that Elasticsearch's client takes them."""
    with serving(OPENSEARCH, sign="Elasticsearch") as server:
        endpoint = OpenSearchEndpoint((server.url,))
        with make_client(endpoint) as client:
            assert client.health() == ""
            assert client.health() == ""


@pytest.mark.parametrize(("status", "body"), [(200, {}), (406, "Content-Type is not supported")])
@pytest.mark.parametrize("info", [OPENSEARCH, COMPATIBLE])
def test_opensearch_is_no_elasticsearch(info, status, body):
    with (
        serving(info, status, body) as server,
        make_client(ElasticEndpoint((server.url,))) as client,
        pytest.raises(ConfigurationError, match=r"the server is .*(?i:opensearch)") as caught,
    ):
        client.health()
    assert caught.value.hint == "Write `type: opensearch` for this target"


def test_elasticsearch_is_no_opensearch():
    with serving(ELASTIC, sign="Elasticsearch") as server:
        endpoint = OpenSearchEndpoint((server.url,))
        with make_client(endpoint) as client, pytest.raises(ConfigurationError) as caught:
            client.health()
    assert caught.value.message == (
        "OpenSearch: the server is Elasticsearch (You Know, for Search)"
    )
    assert caught.value.hint == "Write `type: elasticsearch` for this target"


@pytest.mark.parametrize(
    ("endpoint", "info", "sign", "found"),
    [
        (OpenSearchEndpoint, OPENSEARCH, None, [("ok", "OpenSearch 2.19.1 answers")]),
        (OpenSearchEndpoint, {**ELASTIC}, None,
         [("error", "the server is not OpenSearch: it calls itself You Know, for Search, 8.15.0")]),
        (OpenSearchEndpoint, {**OPENSEARCH, "version": {"distribution": "opensearch",
                                                        "number": "1.3.2"}}, None,
         [("warning", "setl is made for OpenSearch 2.8 and later; the cluster has 1.3.2")]),
        (ElasticEndpoint, OPENSEARCH, "Elasticsearch",
         [("error", "the server is not Elasticsearch: it calls itself opensearch, 2.19.1")]),
        (ElasticEndpoint, ELASTIC, "Elasticsearch", [("ok", "Elasticsearch 8.15.0 answers")]),
    ],
)  # fmt: skip
def test_checks_name_the_product_and_its_version(endpoint, info, sign, found):
    report = Report("c/p")
    with serving(info, sign=sign) as server:
        check_search_target(endpoint((server.url,)), {}, "c/p", report)
    assert [(each.level, each.what) for each in report.findings] == found


def test_refusals_are_those_of_the_cluster_or_of_aws():
    reason = {"error": {"type": "mapper_parsing_exception", "reason": "no"}, "status": 400}
    expected = [
        (400, reason, FatalError, "OpenSearch: mapper_parsing_exception: no [400]"),
        (401, "Unauthorized", LoginRefusedError, "OpenSearch: Unauthorized [401]"),
        (
            403,
            {"Message": "not authorized"},
            ConfigurationError,
            "OpenSearch: not authorized [403]",
        ),
        (429, {"message": "slow down"}, TransientError, "OpenSearch: slow down [429]"),
        (503, {}, TransientError, "OpenSearch: {} [503]"),
    ]
    for status, body, kind, message in expected:
        with serving(OPENSEARCH, status, body) as server:
            endpoint = OpenSearchEndpoint((server.url,))
            with (
                make_client(endpoint) as client,
                pytest.raises(kind) as caught,
                translating(endpoint),
            ):
                client.refresh("i")
            assert caught.value.message == message
            assert caught.value.code == status
    with (
        serving(OPENSEARCH, 404, reason) as server,
        make_client(OpenSearchEndpoint((server.url,))) as client,
    ):
        assert client.mappings("i", ignore=404) == {}
        assert not client.exists("i")
        with pytest.raises(AnswerError) as refused:
            client.mappings("i")
    assert (refused.value.status, refused.value.type) == (404, "mapper_parsing_exception")


def test_requests_leave_no_lines_in_the_log(caplog):
    """Python workers have no log of their own: what a library warns of goes to standard error."""
    caplog.set_level("DEBUG", "opensearch")
    with (
        serving(OPENSEARCH, 404, {}) as server,
        make_client(OpenSearchEndpoint((server.url,))) as client,
    ):
        assert client.mappings("i", ignore=404) == {}
        assert client.info() == OPENSEARCH
    assert caplog.records == []


def test_an_account_may_have_a_password_in_any_script():
    with (
        serving(OPENSEARCH) as server,
        make_client(OpenSearchEndpoint((server.url,), "rétl", "密码:")) as client,
    ):
        client.health()
    (headers,) = server.seen
    assert headers["authorization"] == f"Basic {b64encode('rétl:密码:'.encode()).decode()}"


def test_another_server_is_asked_if_one_is_down():
    down = f"http://127.0.0.1:{free_port()}"
    with serving(OPENSEARCH) as server:
        endpoint = OpenSearchEndpoint((down, server.url))
        with make_client(endpoint) as client:
            for _ in range(3):
                assert client.exists("i")
    with (
        make_client(OpenSearchEndpoint((down,))) as client,
        pytest.raises(TransientError) as caught,
    ):
        client.exists("i")
    assert "OpenSearch: no connection" in caught.value.message
    assert caught.value.where["server"] == down.removeprefix("http://")


def test_addresses_that_are_none_are_configuration_errors():
    for endpoint in (
        OpenSearchEndpoint(("o1:9200",)),
        OpenSearchEndpoint(("https://o1:9200",), ca_certs="/no/such/file"),
    ):
        with pytest.raises(ConfigurationError, match="no OpenSearch client"):
            make_client(endpoint)


def test_a_certificate_has_to_come_from_a_known_authority(tmp_path):
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    authority, other = map(CertificateAuthority, folders)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("o1", hosts=["localhost"]))
    with serving(OPENSEARCH) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = f"https://localhost:{server.server_port}"
        with make_client(OpenSearchEndpoint((url,), ca_certs=str(authority.certificate))) as client:
            assert client.exists("i")
        with (
            make_client(OpenSearchEndpoint((url,), ca_certs=str(other.certificate))) as client,
            pytest.raises(UntrustedServerError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            client.exists("i")


@pytest.mark.parametrize(
    ("module", "extra", "more"),
    [
        ("opensearchpy", "opensearch", {}),
        ("opensearchpy", "opensearch-aws", {"aws_region": "eu-central-1"}),  # not one by one
        ("botocore.session", "opensearch-aws", {"aws_region": "eu-central-1"}),
    ],
)
def test_a_missing_package_is_named(monkeypatch, module, extra, more):
    for name in [each for each in sys.modules if each.startswith("setl.systems.opensearch.client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    pipeline = parse_channel(changed("pipelines[0].target", {**TARGET, **more})).pipelines[0]
    with pytest.raises(NodeNotReadyError, match="is not installed") as caught:
        system_of(pipeline.target).holds_rows(("", "i"))
    assert f"pip install 'setl[{extra}]'" in caught.value.hint


@pytest.mark.parametrize(
    ("more", "path", "message"),
    [
        ({"api_key": "x"}, "api_key",
         ("is an unknown key; known are type, hosts, user, password, aws_region, aws_access_key_id,"
         " aws_secret_access_key, ca_certs, request_timeout")),
        ({"password": "x"}, "user", "is required where there is a password"),
        ({"aws_region": "r", "user": "u"}, "aws_region",
         "cannot be given together with `user`; choose one of them"),
        ({"aws_region": "r", "aws_access_key_id": "k"}, "aws_access_key_id",
         "needs `aws_secret_access_key`, and the other way round"),
        ({"aws_access_key_id": "k", "aws_secret_access_key": "s"}, "aws_region",
         "is required where there is a key of AWS"),
        ({"hosts": ["https://a1.eu-central-1.aoss.amazonaws.com"]}, "hosts[0]",
         "is of OpenSearch Serverless, which cannot be a target"),
    ],
)  # fmt: skip
def test_wrong_targets(more, path, message):
    found = problems_of(changed("pipelines[0].target", {**TARGET, **more}))
    assert found == [(f"pipelines[0].target.{path}", message)]
