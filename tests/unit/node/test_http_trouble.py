"""An arbiter that is silent, hangs or refuses, and what the HTTP interface does meanwhile."""

import threading
import time

import pytest

from arbiter.errors import Conflict, Denied, Unreachable
from setl.node.http import operations
from tests.waiting import eventually

from .http_node import THERE, TOKEN, WRITING


@pytest.mark.parametrize(("method", "path", "body"), WRITING)
def test_an_arbiter_that_does_not_answer(node, method, path, body):
    node.arbiter.link.refuse(100)
    reply = node.ask(method, path, body, token=TOKEN)
    assert reply.code == 503
    assert "not known" in reply.json["error"]
    assert reply.headers["Retry-After"] == "1"


@pytest.mark.parametrize(
    ("error", "code"), [(Conflict("again"), 409), (Denied("no"), 500), (Unreachable("gone"), 503)]
)
def test_other_errors_of_the_arbiter(node, monkeypatch, error, code):
    def fail(*_):
        raise error

    monkeypatch.setattr(node.arbiter.channels, "set_state", fail)
    reply = node.post("/pause", {"channel": "shop"})
    assert reply.code == code
    assert str(error) in reply.json["error"]


def test_a_defect_is_reported_and_logged(node, monkeypatch, caplog):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(node.arbiter.channels, "set_state", fail)
    reply = node.post("/pause", {"channel": "shop"})
    assert (reply.code, "ZeroDivisionError" in reply.json["error"]) == (500, True)
    (record,) = [r for r in caplog.records if r.message == "request failed unexpectedly"]
    assert record.exc_info[0] is ZeroDivisionError


@pytest.fixture
def hanging(node, monkeypatch):
    """An arbiter whose calls do not come back before the test is over."""
    release, entered = threading.Event(), []

    def hang(*_):
        entered.append(1)
        release.wait(60)
        raise Unreachable("released")

    monkeypatch.setattr(node.arbiter, "facts", hang)
    monkeypatch.setattr(node.arbiter.channels, "one", hang)
    monkeypatch.setattr(node.arbiter.history, "all", hang)
    monkeypatch.setattr(node.arbiter.signals, "all", hang)
    yield entered
    release.set()


def test_a_hanging_arbiter_holds_no_look_up(node, hanging):
    node.call_seconds = 30.0
    node.serve()
    waiting = [
        threading.Thread(target=ask, args=args, daemon=True)
        for ask, args in (
            [(node.post, ("/pause", {"channel": "shop"}))] * operations.MOST
            + [(node.get, ("/history",))] * 8
        )
    ]
    for thread in waiting:
        thread.start()
    eventually(lambda: node.server._operations._under_way == operations.MOST)
    eventually(lambda: node.server._reading == 8)
    assert 0 < len(hanging) <= 6  # threads for orders and for the history
    for path in ("/health", "/liveness", "/leader/shop/there", "/cluster", "/metrics"):
        began = time.monotonic()
        assert node.get(path).code == 200
        assert time.monotonic() - began < node.call_seconds / 2
    reply = node.post("/pause", {"channel": "shop"})
    assert (reply.code, reply.headers["Retry-After"]) == (429, "1")
    assert node.get("/history").code == 429


def test_a_hanging_arbiter_is_given_up(node, hanging):
    node.call_seconds = 0.2
    reply = node.post("/pause", {"channel": "shop"})
    assert (reply.code, "within 0.2 s" in reply.json["error"]) == (503, True)
    assert node.get("/history").code == 503


def test_a_leaving_node_does_not_wait_for_answers(node):
    node.serve()
    replies = []
    asked = threading.Thread(
        target=lambda: replies.append(
            node.post("/switchover?wait=120", {"pipeline": "shop/there"}, timeout=60)
        )
    )
    asked.start()
    eventually(lambda: node.operator.signals.all(THERE))
    began = time.monotonic()
    node.close()
    asked.join(30)
    assert time.monotonic() - began < 30
    assert [(r.code, r.json["outcome"]) for r in replies] == [(202, "pending")]
    assert "is leaving" in replies[0].json["answer"]
