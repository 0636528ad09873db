"""Garbage of many kinds in every znode, on a real ZooKeeper: a node names it and goes on."""

import json
import threading
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from arbiter.election import ElectionSettings
from arbiter.requests import change_state
from arbiter.values import ChannelState, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.cli.main import run
from setl.node.process import NodeProcess
from setl.node.roles import LOAD
from setl.node.settings import NodeSettings
from setl.run.measured.figures import RunState
from tests.integration.pipelines import fresh_name
from tests.unit.node.test_process import SEARCH, SOURCE, Engine
from tests.waiting import eventually

P = PipelineId("good", "p")
GARBAGE = [
    b"",
    b"{",
    b"null",
    b"[1]",
    b"5",
    b"{}",
    b"\xff\xfe\x00\x80" * 100,
    '{"nid": "n1"}'.encode("utf-16"),
    b"[" * 100_000,
    b'{"definition":' + b'{"a":' * 400 + b"1" + b"}" * 400 + b"}",
    b'{"nid": "\\ud800", "state": "START", "definition": {}}',
    b'{"pid": NaN, "base": Infinity, "at": -Infinity}',
    b'{"pid": 1%s, "base": 1%s}' % (b"0" * 400, b"0" * 400),
    b'{"kind": "switchover", "state": "pending", "epoch": 1%s}' % (b"0" * 400),
    b'{"kind": "failover", "state": "pending", "at": 1e999}',
    b'{"kind": ["x"], "state": {}, "nid": [], "base": -1, "definition": 5, "serves": {}}',
    b'{"state": "START", "definition": {"pipelines": [{"name": "a/b"}, 5, {"name": ["x"]}]}}',
    b'{"state": "START", "definition": {"pipelines": [{"name": "p", "nodes": {"weights":'
    b' {"n1": 1%s, "n2": "nan"}, "prefer": [{}]}}]}}' % (b"0" * 400),
    b'{"nid": "%s", "reason": "%s"}' % (b"x" * 400_000, b"y" * 400_000),
]


class World:
    """One channel that is well, one that gets garbage, a node, and an administrator."""

    def __init__(self, zookeeper):
        self.hosts, self.root = zookeeper.hosts, f"/{fresh_name()}"
        self.operator = ZooKeeperArbiter(self.hosts, root=self.root)
        self.operator.start()
        self.zk = KazooClient(self.hosts)
        self.zk.start(30)
        pipelines = [
            {"name": "p", "source": SOURCE, "target": SEARCH, "tables": [{"from": "shop.t"}]}
        ]
        for name in ("good", "bad"):
            self.definition = {"channel": name, "pipelines": pipelines}
            self.operator.channels.put(name, self.definition)
            change_state(self.operator, name, ChannelState.START)
        self.engine = Engine(LOAD)
        rules = ElectionSettings(takeover_delay=0.05, turn_delay=0.1, hold_off=0.1)
        settings = NodeSettings("n1", self.hosts, root=self.root, election=rules, cycle=0.05)
        self.process = NodeProcess(settings, self.engine)
        self.ended = []

    @contextmanager
    def running(self):
        def work():
            try:
                self.process.run()
            except Exception as error:  # noqa: BLE001 - what must not happen
                self.ended.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            eventually(lambda: self.applies("good") and self.applies("bad"), 60)
            yield
            assert not self.ended
            assert thread.is_alive()
        finally:
            self.process.stop()
            thread.join(30)
            self.zk.stop()
            self.zk.close()
            self.operator.close()

    def applies(self, channel):
        """Whether the pipeline of a channel is led, and its run has not ended."""
        for line in self.process.status().pipelines:
            if (line.channel, line.mine) == (channel, True):
                return line.figures.state is RunState.RUNNING
        return False

    def looked(self):
        """Wait until the node has looked at what is there now, twice."""
        for _ in range(2):
            before = self.process._snapshot
            eventually(lambda before=before: self.process._snapshot is not before, 30)

    def put(self, path, data):
        path = f"{self.root}/{path}"
        try:
            self.zk.set(path, data)
        except NoNodeError:
            self.zk.create(path, data, makepath=True)

    def spoil(self, path, data):
        """Write over what the node has made, and may be making again just now: it is its own."""

        def written():
            try:
                self.zk.set(f"{self.root}/{path}", data)
            except NoNodeError:
                return False
            return True

        eventually(written, 30)

    def drop(self, path):
        self.zk.delete(f"{self.root}/{path}", recursive=True)

    def damaged(self):
        return {path.removeprefix(self.root): wrong for path, wrong in self.shown().items()}

    def shown(self):
        """What is damaged now; a client that was there before may learn of it a little later."""
        client = ZooKeeperArbiter(self.hosts, root=self.root)
        client.start()
        try:
            return dict(client.facts().damaged)
        finally:
            client.close()

    def leader(self):
        leader_lock = self.operator.leader_locks.one(P)
        return leader_lock and leader_lock.nid


