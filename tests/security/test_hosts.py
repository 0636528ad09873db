"""A node answers for its own names: a page of another site that is led to it learns nothing."""

import socket

import pytest

from setl.node.http.exposure import Exposure, host_names
from tests.unit.node.console.browsing import Browser

PATHS = [
    "/",
    "/status",
    "/health",
    "/metrics",
    "/console/login",
    "/console/events?of=nowhere",
    "/nowhere",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("host", ["evil.example", "evil.example:18480", "127.0.0.1.evil.example"])
def test_another_name_gets_nothing(node, path, host):
    reply = node.ask("GET", path, headers={"Host": host})
    assert (reply.code, list(reply.json)) == (421, ["error"])
    assert "--hosts" in reply.json["error"]
    assert not reply.headers["Set-Cookie"]


def test_nobody_guesses_tokens_by_another_name(node):
    there = {"Host": "evil.example", "Origin": "http://evil.example"}
    anna = Browser(node)
    assert anna.post("/console/login", {"token": node.token}, **there).code == 421
    assert not anna.cookie
    assert node.post("/pause", {"channel": "shop"}, headers=there).code == 421


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.0.0.1:8080", "10.9.8.7:1", "[::1]:8080", "[2001:db8::1]", "localhost",
        "LocalHost:8080", "localhost.", socket.gethostname(), f"{socket.gethostname()}:80", "",
    ],
)  # fmt: skip
def test_addresses_and_names_of_the_machine(node, host):
    assert node.ask("GET", "/health", headers={"Host": host}).code == 200


def test_a_request_without_a_name(node, connect):
    """So HAProxy checks; no browser asks so."""
    connection = connect(b"OPTIONS /health HTTP/1.0\r\n\r\n")
    assert b" 200 OK" in connection.recv(4096)


def test_names_that_the_configuration_has(node):
    node.exposure = Exposure(hosts=host_names("setl.example.org, *.setl-nodes"))
    codes = {
        host: node.ask("GET", "/health", headers={"Host": host}).code
        for host in ("setl.example.org", "SETL.example.org:443", "setl-0.setl-nodes", "setl-nodes",
                     "a.setl.example.org", "evilsetl-nodes")
    }  # fmt: skip
    assert list(codes.values()) == [200, 200, 200, 421, 421, 421]


def test_the_address_of_probes_asks_too(node, connect):
    node.exposure = Exposure(probes=("127.0.0.1", 0))
    at = node.serve().probes
    connection = connect(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", at=at)
    assert connection.recv(4096).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("text", ["a b", "*", "*.", "http://a", "a:80", "a.*.b", "-a"])
def test_what_is_no_name(text):
    with pytest.raises(ValueError, match="must be names of hosts"):
        host_names(text)
