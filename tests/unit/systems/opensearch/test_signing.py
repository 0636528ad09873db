"""Requests to Amazon OpenSearch Service carry the signature that AWS would compute of them."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from setl.channel.fields.opensearch_endpoint import OpenSearchTarget
from setl.errors import NodeNotReadyError
from setl.systems.opensearch.endpoint import OpenSearchEndpoint, opensearch_endpoint
from setl.systems.opensearch.product import AwsLogin
from setl.systems.search_index.client import make_client

ID, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-central-1"


class Domain(BaseHTTPRequestHandler):
    """Remembers requests, and finds everything."""

    def do_GET(self):
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))  # pyright: ignore[reportAttributeAccessIssue]
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_PUT = do_GET  # noqa: N815

    def log_message(self, format, *args):  # noqa: A002
        pass


@pytest.fixture
def domain():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Domain)
    server.seen = []  # pyright: ignore[reportAttributeAccessIssue]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join(60)
    server.server_close()


def signature(seen, key):
    """What AWS computes: of the request as it has arrived, with its own copy of the key."""
    method, path, headers, body = seen
    given = {name.lower(): value for name, value in headers.items()}
    signed = given["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    request = AWSRequest(
        method=method,
        url=f"http://{given['host']}{path}",
        data=body,
        headers={name: given[name] for name in signed},
    )
    request.context["timestamp"] = given["x-amz-date"]
    auth = SigV4Auth(key, "es", REGION)
    canonical = auth.canonical_request(request)
    return auth.signature(auth.string_to_sign(request, canonical), request)


@pytest.mark.parametrize("token", ["", "a session's token"])
def test_requests_are_signed(domain, monkeypatch, tmp_path, token):
    if token:
        # A role gives keys for a while, with a token.
        for name, value in (("ID", ID), ("SECRET", SECRET)):
            monkeypatch.setenv(
                f"AWS_{'ACCESS_KEY_ID' if name == 'ID' else 'SECRET_ACCESS_KEY'}", value
            )
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
        login = AwsLogin(REGION)
    else:
        login = AwsLogin(REGION, ID, SECRET)
    endpoint = OpenSearchEndpoint((f"http://127.0.0.1:{domain.server_port}",), aws=login)
    with make_client(endpoint) as client:
        client.info()
        client.describe("b,a", "*.aliases,*.settings.index.uuid")
        client.put("orders", "é/1,2 %", {"name": "ñ 四"})
        client.bulk(
            b'{"index":{"_index":"orders","_id":"1"}}\n{}\n', filter_path="errors,items.*.status"
        )
    assert len(domain.seen) == 4
    key = Credentials(ID, SECRET, token or None)
    for seen in domain.seen:
        headers = {name.lower(): value for name, value in seen[2].items()}
        assert headers["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={ID}/")
        assert f"/{REGION}/es/aws4_request" in headers["authorization"]
        assert headers["authorization"].endswith(f"Signature={signature(seen, key)}")
        assert headers["x-amz-content-sha256"] == hashlib.sha256(seen[3]).hexdigest()
        assert headers.get("x-amz-security-token", "") == token
        assert SECRET not in str(headers)


def test_a_machine_without_a_key_is_not_ready(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    endpoint = OpenSearchEndpoint(("https://search.example:443",), aws=AwsLogin(REGION))
    with pytest.raises(NodeNotReadyError, match="no key of AWS"):
        make_client(endpoint)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(NodeNotReadyError, match="cannot be read"):
        make_client(endpoint)


def test_the_secret_is_not_shown():
    target = OpenSearchTarget(
        type="opensearch",
        hosts=["https://search.example:443"],
        aws_region=REGION,
        aws_access_key_id=ID,
        aws_secret_access_key=SECRET,
    )
    endpoint = opensearch_endpoint(target)
    assert endpoint.aws == AwsLogin(REGION, ID, SECRET)
    assert SECRET not in f"{target!r} {endpoint!r} {endpoint}"
