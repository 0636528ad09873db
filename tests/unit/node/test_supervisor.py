"""The pipeline controllers of two kinds of nodes in one cluster in memory."""

import logging
import threading
from dataclasses import replace

import pytest

from arbiter import requests
from arbiter.election import ElectionSettings
from arbiter.errors import Denied
from arbiter.requests import Requester, change_state
from arbiter.snapshot import look
from arbiter.values import ChannelState, NodeInfo, PipelineId, SignalKind, SignalState
from setl.errors import TransientError
from setl.node.leading.supervisor import Supervisor
from setl.node.roles import LOAD, RELAY
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.unit.node.noted_run import NotedRun
from tests.waiting import eventually

TO_KAFKA = PipelineId("shop", "to-kafka")
TO_SEARCH = PipelineId("shop", "to-search")
RULES = ElectionSettings(takeover_delay=0.5, hold_off=5.0)
SHOP = {
    "pipelines": [
        {"name": "to-kafka", "target": {"type": "kafka"}},
        {"name": "to-search", "target": {"type": "elasticsearch"}},
    ]
}


class Node:
    def __init__(self, cluster, nid, kind):
        self.nid = nid
        self.clock = cluster.clock
        self.arbiter = MemoryArbiter(cluster)
        self.arbiter.nodes.announce(NodeInfo(nid, ready=True, serves=(kind,)))
        self.runs = []
        self.snapshot = None
        self.supervisor = Supervisor(
            nid,
            self.arbiter,
            RULES,
            cluster.clock,
            serves=(kind,),
            build=self.build,
            wake=lambda: None,
        )

    def build(self, channel, pipeline, epoch, progress):
        self.runs.append(NotedRun(epoch, progress, (channel.name, pipeline)))
        return self.runs[-1]

    def tick(self):
        self.snapshot = look(self.arbiter, self.clock, self.snapshot)
        self.supervisor.tick(self.snapshot, warm=True)

    @property
    def taken(self):
        return {controller.pipeline for controller in self.supervisor.current()}


class World:
    def __init__(self):
        self.cluster = MemoryCluster()
        self.operator = MemoryArbiter(self.cluster)
        self.put(SHOP)
        self.nodes = []

    def put(self, definition):
        self.operator.channels.put("shop", definition)
        change_state(self.operator, "shop", ChannelState.START)

    def node(self, nid, kind):
        self.nodes.append(Node(self.cluster, nid, kind))
        return self.nodes[-1]

    def tick(self, rounds=1, seconds=0.5):
        for _ in range(rounds):
            for node in self.nodes:
                node.tick()
            self.cluster.advance(seconds)

    def leaders(self):
        return {p: m.nid for p, m in self.operator.facts().leader_locks.items()}

    def close(self):
        for node in self.nodes:
            node.supervisor.close(10)


@pytest.fixture
def world():
    world = World()
    yield world
    world.close()


def test_each_kind_leads_its_own(world):
    loader, relay = world.node("n1", LOAD), world.node("r1", RELAY)
    world.tick(4)
    assert (loader.taken, relay.taken) == ({TO_SEARCH}, {TO_KAFKA})
    assert world.leaders() == {TO_SEARCH: "n1", TO_KAFKA: "r1"}
    eventually(lambda: len(loader.runs) == len(relay.runs) == 1)
    assert loader.runs[0].ident == ("shop", "to-search")
    assert relay.runs[0].ident == ("shop", "to-kafka")


def test_a_pipeline_whose_only_relay_is_gone_waits_for_another_relay(world):
    world.node("n1", LOAD)
    relay = world.node("r1", RELAY)
    world.tick(4)
    world.nodes.remove(relay)
    relay.supervisor.close(10)
    relay.arbiter.close()
    world.tick(60)
    assert world.leaders() == {TO_SEARCH: "n1"}
    world.node("r2", RELAY)
    world.tick(4)
    assert world.leaders() == {TO_SEARCH: "n1", TO_KAFKA: "r2"}


