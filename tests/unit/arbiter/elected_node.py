"""A node reduced to its election, over an arbiter in memory."""

from arbiter.campaign import Campaign
from arbiter.election import Action, ElectionSettings
from arbiter.snapshot import look
from arbiter.turns import ANY
from arbiter.values import EVERYTHING, NodeInfo, PipelineId
from tests.arbiter_in_memory import MemoryArbiter

PIPELINE = PipelineId("shop", "there")


RULES = ElectionSettings(takeover_delay=0.5, hold_off=5.0, margin=0.2)


class Node:
    """A node reduced to its election: something runs on it while it was last told to lead."""

    def __init__(self, cluster, nid, preference=ANY, serves=EVERYTHING):
        self.nid = nid
        self.arbiter = MemoryArbiter(cluster)
        self.link = self.arbiter.link
        self.clock = cluster.clock
        self.campaign = Campaign(
            self.arbiter, PIPELINE, nid, RULES, cluster.clock, preference=preference, serves=serves
        )
        self.arbiter.nodes.announce(NodeInfo(nid, ready=True, serves=serves))
        self.snapshot = None
        self.busy = False
        self.epochs = []

    def look(self):
        self.snapshot = look(self.arbiter, self.clock, self.snapshot)
        return self.snapshot

    def cycle(self, *, ready=True, burnt_epoch=0, rank=0):
        state = self.campaign.cycle(
            self.look(), busy=self.busy, ready=ready, burnt_epoch=burnt_epoch, rank=rank
        )
        action = state.decision.action
        if action is Action.LEAD and not self.busy:
            assert state.leader_lock is not None
            self.busy = True
            self.epochs.append(state.leader_lock.epoch)
        elif action in (Action.ABORT, Action.DRAIN, Action.HOLD):
            self.busy = False
        return state

    def act(self, **options):
        return self.cycle(**options).decision.action


def set_state(arbiter, state):
    arbiter.channels.set_state(arbiter.channels.one("shop"), state)


def lead(cluster, node, *others):
    """Let `node` become the leader, and the others see it."""
    node.cycle()
    cluster.advance(0.5)
    assert node.act() is Action.LEAD
    for other in others:
        assert other.act() is Action.FOLLOW
