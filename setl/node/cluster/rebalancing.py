"""What a rebalance would do now: which leaderships to hand over, and which have to stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arbiter.arbiter import Arbiter
from arbiter.balancing import Move, moves
from arbiter.errors import Invalid
from arbiter.values import ChannelState, Facts, PipelineId
from setl.errors import SetlError
from setl.node.cluster.view import ClusterView, PipelineView
from setl.node.stored import preference_of
from setl.operate.cutover.steps import CutOver, Step
from setl.operate.units import duration
from setl.run.table_loads.requests import StoredLoadRequests

FAR_BEHIND = 10.0
"""Seconds of lag from which a pipeline is catching up, and is left alone."""

_LOADS = ("reading", "catching up", "paused")


@dataclass(frozen=True, slots=True)
class Rebalance:
    """What is to be done.

    Attributes:
        moves: the switchovers, in their order.
        stays: pipelines that are led and must not move now, and why, for people.
        closed: nodes that get nothing, and why, for people.
        before: how many pipelines each live node leads.
        after: how many it would lead.
    """

    moves: Sequence[Move]
    stays: Mapping[PipelineId, str]
    closed: Mapping[str, str]
    before: Mapping[str, int]
    after: Mapping[str, int]


def rebalance(arbiter: Arbiter, view: ClusterView, at_most: int | None = None) -> Rebalance:
    """What spreads the load again. Changes nothing.

    Args:
        arbiter: is asked for what pipelines have in hand.
        view: of the whole cluster.
        at_most: how many moves there may be, None for as many as it takes.
    """
    facts = view.facts
    led = [pipeline for pipeline in view.pipelines if pipeline.leader]
    stays = {pipeline.ident: why for pipeline in led if (why := why_stays(arbiter, pipeline))}
    known = {pipeline.ident for pipeline in led}
    for ident in facts.leader_locks:
        if ident not in known:
            stays[ident] = "its channel does not name it"
    closed = {nid: why for nid in facts.nodes if (why := why_closed(view, nid))}
    planned = moves(
        facts,
        {
            each.ident: preference_of(facts.channels[each.ident.channel], each.ident.pipeline)
            for each in led
        },
        stay=stays,
        closed=closed,
        at_most=at_most,
    )
    before = leads_of(facts)
    after = dict(before)
    for move in planned:
        after[move.leader] -= 1
        after[move.to] += 1
    return Rebalance(planned, stays, closed, before, after)


def leads_of(facts: Facts) -> dict[str, int]:
    """How many pipelines each live node leads."""
    led = Counter(lock.nid for lock in facts.leader_locks.values())
    return {nid: led[nid] for nid in sorted(facts.nodes)}


def why_closed(view: ClusterView, nid: str) -> str:
    """Why a node is to get nothing, as the end of a sentence about it; "" if it may."""
    node = view.facts.nodes.get(nid)
    if node is None:
        return "is gone"
    if not node.ready:
        return "is not warm yet"
    answer = view.answers.get(nid)
    if answer is None:
        return "does not answer over HTTP"
    contact = answer.get("contact", "connected")
    if contact != "connected":
        return f"has no contact with ZooKeeper ({contact})"
    missing_for = [
        node.not_ready.get(pipeline.ident, "") for pipeline in view.pipelines if pipeline.leader
    ]
    return f"can lead none of these: {missing_for[0]}" if missing_for and all(missing_for) else ""


def why_stays(arbiter: Arbiter, view: PipelineView) -> str:
    """Why a pipeline must not be handed over now, as the end of a sentence; "" if it may."""
    if view.channel_state is not ChannelState.START:
        return f"its channel is set to {view.channel_state.value}"
    if view.handovers:
        kind, at = view.handovers[0].kind.value, view.handovers[0].at
        return f"a {kind} is {'scheduled' if at else 'under way'}"
    if view.state != "running":
        return f"it does not run: {view.state}"
    return _in_hand(arbiter, view.ident) or _by_figures(view)


def _by_figures(view: PipelineView) -> str:
    figures = view.figures
    load: Mapping[str, Any] = figures.get("table_load") or {}
    if load.get("state") in _LOADS:
        return "it loads tables"
    if figures.get("stalled"):
        return f"it is stalled: {figures['stalled']}"
    if figures.get("error"):
        return f"it tries again after an error: {figures['error']}"
    lag = figures.get("lag")
    if lag is None:
        return "how far it is behind is not known yet"
    return f"it is catching up, {duration(lag)} behind" if lag >= FAR_BEHIND else ""


def _in_hand(arbiter: Arbiter, ident: PipelineId) -> str:
    """What operators have asked of a pipeline that is not at its end."""
    try:
        stored = arbiter.cutovers.read(ident)
        cutover = None if stored is None else CutOver.from_json(stored[0])
        loads = StoredLoadRequests(arbiter, ident).unanswered()
    except (SetlError, Invalid) as error:
        return f"what it has in hand cannot be read: {error}"
    if cutover is not None and (cutover.aborting or cutover.step is not Step.DONE):
        return "a cut-over is in hand"
    return "a load of tables is asked for" if loads else ""
