"""What a node knows and does, as values: for its HTTP interface, its metrics and the commands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from arbiter.values import EVERYTHING
from setl.node.alarm_status import AlarmStatus
from setl.node.disk import NodeDisk
from setl.node.memory import NodeMemory
from setl.run.figures import Figures, RunState


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """One pipeline as this node sees it.

    Attributes:
        channel: the channel.
        pipeline: the pipeline.
        leader: nid of whoever leads it, "" if nobody does.
        epoch: of that leadership, 0 if there is none.
        mine: whether this node is the leader.
        decision: what this node decided last about it, one sentence.
        figures: what the pipeline does here; all zero on a standby.
        unable: what this node lacks to lead it, "" if nothing.
    """

    channel: str
    pipeline: str
    leader: str
    epoch: int
    mine: bool
    decision: str
    figures: Figures
    unable: str = ""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node and the pipelines that it is able to lead.

    Attributes:
        nid: its id.
        version: version of setl.
        contact: how well it reaches the arbiter.
        warm: whether it is ready to take over.
        started: when it started, seconds since 1970 UTC.
        pipelines: every pipeline that it is able to lead.
        serves: the kinds that these are of, see `setl.node.roles`.
        memory: what its processes hold.
        disk: the disk that its Spark writes to.
        alarms: what it knows of alarms.
        trouble: why its last look at the cluster failed unexpectedly, "" if it did not.
    """

    nid: str
    version: str
    contact: str
    warm: bool
    started: float
    pipelines: tuple[PipelineStatus, ...]
    serves: tuple[str, ...] = EVERYTHING
    memory: NodeMemory = field(default_factory=NodeMemory)
    disk: NodeDisk = field(default_factory=NodeDisk)
    alarms: AlarmStatus = field(default_factory=AlarmStatus)
    trouble: str = ""


def sentence(status: NodeStatus) -> str:
    """How a node does, in one line for people."""
    mine = [each for each in status.pipelines if each.mine]
    failed = [f"{p.channel}/{p.pipeline}" for p in mine if p.figures.state is RunState.FAILED]
    parts = [
        f"leads {len(mine)} of {len(status.pipelines)} pipelines",
        f"failed: {', '.join(failed[:3])}{', …' if failed[3:] else ''}" if failed else "",
        f"ZooKeeper: {status.contact}",
        status.trouble,
    ]
    return "; ".join(filter(None, parts))


def as_json(status: NodeStatus) -> dict[str, Any]:
    """A node's status as plain JSON values; histograms are for metrics alone."""
    lines = tuple(
        replace(line, figures=replace(line.figures, distributions={})) for line in status.pipelines
    )
    return asdict(replace(status, pipelines=lines), dict_factory=_plain)


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {k: v.value if isinstance(v, Enum) else v for k, v in items if k != "distributions"}