def test_a_pipeline_that_becomes_one_of_another_kind_is_handed_over(world):
    loader, relay = world.node("n1", LOAD), world.node("r1", RELAY)
    world.tick(4)
    eventually(lambda: loader.runs)
    turned = [{"name": p["name"], "target": {"type": "kafka"}} for p in SHOP["pipelines"]]
    world.operator.channels.put("shop", {"pipelines": turned})

    def handed_over():
        world.tick()
        return world.leaders() == {TO_SEARCH: "r1", TO_KAFKA: "r1"}

    eventually(handed_over)
    assert loader.taken == set()
    assert "stop" in loader.runs[0].reported
    assert "abort" not in loader.runs[0].reported
    assert relay.taken == {TO_SEARCH, TO_KAFKA}


def test_a_seat_that_cannot_be_given_up_is_tried_again_and_runs_nothing(world, caplog):
    caplog.set_level(logging.WARNING, "setl.node.leading.supervisor")
    loader = world.node("n1", LOAD)
    world.tick(4)
    eventually(lambda: loader.runs)
    world.operator.channels.put("shop", {"pipelines": []})
    world.tick()
    eventually(lambda: not loader.supervisor.busy)
    loader.snapshot = look(loader.arbiter, loader.clock)
    loader.arbiter.link.refuse(1)
    loader.supervisor.tick(loader.snapshot, warm=True)
    assert loader.taken == {TO_SEARCH}
    assert [record.getMessage() for record in caplog.records] == ["ZooKeeper refuses"]
    loader.tick()
    assert (loader.taken, world.leaders()) == (set(), {})
    assert len(loader.runs) == 1


def test_a_seat_that_fails_unexpectedly_leaves_the_others_alone(world, monkeypatch, caplog):
    world.put({"pipelines": [{"name": "a"}, {"name": "b"}]})
    node = world.node("n1", LOAD)
    world.tick(4)
    eventually(lambda: len(node.runs) == 2)
    broken, whole = node.supervisor.current()
    monkeypatch.setattr(broken, "_requests", None)
    world.tick(1)
    assert broken.status().decision.startswith("unexpected AttributeError: ")
    eventually(lambda: not broken.busy)
    world.tick(2)
    assert world.leaders() == {whole.pipeline: "n1"}
    failed = [record for record in caplog.records if record.message == "a cycle failed"]
    assert len(failed) == 1
    assert failed[0].exc_info
    assert failed[0].setl["pipeline"] == broken.pipeline.pipeline
    assert whole.busy


@pytest.fixture
def at_rest(world):
    """A node that leads one pipeline, and knows what the change of leadership has cost."""
    node = world.node("n1", LOAD)
    world.tick(4)
    eventually(lambda: node.runs)
    node.runs[0].progress.took_over(20, counted=True)
    node.runs[0].progress.acknowledged(20)
    world.tick(2)
    [controller] = node.supervisor.current()
    assert controller.at_rest
    return node


def decisions(world, caplog, rounds=5):
    """How many decisions so many looks lead to."""
    caplog.clear()
    world.tick(rounds)
    return sum(record.message == "decision" for record in caplog.records)


def test_nothing_is_decided_while_looks_show_the_same(world, at_rest, caplog):
    caplog.set_level(logging.DEBUG, "arbiter.campaign")
    follower = world.node("n2", LOAD)
    world.tick(2)
    eventually(lambda: follower.supervisor.current()[0].at_rest)
    assert decisions(world, caplog) == 0
    world.operator.channels.put("news", {})
    assert decisions(world, caplog) == 2


def test_a_run_that_ends_is_followed_by_another_although_looks_show_the_same(world, at_rest):
    at_rest.arbiter.link.refuse(1)  # not even the history, which would be a change
    at_rest.runs[0].failure = TransientError("cut off")
    at_rest.runs[0].ends.set()
    eventually(lambda: not at_rest.supervisor.busy)
    world.tick(6)  # well before everything is read again although nothing has changed
    eventually(lambda: len(at_rest.runs) == 2)
    assert at_rest.runs[1].epoch > at_rest.runs[0].epoch


