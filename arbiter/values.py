"""What ZooKeeper holds about channels and leaders, as immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class ChannelState(Enum):
    """What the operator wants of a channel. STOP beats PAUSE beats START."""

    START = "START"
    PAUSE = "PAUSE"
    STOP = "STOP"


class LeaderLockStatus(Enum):
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


EVERYTHING = ("*",)
"""What a node serves that does not say it: it can lead any pipeline."""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A live node, as it announced itself.

    Attributes:
        nid: its id.
        host: the machine it runs on.
        pid: its process id there.
        http: base address of its HTTP interface, "" if it has none.
        started: when it started, seconds since 1970 UTC.
        ready: whether it is warm and could lead at once (I4).
        serves: the kinds of pipelines that it can lead, or `EVERYTHING`; what kinds there are,
            its users say (see `arbiter.turns.Preference.needs`).
        not_ready: pipelines of these kinds that it cannot lead as it is, and what it is missing for
            them, for people.
        read_key: shown to its HTTP interface, it lets somebody read what strangers must not; who
            may read this may read that. "" if the node has none.
    """

    nid: str
    host: str = ""
    pid: int = 0
    http: str = ""
    started: float = 0.0
    ready: bool = False
    serves: tuple[str, ...] = EVERYTHING
    not_ready: Mapping[PipelineId, str] = field(default_factory=dict[PipelineId, str])
    read_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as stored.

    Attributes:
        name: its name.
        state: what the operator wants.
        definition: the channel file's content; secrets in it are references, never values.
        revision: ZooKeeper's version of the znode, for compare-and-set.
        damage: what is wrong with it if it cannot be read, as the end of a sentence, "" for
            nothing. It counts as stopped and empty then.
    """

    name: str
    state: ChannelState
    definition: dict[str, Any] = field(default_factory=dict[str, Any])
    revision: int = 0
    damage: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class LeaderLock:
    """Who leads a pipeline.

    Attributes:
        nid: the node that holds it.
        status: how far it is.
        epoch: creation zxid of the znode, plus the base that an operator has set after ZooKeeper
            was built again (0 else); grows with every leadership, for ever.
        session: id of the ZooKeeper session that owns the znode. Leadership is this, not nid.
        readable: whether it can be read; else its epoch may be a higher one than it seems.
        number: counts the pipeline's leaderships from 1, for people; 0 if that is not known, as
            of one that an older release has taken.
    """

    nid: str
    status: LeaderLockStatus
    epoch: int
    session: int
    readable: bool = field(default=True, compare=False)
    number: int = field(default=0, compare=False)

    @property
    def leadership(self) -> str:
        """The leadership in the words that people see."""
        return leadership_words(self.number, self.epoch)


def leadership_words(number: int | None, epoch: int | None) -> str:
    """A leadership in words: by its number, or by its epoch where it has no number."""
    return f"leadership {number}" if number else f"epoch {epoch}"


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One past change of leadership.

    Attributes:
        epoch: the new leadership.
        nid: its node.
        reason: why it began, for people.
        at: when it began to apply, seconds since 1970 UTC.
        outage: seconds since the leader before was last known to be there and applied changes,
            None if unknown.
        redelivered: rows that were applied again because of the change, None if unknown.
        error: what it failed with, "" if it did not.
        outage_least: where nobody can know since when exactly, how long it was at least; `outage`
            says then how long it was at most. None if there is nothing more to say.
        applied_until: when changes were last known to be applied, seconds since 1970 UTC: in this
            leadership, if it has ended as it should or failed; before it, if it never came to
            apply any. None while it is on, and if nobody knows.
        error_public: what anybody may read of `error`, which may quote rows.
        number: see `LeaderLock.number`.
    """

    epoch: int
    nid: str
    reason: str
    at: float
    outage: float | None = None
    redelivered: int | None = None
    error: str = ""
    outage_least: float | None = None
    applied_until: float | None = None
    error_public: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """Something that an operator did or tried, for the log of actions.

    Attributes:
        by: who, for people.
        what: what he did, such as ``start``.
        on: to which channel, pipeline or other thing.
        at: when he began, seconds since 1970 UTC.
        outcome: what came of it, in a sentence; "" while it is under way, or if whoever did it
            ended before he could tell.
        ended: when that was known, seconds since 1970 UTC, 0.0 before.
        id: the arbiter's name for it; grows with time; "" before it is kept.
        revision: for compare-and-set.
        session: id of the session in which it was kept, 0 if it is not known.
        abandoned: whether that session is over and nobody has said what came of it.
    """

    by: str
    what: str
    on: str
    at: float
    outcome: str = ""
    ended: float = 0.0
    id: str = ""
    revision: int = 0
    session: int = 0
    abandoned: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class AlarmSender:
    """The node that decides about alarms and sends them.

    Attributes:
        nid: the node.
        receivers: names of those whom it tells, empty for nobody.
        session: id of the session that this ends with.
    """

    nid: str
    receivers: tuple[str, ...] = ()
    session: int = 0


