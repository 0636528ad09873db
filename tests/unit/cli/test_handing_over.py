import json
import re
import threading
import time

import pytest

from arbiter.values import ChannelState, HistoryItem, NodeInfo, SignalKind, SignalState
from setl.cli.leadership import handing_over
from setl.cli.terminal import confirmation
from tests.unit.cli.cluster_in_memory import AB
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(handing_over, "_ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(handing_over, "_LEAVES_SECONDS", 0.3)


@pytest.fixture
def pair(shop):
    """n1 leads shop/ab, n2 stands by."""
    shop.node("n1").leads(AB)
    shop.node("n2").says(AB, "standby")
    return shop


def obey(shop, kind=SignalKind.SWITCHOVER, to="n2", redelivered: int | None = 0):
    """What nodes do with a request, on a thread of its own: hand over, and answer."""

    def work():
        old, new = shop.nodes["n1"], shop.nodes[to]
        signals = old.arbiter.signals.all
        eventually(lambda: [s for s in signals(AB) if s.state is SignalState.PENDING], 10)
        signal = signals(AB)[-1]
        assert (signal.kind, signal.to) in ((kind, to), (kind, ""))
        leader_lock = old.arbiter.leader_locks.one(AB)
        if leader_lock is not None:
            old.arbiter.leader_locks.release(AB, leader_lock)
        new.leads(AB, "taking over")
        old.says(AB, "standby")
        leader_lock = new.arbiter.leader_locks.one(AB)
        new.arbiter.history.add(
            AB, HistoryItem(leader_lock.epoch, to, "handed over", time.time(), 0.1, redelivered)
        )
        new.arbiter.signals.answer(AB, signal, SignalState.DONE, f"{to} leads")
        new.says(AB, "running", rows_redelivered=redelivered or 0)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def outcome(capsys):
    return json.loads(capsys.readouterr().out)


def test_a_switchover_is_carried_out_and_reported(pair, capsys):
    thread = obey(pair)
    assert pair.run("switchover", "ab", "--to", "n2", "-o", "json") == 0
    thread.join()
    reported = outcome(capsys)
    assert (reported["outcome"], reported["from"], reported["to"], reported["state"]) == (
        "done", "n1", "n2", "running",
    )  # fmt: skip
    leads = pair.arbiter.leader_locks.one(AB)
    assert (reported["leadership"], reported["epoch"]) == (leads.number, leads.epoch)
    assert reported["redelivered"] == 0
    assert reported["seconds"] >= 0


def test_people_get_a_sentence(pair, capsys):
    thread = obey(pair)
    assert pair.run("switchover", "ab") == 0
    thread.join()
    shown = capsys.readouterr().out
    assert "n1  leads, leadership 1, " in shown
    assert 'Successfully switched shop/ab over from n1 to "n2"' in shown
    assert "0 rows redelivered" in shown


def test_a_target_that_does_not_tell_what_came_again_is_not_waited_for(pair, capsys, monkeypatch):
    """An index has no fence and no checkpoint: nobody ever knows."""
    monkeypatch.setattr(handing_over, "_ANSWER_SECONDS", 60.0)
    thread = obey(pair, redelivered=None)
    began = time.monotonic()
    assert pair.run("switchover", "ab") == 0
    assert time.monotonic() - began < 30
    thread.join()
    shown = capsys.readouterr().out
    assert "it is not known how many rows were redelivered" in " ".join(shown.split())
    assert "0 rows" not in shown


def test_a_refusal_says_why(pair, capsys):
    assert pair.run("switchover", "ab", "--to", "n9") == 1
    assert (
        "Error: switchover of shop/ab refused: there is no live node n9; live: n1, n2"
        in capsys.readouterr().err
    )
    assert pair.run("switchover", "ab", "--to", "n1", "-o", "json") == 1
    assert outcome(capsys)["reason"] == "node n1 leads already"
    pair.state(ChannelState.PAUSE)
    assert pair.run("switchover", "ab", "-o", "json") == 1
    assert outcome(capsys)["reason"] == "the channel is paused"
    assert not pair.arbiter.signals.all(AB)


def test_the_leader_may_refuse_later(pair, capsys):
    def refuse():
        eventually(lambda: pair.arbiter.signals.all(AB), 10)
        (signal,) = pair.arbiter.signals.all(AB)
        pair.arbiter.signals.answer(AB, signal, SignalState.REFUSED, "n2 has gone")

    thread = threading.Thread(target=refuse)
    thread.start()
    assert pair.run("switchover", "ab", "--to", "n2") == 1
    thread.join()
    assert "refused: n2 has gone" in capsys.readouterr().err


def test_no_answer_in_time(pair, capsys):
    assert pair.run("switchover", "ab", "--timeout", "0.3") == 1
    reported = capsys.readouterr().err
    assert re.search(r"is not done after \d\.\d s: n1 leads", reported)
    assert "the request stands" in reported
    assert pair.run("switchover", "ab") == 1
    assert "a switchover by" in capsys.readouterr().err


def test_done_but_nothing_runs(pair, capsys):
    thread = obey(pair)
    thread.join(0)
    pair.nodes["n2"].says = lambda *_, **__: None
    assert pair.run("switchover", "ab", "--timeout", "1", "-o", "json") == 1
    thread.join()
    reported = outcome(capsys)
    assert reported["outcome"] == "timeout"
    assert "is done, but nothing runs" in reported["reason"]


def test_done_but_the_new_leader_failed(pair, capsys):
    """It says how long that took, not how long it would have waited."""
    new = pair.nodes["n2"]
    says = new.says
    new.says = lambda p, state, **_: says(p, "failed", error="Access denied")
    thread = obey(pair)
    assert pair.run("switchover", "ab", "-o", "json") == 1
    thread.join()
    reported = outcome(capsys)
    assert reported["outcome"] == "failed"
    assert "is done, but the new leader failed after " in reported["reason"]
    assert "after 60" not in reported["reason"]
    assert reported["reason"].endswith(
        "failed: Access denied; `setl switchover shop/ab` lets another node lead"
    )


def test_a_new_leader_that_leaves_the_lead_again_is_no_success(pair, capsys):
    """Its login is refused, say: the lead comes back to the old one, which runs."""
    old, new = pair.nodes["n1"], pair.nodes["n2"]
    says = new.says

    def fail(pipeline, state, **_):
        says(pipeline, "failed", error="Access denied")
        if state != "running":
            return
        new.arbiter.nodes.announce(NodeInfo("n2", ready=True, not_ready={AB: "Access denied"}))
        new.arbiter.leader_locks.release(AB, new.arbiter.leader_locks.one(AB))
        old.leads(AB)

    new.says = fail
    thread = obey(pair)
    assert pair.run("switchover", "ab", "--to", "n2", "-o", "json") == 1
    thread.join()
    reported = outcome(capsys)
    assert (reported["outcome"], reported["to"], reported["state"]) == ("failed", "n1", "running")
    assert (
        "n2 has left the lead again; n2 cannot lead: Access denied; n1 leads" in reported["reason"]
    )


def test_a_failover_of_a_paused_channel_is_done_when_the_new_leader_holds(pair, capsys):
    pair.state(ChannelState.PAUSE)
    new = pair.nodes["n2"]
    says = new.says
    new.says = lambda p, *_, **__: says(p, "paused")
    thread = obey(pair, SignalKind.FAILOVER)
    assert pair.run("failover", "ab", "--to", "n2", "--timeout", "5") == 0
    thread.join()
    reported = capsys.readouterr().out
    assert 'failed shop/ab over from n1 to "n2"' in reported
    assert "paused; `setl resume shop` goes on" in reported


def test_without_waiting(pair, capsys):
    assert pair.run("switchover", "ab", "--no-wait", "-o", "json") == 0
    assert outcome(capsys)["outcome"] == "sent"


def test_a_switchover_is_scheduled_once_and_taken_back(pair, capsys):
    assert pair.run("switchover", "ab", "--to", "n2", "--at", "+5m", "-o", "json") == 0
    assert outcome(capsys)["outcome"] == "scheduled"
    (signal,) = pair.arbiter.signals.all(AB)
    assert 290 < signal.at - time.time() <= 300
    assert pair.run("switchover", "ab", "--at", "+10m") == 1
    assert "--cancel` takes it back" in capsys.readouterr().err
    assert pair.run("switchover", "ab", "--cancel") == 0
    assert "is taken back" in capsys.readouterr().out
    assert pair.arbiter.signals.all(AB)[0].state is SignalState.REFUSED
    assert pair.run("switchover", "ab", "--cancel") == 1
    assert "no switchover of shop/ab is scheduled" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("--at", "tomorrow"), 2), (("--at", "2001-01-01T00:00"), 1), (("--cancel", "--to", "n2"), 2)],
)
def test_wrong_times_and_options(pair, arguments, status):
    assert pair.run("switchover", "ab", *arguments) == status


