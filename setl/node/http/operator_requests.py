"""The requests that operators may make over HTTP, and how each reaches the arbiter.

All functions here block for as long as the arbiter's calls do.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from arbiter import requests
from arbiter.arbiter import Arbiter
from arbiter.requests import Requester
from arbiter.turns import Preference
from arbiter.values import ChannelState, Facts, PipelineId, Signal
from setl.node.http.probes import OK, Reply, find_in
from setl.node.stored import preference_of

_LONGEST_NAME = 512


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CancelRequest(_Request):
    """Take a scheduled switchover of a pipeline back."""

    pipeline: str = Field(min_length=1, max_length=_LONGEST_NAME)


class FailoverRequest(CancelRequest):
    """Make another node the leader; the one to be named is free to choose."""

    to: str = Field(default="", max_length=_LONGEST_NAME)


class SwitchoverRequest(FailoverRequest):
    """Let the leader drain and hand over, now or at a time that names its zone."""

    at: AwareDatetime | None = None


class ChannelRequest(_Request):
    """Pause or resume a channel."""

    channel: str = Field(min_length=1, max_length=_LONGEST_NAME)


class Sent(NamedTuple):
    """A request that is recorded and not answered yet."""

    pipeline: PipelineId
    signal: Signal


def switchover(arbiter: Arbiter, wanted: SwitchoverRequest, requester: Requester) -> Sent | Reply:
    """Record a switchover; raises what `arbiter.requests.switchover` does."""
    found = _find(arbiter, wanted.pipeline)
    if isinstance(found, Reply):
        return found
    pipeline, preference = found
    at = wanted.at.timestamp() if wanted.at else 0.0
    signal = requests.switchover(arbiter, pipeline, preference, requester, to=wanted.to, at=at)
    return Sent(pipeline, signal)


def failover(arbiter: Arbiter, wanted: FailoverRequest, requester: Requester) -> Sent | Reply:
    """Record a failover and depose the leader; raises what `arbiter.requests.failover` does."""
    found = _find(arbiter, wanted.pipeline)
    if isinstance(found, Reply):
        return found
    pipeline, preference = found
    signal = requests.failover(arbiter, pipeline, preference, requester, to=wanted.to)
    return Sent(pipeline, signal)


def cancel(arbiter: Arbiter, wanted: CancelRequest, requester: Requester) -> Reply:
    """Take scheduled switchovers back; raises what `arbiter.requests.cancel` does."""
    found = _find(arbiter, wanted.pipeline)
    if isinstance(found, Reply):
        return found
    pipeline, _ = found
    taken = requests.cancel(arbiter, pipeline, requester)
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


def pause(arbiter: Arbiter, wanted: ChannelRequest) -> Reply:
    """Pause a channel that runs; raises what `arbiter.requests.pause_or_resume` does."""
    requests.pause_or_resume(arbiter, wanted.channel, ChannelState.PAUSE)
    return _changed(wanted, ChannelState.PAUSE, "its leaders finish what is loading, then rest")


def resume(arbiter: Arbiter, wanted: ChannelRequest) -> Reply:
    """Let a paused channel go on; raises what `arbiter.requests.pause_or_resume` does."""
    requests.pause_or_resume(arbiter, wanted.channel, ChannelState.START)
    return _changed(wanted, ChannelState.START, "its leaders go on within a cycle")


def _changed(wanted: ChannelRequest, state: ChannelState, text: str) -> Reply:
    body = {"outcome": "done", "channel": wanted.channel, "state": state.value, "answer": text}
    return Reply(OK, body)


def _find(arbiter: Arbiter, name: str) -> tuple[PipelineId, Preference] | Reply:
    facts: Facts = arbiter.facts()
    found = find_in(name, facts)
    if isinstance(found, Reply):
        return found
    return found, preference_of(facts.channels[found.channel], found.pipeline)
