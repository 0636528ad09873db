"""The view of the cluster that all showing commands and the console share."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from arbiter.arbiter import Arbiter
from arbiter.handover import open_handovers
from arbiter.turns import Preference, queue_for
from arbiter.values import (
    ChannelState,
    Facts,
    HistoryItem,
    NodeInfo,
    PipelineId,
    Signal,
    SignalKind,
    leadership_words,
)
from setl.error_text import HIDDEN, public
from setl.node.cluster.answers import ask_nodes, reports_of
from setl.node.roles import hopeless, unserved
from setl.node.stored import pipelines_of, preference_of

NO_ANSWER = "no answer"
NO_LEADER = "no leader"

_IDLE = {
    ChannelState.START: NO_LEADER,
    ChannelState.PAUSE: "paused",
    ChannelState.STOP: "stopped",
}


@dataclass(frozen=True, slots=True)
class Standby:
    """A node that does not lead a pipeline.

    Attributes:
        node: its nid.
        warm: whether it could take over at once.
        rank: its position among those that would take over, from 1; 0 if it would not.
        preferred: whether the channel file prefers it.
        never: why it must not lead, as the end of a sentence; "" if it may.
        not_ready: what it is missing to lead this pipeline; "" if nothing.
    """

    node: str
    warm: bool
    rank: int = 0
    preferred: bool = False
    never: str = ""
    not_ready: str = ""


@dataclass(frozen=True, slots=True)
class PipelineView:
    """One pipeline.

    Attributes:
        ident: its full name.
        channel_state: what the operator wants of its channel.
        leader: nid of whoever leads it, "" if nobody does.
        epoch: of that leadership, None if there is none.
        number: of that leadership, see `arbiter.values.LeaderLock`; 0 if it has none.
        state: what the leader says it is doing; `NO_ANSWER` or `NO_LEADER` in words.
        figures: the leader's figures as its HTTP interface gives them, empty without an answer.
        memory: what the processes of the leader's node hold, likewise.
        decisions: what each node that answers has decided last, by nid.
        standbys: the other nodes that serve this kind of pipeline, in the order in which they
            would take over.
        handovers: open requests to change the leader, oldest first.
        missing: what is missing if no live node serves this kind, or each that does lacks
            something for this pipeline, as the end of a sentence.
        hopeless: whether it is the latter, which waiting does not fix.
    """

    ident: PipelineId
    channel_state: ChannelState
    leader: str = ""
    epoch: int | None = None
    number: int = 0
    state: str = NO_LEADER
    figures: Mapping[str, Any] = field(default_factory=dict[str, Any])
    memory: Mapping[str, int] = field(default_factory=dict[str, int])
    decisions: Mapping[str, str] = field(default_factory=dict[str, str])
    standbys: Sequence[Standby] = ()
    handovers: Sequence[Signal] = ()
    missing: str = ""
    hopeless: bool = False

    @property
    def leadership(self) -> str:
        """That leadership in words."""
        return leadership_words(self.number, self.epoch)

    @property
    def waits_for(self) -> str:
        """What its source waits for; "" if for nothing, or if the stall tells it already."""
        waiting = str(self.figures.get("waiting_for") or "")
        return "" if waiting in str(self.figures.get("stalled") or "") else waiting


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Nodes and pipelines at one time.

    Attributes:
        at: when, seconds since 1970 UTC.
        facts: what the arbiter knows.
        answers: each live node's status by nid, None if it does not answer.
        pipelines: all pipelines, by channel and then in the order of its file.
    """

    at: float
    facts: Facts
    answers: Mapping[str, Mapping[str, Any] | None]
    pipelines: Sequence[PipelineView]

    def pipeline(self, ident: PipelineId) -> PipelineView:
        """One pipeline; one that is not in any channel file (any more) has no leader."""
        for view in self.pipelines:
            if view.ident == ident:
                return view
        return PipelineView(ident, ChannelState.STOP)

    def pipelines_led(self, nid: str) -> int:
        """How many pipelines a node leads."""
        return sum(lock.nid == nid for lock in self.facts.leader_locks.values())


def look_at(arbiter: Arbiter, channel: str = "") -> ClusterView:
    """Look at the whole cluster, or at the pipelines of one channel."""
    facts = arbiter.facts()
    return view_of(facts, ask_nodes(facts.nodes.values()), time.time(), channel)


def public_look(arbiter: Arbiter) -> ClusterView:
    """Look at the whole cluster as somebody does who may not read the texts of errors."""
    facts = public_facts(arbiter.facts())
    return view_of(facts, ask_nodes(facts.nodes.values(), whole=False), time.time())


def view_of(
    facts: Facts,
    answers: Mapping[str, Mapping[str, Any] | None],
    at: float,
    channel: str = "",
) -> ClusterView:
    """Put together what the arbiter knows and what the nodes have answered. Pure.

    Args:
        facts: what the arbiter knows.
        answers: each live node's status by nid, None if it does not answer.
        at: when, seconds since 1970 UTC.
        channel: only the pipelines of this channel; "" for all.
    """
    seen = _Seen(
        facts,
        answers,
        {nid: reports_of(answer) for nid, answer in answers.items()},
        Counter(leader_lock.nid for leader_lock in facts.leader_locks.values()),
    )
    pipelines = [
        _pipeline_view(seen, ident)
        for name, stored in sorted(facts.channels.items())
        if not channel or name == channel
        for ident in pipelines_of(stored)
    ]
    return ClusterView(at, facts, answers, pipelines)


