"""What a request to change the leader means for each node. Pure, like the election.

A switchover takes this way: the leader that it was meant for finishes what it is loading and
steps down; the node that was named campaigns at once while all others wait; as the new leader it
answers the request. So the answer is given by whoever leads in the end, and a request that its
leader did not live to carry out is answered too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from arbiter.turns import Preference
from arbiter.values import (
    ChannelState,
    LeaderLock,
    NodeInfo,
    PipelineId,
    Signal,
    SignalKind,
    SignalState,
)

HANDOVERS = frozenset((SignalKind.SWITCHOVER, SignalKind.FAILOVER))

EARLY = 5.0
"""Seconds before its time at which a scheduled request counts in a vacancy. The clocks of two
nodes differ; the one that drained by its own clock must not wait for one that is behind."""


class Answer(NamedTuple):
    """What a leader says to a request."""

    signal: Signal
    state: SignalState
    text: str


def open_handovers(signals: Iterable[Signal]) -> list[Signal]:
    """The requests to change the leader that nobody has answered, oldest first."""
    return [s for s in signals if s.kind in HANDOVERS and s.state is SignalState.PENDING]


def handover_in_vacancy(signals: Iterable[Signal], now: float) -> Signal | None:
    """The request that says who leads next, while nobody does; `now` is wall-clock time."""
    return next((s for s in open_handovers(signals) if s.at <= now + EARLY), None)


def handover_due(signals: Iterable[Signal], leader_lock: LeaderLock, now: float) -> Signal | None:
    """The request that a leader is to carry out now; `now` is wall-clock time."""
    due = (s for s in open_handovers(signals) if s.at <= now and s.epoch == leader_lock.epoch)
    return next(due, None)


def answers(
    signals: Iterable[Signal],
    leader_lock: LeaderLock,
    *,
    state: ChannelState | None,
    nodes: Mapping[str, NodeInfo],
    preference: Preference,
    now: float,
    pipeline: PipelineId | None = None,
) -> list[Answer]:
    """What the leader `leader_lock` answers to open requests.

    Those it will carry out get none yet.
    """
    found: list[Answer] = []
    for signal in open_handovers(signals):
        if signal.epoch < leader_lock.epoch:
            found.append(_answer_afterwards(signal, leader_lock, now))
            continue
        why = objection(
            signal,
            leader_lock.nid,
            state=state,
            nodes=nodes,
            preference=preference,
            pipeline=pipeline,
        )
        if why and signal.at <= now:
            found.append(Answer(signal, SignalState.REFUSED, why))
    return found


def _answer_afterwards(signal: Signal, leader_lock: LeaderLock, now: float) -> Answer:
    """The answer to a request that was meant for an earlier leadership."""
    leads = f"{leader_lock.nid} leads, {leader_lock.leadership}"
    if signal.at > now + EARLY:
        text = f"dropped before its time, since the leader has changed: {leads}"
        return Answer(signal, SignalState.REFUSED, text)
    wanted = signal.to == leader_lock.nid if signal.to else leader_lock.nid != signal.leader
    if wanted:
        return Answer(signal, SignalState.DONE, leads)
    missed = f"{signal.to} did not take over" if signal.to else "no other node took over"
    return Answer(signal, SignalState.REFUSED, f"{leads}: {missed}")


def objection(
    signal: Signal,
    leader: str,
    *,
    state: ChannelState | None,
    nodes: Mapping[str, NodeInfo],
    preference: Preference,
    pipeline: PipelineId | None = None,
) -> str:
    """Why a request to change the leader cannot be carried out; "" if it can.

    Asked by whoever sends it, so that a mistake is told at once, and by the leader when it is
    due, since a node may have gone meanwhile.
    """
    if state is None or state is ChannelState.STOP:
        return "the channel is stopped" if state else "the channel is gone"
    if state is ChannelState.PAUSE and signal.kind is SignalKind.SWITCHOVER:
        return "the channel is paused"
    if not signal.to:
        ready = (
            n for n in nodes.values() if n.ready and n.nid != leader and pipeline not in n.not_ready
        )
        able = any(not preference.why_never(n.nid, n.serves) for n in ready)
        return "" if able else "no other node is ready to lead"
    if signal.to == leader:
        return f"node {leader} leads already"
    return _objection_to(signal.to, nodes, preference, pipeline)


def _objection_to(
    nid: str,
    nodes: Mapping[str, NodeInfo],
    preference: Preference,
    pipeline: PipelineId | None,
) -> str:
    node = nodes.get(nid)
    if node is None:
        known = ", ".join(sorted(nodes)) or "none"
        return f"there is no live node {nid}; live: {known}"
    why = preference.why_never(nid, node.serves)
    if why:
        return f"node {nid} never leads this pipeline: {why}"
    lacks = node.not_ready.get(pipeline) if pipeline is not None else ""
    if lacks:
        return f"node {nid} cannot lead this pipeline: {lacks}"
    return "" if node.ready else f"node {nid} is not warm yet"
