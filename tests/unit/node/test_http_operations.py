"""What operators may change over HTTP, by whom, and what they are told, through a real socket."""

import http.client
import logging
import threading
import time
from datetime import UTC, datetime

import pytest

from arbiter.campaign import Campaign
from arbiter.election import ElectionSettings
from arbiter.errors import Unreachable
from arbiter.snapshot import look
from arbiter.values import ChannelState, SignalKind, SignalState
from setl.log import TextFormatter
from setl.node.http import operations
from setl.node.http.authentication import FREE_ATTEMPTS
from setl.node.settings import NodeSettings
from tests.waiting import eventually

from .console.browsing import Browser
from .http_node import THERE, TOKEN, WRITING


@pytest.fixture
def answered(node, monkeypatch):
    """Requests are answered, by whoever would, as soon as they are recorded."""

    def with_(state, text):
        original = node.arbiter.signals.send

        def send(pipeline, signal):
            sent = original(pipeline, signal)
            node.operator.signals.answer(pipeline, sent, state, text)
            return sent

        monkeypatch.setattr(node.arbiter.signals, "send", send)

    return with_


# -- who may ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path", "body"), WRITING)
def test_without_a_token_on_the_node_writing_is_off(node, method, path, body):
    node.token = ""
    for token in (None, "", TOKEN):
        reply = node.ask(method, path, body, token=token)
        assert reply.code == 403
        assert reply.json["error"] == "writing over HTTP is off: SETL_HTTP_TOKEN is not set"
    assert not node.operator.signals.all(THERE)
    assert (
        node.operator.channels.one("shop").revision == node.snapshot.facts.channels["shop"].revision
    )


@pytest.mark.parametrize(("method", "path", "body"), WRITING)
def test_a_wrong_or_missing_token_is_turned_away(node, method, path, body):
    for header in (
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        "Bearer caf\xe9",
    ):
        headers = {} if header is None else {"Authorization": header}
        reply = node.ask(method, path, body, headers=headers)
        assert (header, reply.code) == (header, 401)
        assert reply.headers["WWW-Authenticate"] == 'Bearer realm="setl"'
        assert TOKEN not in reply.body.decode()
    assert not node.operator.signals.all(THERE)


def test_who_guesses_waits_with_requests_and_at_the_console(node):
    body = {"channel": "shop"}
    for number in range(FREE_ATTEMPTS):
        assert node.post("/pause", body, token=f"guess{number}").code == 401
    refused = node.post("/pause", body)  # the right one, too, for whoever guesses does not learn it
    assert (refused.code, refused.headers["Retry-After"]) == (429, "1")
    assert b"too many wrong tokens from 127.0.0.1; try again in 1 s" in refused.body
    assert Browser(node).log_in().code == 429
    assert node.post("/pause", body, token=None).code == 401  # who shows none guesses none
    node.cluster.clock.advance(2)
    assert node.post("/pause", body).code == 200


def test_the_scheme_has_no_case_and_a_token_may_be_any_text(node):
    node.token = "schlüssel"
    header = {"Authorization": b"bearer " + node.token.encode()}
    assert node.ask("POST", "/pause", {"channel": "shop"}, headers=header).code == 200


def test_the_token_is_in_no_log_and_no_repr(node, caplog):
    with caplog.at_level(logging.DEBUG):
        node.post("/pause", {"channel": "shop"})
        node.post("/pause", {"channel": "shop", "token": TOKEN})
        node.post("/pause", TOKEN.encode())
        node.post("/pause", {"channel": "shop"}, token=TOKEN + "x")
        node.post("/switchover", {"pipeline": "shop/there", "to": "n2"}, token=None)
    lines = [TextFormatter().format(record) for record in caplog.records]
    assert sum("request over HTTP" in line for line in lines) == 5
    assert not [line for line in lines if TOKEN in line]
    assert TOKEN not in repr(NodeSettings("n1", "127.0.0.1:1", http_token=TOKEN))


def test_the_token_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv("SETL_HTTP_TOKEN", raising=False)
    assert NodeSettings("n1", "").http_token == ""
    monkeypatch.setenv("SETL_HTTP_TOKEN", TOKEN)
    assert NodeSettings("n1", "").http_token == TOKEN


# -- what may be asked ------------------------------------------------------------------------


def test_a_body_that_says_something_else_is_refused(node):
    shop = {"pipeline": "shop/there"}
    for path, body, text in (
        ("/switchover", b"", "JSON"),
        ("/switchover", b"{", "JSON"),
        ("/switchover", [], "object"),
        ("/switchover", {}, "pipeline: Field required"),
        ("/switchover", {"pipeline": 4}, "pipeline: Input should be a valid string"),
        ("/switchover", {**shop, "node": "n2"}, "node: Extra inputs"),
        ("/switchover", {**shop, "at": "2030-01-01T00:00:00"}, "timezone"),
        ("/switchover", {**shop, "at": "soon"}, "at: "),
        ("/switchover?wait=-1", shop, "wait must be"),
        ("/switchover?wait=121", shop, "up to 120"),
        ("/failover", {**shop, "at": "2030-01-01T00:00:00Z"}, "at: Extra"),
        ("/pause", {"channel": ""}, "channel: "),
        ("/resume", shop, "channel: Field required"),
    ):
        reply = node.post(path, body)
        assert (path, body, reply.code) == (path, body, 400)
        assert text in reply.json["error"]
    assert not node.operator.signals.all(THERE)


