import json
import threading
from dataclasses import replace

import pytest

from arbiter.values import ChannelState, NodeInfo, PipelineId
from setl.cli.channels import states
from setl.operate.starting import hints
from setl.systems.finding import Finding
from tests.unit.cli.cluster_in_memory import AB, definition
from tests.waiting import eventually

BA = PipelineId("shop", "ba")


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(states, "_STEADY", 0.6)


@pytest.fixture
def led(shop):
    node = shop.node("n1")
    node.leads(AB)
    node.leads(BA)
    return shop


def when_state_is(shop, state, act, channel="shop"):
    def work():
        eventually(lambda: shop.arbiter.channels.one(channel).state is state, 10)
        act()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_pause_waits_until_every_pipeline_holds(led, capsys):
    node = led.nodes["n1"]

    def hold():
        node.says(AB, "paused")
        node.says(BA, "paused")

    thread = when_state_is(led, ChannelState.PAUSE, hold)
    assert led.run("pause", "shop") == 0
    thread.join()
    assert capsys.readouterr().out == "channel shop: PAUSE\n"


def test_what_does_not_follow_is_named(led, capsys):
    led.nodes["n1"].says(AB, "paused")
    assert led.run("pause", "shop", "--timeout", "0.3") == 1
    reported = capsys.readouterr().err
    assert "not everything followed in 0.3 s" in reported
    assert "shop/ba: running on n1" in reported
    assert "shop/ab:" not in reported


def test_without_waiting(led, capsys):
    assert led.run("pause", "shop", "--no-wait", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"channel": "shop", "state": "PAUSE"}


def test_stop_waits_until_nobody_leads(led, capsys):
    node = led.nodes["n1"]

    def resign():
        for pipeline in (AB, BA):
            node.says(pipeline, "stopped")
            node.arbiter.leader_locks.release(pipeline, node.arbiter.leader_locks.one(pipeline))

    thread = when_state_is(led, ChannelState.STOP, resign)
    assert led.run("stop", "shop", "-o", "json") == 0
    thread.join()
    reported = json.loads(capsys.readouterr().out)
    assert reported["done"]
    assert [p["leader"] for p in reported["pipelines"]] == ["", ""]


def test_resume_leaves_pause_only(led, capsys):
    led.state(ChannelState.STOP)
    assert led.run("resume", "shop") == 1
    assert "channel shop is stopped: `setl start shop` starts it" in capsys.readouterr().err
    assert led.arbiter.channels.one("shop").state is ChannelState.STOP
    led.state(ChannelState.PAUSE)
    assert led.run("resume", "shop") == 0
    assert led.arbiter.channels.one("shop").state is ChannelState.START
    revision = led.arbiter.channels.one("shop").revision
    assert led.run("resume", "shop") == 0
    assert led.arbiter.channels.one("shop").revision == revision


def test_pause_does_not_leave_stop(led, capsys):
    led.state(ChannelState.STOP)
    assert led.run("pause", "shop") == 1
    assert "channel shop is stopped: `setl start shop` starts it" in capsys.readouterr().err
    assert led.arbiter.channels.one("shop").state is ChannelState.STOP


def test_a_start_that_fails_is_no_success(led, capsys, monkeypatch):
    monkeypatch.setattr(states, "_OLD_FAILURE", 0.3)
    led.nodes["n1"].says(AB, "failed", error="no such table")
    assert led.run("start", "shop", "-o", "json") == 1
    printed = capsys.readouterr()
    assert "shop/ab: failed on n1: no such table" in printed.err
    assert json.loads(printed.out)["done"] is False


def test_a_start_that_fails_a_moment_after_it_ran_is_no_success(led, capsys, monkeypatch):
    monkeypatch.setattr(states, "_OLD_FAILURE", 0.3)
    node = led.nodes["n1"]
    status, asked = node.status, []

    def answer():
        asked.append(1)
        if len(asked) == 2:  # it has to run for longer than one look
            node.says(BA, "failed", error="no such table")
        return status()

    node.status = answer
    assert led.run("start", "shop", "--no-check") == 1
    assert "shop/ba: failed on n1: no such table" in capsys.readouterr().err


def test_a_channel_for_which_every_node_lacks_something_has_failed(shop, capsys, monkeypatch):
    monkeypatch.setattr(states, "_OLD_FAILURE", 0.3)
    shop.put("solo", pipelines=["p"])
    solo = PipelineId("solo", "p")
    node = shop.node("n1")
    why = "the environment variable DB is not set (pipelines[0].source.password)"
    node.arbiter.nodes.announce(NodeInfo("n1", "host", 1, "", ready=True, not_ready={solo: why}))
    assert shop.run("start", "solo", "--no-check", "-o", "json") == 1
    printed = capsys.readouterr()
    assert "but failed" in printed.err
    assert f"no leader: has no node that can lead it: n1: {why}" in printed.err
    assert shop.run("topology", "solo") == 0
    reported = " ".join(capsys.readouterr().out.split())
    assert "number 1 to take over" not in reported
    assert f"cannot lead: {why}"[:40] in reported


