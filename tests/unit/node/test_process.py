"""A whole process of each kind, without Spark and over an arbiter in memory."""

import json
import math
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from arbiter.election import ElectionSettings
from arbiter.errors import Conflict, Contact, Denied, Unreachable
from arbiter.requests import change_state
from arbiter.values import ChannelState, NodeInfo, PipelineId
from setl.errors import FatalError
from setl.node import process as process_module
from setl.node.cluster.answers import KEY_HEADER
from setl.node.engines.engine import RelayEngine
from setl.node.ensemble import ServerSeen
from setl.node.process import NodeProcess
from setl.node.roles import LOAD, RELAY
from setl.node.settings import NodeSettings
from setl.run.measured.figures import RunState
from tests.arbiter_in_memory import ManualClock, MemoryArbiter, MemoryCluster
from tests.unit.node.noted_run import NotedRun
from tests.waiting import eventually

TO_KAFKA = PipelineId("shop", "to-kafka")
TO_SEARCH = PipelineId("shop", "to-search")
SOURCE = {"type": "mysql", "host": "db1", "user": "retl"}
KAFKA = {"type": "kafka", "brokers": ["k1:9092"], "topic": "shop"}
SEARCH = {"type": "elasticsearch", "hosts": ["http://es1:9200"]}
SHOP = {
    "channel": "shop",
    "pipelines": [
        {"name": name, "source": SOURCE, "target": target, "tables": [{"from": "shop.t"}]}
        for name, target in (("to-kafka", KAFKA), ("to-search", SEARCH))
    ],
}


class RealTime(ManualClock):
    """The clock that the processes have, too."""

    def monotonic(self):
        return time.monotonic()

    def now(self):
        return time.time()


class Session(MemoryArbiter):
    def start(self, timeout=10.0, gives_up=lambda: False):
        return


class Engine:
    """An engine whose runs do nothing."""

    def __init__(self, *serves):
        self.serves = serves
        self.runs = []
        self.said = []

    def prepare_for(self, definitions):
        self.known = [definition.get("channel") for definition in definitions]

    def start(self, lost, stopping):
        self.said.append("start")
        self.lost = lost

    def last_answer(self) -> float | None:
        return None

    def build_run(self, file, leadership, /, *, arbiter, progress, clock):
        ident = (leadership.channel, leadership.pipeline)
        self.runs.append(NotedRun(leadership.epoch, progress, ident))
        return self.runs[-1]

    def stop(self):
        self.said.append("stop")


class World:
    def __init__(self):
        self.cluster = MemoryCluster(RealTime())
        self.operator = MemoryArbiter(self.cluster)
        self.operator.channels.put("shop", SHOP)
        change_state(self.operator, "shop", ChannelState.START)

    @contextmanager
    def process(self, nid, engine, cycle=0.05, environment=None, session=Session, at=""):
        rules = ElectionSettings(takeover_delay=0.05, turn_delay=0.1)
        settings = NodeSettings(nid, at, election=rules, cycle=cycle, environment=environment or {})
        process = NodeProcess(settings, engine, session(self.cluster))
        ended = []

        def run():
            try:
                process.run()
            except (FatalError, Conflict) as error:
                ended.append(error)

        process.failures = ended  # pyright: ignore[reportAttributeAccessIssue]
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield process
        finally:
            process.stop()
            thread.join(60)
            assert not thread.is_alive()

    def leaders(self):
        return {p: m.nid for p, m in self.operator.facts().leader_locks.items()}

    def ask(self, nid, path):
        """As somebody asks who may read ZooKeeper."""
        node = self.operator.facts().nodes[nid]
        asked = urllib.request.Request(f"{node.http}{path}", headers={KEY_HEADER: node.read_key})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return json.load(answer)


@pytest.fixture
def world():
    return World()


def test_a_node_that_stops_says_so_before_it_gives_up_what_it_leads(world):
    with world.process("n1", Engine(LOAD)) as process:
        eventually(lambda: world.leaders() == {TO_SEARCH: "n1"})
        seen, release = [], process._arbiter.leader_locks.release

        def releases(pipeline, held):
            seen.append(world.operator.facts().nodes["n1"].ready)
            release(pipeline, held)

        process._arbiter.leader_locks.release = releases
    assert seen == [False]


