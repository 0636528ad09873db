"""A node reduced to its HTTP interface, and a client that sees what really goes over the wire."""

import http.client
import json
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry

from arbiter.snapshot import look
from arbiter.values import EVERYTHING, ChannelState, Facts, NodeInfo, PipelineId
from setl.node.console.console import ConsoleSettings
from setl.node.http.connections import Limits
from setl.node.http.exposure import Exposure
from setl.node.http.server import NodeContext, NodeHttp
from setl.node.metrics import NodeCollector
from setl.node.status import NodeStatus, PipelineStatus
from setl.node.stored import preference_of
from setl.run.measured.figures import Figures, RunState
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster

TOKEN = "open-sesame-4711"
THERE = PipelineId("shop", "there")
BACK = PipelineId("shop", "back")
SEARCH = PipelineId("search", "there")
SHOP = {"pipelines": [{"name": "there"}, {"name": "back", "nodes": {"weights": {"n3": 0}}}]}

WRITING = [
    ("POST", "/switchover", {"pipeline": "shop/there"}),
    ("DELETE", "/switchover", {"pipeline": "shop/there"}),
    ("POST", "/failover", {"pipeline": "shop/there"}),
    ("POST", "/pause", {"channel": "shop"}),
    ("POST", "/resume", {"channel": "shop"}),
]


@dataclass
class Reply:
    code: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Node:
    """`cluster.clock` stands still, so every age and deadline is exact."""

    nid: str = "n1"
    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    warm: bool = True
    last_cycle: float | None = 1000.0
    answered: float | None = None
    token: str = TOKEN
    serves: tuple[str, ...] = EVERYTHING
    call_seconds: float = 5.0
    console: bool = True
    environment: dict[str, str] = field(default_factory=dict)
    exposure: Exposure = field(default_factory=Exposure)
    limits: Limits = field(default_factory=Limits)
    figures: dict[PipelineId, Figures] = field(default_factory=dict)
    snapshot = None
    server = None

    def __post_init__(self):
        self.arbiter = MemoryArbiter(self.cluster)
        self.operator = MemoryArbiter(self.cluster)
        for name, definition in (("shop", SHOP), ("search", {"pipelines": [{"name": "there"}]})):
            channel = self.operator.channels.put(name, definition)
            self.operator.channels.set_state(channel, ChannelState.START)
        for nid, arbiter, serves in (
            (self.nid, self.arbiter, self.serves),
            ("n2", self.operator, EVERYTHING),
        ):
            arbiter.nodes.announce(NodeInfo(nid, http=f"http://{nid}", ready=True, serves=serves))
        self.look()

    def lead(self, pipeline=THERE, **figures):
        """This node leads, and has seen that it does."""
        self.arbiter.leader_locks.campaign(pipeline, self.nid)
        self.figures[pipeline] = Figures(**{"state": RunState.RUNNING, "lag": 1.5, **figures})
        return self.look()

    def look(self):
        self.snapshot = look(self.arbiter, self.cluster.clock, self.snapshot)
        return self

    def status(self):
        facts = self.snapshot.facts if self.snapshot else Facts()
        session = self.snapshot.session if self.snapshot else 0
        lines = []
        for channel in facts.channels.values():
            for raw in channel.definition["pipelines"]:
                pipeline = PipelineId(channel.name, raw["name"])
                if not preference_of(channel, pipeline.pipeline).served_by(self.serves):
                    continue
                held = facts.leader_locks.get(pipeline)
                lines.append(
                    PipelineStatus(
                        channel=channel.name,
                        pipeline=pipeline.pipeline,
                        leader=held.nid if held else "",
                        epoch=held.epoch if held else 0,
                        mine=bool(held and held.session == session),
                        decision="decided by the test",
                        figures=self.figures.get(pipeline, Figures()),
                    )
                )
        contact = self.arbiter.session.contact().value
        return NodeStatus(self.nid, "0", contact, self.warm, 0.0, tuple(lines), self.serves)

    # -- over the wire ----------------------------------------------------------------------

    def serve(self):
        registry = CollectorRegistry()
        registry.register(NodeCollector(self.status))
        inside = NodeContext(
            status=self.status,
            snapshot=lambda: self.snapshot,
            last_cycle=lambda: self.last_cycle,
            engine_answered=lambda: self.answered,
            arbiter=self.arbiter,
            clock=self.cluster.clock,
            registry=registry,
        )
        self.server = server = NodeHttp(
            "127.0.0.1",
            0,
            inside,
            nid=self.nid,
            token=self.token,
            call_seconds=self.call_seconds,
            console=ConsoleSettings(environment=self.environment) if self.console else None,
            exposure=self.exposure,
            limits=self.limits,
        )
        server.start()
        return server

    def ask(self, method, path, body=None, *, headers=None, token=None, timeout=20):
        server = self.server or self.serve()
        host, port = server.address.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, raw, sent)
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, body, **options):
        return self.ask("POST", path, body, **{"token": TOKEN, **options})

    def close(self):
        if self.server is not None:
            self.server.stop()


@pytest.fixture
def node():
    """A node that leads a pipeline, and answers over HTTP."""
    node = Node()
    node.lead()
    yield node
    node.close()
