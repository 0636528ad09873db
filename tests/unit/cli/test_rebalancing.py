"""`setl rebalance`: its plan, what it does one after another, and where it stops."""

import json
import threading
import time
from dataclasses import replace

import pytest

from arbiter.values import ChannelState, HistoryItem, PipelineId, SignalState
from setl.cli.leadership import handing_over
from setl.cli.terminal import confirmation
from setl.model.load_request import LoadRequest
from setl.operate.cutover.steps import CutOver, Step
from setl.run.table_loads.requests import StoredLoadRequests

PIPELINES = [PipelineId("shop", name) for name in ("p1", "p2", "p3", "p4")]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(handing_over, "_ANSWER_SECONDS", 0.2)


@pytest.fixture
def joined(shop):
    """n1 leads all four pipelines, n2 has just joined."""
    shop.put("shop", pipelines=[p.pipeline for p in PIPELINES])
    shop.node("n1")
    shop.node("n2")
    for pipeline in PIPELINES:
        shop.nodes["n1"].leads(pipeline, lag=0.1)
    return shop


class Nodes:
    """n1 and n2, as they do what they are asked for: each switchover but those refused."""

    def __init__(self, shop, refused=()):
        self._shop, self._refused = shop, refused
        self._over = threading.Event()
        self.done = []
        self._thread = threading.Thread(target=self._work)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _work(self):
        while not self._over.wait(0.02):
            for pipeline in PIPELINES:
                for signal in self._shop.arbiter.signals.all(pipeline):
                    if signal.state is SignalState.PENDING:
                        self._obey(pipeline, signal)

    def _obey(self, pipeline, signal):
        old, new = self._shop.nodes["n1"], self._shop.nodes["n2"]
        assert signal.to == "n2"
        if len(self.done) in self._refused:
            old.arbiter.signals.answer(pipeline, signal, SignalState.REFUSED, "n2 has gone")
            return
        old.arbiter.leader_locks.release(pipeline, old.arbiter.leader_locks.one(pipeline))
        epoch = new.leads(pipeline, lag=0.1).epoch
        new.arbiter.history.add(pipeline, HistoryItem(epoch, "n2", "", time.time(), 0.1, 0))
        self.done.append(pipeline)
        new.arbiter.signals.answer(pipeline, signal, SignalState.DONE, "n2 leads")


def reported(shop, capsys, *arguments, status=0):
    assert shop.run("rebalance", *arguments, "-o", "json") == status
    return json.loads(capsys.readouterr().out)