class LateSession(Session):
    """ZooKeeper does not answer at first."""

    failures = 2

    def start(self, timeout=10.0, gives_up=lambda: False):
        if self.failures:
            self.failures -= 1
            raise Unreachable("no ZooKeeper server answered")


def test_a_node_waits_for_zookeeper(monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(process_module, "_CONNECT_PAUSE", 0.01)
    world = World()
    with world.process("n1", Engine(LOAD), session=LateSession):
        eventually(lambda: "n1" in world.operator.facts().nodes)
    said = [r.message for r in caplog.records]
    assert said.count("ZooKeeper does not answer; the node tries again") == 2
    assert said.count("ZooKeeper answers") == 1


class SilentSession(Session):
    """ZooKeeper never answers; it is waited for until the node gives up."""

    begun = threading.Event()

    def start(self, timeout=10.0, gives_up=lambda: False):
        self.begun.set()
        eventually(gives_up)
        raise Unreachable("no ZooKeeper server answered")


@pytest.mark.parametrize("session", [LateSession, SilentSession])
def test_a_node_that_waits_for_zookeeper_can_be_stopped(session, monkeypatch):
    monkeypatch.setattr(LateSession, "failures", 1 << 30)
    world = World()
    with world.process("n1", Engine(LOAD), session=session):
        if session is SilentSession:
            assert session.begun.wait(20)
    assert world.operator.facts().nodes == {}


def test_a_taken_node_id_names_who_has_it(world, caplog):
    other = NodeInfo("n1", "db-host-7", 4711, "", 0.0)
    world.operator.nodes.announce(other)
    with pytest.raises(Conflict, match="'n1' is in use by process 4711 on db-host-7"):
        Session(world.cluster).nodes.announce(NodeInfo("n1", "here", 1, "", 0.0))
    with world.process("n1", Engine(LOAD)):
        eventually(lambda: "node id is in use" in caplog.text)


def running(engine):
    states = [run.progress.figures().state for run in engine.runs]
    return states == [RunState.RUNNING]


def test_both_kinds_partition_a_cluster(world):
    loading, relaying = Engine(LOAD), Engine(RELAY)
    with world.process("n1", loading), world.process("r1", relaying):
        eventually(lambda: running(loading) and running(relaying))
        assert world.leaders() == {TO_SEARCH: "n1", TO_KAFKA: "r1"}
        assert [run.ident for run in loading.runs] == [("shop", "to-search")]
        assert [run.ident for run in relaying.runs] == [("shop", "to-kafka")]
        nodes = world.operator.facts().nodes
        assert {nid: node.serves for nid, node in nodes.items()} == {
            "n1": (LOAD,), "r1": (RELAY,),
        }  # fmt: skip
        status = world.ask("r1", "/status")
        assert status["serves"] == [RELAY]
        assert [p["pipeline"] for p in status["pipelines"]] == ["to-kafka"]

        def seen_by_both():
            for nid in ("n1", "r1"):
                pipelines = world.ask(nid, "/cluster")["pipelines"]
                leaders = {p["pipeline"]: p["leader"] for p in pipelines}
                assert leaders == {"shop/to-kafka": "r1", "shop/to-search": "n1"}
            return True

        eventually(seen_by_both)


def test_a_node_without_the_secret_leaves_the_lead_to_the_one_that_has_it(world):
    secret = {**SHOP["pipelines"][1], "source": {**SOURCE, "password": "${SECRET}"}}
    world.operator.channels.put("shop", {**SHOP, "pipelines": [SHOP["pipelines"][0], secret]})
    lacking, having = Engine(LOAD), Engine(LOAD)
    why = "the environment variable SECRET is not set (pipelines[1].source.password)"
    with world.process("n1", lacking):
        eventually(lambda: "n1" in world.operator.facts().nodes)
        eventually(lambda: world.operator.facts().nodes["n1"].not_ready.get(TO_SEARCH) == why)

        def said():
            seen = {p["pipeline"]: p for p in world.ask("n1", "/cluster")["pipelines"]}
            assert seen["shop/to-search"]["missing"] == f"has no node that can lead it: n1: {why}"
            return True

        eventually(said)
        (line,) = world.ask("n1", "/status")["pipelines"]
        assert (line["leader"], line["not_ready"]) == ("", why)
        assert (line["figures"]["state"], line["figures"]["error"]) == ("failed", why)
        with pytest.raises(urllib.error.HTTPError) as refused:
            world.ask("n1", "/standby/shop/to-search")
        assert why in json.load(refused.value)["error"]
        with world.process("n2", having, environment={"SECRET": "x"}):
            eventually(lambda: running(having))
            assert world.leaders() == {TO_SEARCH: "n2"}
            eventually(
                lambda: world.ask("n1", "/status")["pipelines"][0]["figures"]["state"] == "standby"
            )
    assert not lacking.runs


def test_a_vacancy_is_taken_when_it_is_due_not_a_cycle_later(world):
    engine = Engine(LOAD)
    # Whoever waits for the next cycle waits for longer than the test.
    with world.process("n1", engine, cycle=600):
        eventually(lambda: running(engine))


def test_stopping_drains_and_gives_the_leadership_up(world):
    engine = Engine(RELAY)
    with world.process("r1", engine):
        eventually(lambda: running(engine))
    assert engine.runs[0].reported[-1] == "stop"
    assert world.leaders() == {}
    assert "r1" not in world.operator.facts().nodes
    assert engine.said == ["start", "stop"]


def test_an_engine_that_is_lost_ends_the_process_with_its_error(world):
    engine = Engine(LOAD)
    with world.process("n1", engine) as process:
        eventually(lambda: running(engine))
        engine.lost(FatalError("the JVM is gone"))
        eventually(lambda: [error.message for error in process.failures] == ["the JVM is gone"])
        assert world.leaders() == {}


def test_an_engine_that_ends_with_the_process_is_no_failure(world):
    engine = Engine(LOAD)
    with world.process("n1", engine) as process:
        eventually(lambda: running(engine))
        process.stop()
        engine.lost(FatalError("the JVM was ended by the same signal"))
    assert process.failures == []


def test_the_relay_engine_leads_relays_with_what_it_is_given(world):
    engine = Engine(RELAY)
    with world.process("r1", RelayEngine(engine.build_run)):
        eventually(lambda: running(engine))
        assert world.leaders() == {TO_KAFKA: "r1"}


def test_a_relay_is_asked_for_no_pipeline_of_another_kind(world):
    MemoryArbiter(world.cluster).nodes.announce(NodeInfo("n1", serves=(LOAD,)))
    with world.process("r1", Engine(RELAY)):
        eventually(lambda: TO_KAFKA in world.leaders())
        assert TO_SEARCH not in world.leaders()


def test_a_relay_process_imports_no_spark():
    # In a process of its own: others of this one have imported everything.
    modules = "setl.cli.main, setl.node.process, setl.node.engines.engine, setl.run.relay.assembly"
    unwanted = "{'pyspark', 'py4j'}"
    script = f"import sys, {modules}; print(sorted({unwanted} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=280, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_exception_in_one_cycle_does_not_end_a_node(world, monkeypatch, caplog):
    engine = Engine(LOAD)
    with world.process("n1", engine) as process:
        eventually(lambda: running(engine))
        looks = []

        def fail():
            looks.append(1)
            raise OverflowError("int too large")

        with monkeypatch.context() as broken:
            broken.setattr(process._arbiter, "facts", fail)
            eventually(lambda: len(looks) > 3)
            assert process.status().problem == "unexpected OverflowError: int too large"
            assert running(engine)  # a moment of blindness costs nothing
        eventually(lambda: not process.status().problem)
        assert running(engine)
    failed = [record for record in caplog.records if record.message == "a cycle failed"]
    assert len(failed) == 1
    assert failed[0].exc_info


def test_a_refusal_is_reported_of_once_although_nothing_answers_in_between(
    world, monkeypatch, caplog
):
    """Credentials that were changed: each new session is refused, and then there is none."""
    # A node that leads something is not announced again before that has ended.
    change_state(world.operator, "shop", ChannelState.STOP)
    with world.process("n1", Engine(LOAD)) as process:
        # Refused before it has joined, it would end.
        eventually(lambda: process._snapshot is not None)
        asked = []

        def refuse(info):
            asked.append(info)
            if len(asked) % 2:
                raise Denied("ZooKeeper refuses the credentials")
            raise Unreachable("there is no connection now")

        with monkeypatch.context() as broken:
            broken.setattr(process._arbiter.session, "contact", lambda: Contact.LOST)
            broken.setattr(process._arbiter.nodes, "announce", refuse)
            eventually(lambda: len(asked) > 6)
            assert process.status().problem == "ZooKeeper refuses the credentials"
        eventually(lambda: not process.status().problem)
    failed = [record for record in caplog.records if record.message == "a cycle failed"]
    assert len(failed) == 1
    assert not failed[0].exc_info


def test_a_silent_session_is_lost_in_what_a_node_says_of_itself_too(world, monkeypatch):
    """`/health` said "lost", and the console and the metrics "suspended"."""
    with world.process("n1", Engine(LOAD)) as process:
        eventually(lambda: process.status().contact == "connected")
        monkeypatch.setattr(process._arbiter.session, "contact", lambda: Contact.SUSPENDED)
        assert process.status().contact == "suspended"
        monkeypatch.setattr(process._arbiter.session, "last_contact", lambda: -math.inf)
        assert process.status().contact == "lost"


@contextmanager
def ending_connections(listening):
    """Whoever connects sees that somebody lives there."""

    def end():
        with suppress(OSError):
            while True:
                listening.accept()[0].close()

    thread = threading.Thread(target=end)
    thread.start()
    try:
        yield
    finally:
        listening.shutdown(socket.SHUT_RDWR)  # wakes `accept`, as closing does not
        listening.close()
        thread.join()


def test_a_node_looks_at_every_server_of_zookeeper(world, monkeypatch):
    monkeypatch.setattr("setl.node.ensemble_watch._EVERY_SECONDS", 0.05)
    listening, closed = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in (listening, closed)]
    closed.close()
    at = ",".join(addresses)
    with ending_connections(listening), world.process("n1", Engine(LOAD), at=at) as process:
        seen = (ServerSeen(addresses[0], True), ServerSeen(addresses[1], False))
        eventually(lambda: process.status().zookeeper == seen)
        reported = [{"address": e.address, "answers": e.answers, "refused": ""} for e in seen]
        for page in ("/status", "/cluster"):
            assert world.ask("n1", page)["zookeeper"] == reported