@pytest.fixture
def world(zookeeper):
    world = World(zookeeper)
    with world.running():
        yield world


def test_garbage_in_every_znode(world, capsys):
    positions = [
        "channels/bad",
        "channels/bad/p/position",
        "channels/worse",
        "channels/good/p/signals/signal-0000000007",
        "channels/good/p/signals/rubbish",
        "channels/good/p/history/item-0000000099",
        "channels/good/rubbish/mainstem",
        "channels/od d/p/mainstem",
        "nodes/ghost",
        "nodes/n\u00f6de",
    ]
    for data in GARBAGE:
        for position in positions:
            world.put(position, data)
        world.looked()
        assert not world.ended, data[:100]
        assert world.process.status().problem == "", data[:100]
        eventually(lambda: world.applies("good"), 30)
        if data != GARBAGE[-2]:
            assert "channels/od d" in "".join(world.damaged())
        for command in ("list", "topology", "history"):
            arguments = [command, "--zookeeper", world.hosts, "--root", world.root]
            assert run([*arguments, "-o", "json"]) == 0, data[:100]
            assert run(arguments) == 0, data[:100]
        capsys.readouterr()
    world.put("channels/bad", b"{")
    assert run(["list", "--zookeeper", world.hosts, "--root", world.root, "-o", "json"]) == 0
    reported = capsys.readouterr().out
    assert f"{world.root}/channels/bad" in reported
    assert "is not JSON" in reported
    assert run(["start", "bad", "--zookeeper", world.hosts, "--root", world.root]) != 0
    capsys.readouterr()
    # Stored again, it runs again.
    world.operator.channels.put("bad", {**world.definition, "channel": "bad"})
    change_state(world.operator, "bad", ChannelState.START)
    eventually(lambda: world.applies("bad"), 30)


def test_garbage_in_the_znodes_of_the_node_itself(world):
    for data in GARBAGE:
        world.spoil("nodes/n1", data)
        world.spoil("channels/good/p/mainstem", data)
        # Written over with what is true, or given up for a leadership that can be read.
        eventually(lambda: not world.damaged(), 30)
        eventually(lambda: world.applies("good"), 30)
        assert world.applies("bad"), data[:100]
        eventually(lambda: world.leader() == "n1", 30)
        assert not world.ended, data[:100]


def test_a_base_of_epochs_that_cannot_be_read_stores_leaders_and_is_named(world):
    epoch = world.operator.leader_locks.one(P).epoch
    for data in (b"rubbish", b'{"base": 1%s}' % (b"0" * 400), b"{}", b""):
        world.put("epoch", data)
        world.looked()
        assert world.applies("good"), data[:100]
        assert set(world.damaged()) == {"/epoch"}, data[:100]
    # No node can take over until somebody says what epochs are to begin with.
    world.operator.leader_locks.depose(P, world.operator.leader_locks.one(P))
    eventually(lambda: "epoch's base cannot be read" in json.dumps(decisions(world)), 30)
    assert world.applies("bad")
    world.operator.epochs.raise_base(10)
    eventually(lambda: world.applies("good"), 30)
    assert world.operator.leader_locks.one(P).epoch > epoch + 9


def decisions(world):
    return [line.decision for line in world.process.status().pipelines]