def test_at_a_terminal_a_person_is_asked(pair, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(confirmation, "has_terminal", lambda: True)
    monkeypatch.setattr(confirmation.click, "confirm", lambda text, err: asked.append(text))
    assert pair.run("switchover", "ab", "--to", "n2") == 1
    assert "nothing was done" in capsys.readouterr().err
    assert "demoting current leader n1?" in asked[0]
    assert not pair.arbiter.signals.all(AB)
    assert pair.run("switchover", "ab", "--to", "n2", "--yes", "--no-wait") == 0
    assert len(asked) == 1


def test_a_failover_deposes_a_leader_without_asking_it(pair, capsys):
    thread = obey(pair, SignalKind.FAILOVER, redelivered=120)
    assert pair.run("failover", "ab", "--to", "n2") == 0
    thread.join()
    shown = capsys.readouterr().out
    assert "What is in flight will be redelivered." in shown
    assert 'Successfully failed shop/ab over from n1 to "n2"' in shown
    assert "120 rows redelivered" in shown


def test_a_failover_works_without_a_leader(pair, capsys):
    pair.nodes["n1"].arbiter.leader_locks.release(AB, pair.arbiter.leader_locks.one(AB))
    pair.nodes["n1"].arbiter.close()
    assert pair.run("switchover", "ab") == 1
    assert "setl failover" in capsys.readouterr().err

    def take():
        eventually(lambda: pair.arbiter.signals.all(AB), 10)
        (signal,) = pair.arbiter.signals.all(AB)
        assert (signal.leader, signal.epoch) == ("", 0)
        pair.nodes["n2"].leads(AB)
        pair.nodes["n2"].arbiter.signals.answer(AB, signal, SignalState.DONE, "n2 leads")

    thread = threading.Thread(target=take)
    thread.start()
    assert pair.run("failover", "ab", "-o", "json") == 0
    thread.join()
    reported = outcome(capsys)
    assert (reported["from"], reported["to"]) == ("", "n2")


def test_signals_ask_the_leader(pair, capsys):
    def answer(state, text):
        eventually(lambda: pair.arbiter.signals.all(AB), 10)
        signal = pair.arbiter.signals.all(AB)[-1]
        pair.arbiter.signals.answer(AB, signal, state, text)

    thread = threading.Thread(target=answer, args=(SignalState.DONE, "rolled back"))
    thread.start()
    assert pair.run("signal", "rollback", "ab", "-o", "json") == 0
    thread.join()
    assert outcome(capsys)["reason"] == "rolled back"
    assert pair.run("signal", "restart", "ab", "--timeout", "0.2") == 1
    assert "the request stands" in capsys.readouterr().err
    assert pair.run("signal", "restart", "ba") == 1
    assert "restart of shop/ba refused: no node leads shop/ba" in capsys.readouterr().err
    assert pair.run("signal", "dance", "ab") == 2