class _Seen(NamedTuple):
    """What the views of all pipelines are made of.

    Attributes:
        facts: what the arbiter knows.
        answers: each live node's status by nid, None if it does not answer.
        reports: what these say of each pipeline.
        leads: how many pipelines each node leads.
    """

    facts: Facts
    answers: Mapping[str, Mapping[str, Any] | None]
    reports: Mapping[str, Mapping[tuple[str, str], dict[str, Any]]]
    leads: Counter[str]


def _pipeline_view(seen: _Seen, ident: PipelineId) -> PipelineView:
    facts, name = seen.facts, (ident.channel, ident.pipeline)
    channel = facts.channels[ident.channel]
    leader_lock = facts.leader_locks.get(ident)
    preference = preference_of(channel, ident.pipeline)
    decisions = {
        nid: str(report.get("decision", ""))
        for nid, reports in seen.reports.items()
        if (report := reports.get(name))
    }
    view = PipelineView(
        ident,
        channel.state,
        state=_IDLE[channel.state],
        decisions=decisions,
        standbys=_standbys(seen, ident, preference),
        handovers=open_handovers(facts.signals.get(ident, ())),
        missing=unserved(preference, facts.nodes.values(), ident),
        hopeless=hopeless(preference, facts.nodes.values(), ident),
    )
    if leader_lock is None:
        return view
    report = seen.reports.get(leader_lock.nid, {}).get(name, {})
    figures: dict[str, Any] = report.get("figures", {})
    return replace(
        view,
        leader=leader_lock.nid,
        epoch=leader_lock.epoch,
        number=leader_lock.number,
        state=str(figures.get("state", NO_ANSWER)),
        figures=figures,
        memory=(seen.answers.get(leader_lock.nid) or {}).get("memory", {}),
    )


def _standbys(seen: _Seen, ident: PipelineId, preference: Preference) -> list[Standby]:
    """The nodes that could lead a pipeline and do not, the first to take over first.

    The order is that of a vacancy in this pipeline alone, with its leader's node gone from it.
    """
    leader = seen.facts.leader_locks.get(ident)
    others = {
        nid: node
        for nid, node in seen.facts.nodes.items()
        if preference.served_by(node.serves) and not (leader and nid == leader.nid)
    }
    # That the leader's own count holds this pipeline changes nothing: it is not among the others.
    ready = [node for node in others.values() if node.ready]
    queue = queue_for(ident, ready, seen.leads, preference)
    waiting = sorted(set(others) - set(queue))
    return [_standby(ident, others[nid], queue, preference) for nid in (*queue, *waiting)]


def _standby(
    ident: PipelineId, node: NodeInfo, queue: Sequence[str], preference: Preference
) -> Standby:
    return Standby(
        node=node.nid,
        warm=node.ready,
        rank=queue.index(node.nid) + 1 if node.nid in queue else 0,
        preferred=node.nid in preference.prefer,
        never=preference.why_never(node.nid, node.serves),
        not_ready=node.not_ready.get(ident, ""),
    )


def moment(seconds: float | None) -> str:
    """A time for people and programs: ISO 8601 with the local offset, to the second."""
    if seconds is None:
        return ""
    local = time.localtime(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", local)


def handover_sentence(ident: PipelineId, signal: Signal) -> str:
    """An open request to change the leader, in words."""
    way = f"{signal.leader or 'nobody'} → {signal.to or 'whoever is next'}"
    what = "Switchover" if signal.kind is SignalKind.SWITCHOVER else "Failover"
    when = f"scheduled at {moment(signal.at)}" if signal.at else "under way"
    return f"{what} of {ident} {when}: {way} (asked for by {signal.by or 'somebody'})"


def history_row(ident: PipelineId, item: HistoryItem) -> dict[str, Any]:
    """A past leadership under stable names."""
    return {
        "pipeline": str(ident),
        "leadership": item.number or None,
        "epoch": item.epoch,
        "node": item.nid,
        "reason": item.reason,
        "at": moment(item.at),
        "outage": item.outage,
        "outage_least": item.outage_least,
        "redelivered": item.redelivered,
        "error": item.error,
    }


def public_facts(facts: Facts) -> Facts:
    """What the arbiter knows, as anybody may read it."""
    nodes, channels = facts.nodes, facts.channels
    if any(node.not_ready for node in nodes.values()):
        nodes = {
            nid: replace(node, not_ready=dict.fromkeys(node.not_ready, HIDDEN))
            for nid, node in nodes.items()
        }
    if any(channel.damage for channel in channels.values()):
        channels = {
            name: replace(channel, damage=public(channel.damage))
            for name, channel in channels.items()
        }
    damaged = dict.fromkeys(facts.damaged, f"cannot be read; {HIDDEN}")
    if nodes is facts.nodes and channels is facts.channels and not damaged:
        return facts
    return replace(facts, nodes=nodes, channels=channels, damaged=damaged)
