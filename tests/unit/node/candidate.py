"""A node with one pipeline controller, over an arbiter in memory.

Its runs note what they are told.
"""

import threading

from arbiter.campaign import Campaign
from arbiter.election import ElectionSettings
from arbiter.snapshot import look
from arbiter.values import NodeInfo, PipelineId
from setl.node.leading.pipeline_controller import PipelineController
from setl.run.measured.figures import RunState
from tests.arbiter_in_memory import MemoryArbiter
from tests.unit.node.noted_run import NotedRun
from tests.waiting import eventually

PIPELINE = PipelineId("shop", "there")


RULES = ElectionSettings(takeover_delay=0.5, hold_off=5.0)


class Node:
    def __init__(self, cluster, nid="n1", missing_for=lambda _: ""):
        self.clock = cluster.clock
        self.arbiter = MemoryArbiter(cluster)
        self.arbiter.nodes.announce(NodeInfo(nid, ready=True))
        self.nid = nid
        self.runs = []
        self.builds = 0
        self.build_failure: Exception | None = None
        self.may_build = threading.Event()
        self.may_build.set()
        self.snapshot = None
        self.controller = PipelineController(
            PIPELINE,
            nid=nid,
            arbiter=self.arbiter,
            campaign=Campaign(self.arbiter, PIPELINE, nid, RULES, cluster.clock),
            build=self.build,
            clock=cluster.clock,
            wake=lambda: None,
            missing_for=missing_for,
        )

    def build(self, epoch, progress):
        self.builds += 1
        self.may_build.wait(60)
        if self.build_failure:
            raise self.build_failure
        self.runs.append(NotedRun(epoch, progress))
        return self.runs[-1]

    def tick(self):
        self.snapshot = look(self.arbiter, self.clock, self.snapshot)
        self.controller.tick(self.snapshot, warm=True, rank=0)

    def idle(self):
        eventually(lambda: not self.controller.busy)

    def tell_others(self):
        not_ready = self.controller.not_ready
        missing_for = {PIPELINE: not_ready} if not_ready else {}
        self.arbiter.nodes.announce(NodeInfo(self.nid, ready=True, not_ready=missing_for))

    @property
    def state(self):
        return self.controller.status().figures.state


def leading(cluster, node):
    node.tick()
    cluster.advance(0.5)
    node.tick()
    eventually(lambda: len(node.runs) == 1 and node.runs[0].epoch)
    eventually(lambda: node.state is RunState.RUNNING)
    return node.runs[0]


def answer(operator):
    signal = operator.signals.all(PIPELINE)[-1]
    return signal.state, signal.answer


def leading_nothing(cluster, node):
    node.tick()
    cluster.advance(0.5)
    node.tick()
    eventually(lambda: node.state is RunState.FAILED)
    node.idle()