class SignalKind(Enum):
    """What an operator can ask of a pipeline."""

    SWITCHOVER = "switchover"  # the leader drains and hands over
    FAILOVER = "failover"  # a named node leads from now on, whatever the leader says
    ROLLBACK = "rollback"  # go back to the checkpoint and on from there
    RESTART = "restart"  # end the run in order and build it again
    LOADS = "loads"  # look at the requests for loads of tables again


class SignalState(Enum):
    """What became of a request."""

    PENDING = "pending"
    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Signal:
    """A request to a pipeline, and its answer.

    Attributes:
        kind: what is asked.
        id: the arbiter's name for it; grows with time; "" before it is sent.
        to: nid that is to lead; "" leaves it to the rules of election.
        at: when it is due, seconds since 1970 UTC; 0.0 at once.
        leader: nid that led when it was sent, "" if nobody did.
        epoch: the leadership it is meant for, 0 if nobody led. A later leadership does not
            carry it out, since the operator did not know of it.
        by: who asked, for people.
        sent: when, seconds since 1970 UTC.
        state: what became of it.
        answer: the outcome in a sentence, "" while it is pending.
        revision: for compare-and-set.
    """

    kind: SignalKind
    id: str = ""
    to: str = ""
    at: float = 0.0
    leader: str = ""
    epoch: int = 0
    by: str = ""
    sent: float = 0.0
    state: SignalState = SignalState.PENDING
    answer: str = ""
    revision: int = 0


@dataclass(frozen=True, slots=True)
class StoredLoad:
    """A request to load tables, as stored.

    Attributes:
        id: the arbiter's name for it; grows with time.
        value: the request; its users say what is in it.
        revision: for compare-and-set.
    """

    id: str
    value: dict[str, Any]
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a decision about any pipeline depends on, read at one time.

    Not one transaction: a fact may change while the next is read. That is harmless, since what
    is decided from facts is only ever carried out by compare-and-set.

    Attributes:
        nodes: the live nodes by nid.
        channels: the channels by name.
        leader_locks: who leads, where somebody does.
        signals: requests by pipeline, oldest first, answered ones included.
        damaged: what cannot be read, and is treated as if it were not there: paths of znodes,
            and what is wrong with each, as the end of a sentence.
    """

    nodes: Mapping[str, NodeInfo] = field(default_factory=dict[str, NodeInfo])
    channels: Mapping[str, Channel] = field(default_factory=dict[str, Channel])
    leader_locks: Mapping[PipelineId, LeaderLock] = field(
        default_factory=dict[PipelineId, LeaderLock]
    )
    signals: Mapping[PipelineId, tuple[Signal, ...]] = field(
        default_factory=dict[PipelineId, tuple[Signal, ...]]
    )
    damaged: Mapping[str, str] = field(default_factory=dict[str, str])
