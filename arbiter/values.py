"""What ZooKeeper holds about channels and leaders, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class ChannelState(Enum):
    """What the operator wants of a channel. STOP beats PAUSE beats START (DESIGN §6)."""

    START = "START"
    PAUSE = "PAUSE"
    STOP = "STOP"


class MainstemStatus(Enum):
    """How far a leader is."""

    TAKING = "TAKING"  # elected, getting ready: fencing, opening the source
    OVERTAKE = "OVERTAKE"  # selecting and applying


@dataclass(frozen=True, slots=True)
class PipelineId:
    """A pipeline's full name."""

    channel: str
    pipeline: str

    def __str__(self) -> str:
        return f"{self.channel}/{self.pipeline}"


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A live node, as it announced itself.

    Attributes:
        nid: its id.
        host: the machine it runs on.
        pid: its process id there.
        http: base address of its HTTP interface, "" if it has none.
        started: when it started, seconds since 1970 UTC.
    """

    nid: str
    host: str = ""
    pid: int = 0
    http: str = ""
    started: float = 0.0


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as stored.

    Attributes:
        name: its name.
        state: what the operator wants.
        definition: the channel file's content; secrets in it are references, never values.
        revision: ZooKeeper's version of the znode, for compare-and-set.
    """

    name: str
    state: ChannelState
    definition: dict[str, Any] = field(default_factory=dict[str, Any])
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Mainstem:
    """Who is active for a pipeline.

    Attributes:
        nid: the node that holds it.
        status: how far it is.
        epoch: creation zxid of the znode; grows with every leadership, for ever.
        session: id of the ZooKeeper session that owns the znode. Leadership is this, not nid.
    """

    nid: str
    status: MainstemStatus
    epoch: int
    session: int


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One past change of leadership.

    Attributes:
        epoch: the new leadership.
        nid: its node.
        reason: why it began, for people.
        at: when it began to apply, seconds since 1970 UTC.
        outage: seconds since the leader before was last known to be there, None if unknown.
        redelivered: rows that were applied again because of the change, None if unknown.
    """

    epoch: int
    nid: str
    reason: str
    at: float
    outage: float | None = None
    redelivered: int | None = None
