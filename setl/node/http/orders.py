"""What operators may order over HTTP, and how each order reaches the arbiter.

All functions here block for as long as the arbiter's calls do.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from arbiter import requests
from arbiter.port import Arbiter, Conflict
from arbiter.requests import Asker, Refused
from arbiter.turns import Preference
from arbiter.values import Channel, ChannelState, Facts, PipelineId, Signal
from setl.node.http.probes import OK, Reply, find_in
from setl.node.stored import preference_of

_ATTEMPTS = 5
_LONGEST_NAME = 512


class _Order(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CancelOrder(_Order):
    """Take a scheduled switchover of a pipeline back."""

    pipeline: str = Field(min_length=1, max_length=_LONGEST_NAME)


class FailoverOrder(CancelOrder):
    """Make another node the leader; the one to be named is free to choose."""

    to: str = Field(default="", max_length=_LONGEST_NAME)


class SwitchoverOrder(FailoverOrder):
    """Let the leader drain and hand over, now or at a time that names its zone."""

    at: AwareDatetime | None = None


class ChannelOrder(_Order):
    """Pause or resume a channel."""

    channel: str = Field(min_length=1, max_length=_LONGEST_NAME)


class Sent(NamedTuple):
    """A request that is recorded and not answered yet."""

    pipeline: PipelineId
    signal: Signal


def switchover(arbiter: Arbiter, order: SwitchoverOrder, asker: Asker) -> Sent | Reply:
    """Record a switchover; raises what `arbiter.requests.switchover` does."""
    found = _find(arbiter, order.pipeline)
    if isinstance(found, Reply):
        return found
    pipeline, preference = found
    at = order.at.timestamp() if order.at else 0.0
    signal = requests.switchover(arbiter, pipeline, preference, asker, to=order.to, at=at)
    return Sent(pipeline, signal)


def failover(arbiter: Arbiter, order: FailoverOrder, asker: Asker) -> Sent | Reply:
    """Record a failover and depose the leader; raises what `arbiter.requests.failover` does."""
    found = _find(arbiter, order.pipeline)
    if isinstance(found, Reply):
        return found
    pipeline, preference = found
    signal = requests.failover(arbiter, pipeline, preference, asker, to=order.to)
    return Sent(pipeline, signal)


def cancel(arbiter: Arbiter, order: CancelOrder, asker: Asker) -> Reply:
    """Take scheduled switchovers back; raises what `arbiter.requests.cancel` does."""
    found = _find(arbiter, order.pipeline)
    if isinstance(found, Reply):
        return found
    pipeline, _ = found
    taken = requests.cancel(arbiter, pipeline, asker)
    return Reply(
        OK,
        {
            "outcome": "cancelled",
            "pipeline": str(pipeline),
            "cancelled": [
                {"id": s.id, "kind": s.kind.value, "to": s.to, "at": s.at} for s in taken
            ],
        },
    )


def pause(arbiter: Arbiter, order: ChannelOrder) -> Reply:
    """Pause a channel that runs; raises as `_change` does."""
    _change(arbiter, order.channel, ChannelState.PAUSE)
    return _changed(order, ChannelState.PAUSE, "its leaders finish what is loading, then rest")


def resume(arbiter: Arbiter, order: ChannelOrder) -> Reply:
    """Let a paused channel go on; raises as `_change` does."""
    _change(arbiter, order.channel, ChannelState.START)
    return _changed(order, ChannelState.START, "its leaders go on within a cycle")


def _change(arbiter: Arbiter, name: str, state: ChannelState) -> Channel:
    """Set the state of a channel that is not stopped, once it is certain that it is not.

    Raises:
        Refused: it is stopped; leaving that is a decision of its own.
        NotFound: there is no such channel.
        Conflict: it keeps being changed.
    """
    for _ in range(_ATTEMPTS):
        channel = arbiter.channel(name)
        if channel.state is ChannelState.STOP:
            raise Refused(f"the channel {name} is stopped; `setl start {name}` starts it")
        if channel.state is state:
            return channel
        try:
            return arbiter.set_state(channel, state)
        except Conflict:
            continue
    raise Conflict(f"the channel {name!r} keeps being changed by somebody else; try again")


def _changed(order: ChannelOrder, state: ChannelState, text: str) -> Reply:
    body = {"outcome": "done", "channel": order.channel, "state": state.value, "answer": text}
    return Reply(OK, body)


def _find(arbiter: Arbiter, name: str) -> tuple[PipelineId, Preference] | Reply:
    facts: Facts = arbiter.facts()
    found = find_in(name, facts)
    if isinstance(found, Reply):
        return found
    return found, preference_of(facts.channels[found.channel], found.pipeline)
