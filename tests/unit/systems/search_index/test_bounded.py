"""Answers of a stub server: larger than they may be, plain and compressed, empty, or of others."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from setl.errors import TransientError
from setl.systems.search_index import bounded
from setl.systems.search_index.client import make_client
from tests.index_products import PRODUCTS, endpoint_of

MOST = 100_000


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        size = int(self.path.rpartition("/")[2] or 0)
        body = b'{"n": "' + b"x" * (size - 9) + b'"}' if size else b""
        if "list" in self.path:
            body = b"[]"
        if "page" in self.path:
            body = b"<!doctype html><p>Back soon"
        self.send_response(200)
        if "packed" in self.path:
            body = gzip.compress(body)
            self.send_header("content-encoding", "gzip")
        kind = "text/html" if "page" in self.path else "application/json"
        self.send_header("content-type", kind)
        if "login" not in self.path:
            self.send_header("x-elastic-product", "Elasticsearch")
        if "ends" in self.path:
            self.close_connection = True
            self.send_header("connection", "close")
            self.end_headers()
            return
        if "chunked" in self.path:
            self.send_header("transfer-encoding", "chunked")
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        else:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.server.sent.append(len(body))  # pyright: ignore[reportAttributeAccessIssue]
        self.wfile.write(body)

    def log_message(self, format, *args):  # noqa: A002
        pass


@pytest.fixture(params=PRODUCTS)
def answering(request, monkeypatch):
    monkeypatch.setattr(bounded, "LARGEST", MOST)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.sent = []  # pyright: ignore[reportAttributeAccessIssue]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    client = make_client(endpoint_of(request.param, url))

    def get(path):
        return client.request("GET", path)

    yield server, get
    client.close()
    server.shutdown()
    thread.join(60)
    server.server_close()


@pytest.mark.parametrize("how", ["plain", "packed", "chunked", "packed-chunked"])
def test_an_answer_is_read_up_to_a_size(answering, how):
    server, get = answering
    assert len(get(f"/{how}/{MOST}")["n"]) == MOST - 9
    with pytest.raises(TransientError, match=f"has more than {MOST} bytes"):
        get(f"/{how}/{MOST * 100}")
    if "packed" in how:
        assert server.sent[-1] < MOST, "a few kilobytes that would have become much"
    assert len(get(f"/{how}/50")["n"]) == 41, "the next answer is a new one"


def test_connections_are_stored(answering):
    server, get = answering
    taken = []
    accept = server.get_request
    server.get_request = lambda: taken.append(1) or accept()
    for _ in range(3):
        get("/plain/50")
    assert len(taken) == 1


@pytest.mark.parametrize("how", ["ends", "plain"])
def test_an_answer_without_a_body_is_none(answering, how):
    _, get = answering
    with pytest.raises(TransientError, match="the answer is empty"):
        get(f"/{how}/0")
    assert len(get("/plain/50")["n"]) == 41


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("how", ["login-page", "page", "list"])
def test_an_answer_of_a_proxy_is_no_answer_of_the_cluster(answering, how, before):
    _, get = answering
    if before:
        get("/plain/50")
    with pytest.raises(TransientError, match=r"the answer is not one of (Elastic|Open)"):
        get(f"/{how}/50")
    get("/plain/50")


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("answering", ["elasticsearch"], indirect=True)
def test_an_object_without_elasticsearchs_sign_is_none_of_its_answers(answering, before):
    _, get = answering
    if before:
        get("/plain/50")
    with pytest.raises(TransientError, match="the answer is not one of Elastic"):
        get("/login/50")
    get("/plain/50")
