"""Somebody who writes an address into ZooKeeper gets little from the nodes that ask there."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from arbiter.values import NodeInfo, PipelineId
from setl.node.cluster import answers
from setl.node.cluster.answers import status_at
from setl.node.console.figures import recorded_elsewhere

STATUS = json.dumps({"pipelines": []}).encode()


@pytest.fixture
def rogue():
    """A server that answers what a test wants, and knows what it was asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append(self.path)
            code, headers, body = server.answer
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):  # noqa: A002 - the library's
            pass

    class Server(ThreadingHTTPServer):
        answer = (200, {}, STATUS)
        asked: list[str] = []  # noqa: RUF012 - there is one
        daemon_threads = True

        def handle_error(self, request, client_address):
            pass  # the other side has gone

    server = Server(("127.0.0.1", 0), Handler)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def at(rogue):
    return f"http://127.0.0.1:{rogue.server_port}"


def test_a_node(rogue):
    assert status_at(at(rogue)) == {"pipelines": []}


def test_an_answer_that_is_larger_than_a_nodes(rogue, monkeypatch):
    assert answers.MOST_BYTES == 16 << 20
    rogue.answer = (200, {}, STATUS + b" " * answers.MOST_BYTES)
    assert status_at(at(rogue)) is None


def test_a_redirect_leads_nowhere(rogue):
    rogue.answer = (302, {"Location": f"{at(rogue)}/secret"}, b"")
    assert status_at(at(rogue)) is None
    assert recorded_elsewhere([NodeInfo("n9", http=at(rogue))], PipelineId("a", "b"), 0.0) == [[]]
    assert len(rogue.asked) == 2
    assert "/secret" not in rogue.asked


def test_a_proxy_of_the_environment_is_not_used(rogue, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, at(rogue))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert status_at("http://127.0.0.1:1") is None
    assert not rogue.asked