def test_a_node_that_stays_blind_gives_its_leaderships_up(world, monkeypatch):
    engine = Engine(LOAD)
    with world.process("n1", engine) as process:
        eventually(lambda: running(engine))
        monkeypatch.setattr(process, "_settings", replace(process._settings, session_timeout=0.3))

        def fail():
            raise RecursionError("too deep")

        monkeypatch.setattr(process._arbiter, "facts", fail)
        eventually(lambda: world.leaders() == {})
        assert engine.runs[0].reported[-1] == "stop"


def test_garbage_in_the_own_znode_is_written_over(world, caplog):
    engine = Engine(LOAD)
    with world.process("n1", engine):
        eventually(lambda: running(engine))
        (node,) = world.operator.nodes.all()
        znodes = world.operator._znodes
        znodes.write(
            "/setl/nodes/n1", b'{"pid": 1%s}' % (b"0" * 400), znodes.read("/setl/nodes/n1").version
        )
        eventually(lambda: world.operator.nodes.all() == [node])
        assert running(engine)
    said = [r.setl for r in caplog.records if r.message == "znode cannot be read"]
    assert {line["znode"] for line in said} <= {"/setl/nodes/n1"}


def test_an_engine_is_reported_which_channels_there_are(world):
    """Before it starts, so that a node is warm for what is there; and of what comes later."""

    class Asking(Engine):
        def start(self, lost, stopping):
            super().start(lost, stopping)
            self.at_start = list(self.known)

    engine = Asking(LOAD)
    with world.process("n1", engine):
        eventually(lambda: engine.said)
        assert engine.at_start == ["shop"]
        world.operator.channels.put("more", {**SHOP, "channel": "more"})
        eventually(lambda: sorted(engine.known) == ["more", "shop"])


def test_an_engine_that_cannot_start_leaves_nothing_behind(world):
    class Broken(Engine):
        def start(self, lost, stopping):
            raise FatalError("the JVM ended before it was ready")

    engine = Broken(LOAD)
    with world.process("n1", engine) as process:
        eventually(lambda: process.failures)
        assert process.failures[0].message == "the JVM ended before it was ready"
        # Not after the session timeout: the session was ended.
        assert world.operator.nodes.all() == []
        assert engine.said == ["stop"]
