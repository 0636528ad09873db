"""A server that plays Elasticsearch as a test wants it, for what a real one does not do on call."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_ELASTICSEARCH = {"x-elastic-product": "Elasticsearch"}


class SearchServer(ThreadingHTTPServer):
    """A context manager; `answer` says status and JSON, given method, path and lines of JSON.

    Attributes:
        headers: of every answer.
        seen: the headers of each request.
    """

    def __init__(self, answer, headers=_ELASTICSEARCH):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.headers, self.seen = answer, headers, []
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self._thread.join(30)
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        lines = [json.loads(line) for line in body.splitlines()]
        assert isinstance(self.server, SearchServer)
        self.server.seen.append(self.headers)
        status, answer = self.server.answer(self.command, self.path.partition("?")[0], lines)
        text = json.dumps(answer, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

    def log_message(self, format, *args):  # noqa: A002
        pass
