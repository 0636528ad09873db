"""The whole cluster and its past, as a node sees it, for programs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arbiter.handover import open_handovers
from arbiter.values import ChannelState, Facts, HistoryItem, NodeInfo, PipelineId, Signal
from setl.node.cluster.naming import known_pipelines
from setl.node.http.probes import Moment
from setl.node.roles import unserved
from setl.node.status import PipelineStatus, as_json
from setl.node.stored import preference_of


def cluster(now: Moment) -> dict[str, Any]:
    """Nodes, channels, pipelines and what is asked of them, from the last look at the cluster.

    Returns:
        JSON values. Of a pipeline that another node leads, what only its leader knows (state,
        position, lag and so on) is null; `/status` of that node has it. Times are seconds since
        1970 UTC.
    """
    facts = now.facts
    lines = {PipelineId(line.channel, line.pipeline): line for line in now.status.pipelines}
    leads = Counter(leader_lock.nid for leader_lock in facts.leader_locks.values())
    pipelines = known_pipelines(facts)
    return {
        "nid": now.status.nid,
        "contact": now.contact.value,
        "seen_at": now.snapshot.now if now.snapshot else None,
        "age": now.age,
        "paused": any(c.state is ChannelState.PAUSE for c in facts.channels.values()),
        "nodes": [_node(node, leads[node.nid]) for node in facts.nodes.values()],
        "channels": [
            {
                "channel": channel.name,
                "state": channel.state.value,
                "paused": channel.state is ChannelState.PAUSE,
                "pipelines": [str(p) for p in pipelines if p.channel == channel.name],
            }
            for channel in facts.channels.values()
        ],
        "pipelines": [_pipeline(p, facts, lines.get(p)) for p in pipelines],
        "damaged": dict(facts.damaged),
        "zookeeper": as_json(now.status)["zookeeper"],
        "scheduled": _scheduled(facts.signals, now.snapshot.now if now.snapshot else 0.0),
    }


def history(items: Mapping[PipelineId, Sequence[HistoryItem]]) -> list[dict[str, Any]]:
    """Past leaderships, pipeline by pipeline, oldest first."""
    return [
        {
            "pipeline": str(pipeline),
            "leadership": item.number or None,
            "epoch": item.epoch,
            "node": item.nid,
            "reason": item.reason,
            "at": item.at,
            "outage": item.outage,
            "outage_least": item.outage_least,
            "redelivered": item.redelivered,
        }
        for pipeline, past in items.items()
        for item in past
    ]


def _node(node: NodeInfo, leads: int) -> dict[str, Any]:
    return {
        "node": node.nid,
        "host": node.host,
        "pid": node.pid,
        "http": node.http,
        "started": node.started,
        "ready": node.ready,
        "serves": list(node.serves),
        "not_ready": {str(pipeline): why for pipeline, why in node.not_ready.items()},
        "leads": leads,
    }


def _pipeline(pipeline: PipelineId, facts: Facts, line: PipelineStatus | None) -> dict[str, Any]:
    leader_lock = facts.leader_locks.get(pipeline)
    figures = line.figures if line and line.mine else None
    verified = figures.verification if figures else None
    channel = facts.channels[pipeline.channel]
    preference = preference_of(channel, pipeline.pipeline)
    return {
        "pipeline": str(pipeline),
        "needs": preference.needs,
        "missing": unserved(preference, facts.nodes.values(), pipeline),
        "channel_state": channel.state.value,
        "leader": leader_lock.nid if leader_lock else "",
        "leadership": (leader_lock.number or None) if leader_lock else None,
        "epoch": leader_lock.epoch if leader_lock else None,
        "mainstem": leader_lock.status.value if leader_lock else None,
        "state": figures.state.value if figures else None,
        "position": figures.position if figures else None,
        "lag": figures.lag if figures else None,
        "rows_per_second": figures.rows_per_second if figures else None,
        "pending": figures.pending if figures else None,
        "error": figures.error if figures else None,
        "stalled": figures.stalled if figures else None,
        "differences": verified.differences if verified else None,
        "verification_age": verified.age if verified else None,
        "decision": line.decision if line else None,
    }


def _scheduled(signals: Mapping[PipelineId, Iterable[Signal]], now: float) -> list[dict[str, Any]]:
    """Changes of the leader that were asked for and not answered yet, by time."""
    open_ = [(s, pipeline) for pipeline, all_ in signals.items() for s in open_handovers(all_)]
    return [
        {
            "pipeline": str(pipeline),
            "kind": signal.kind.value,
            "at": signal.at or signal.sent,
            "due": signal.at <= now,
            "from": signal.leader,
            "to": signal.to,
            "by": signal.by,
            "id": signal.id,
        }
        for signal, pipeline in sorted(open_, key=lambda pair: (pair[0].at, str(pair[1])))
    ]
