"""Probes have an address of their own, where strangers cannot keep them waiting."""

import contextlib
import json
import urllib.error
import urllib.request

import pytest

from setl.node.http.connections import Limits
from setl.node.http.exposure import Exposure

PROBES = ("/health", "/liveness", "/readiness", "/leader/shop/there", "/standby/shop/there")


@pytest.fixture
def apart(node):
    node.exposure = Exposure(probes=("127.0.0.1", 0))
    node.limits = Limits(connections=8)
    return node.serve().probes


def code_of(address):
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("path", PROBES)
def test_the_answers_are_the_same(node, apart, path):
    assert code_of(f"{apart}{path}") == node.get(path).code
    if node.get(path).code == 200:
        with urllib.request.urlopen(f"{apart}{path}", timeout=10) as answer:
            assert json.load(answer).keys() == node.get(path).json.keys()


@pytest.mark.parametrize("path", ["/", "/status", "/cluster", "/metrics", "/console/login"])
def test_nothing_else_is_there(apart, path):
    assert code_of(f"{apart}{path}") == 404


def test_strangers_at_the_other_address_do_not_hold_them_up(apart, connect):
    for n in range(20):
        with contextlib.suppress(ConnectionError):
            connect(b"GET /", come_from=f"127.0.0.{n + 2}")
    assert code_of(f"{apart}/liveness") == 200


def test_it_is_let_go_with_the_node(node, apart):
    node.close()
    with pytest.raises(urllib.error.URLError):
        code_of(f"{apart}/liveness")
