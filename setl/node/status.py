"""What a node knows and does, as values: for its HTTP interface, its metrics and the commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, cast

from arbiter.values import EVERYTHING
from setl.counting import count
from setl.node.alarm_status import AlarmStatus
from setl.node.ensemble import CertificateSeen, ServerSeen
from setl.node.host.resources import NodeDisk, NodeMemory, NodeSpark
from setl.run.measured.figures import Figures, RunState


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """One pipeline as this node sees it.

    Attributes:
        channel: the channel.
        pipeline: the pipeline.
        leader: nid of whoever leads it, "" if nobody does.
        epoch: of that leadership, 0 if there is none.
        leadership: its number, 0 if it has none.
        mine: whether this node is the leader.
        decision: what this node decided last about it, one sentence.
        figures: what the pipeline does here; all zero on a standby.
        not_ready: what this node lacks to lead it, "" if nothing.
    """

    channel: str
    pipeline: str
    leader: str
    epoch: int
    mine: bool
    decision: str
    figures: Figures
    not_ready: str = ""
    leadership: int = 0


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
        threads: how many its own process has.
        spark: its Spark.
        alarms: what it knows of alarms.
        problem: why its last look at the cluster failed unexpectedly, "" if it did not.
        lost_channels: what is gone from ZooKeeper and what to do, "" if nothing is.
        zookeeper: each server of ZooKeeper, if the node was given several.
        zookeeper_certificates: what it needs to connect to them; None before it has looked.
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
    threads: int = 0
    spark: NodeSpark = field(default_factory=NodeSpark)
    alarms: AlarmStatus = field(default_factory=AlarmStatus)
    problem: str = ""
    lost_channels: str = ""
    zookeeper: tuple[ServerSeen, ...] = ()
    zookeeper_certificates: tuple[CertificateSeen, ...] | None = None


def sentence(status: NodeStatus) -> str:
    """How a node does, in one line for people."""
    mine = [each for each in status.pipelines if each.mine]
    failed = [f"{p.channel}/{p.pipeline}" for p in mine if p.figures.state is RunState.FAILED]
    parts = [
        f"leads {len(mine)} of {count(len(status.pipelines), 'pipeline')}",
        f"failed: {', '.join(failed[:3])}{', …' if failed[3:] else ''}" if failed else "",
        f"ZooKeeper: {status.contact}",
        status.problem,
        status.lost_channels,
    ]
    return "; ".join(filter(None, parts))


def as_json(status: NodeStatus) -> dict[str, Any]:
    """A node's status as plain JSON values."""
    return cast("dict[str, Any]", _plain(status))


# Most of eighty figures a pipeline, which the node that sends alarms asks for every few seconds.
_AS_IT_IS = frozenset({str, int, float, bool, NoneType})


def _plain(value: Any) -> Any:
    """The same as JSON values. A fifth of the time that `dataclasses.asdict` takes, or less."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        return {name: _plain(each) for name, each in given.items()}
    if is_dataclass(value):
        return {
            name: each if type(each := getattr(value, name)) in _AS_IT_IS else _plain(each)
            for name in _names(type(value))
        }
    return [_plain(each) for each in value]


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))
