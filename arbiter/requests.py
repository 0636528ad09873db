"""Operators' requests to a pipeline: check them, store them as signals, wait for the answer.

The command line and the nodes' HTTP interface both call this, so that they refuse the same
things with the same words.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Conflict, Unreachable
from arbiter.handover import objection, open_handovers
from arbiter.turns import Preference
from arbiter.values import (
    Channel,
    ChannelState,
    Facts,
    PipelineId,
    Signal,
    SignalKind,
    SignalState,
)

_ATTEMPTS = 5
_POLL_SECONDS = 0.1


class Refused(ArbiterError):  # noqa: N818 - reads as what it is
    """The request is refused; the text says why. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Who makes a request, and when.

    Attributes:
        by: for people, such as ``root@host``.
        now: seconds since 1970 UTC.
    """

    by: str
    now: float


def switchover(
    arbiter: Arbiter,
    pipeline: PipelineId,
    preference: Preference,
    requester: Requester,
    *,
    to: str = "",
    at: float = 0.0,
) -> Signal:
    """Ask the leader to drain and hand over, to a named node or by the rules; returns the signal.

    Raises:
        Refused: no node leads, the channel is not running, or the node cannot lead; or another
            change of the leader is under way.
    """
    facts = arbiter.facts()
    leader_lock = facts.leader_locks.get(pipeline)
    channel = _channel(facts, pipeline)
    if leader_lock is None:
        hint = "; `setl failover` names a leader" if channel.state is ChannelState.START else ""
        raise Refused(f"no node leads {pipeline}{hint}")
    signal = Signal(
        SignalKind.SWITCHOVER,
        to=to,
        at=at,
        leader=leader_lock.nid,
        epoch=leader_lock.epoch,
        by=requester.by,
        sent=requester.now,
    )
    _check(facts, pipeline, signal, leader_lock.nid, preference)
    if at and at < requester.now:
        raise Refused("the time lies in the past")
    return arbiter.signals.send(pipeline, signal)


def failover(
    arbiter: Arbiter,
    pipeline: PipelineId,
    preference: Preference,
    requester: Requester,
    *,
    to: str = "",
) -> Signal:
    """Make another node the leader, whether or not there is one and whether or not it answers.

    A leader that exists is deposed without being asked: what it is loading fails at the fence,
    and what it had not acknowledged is applied again by its successor.

    Raises:
        Refused: the channel is stopped, or the node cannot lead; or another change of the leader
            is under way.
    """
    facts = arbiter.facts()
    leader_lock = facts.leader_locks.get(pipeline)
    signal = Signal(
        SignalKind.FAILOVER,
        to=to,
        leader=leader_lock.nid if leader_lock else "",
        epoch=leader_lock.epoch if leader_lock else 0,
        by=requester.by,
        sent=requester.now,
    )
    _check(facts, pipeline, signal, leader_lock.nid if leader_lock else "", preference)
    sent = arbiter.signals.send(pipeline, signal)
    if leader_lock is not None:
        arbiter.leader_locks.depose(pipeline, leader_lock)
    return sent


def ask_leader(
    arbiter: Arbiter, pipeline: PipelineId, kind: SignalKind, requester: Requester
) -> Signal:
    """Ask the leader for a rollback or a restart.

    Raises:
        Refused: no node leads, so that nobody can do it.
    """
    facts = arbiter.facts()
    _channel(facts, pipeline)
    leader_lock = facts.leader_locks.get(pipeline)
    if leader_lock is None:
        raise Refused(f"no node leads {pipeline}")
    signal = Signal(
        kind, leader=leader_lock.nid, epoch=leader_lock.epoch, by=requester.by, sent=requester.now
    )
    return arbiter.signals.send(pipeline, signal)


def cancel(arbiter: Arbiter, pipeline: PipelineId, requester: Requester) -> list[Signal]:
    """Take scheduled changes of the leader back; returns them.

    Raises:
        Refused: there are none.
    """
    open_ = [s for s in open_handovers(arbiter.signals.all(pipeline)) if s.at > requester.now]
    if not open_:
        raise Refused(f"no switchover of {pipeline} is scheduled")
    text = f"taken back by {requester.by}"
    return [arbiter.signals.answer(pipeline, s, SignalState.REFUSED, text) for s in open_]


def change_state(arbiter: Arbiter, name: str, state: ChannelState) -> Channel:
    """Set a channel's state; tries again when somebody else changes it at the same time.

    Raises:
        NotFound: there is no such channel.
        Conflict: it keeps being changed.
    """
    return _changed(arbiter, name, lambda channel: arbiter.channels.set_state(channel, state))


def pause_or_resume(arbiter: Arbiter, name: str, state: ChannelState) -> Channel:
    """Change between START and PAUSE; a channel that is in `state` already is left as it is.

    Raises:
        Refused: it is stopped, or somebody stops it meanwhile; leaving that is a decision of
            its own.
        NotFound: there is no such channel.
        Conflict: it keeps being changed.
    """

    def change(channel: Channel) -> Channel:
        if channel.state is ChannelState.STOP:
            raise Refused(f"the channel {name} is stopped; `setl start {name}` starts it")
        return channel if channel.state is state else arbiter.channels.set_state(channel, state)

    return _changed(arbiter, name, change)


def _changed(arbiter: Arbiter, name: str, change: Callable[[Channel], Channel]) -> Channel:
    """Read a channel and change it, again if somebody else wrote in between."""
    for _ in range(_ATTEMPTS):
        try:
            return change(arbiter.channels.one(name))
        except Conflict:
            continue
    raise Conflict(f"the channel {name!r} is being changed concurrently; try again")


def await_answer(
    arbiter: Arbiter,
    pipeline: PipelineId,
    signal: Signal,
    limit: float,
    wait: Callable[[float], object] = time.sleep,
) -> Signal:
    """Wait until a signal is answered, for at most `limit` seconds; pending if it is not.

    An arbiter that is silent for a moment is asked again.
    """
    deadline = time.monotonic() + limit
    seen = signal
    while True:
        try:
            seen = next((s for s in arbiter.signals.all(pipeline) if s.id == signal.id), seen)
        except Unreachable:
            if time.monotonic() >= deadline:
                raise
        if seen.state is not SignalState.PENDING or time.monotonic() >= deadline:
            return seen
        wait(_POLL_SECONDS)


def _channel(facts: Facts, pipeline: PipelineId) -> Channel:
    channel = facts.channels.get(pipeline.channel)
    if channel is None:
        known = ", ".join(sorted(facts.channels)) or "none"
        raise Refused(f"there is no channel {pipeline.channel!r}; known: {known}")
    return channel


def _check(
    facts: Facts, pipeline: PipelineId, signal: Signal, leader: str, preference: Preference
) -> None:
    state = _channel(facts, pipeline).state
    why = objection(
        signal,
        leader,
        state=state,
        nodes=facts.nodes,
        preference=preference,
        pipeline=pipeline,
    )
    if why:
        raise Refused(why)
    for other in open_handovers(facts.signals.get(pipeline, ())):
        when = " is scheduled" if other.at > signal.sent else " is under way"
        raise Refused(
            f"a {other.kind.value} by {other.by}{when} already"
            + ("; `setl switchover --cancel` takes it back" if other.at > signal.sent else "")
        )
