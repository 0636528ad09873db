"""Only proxies that the configuration names say who asks; guesses count for who guesses."""

import logging

import pytest

from setl.node.http.exposure import Exposure, networks
from tests.unit.node.console.browsing import Browser

WRONG = {"token": "not-the-token"}
HERE = Exposure(behind=networks("127.0.0.1"))


def guess(node, forwarded):
    headers = {"X-Forwarded-For": forwarded}
    return node.ask("POST", "/pause", {"channel": "shop"}, headers=headers, **WRONG).code


def who(node):
    return node.operator.actions.all()[0].by


@pytest.mark.parametrize("allowed", ["127.0.0.1", "*"])
def test_nobody_is_believed_unless_named(node, monkeypatch, allowed):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", allowed)
    codes = [guess(node, f"8.8.8.{n}") for n in range(8)]
    assert codes == [401] * 5 + [429] * 3


def test_a_name_that_is_made_up_is_not_in_the_log_of_actions(node):
    node.post("/pause", {"channel": "shop"}, headers={"X-Forwarded-For": "8.8.8.8"})
    assert "127.0.0.1" in who(node)
    assert "8.8.8.8" not in who(node)


def test_one_stranger_behind_a_proxy_locks_out_himself_alone(node):
    node.exposure = HERE
    assert [guess(node, "198.51.100.7") for _ in range(6)] == [401] * 5 + [429]
    headers = {"X-Forwarded-For": "198.51.100.8"}
    assert node.post("/pause", {"channel": "shop"}, headers=headers).code == 200
    assert "198.51.100.8" in who(node)


@pytest.mark.parametrize(
    ("behind", "said", "client"),
    [
        ("127.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("127.0.0.1", "8.8.8.8, 198.51.100.7", "198.51.100.7"),  # the first is the client's own
        ("127.0.0.1", "8.8.8.8, 198.51.100.7:4711", "198.51.100.7"),
        ("127.0.0.1", "[2001:db8::7]:4711", "2001:db8::7"),
        ("127.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"),
        ("127.0.0.0/8,10.1.0.0/16", "198.51.100.7, 10.1.2.3", "198.51.100.7"),
        ("127.0.0.0/8,10.1.0.0/16", "10.1.2.4, 10.1.2.3", "10.1.2.4"),
        ("127.0.0.1", "unknown", "127.0.0.1"),
        ("127.0.0.1", "8.8.8.8, " + "x" * 9000, "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("10.0.0.9", "8.8.8.8", "127.0.0.1"),
    ],
)
def test_the_client_is_the_last_that_is_not_a_proxy(node, behind, said, client):
    node.exposure = Exposure(behind=networks(behind))
    node.post("/pause", {"channel": "shop"}, headers={"X-Forwarded-For": said})
    assert f"{client} over HTTP" in who(node)


@pytest.mark.parametrize(
    ("exposure", "proto", "secure"),
    [
        (HERE, "https", True),
        (HERE, "http, https", True),
        (HERE, "http", False),
        (HERE, "javascript", False),
        (Exposure(), "https", False),
    ],
)
def test_the_cookie_is_secure_where_a_proxy_ends_tls(node, exposure, proto, secure):
    node.exposure = exposure
    anna = Browser(node)
    fields = {"token": node.token, "name": "anna"}
    assert anna.post("/console/login", fields, **{"X-Forwarded-Proto": proto}).code == 303
    assert ("; secure" in anna.attributes.lower()) is secure


def test_a_proxy_that_is_not_named_is_reported_of_once(node, caplog):
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            node.ask("GET", "/health", headers={"X-Forwarded-For": "198.51.100.7"})
    reported = [each for each in caplog.records if "`behind`" in each.message]
    assert [each.setl for each in reported] == [{"proxy": "127.0.0.1"}]


@pytest.mark.parametrize(
    "text", ["proxy.example", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.9 10.0.0.8"]
)
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match="must be addresses or networks"):
        networks(text)


def test_named_proxies_have_no_limit_of_their_own(node, connect):
    node.exposure = Exposure(behind=networks("127.0.0.2"))
    for _ in range(100):
        connect()
    assert node.get("/health").code == 200