def test_a_large_body_is_refused_before_it_is_read(node):
    assert node.post("/pause", b"x" * (64 * 1024 + 1)).code == 413
    assert node.post("/pause", b" " * (60 * 1024) + b'{"channel": "shop"}').code == 200


def test_a_body_that_does_not_arrive_is_not_waited_for(node, monkeypatch):
    monkeypatch.setattr(operations, "BODY_SECONDS", 0.1)
    node.serve()
    host, port = node.server.address.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    connection.putrequest("POST", "/pause")
    connection.putheader("Content-Length", "100")
    connection.putheader("Authorization", f"Bearer {TOKEN}")
    connection.endheaders(b"{")
    assert connection.getresponse().status == 408
    connection.close()


@pytest.mark.parametrize("path", ["/switchover", "/failover"])
def test_unknown_and_ambiguous_pipelines(node, path):
    assert node.post(path, {"pipeline": "shop/nowhere"}).code == 404
    reply = node.post(path, {"pipeline": "there"})
    assert reply.code == 409
    assert sorted(reply.json["choices"]) == ["search/there", "shop/there"]


# -- switchover and failover ------------------------------------------------------------------


def test_a_switchover_that_is_done(node, answered):
    answered(SignalState.DONE, "n2 leads, epoch 99")
    reply = node.post("/switchover", {"pipeline": "shop/there", "to": "n2"})
    assert reply.code == 200
    assert (reply.json["outcome"], reply.json["answer"]) == ("done", "n2 leads, epoch 99")
    (signal,) = node.operator.signals.all(THERE)
    assert (signal.kind, signal.to, signal.leader) == (SignalKind.SWITCHOVER, "n2", "n1")
    assert signal.by == "127.0.0.1 over HTTP at n1"
    assert reply.json["id"] == signal.id


def test_a_switchover_that_is_refused_while_it_is_waited_for(node, answered):
    answered(SignalState.REFUSED, "node n2 is not warm yet")
    reply = node.post("/switchover", {"pipeline": "shop/there"})
    assert (reply.code, reply.json["outcome"]) == (412, "refused")
    assert reply.json["answer"] == "node n2 is not warm yet"


@pytest.mark.parametrize("wait", ["0", "0.3"])
def test_a_switchover_that_takes_longer_than_the_wait(node, wait):
    reply = node.post(f"/switchover?wait={wait}", {"pipeline": "shop/there"})
    assert (reply.code, reply.json["outcome"]) == (202, "pending")
    assert node.operator.signals.all(THERE)[0].state is SignalState.PENDING


def test_a_scheduled_switchover_is_not_waited_for(node):
    began = time.monotonic()
    body = {"pipeline": "shop/there", "at": "2030-01-01T02:00:00+02:00"}
    reply = node.post("/switchover?wait=120", body)
    assert time.monotonic() - began < 60
    assert (reply.code, reply.json["outcome"]) == (202, "scheduled")
    at = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
    assert reply.json["at"] == node.operator.signals.all(THERE)[0].at == at


def test_a_time_in_the_past_is_refused(node):
    node.cluster.clock.advance(2e9)
    body = {"pipeline": "shop/there", "at": "2030-01-01T00:00:00Z"}
    reply = node.post("/switchover", body)
    assert (reply.code, reply.json["error"]) == (412, "the time lies in the past")


def test_what_cannot_be_done_is_refused_at_once(node):
    reply = node.post("/switchover", {"pipeline": "shop/there", "to": "n9"})
    assert reply.code == 412
    assert "there is no live node n9" in reply.json["error"]


def test_a_failover_works_without_a_leader(node, answered):
    answered(SignalState.DONE, "n2 leads, epoch 12")
    reply = node.post("/failover", {"pipeline": "shop/back", "to": "n2"})
    assert (reply.code, reply.json["request"]) == (200, "failover")
    assert reply.json["from"] == ""


def test_a_failover_takes_the_leadership_away(node, answered):
    answered(SignalState.DONE, "n2 leads, epoch 12")
    assert node.post("/failover", {"pipeline": "shop/there"}).code == 200
    assert node.operator.leader_locks.one(THERE) is None


@pytest.fixture
def elections(node):
    """Both nodes run their elections, but those in the set; what they lead drains at once."""
    stopping, still = threading.Event(), set()
    members = {
        nid: (arbiter, Campaign(arbiter, THERE, nid, ElectionSettings(), node.cluster.clock))
        for nid, arbiter in (("n1", node.arbiter), ("n2", node.operator))
    }

    def turn():
        while not stopping.wait(0.01):
            node.cluster.clock.advance(0.1)
            for nid, (arbiter, campaign) in members.items():
                seen = look(arbiter, node.cluster.clock)
                if nid not in still:
                    campaign.cycle(seen, busy=False, ready=True)
                if nid == node.nid:
                    node.snapshot = seen

    thread = threading.Thread(target=turn)
    thread.start()
    yield still
    stopping.set()
    thread.join()