def test_a_dry_run_shows_the_plan_and_does_nothing(joined, capsys):
    assert joined.run("rebalance", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "n1 leads 4, n2 leads 0" in shown
    assert "then: n1 leads 2, n2 leads 2" in shown
    plan = reported(joined, capsys, "--dry-run")
    assert [(m["from"], m["to"], m["outcome"]) for m in plan["moves"]] == [
        ("n1", "n2", "planned")
    ] * 2
    assert plan["leads_after"] == {"n1": 2, "n2": 2}
    assert len(reported(joined, capsys, "--dry-run", "--at-most", "1")["moves"]) == 1
    assert not any(joined.arbiter.signals.all(p) for p in PIPELINES)
    assert not joined.arbiter.actions.all()


def test_switchovers_are_done_in_order_and_stored_in_the_log_of_actions(joined, capsys):
    with Nodes(joined) as nodes:
        result = reported(joined, capsys, "--yes")
    assert [str(p) for p in nodes.done] == [m["pipeline"] for m in result["moves"]]
    assert [(m["outcome"], m["redelivered"]) for m in result["moves"]] == [("done", 0)] * 2
    assert result["leads_after"] == {"n1": 2, "n2": 2}
    whole, *each = joined.arbiter.actions.all()
    assert (whole.what, whole.on, whole.outcome) == (
        "rebalance", "the cluster", "2 switchovers done",
    )  # fmt: skip
    assert [(a.what, a.on) for a in each] == [("switchover", str(p)) for p in nodes.done]
    assert each[0].outcome == "done: n1 → n2, to rebalance"
    assert not reported(joined, capsys, "--yes")["moves"]


def test_a_giver_that_has_left_by_then_is_reported(joined, capsys):
    class Leaves(Nodes):
        def _obey(self, pipeline, signal):
            super()._obey(pipeline, signal)
            if len(self.done) == 2:
                self._shop.nodes["n1"].arbiter.close()  # its session ends

    with Leaves(joined):
        assert joined.run("rebalance", "--yes", "-o", "json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["leads_after"] == {"n2": 2}
    assert "the nodes lead other numbers than planned: n1 left meanwhile" in err


def test_the_first_that_fails_ends_it(joined, capsys):
    shop = joined
    with Nodes(shop, refused={1}) as nodes:
        assert shop.run("rebalance", "-o", "json") == 1
    out, err = capsys.readouterr()
    assert [m["outcome"] for m in json.loads(out)["moves"]] == ["done", "failed"]
    assert "refused: n2 has gone; 1 switchover is done" in err
    assert len(nodes.done) == 1
    assert "n2 has gone" in shop.arbiter.actions.all()[0].outcome
    assert [p for p in PIPELINES if shop.arbiter.leader_locks.one(p).nid == "n2"] == nodes.done


def test_what_comes_after_a_failure_is_not_begun(joined, capsys):
    with Nodes(joined, refused={0}):
        assert joined.run("rebalance") == 1
    out, err = capsys.readouterr()
    assert "not done" in out
    assert "0 switchovers are done, 1 was not begun" in err
    assert sum(len(joined.arbiter.signals.all(p)) for p in PIPELINES) == 1


def _paused(shop, _):
    shop.state(ChannelState.PAUSE)


def _asked(shop, pipeline):
    assert shop.run("switchover", str(pipeline), "--at", "+5m") == 0


def _loading(shop, pipeline):
    StoredLoadRequests(shop.arbiter, pipeline).add(LoadRequest(tables=("s.t",)))


def _cutting_over(shop, pipeline):
    shop.arbiter.cutovers.store(pipeline, CutOver(Step.STOP_WRITES).to_json(), None)


def _says(state="running", **figures):
    return lambda shop, pipeline: shop.nodes["n1"].says(pipeline, state, **figures)


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (_paused, "its channel is set to PAUSE"),
        (_asked, "a switchover is scheduled"),
        (_loading, "a load of tables is asked for"),
        (_cutting_over, "a cut-over is in hand"),
        (_says("retrying"), "it does not run: retrying"),
        (_says(lag=0.1, table_load={"state": "reading"}), "it loads tables"),
        (_says(lag=0.1, error="deadlock"), "it tries again after an error: deadlock"),
        (_says(lag=70.0), "it is catching up, 1 min 10 s behind"),
        (_says(), "how far it is behind is not known yet"),
    ],
)
def test_a_pipeline_that_has_something_in_hand_stays(joined, capsys, prepare, why):
    for pipeline in PIPELINES:
        prepare(joined, pipeline)
    capsys.readouterr()
    plan = reported(joined, capsys)
    assert plan["moves"] == []
    assert [s["reason"] for s in plan["stays"]] == [why] * 4
    assert joined.run("rebalance") == 0
    assert "Nothing to do: n1 leads 4, n2 leads 0" in capsys.readouterr().out


def test_a_node_that_does_not_answer_gets_nothing(joined, capsys):
    joined.nodes["n2"].stop()
    plan = reported(joined, capsys)
    assert plan["moves"] == []
    assert plan["closed"] == [{"node": "n2", "reason": "does not answer over HTTP"}]


def test_a_node_that_can_lead_nothing_says_what_it_lacks(joined, capsys):
    why = "the environment variable SHOP_B_PASSWORD is not set"
    node = joined.nodes["n2"]
    told_so = replace(node.arbiter.facts().nodes["n2"], not_ready=dict.fromkeys(PIPELINES, why))
    node.arbiter.nodes.announce(told_so)
    plan = reported(joined, capsys)
    assert plan["moves"] == []
    assert plan["closed"] == [{"node": "n2", "reason": f"can lead none of these: {why}"}]


def test_what_changes_after_the_plan_is_not_done(joined, capsys, monkeypatch):
    monkeypatch.setattr(confirmation, "has_terminal", lambda: True)

    def meanwhile(_, err):
        for pipeline in PIPELINES:
            _cutting_over(joined, pipeline)
        return err

    monkeypatch.setattr(confirmation.click, "confirm", meanwhile)
    assert joined.run("rebalance") == 1
    assert "refused: a cut-over is in hand; 0 switchovers are done" in capsys.readouterr().err
    assert not any(joined.arbiter.signals.all(p) for p in PIPELINES)


def test_at_a_terminal_a_person_is_asked(joined, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(confirmation, "has_terminal", lambda: True)
    monkeypatch.setattr(confirmation.click, "confirm", lambda text, err: asked.append(text))
    assert joined.run("rebalance") == 1
    assert asked == ["Are you sure you want to do these 2 switchovers, one after another?"]
    assert "nothing was done" in capsys.readouterr().err
    assert not joined.arbiter.actions.all()