def test_starting_what_no_process_serves_says_what_it_waits_for(shop, capsys, monkeypatch):
    monkeypatch.setattr(states, "_NOTICE_AFTER", 0.1)
    shop.put("relays", pipelines=["p"], target={"type": "kafka"})
    shop.node("n1", serves=("load",))
    assert shop.run("start", "relays", "--timeout", "0.6", "-o", "json") == 1
    printed = capsys.readouterr()
    needs = "needs a `setl relay` process; none is running"
    assert printed.err.count(f"waiting: relays/p {needs}\n") == 1
    assert f"relays/p: no leader: {needs}" in printed.err
    (pipeline,) = json.loads(printed.out)["pipelines"]
    assert pipeline["missing"] == needs


def test_a_process_that_is_started_meanwhile_ends_the_wait(shop, capsys, monkeypatch):
    monkeypatch.setattr(states, "_NOTICE_AFTER", 0.1)
    shop.put("relays", pipelines=["p"], target={"type": "kafka"}, state=ChannelState.STOP)
    relays = PipelineId("relays", "p")
    thread = when_state_is(
        shop, ChannelState.START, lambda: shop.node("r1", serves=("relay",)).leads(relays),
        "relays",
    )  # fmt: skip
    assert shop.run("start", "relays") == 0
    thread.join()
    assert capsys.readouterr().out == "channel relays: START\n"


def test_a_wrong_channel_is_wrong_usage(shop, capsys):
    assert shop.run("pause", "nonsense") == 2
    assert "there is no channel 'nonsense'; known: shop" in capsys.readouterr().err


FAULTS = [
    Finding("ok", "fine", "ab, source db1:3306"),
    Finding("warning", "may hurt", "ab, source db1:3306"),
    Finding("error", "the table is missing", "ab, target db2:3306, s.t", ("CREATE TABLE s.t …;",)),
]
UNSEEN = Finding("error", "no connection: refused", "ab, source db1:3306", unseen=True)


@pytest.mark.parametrize("state", [ChannelState.STOP, ChannelState.PAUSE])
def test_a_stopped_channel_with_something_to_mend_is_not_started(led, capsys, monkeypatch, state):
    led.state(state)
    monkeypatch.setattr("setl.operate.starting.check_channel", lambda file: [*FAULTS, UNSEEN])
    assert led.run("start", "shop", "--no-wait") == (1 if state is ChannelState.STOP else 0)
    reported = capsys.readouterr().err
    if state is ChannelState.STOP:
        assert "channel shop is not started; 1 to fix first" in reported
        assert "s.t: the table is missing" in reported
        assert "CREATE TABLE s.t …;" in reported
        assert "may hurt" not in reported
        assert led.arbiter.channels.one("shop").state is ChannelState.STOP
        assert led.run("start", "shop", "--no-wait", "--no-check") == 0
    assert led.arbiter.channels.one("shop").state is ChannelState.START


def test_long_statements_are_counted_where_something_is_refused():
    """140 lines of tables that were missing pushed what was refused, and why, off the screen."""
    grant, table = "GRANT SELECT ON s.* TO 'u'@'%';", "CREATE TABLE s.t (\n  id INT);"
    fault = Finding("error", "missing", "ab", (grant, table, "Look."), server="db1:3306")
    assert hints(fault, "`setl check FILE -o sql`") == [
        "Look.", "2 statements for db1:3306; `setl check FILE -o sql` shows them",
    ]  # fmt: skip
    assert hints(replace(fault, hint=(grant, "Look.")), "x") == (grant, "Look.")
    assert hints(fault) == fault.hint


def test_what_cannot_be_seen_from_here_is_said_and_starts(led, capsys, monkeypatch):
    led.state(ChannelState.STOP)
    monkeypatch.setattr("setl.operate.starting.check_channel", lambda file: [UNSEEN])
    assert led.run("start", "shop", "--no-wait") == 0
    assert "not checked from here: ab, source db1:3306: no connection" in capsys.readouterr().err
    assert led.arbiter.channels.one("shop").state is ChannelState.START


def test_references_that_only_nodes_can_resolve_keep_nothing_from_starting(shop, capsys):
    source = {"type": "mysql", "host": "db1", "user": "u", "password": "${ONLY_ON_NODES}"}
    shop.arbiter.channels.put("other", definition("other", source=source))
    assert shop.run("start", "other", "--no-wait") == 0
    reported = capsys.readouterr().err
    assert "not checked, since its references are not set here" in reported
    assert "ONLY_ON_NODES" in reported