@pytest.mark.parametrize("path", ["/switchover", "/failover"])
def test_the_leader_really_changes(node, elections, path):
    before = node.operator.leader_locks.one(THERE).epoch
    if path == "/failover":  # for a leader that does not hand over by itself
        elections.add("n1")
    reply = node.post(path, {"pipeline": "shop/there", "to": "n2"})
    assert (reply.code, reply.json["outcome"]) == (200, "done")
    now = node.operator.leader_locks.one(THERE)
    assert (now.nid, now.epoch > before) == ("n2", True)
    eventually(lambda: node.get("/leader/shop/there").json["leader"] == "n2")
    assert node.get("/leader/shop/there").code == 503


def test_an_arbiter_that_is_silent_for_a_moment_is_asked_again(node, answered, monkeypatch):
    answered(SignalState.DONE, "n2 leads, epoch 7")
    original, left = node.arbiter.signals.all, [2]

    def silent_twice(pipeline):
        found = original(pipeline)
        if found and left[0]:  # it is sent, and its answer is waited for
            left[0] -= 1
            raise Unreachable("no answer")
        return found

    monkeypatch.setattr(node.arbiter.signals, "all", silent_twice)
    assert node.post("/switchover", {"pipeline": "shop/there"}).code == 200


# -- taking back ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["body", "query"])
def test_a_scheduled_switchover_can_be_taken_back_once(node, how):
    node.post("/switchover", {"pipeline": "shop/there", "at": "2030-01-01T00:00:00Z"})
    path = "/switchover" if how == "body" else "/switchover?pipeline=shop/there"
    body = {"pipeline": "shop/there"} if how == "body" else None
    reply = node.ask("DELETE", path, body, token=TOKEN)
    assert (reply.code, len(reply.json["cancelled"])) == (200, 1)
    (signal,) = node.operator.signals.all(THERE)
    assert signal.state is SignalState.REFUSED
    assert signal.answer == "taken back by 127.0.0.1 over HTTP at n1"
    reply = node.ask("DELETE", path, body, token=TOKEN)
    assert (reply.code, reply.json["error"]) == (404, "no switchover of shop/there is scheduled")


def test_nothing_to_take_back_of_an_unknown_pipeline(node):
    assert node.ask("DELETE", "/switchover?pipeline=x", token=TOKEN).code == 404


# -- pause and resume -------------------------------------------------------------------------


def test_pause_and_resume(node):
    for path, state in (("/pause", "PAUSE"), ("/pause", "PAUSE"), ("/resume", "START")):
        reply = node.post(path, {"channel": "shop"})
        assert (reply.code, reply.json["state"]) == (200, state)
        assert node.operator.channels.one("shop").state.value == state


@pytest.mark.parametrize("path", ["/pause", "/resume"])
def test_a_stopped_channel_stays_stopped(node, path):
    node.operator.channels.set_state(node.operator.channels.one("shop"), ChannelState.STOP)
    reply = node.post(path, {"channel": "shop"})
    assert (reply.code, "is stopped" in reply.json["error"]) == (412, True)
    assert node.operator.channels.one("shop").state is ChannelState.STOP


def test_a_stop_that_comes_in_between_is_not_undone(node, monkeypatch):
    node.operator.channels.set_state(node.operator.channels.one("shop"), ChannelState.PAUSE)
    original = node.arbiter.channels.one

    def stopped_after_reading(name):
        channel = original(name)
        if channel.state is ChannelState.PAUSE:
            node.operator.channels.set_state(node.operator.channels.one(name), ChannelState.STOP)
        return channel

    monkeypatch.setattr(node.arbiter.channels, "one", stopped_after_reading)
    assert node.post("/resume", {"channel": "shop"}).code == 412
    assert node.operator.channels.one("shop").state is ChannelState.STOP


def test_an_unknown_channel(node):
    assert node.post("/pause", {"channel": "nowhere"}).code == 404


def test_what_is_asked_over_http_is_stored_in_the_log_of_actions(node):
    assert node.post("/pause", {"channel": "shop"}).code == 200
    assert node.post("/pause", {"channel": "nowhere"}).code == 404
    assert node.post("/switchover?wait=0", {"pipeline": "shop/there", "to": "n9"}).code == 412
    assert node.post("/pause", {"channel": "shop"}, token="wrong").code == 401
    stored = [(a.what, a.on, a.outcome) for a in node.operator.actions.all()]
    assert stored[0] == ("pause", "shop", "done")
    assert [(what, on) for what, on, _ in stored[1:]] == [
        ("pause", "nowhere"),
        ("switchover", "shop/there"),
    ]
    assert all(outcome.startswith("not done: ") for _, _, outcome in stored[1:])
    assert {a.by for a in node.operator.actions.all()} == {"127.0.0.1 over HTTP at n1"}