@pytest.mark.parametrize("reported", ["suspend", "abort"])
def test_what_the_watchdog_did_between_two_looks_is_not_forgotten(world, at_rest, reported):
    run, [controller] = at_rest.runs[0], at_rest.supervisor.current()
    run.reported.clear()
    getattr(controller, reported)()
    world.tick()
    if reported == "suspend":
        assert run.reported == ["suspend", "resume"]
        return
    eventually(lambda: world.tick() or len(at_rest.runs) == 2)
    assert at_rest.runs[1].epoch > run.epoch


def test_a_session_that_goes_silent_is_noticed_although_looks_show_the_same(world, at_rest):
    seen = look(at_rest.arbiter, at_rest.clock, at_rest.snapshot)
    assert seen.facts is at_rest.snapshot.facts
    at_rest.supervisor.tick(replace(seen, last_contact=seen.taken - 8.5), warm=True)
    assert at_rest.runs[0].reported[-1] == "abort"


def test_a_request_is_answered_once_it_is_carried_out(world, at_rest):
    [controller] = at_rest.supervisor.current()
    requests.ask_leader(world.operator, TO_SEARCH, SignalKind.ROLLBACK, Requester("root", 0.0))
    world.tick(3)
    assert not controller.at_rest
    at_rest.runs[0].rolled_back.set()
    world.tick()
    [signal] = world.operator.signals.all(TO_SEARCH)
    assert signal.state is SignalState.DONE


def test_vacancies_are_filled_side_by_side(world, monkeypatch):
    """One after another, the last would wait for as many round trips as there are pipelines."""
    world.put({"pipelines": [{"name": name} for name in "abcd"]})
    node = world.node("n1", LOAD)
    together, real = threading.Barrier(4), node.arbiter.leader_locks.campaign

    def campaign(pipeline, nid):
        together.wait(60)  # broken if they do not come together
        return real(pipeline, nid)

    monkeypatch.setattr(node.arbiter.leader_locks, "campaign", campaign)
    world.tick(4)
    assert {p.pipeline for p in world.leaders()} == set("abcd")
    eventually(lambda: len(node.runs) == 4)


def test_one_vacancy_that_cannot_be_filled_leaves_the_others_alone(world, monkeypatch):
    world.put({"pipelines": [{"name": name} for name in "abc"]})
    node = world.node("n1", LOAD)
    real = node.arbiter.leader_locks.campaign

    def campaign(pipeline, nid):
        if pipeline.pipeline == "b":
            raise Denied("no")
        return real(pipeline, nid)

    monkeypatch.setattr(node.arbiter.leader_locks, "campaign", campaign)
    world.tick(4)
    assert {p.pipeline for p in world.leaders()} == {"a", "c"}
    [refused] = [c for c in node.supervisor.current() if c.pipeline.pipeline == "b"]
    assert refused.status().decision == "ZooKeeper refuses: no"


@pytest.mark.parametrize("back", [False, True], ids=["another", "the-old-one-again"])
def test_a_definition_that_changes_is_run_at_once_when_the_run_before_has_ended(world, back):
    """Not under the epoch that was given up, and nobody waits as after a leadership taken away."""
    node = world.node("n1", LOAD)
    world.tick(4)
    eventually(lambda: node.runs)
    run = node.runs[0]
    run.stop = lambda: run.reported.append("stop")  # it loads, and ends later
    world.put({**SHOP, "note": "another"})
    world.tick(1)
    assert "stop" in run.reported
    if back:
        world.put(SHOP)
    world.tick(1)
    run.ends.set()
    eventually(lambda: not node.supervisor.current()[0].busy)
    world.tick(4, seconds=0.3)
    eventually(lambda: len(node.runs) == 2)
    leader_lock = world.operator.leader_locks.one(TO_SEARCH)
    assert leader_lock is not None
    assert node.runs[1].epoch == leader_lock.epoch > run.epoch
    assert "abort" not in node.runs[1].reported


