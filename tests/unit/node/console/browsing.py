"""Asks a node for pages as a browser does."""

import re
from urllib.parse import urlencode

from tests.unit.node.http_node import TOKEN

PAGE = {"Accept": "text/html,application/xhtml+xml"}

FILE = """\
channel: shop
pipelines:
  - name: there
    source: {type: mysql, host: 127.0.0.1, port: 1, user: u, password: "${CONSOLE_TEST_PW}"}
    target: {type: mysql, host: 127.0.0.1, port: 2, user: u, password: "${CONSOLE_TEST_PW}"}
    tables:
      - from: s.t
"""


class Browser:
    """Keeps cookies and reads forms; follows nothing by itself."""

    def __init__(self, node):
        self.node = node
        self.cookie = ""

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, fields, **headers):
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, urlencode(fields).encode(), headers={**kind, **headers})

    def ask(self, method, path, body=None, headers=None):
        sent = {**PAGE, **(headers or {})}
        if self.cookie:
            sent["Cookie"] = self.cookie
        reply = self.node.ask(method, path, body, headers=sent)
        for line in reply.headers.get_all("Set-Cookie") or ():
            name, _, value = line.partition(";")[0].partition("=")
            self.cookie = "" if value in ("", '""') else f"{name}={value}"
            self.attributes = line
        return reply

    def log_in(self, token=TOKEN, **fields):
        return self.post("/console/login", {"token": token, "name": "anna", **fields})

    def csrf(self):
        found = re.search(r'name="csrf" value="([^"]+)"', self.get("/").body.decode())
        assert found is not None
        return found.group(1)

    def do(self, what, on, **fields):
        return self.post("/console/do", {"csrf": self.csrf(), "what": what, "on": on, **fields})


def outcomes(node):
    return [(a.what, a.on, a.outcome) for a in node.operator.actions.all()]
