"""Decides who may lead, from one snapshot. Pure: no clock, no connection, no state.

Every cycle of a node makes a `View` for each pipeline and asks `decide` what to do and how to
say it. What a node must remember between cycles is a value too
(`arbiter.election_memory.ElectionMemory`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from arbiter.election_memory import ElectionMemory, Ending, owned
from arbiter.errors import Contact
from arbiter.values import ChannelState, LeaderLock, Signal, SignalKind


class Action(Enum):
    """What a node does about one pipeline in this cycle."""

    IDLE = "idle"  # the channel is stopped, and nothing of it is here
    FOLLOW = "follow"  # another node leads
    WAIT = "wait"  # no node leads, and it is not yet this node's turn
    CAMPAIGN = "campaign"  # try to become the leader
    LEAD = "lead"  # lead: start the run, or let it go on
    HOLD = "hold"  # paused: finish what is loading, keep the leadership
    DRAIN = "drain"  # stopped: finish what is loading, then step down
    STEP_DOWN = "step down"  # nothing runs any more: step down
    SUSPEND = "suspend"  # start no new load; leadership is in doubt (I3)
    ABORT = "abort"  # cancel what runs: leadership is gone, or may be (I3)


MARGIN = 0.2
"""Part of the session timeout left for running loads to be cancelled before it ends (I3)."""


MAX_RANK = 4
"""Nodes further back in the queue wait no longer than this one: a vacancy has to end."""


STARTED_PATIENCE = 4
"""Times `ElectionSettings.turn_delay` that a node waits where the channel was just started."""


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """Rules that an operator may set.

    Attributes:
        takeover_delay: seconds for which a vacancy is left to the previous holder (I5). A channel
            that was stopped meanwhile has none, see `View.unclaimed`.
        turn_delay: seconds by which each further node in the queue (see `arbiter.turns`) waits
            longer than the one before it.
        hold_off: seconds for which a node that gave leadership up does not take it back (I5),
            and for which others leave a vacancy to the node that an operator has named.
        margin: part of the session timeout kept in reserve for cancelling running loads. A
            session expires on a tick of ZooKeeper's clock, and the servers tell each other of
            its signs of life with as much delay, so it has to be longer than a tick.
    """

    takeover_delay: float = 0.25
    turn_delay: float = 0.5
    hold_off: float = 5.0
    margin: float = MARGIN

    def __post_init__(self) -> None:
        delays = (self.takeover_delay, self.turn_delay, self.hold_off)
        if min(delays) < 0 or not 0 < self.margin < 1:
            raise ValueError(f"delays must not be negative, the margin between 0 and 1: {self}")


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a decision depends on, at one time.

    Attributes:
        now: monotonic time of the look.
        contact: how well the truth is known.
        last_contact: when the session was last surely alive, monotonic.
        session_timeout: seconds after which a silent session is dead.
        session: id of this node's session, 0 if there is none.
        nid: this node.
        state: what the operator wants; None if the channel does not exist.
        leader_lock: who leads; None if nobody does.
        ready: whether this node is warm and could lead at once (I4).
        busy: whether a run of this pipeline still works on this node.
        past: what is remembered, this look included.
        burnt_epoch: the epoch under which a run was cancelled here, 0 if none was. A cancelled task
            may still hold a transaction open in the target, and the fence lets it commit as
            long as its epoch is the newest; so the next run needs another one.
        rank: this node's place in the queue for the leadership, from 0; None if it must not
            lead this pipeline.
        handover: an operator's request to change the leader that is to be carried out now: by
            the leader, or in a vacancy by the node that it names.
        asked_at: monotonic time at which this node first saw that request.
        target_node_gone: whether the node that it names is not there (any more): nobody waits for
            it.
        wanted_since: monotonic time at which it first saw that the channel is to run. Queues
            form from then on, or every node's delay would be over when a channel is started,
            and the first that notices would take all its pipelines.
        unclaimed: whether this node saw the channel stopped since the leadership became vacant,
            so that no previous holder wants it back.
        not_ready: what this node lacks to lead the pipeline, "" if nothing. A node that leads and
            runs goes on: it lacks nothing that it needs now.
    """

    now: float
    contact: Contact
    last_contact: float
    session_timeout: float
    session: int
    nid: str
    state: ChannelState | None
    leader_lock: LeaderLock | None
    ready: bool
    busy: bool
    past: ElectionMemory = field(default_factory=ElectionMemory)
    burnt_epoch: int = 0
    rank: int | None = 0
    handover: Signal | None = None
    asked_at: float = 0.0
    target_node_gone: bool = False
    wanted_since: float = 0.0
    unclaimed: bool = False
    not_ready: str = ""

    @property
    def leads(self) -> bool:
        """Whether this node leads. By session: a node id proves nothing (I1)."""
        return owned(self.leader_lock, self.session)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and a sentence for the log that says so.

    Attributes:
        action: what to do.
        sentence: says so.
        public: the same without what errors say, where the sentence has that; "" where it has not.
        due: monotonic time from which it would be another one even if nothing else changes; None
            if time alone does not change it.
    """

    action: Action
    sentence: str
    due: float | None = field(default=None, compare=False)
    public: str = field(default="", compare=False)


def decide(view: View, settings: ElectionSettings) -> Decision:
    """What a node does now, given what it sees."""
    return _without_contact(view, settings) or _with_contact(view, settings)


def allowed_silence(session_timeout: float, margin: float = MARGIN) -> float:
    """Seconds without contact after which a node must not write, whatever it was told (I3)."""
    return session_timeout * (1 - margin)


def deadline(view: View, settings: ElectionSettings) -> float:
    """Monotonic time from which this node must not write (I3)."""
    return view.last_contact + allowed_silence(view.session_timeout, settings.margin)


def _without_contact(view: View, settings: ElectionSettings) -> Decision | None:
    """The decision while the truth is not known; None if it is."""
    involved = view.busy or view.past.own_lock is not None
    if view.contact is Contact.LOST:
        return _stop(view, Action.ABORT if involved else Action.WAIT, "its session is lost")
    if view.now >= deadline(view, settings):
        why = "ZooKeeper has been silent for almost the session timeout"
        return _stop(view, Action.ABORT if involved else Action.WAIT, why)
    if view.contact is Contact.SUSPENDED:
        return _stop(view, Action.SUSPEND if involved else Action.WAIT, "ZooKeeper is silent")
    return None


def _stop(view: View, action: Action, why: str) -> Decision:
    what = {
        Action.ABORT: "cancels what runs",
        Action.SUSPEND: "starts no new load",
        Action.WAIT: "waits",
    }
    return Decision(action, f"node {view.nid} {what[action]}: {why}")


def _with_contact(view: View, settings: ElectionSettings) -> Decision:
    if view.leader_lock is not None and view.leads:
        return _as_leader(view, view.leader_lock)
    if view.busy:
        return _stop(view, Action.ABORT, f"{_leader(view)}, and its own leadership is gone")
    if view.state in (None, ChannelState.STOP):
        what = "stopped" if view.state else "gone"
        return Decision(Action.IDLE, f"no action: the channel is {what}")
    if view.leader_lock is None:
        return _about_vacancy(view, settings)
    leadership = view.leader_lock.leadership
    if view.leader_lock.nid == view.nid:
        return Decision(
            Action.WAIT,
            f"node {view.nid} waits for an earlier session of its own to expire, {leadership}",
        )
    return Decision(
        Action.FOLLOW,
        f"no action: node {view.nid} follows {view.leader_lock.nid}, {leadership}",
    )


def _as_leader(view: View, leader_lock: LeaderLock) -> Decision:
    me = f"node {view.nid}"
    if view.state is ChannelState.START:
        return _as_started_leader(view, leader_lock)
    if view.state is ChannelState.PAUSE:
        return Decision(
            Action.HOLD,
            f"paused: {me} loads nothing and stays the leader, {leader_lock.leadership}",
        )
    why = "the channel is stopped" if view.state else "the channel is gone"
    if view.busy:
        return Decision(Action.DRAIN, f"{me} finishes what is loading: {why}")
    return Decision(Action.STEP_DOWN, f"{me} steps down from {leader_lock.leadership}: {why}")


def _as_started_leader(view: View, leader_lock: LeaderLock) -> Decision:
    me = f"node {view.nid}"
    if view.handover is not None:
        to = f"hands over to {view.handover.to}" if view.handover.to else "hands over"
        if view.busy:
            return Decision(Action.DRAIN, f"{me} finishes what is loading, then {to}")
        return Decision(Action.STEP_DOWN, f"{me} {to} and steps down from {leader_lock.leadership}")
    if view.not_ready and not view.busy:
        why = f"{me} steps down from {leader_lock.leadership}: it cannot lead this pipeline"
        return Decision(Action.STEP_DOWN, f"{why}: {view.not_ready}", public=why)
    why = _why_another_epoch(view, leader_lock)
    if why and view.busy:
        return _stop(view, Action.ABORT, why)
    if why:
        return Decision(Action.STEP_DOWN, f"{me} begins a new leadership: {why}")
    return Decision(Action.LEAD, f"no action: {me} leads, {leader_lock.leadership}")


def _why_another_epoch(view: View, leader_lock: LeaderLock) -> str:
    """Why a leader must not go on under the epoch it has; "" if it may."""
    if leader_lock.epoch == view.burnt_epoch:
        return f"a run was cancelled in {leader_lock.leadership}"
    # The epoch may have been higher than it seems now; the target's fence knows which.
    return "" if leader_lock.readable else "its leader lock was overwritten"


def _about_vacancy(view: View, settings: ElectionSettings) -> Decision:
    """No node leads a channel that is not stopped: does this node try to?"""
    if view.rank is None:
        return Decision(Action.WAIT, f"node {view.nid} never leads this pipeline, and no node does")
    if view.not_ready:
        why = f"node {view.nid} cannot lead this pipeline, and no node does"
        return Decision(Action.WAIT, f"{why}: {view.not_ready}", public=why)
    named = _by_request(view, view.rank, settings)
    if named is not None:
        return named
    if view.state is ChannelState.PAUSE:
        return Decision(Action.WAIT, "paused: no node leads, and no node takes over")
    if not view.ready:
        return Decision(Action.WAIT, f"node {view.nid} is not warm yet, and no node leads")
    return _by_the_rules(view, view.rank, settings)


def _by_the_rules(view: View, rank: int, settings: ElectionSettings) -> Decision:
    """A vacancy that this node could fill, once it is its turn (I5)."""
    me, past = f"node {view.nid}", view.past
    if past.ending in (Ending.DISCONNECTED, Ending.RENEWED):
        why = (
            "begins a new leadership"
            if past.ending is Ending.RENEWED
            else "led until its session ended"
        )
        return Decision(Action.CAMPAIGN, f"{me} campaigns at once: it {why}")
    if past.ending in (Ending.STEPPED_DOWN, Ending.DEPOSED):
        return _after_stepping_down(view, past.ending, settings)
    before = f" after {past.leader}" if past.leader else ""
    delay = min(rank, MAX_RANK) * settings.turn_delay
    # Nobody had led what was stopped until now, and a busy machine may keep a node from its turn
    # for a second. Whoever takes its part as well would keep that.
    delay = delay * STARTED_PATIENCE if view.unclaimed else delay + settings.takeover_delay
    due = max(_vacant_since(view), view.wanted_since) + delay
    if view.now < due:
        queued = f", as number {rank + 1} in the queue," if rank else ""
        what = f"{me} waits {delay:g} s{queued} before it takes over{before}"
        return Decision(Action.WAIT, what, due)
    return Decision(Action.CAMPAIGN, f"{me} campaigns{before}: no node leads")


def _by_request(view: View, rank: int, settings: ElectionSettings) -> Decision | None:
    """A vacancy for which an operator has asked for a leader; None where the rules apply."""
    me, handover = f"node {view.nid}", view.handover
    if handover is None or (
        view.state is ChannelState.PAUSE and handover.kind is not SignalKind.FAILOVER
    ):
        return None
    asked = f"{handover.kind.value} by {handover.by or 'an operator'}"
    waited = view.now - max(_vacant_since(view), view.asked_at)
    if waited < settings.hold_off and view.nid != handover.to:
        if handover.to and not view.target_node_gone:
            return Decision(Action.WAIT, f"{me} leaves the leadership to {handover.to}: {asked}")
        # Unless another has led since, whose death is a death as any other.
        if handover.leader == view.nid == view.past.leader:
            return Decision(Action.WAIT, f"{me} leaves the leadership to others: {asked}")
    at_once = view.nid == handover.to or waited >= min(rank, MAX_RANK) * settings.turn_delay
    if view.ready and at_once:
        return Decision(Action.CAMPAIGN, f"{me} campaigns at once: {asked}")
    return None


def _vacant_since(view: View) -> float:
    return view.now if view.past.vacant_since is None else view.past.vacant_since


def _after_stepping_down(view: View, ending: Ending, settings: ElectionSettings) -> Decision:
    """The leadership was here last and was given up: let another have it, but not for ever."""
    me = f"node {view.nid}"
    due = view.past.ended_at + settings.hold_off
    if view.now < due:
        return Decision(
            Action.WAIT,
            f"{me} leaves the leadership, which it {ending.value}, to others for"
            f" {settings.hold_off:g} s",
            due,
        )
    return Decision(Action.CAMPAIGN, f"{me} campaigns again: no other node has taken over")


def _leader(view: View) -> str:
    return f"{view.leader_lock.nid} leads" if view.leader_lock else "no node leads"