def test_what_the_watchdog_does_during_a_look_is_not_forgotten(world, at_rest):
    """It is held up between what it says and what it does, and a look comes in between."""
    run, [controller] = at_rest.runs[0], at_rest.supervisor.current()
    run.reported.clear()
    real = run.suspend

    def blocked():
        lock.release()  # as if the look came before the run was told
        at_rest.tick()
        lock.acquire()
        real()

    lock = controller._run._lock
    run.suspend = blocked
    controller.suspend()
    world.tick()
    assert run.reported[-1] == "resume"


def test_a_request_that_was_answered_lets_a_controller_rest_again(world, at_rest):
    [controller] = at_rest.supervisor.current()
    requests.ask_leader(world.operator, TO_SEARCH, SignalKind.ROLLBACK, Requester("root", 0.0))
    at_rest.runs[0].rolled_back.set()
    world.tick(4)
    [signal] = world.operator.signals.all(TO_SEARCH)
    assert signal.state is SignalState.DONE
    assert controller.at_rest


def test_a_run_that_cannot_even_be_stopped_leaves_the_others_alone(world, caplog):
    world.put({"pipelines": [{"name": name} for name in "ab"]})
    node = world.node("n1", LOAD)
    world.tick(4)
    eventually(lambda: len(node.runs) == 2)
    broken = next(run for run in node.runs if run.ident[1] == "a")

    def stop():
        raise RuntimeError("cannot")

    broken.stop = stop
    node.supervisor.step_down()
    assert [r.message for r in caplog.records].count("a cycle failed") == 1
    world.tick(2)
    assert {p.pipeline for p in world.leaders()} >= {"a"}
    broken.ends.set()


def test_a_run_of_a_definition_that_was_replaced_is_not_begun_again(world, monkeypatch):
    """It ends while its pipeline controller, which is to end with it, decides as its leader."""
    node = world.node("n1", LOAD)
    world.tick(4)
    eventually(lambda: node.runs)
    run, [controller] = node.runs[0], node.supervisor.current()
    run.stop = lambda: run.reported.append("stop")  # it loads, and ends later
    real = controller._campaign.cycle

    def cycle(*given, **named):
        election = real(*given, **named)
        run.ends.set()
        eventually(lambda: not controller.busy)
        return election

    monkeypatch.setattr(controller._campaign, "cycle", cycle)
    world.put({**SHOP, "note": "another"})
    world.tick(1)
    assert not controller.busy
    world.tick(4)
    eventually(lambda: len(node.runs) == 2)
    assert node.runs[1].epoch > run.epoch


def test_a_run_that_cannot_be_stopped_for_another_definition_leaves_the_others_alone(world, caplog):
    world.put({"pipelines": [{"name": "a"}]})
    node = world.node("n1", LOAD)
    world.tick(4)
    eventually(lambda: len(node.runs) == 1)
    broken = node.runs[0]

    def stop():
        raise RuntimeError("cannot")

    broken.stop = stop
    world.put({"pipelines": [{"name": "a"}, {"name": "b"}]})
    world.tick(4)
    eventually(lambda: len(node.runs) == 2)
    assert node.runs[1].ident == ("shop", "b")
    assert [r.message for r in caplog.records].count("a cycle failed") == 1
    [left] = [c for c in node.supervisor.current() if c.pipeline.pipeline == "a"]
    assert left.status().decision == "unexpected RuntimeError: cannot"
    broken.ends.set()
    eventually(lambda: world.tick() or len(node.runs) == 3)
    assert node.runs[2].ident == ("shop", "a")


def test_a_run_that_cannot_be_stopped_does_not_keep_a_node_that_leaves(world):
    world.put({"pipelines": [{"name": name} for name in "ab"]})
    node = world.node("n1", LOAD)
    world.tick(4)
    eventually(lambda: len(node.runs) == 2)
    broken, whole = (next(r for r in node.runs if r.ident[1] == name) for name in "ab")

    def stop():
        raise RuntimeError("cannot")

    broken.stop = stop
    node.supervisor.close(5)
    assert whole.reported[-1] == "stop"
    assert {p.pipeline for p in world.leaders()} <= {"a"}
    broken.ends.set()
