"""Tells by stored checkpoints when a target has what its source has shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.values import ChannelState, PipelineId
from setl.bulk.position_waiter import Arrival, WaitOutcome
from setl.clock import Clock
from setl.errors import SetlError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.stream_end import StreamEnd
from setl.operate.positions.stored import read_stored
from setl.operate.waiting import Health, Verdict, judge
from setl.run.table_loads.choice import entries_to_load, is_loading
from setl.run.verification.compared_source import stream_end
from setl.systems.registry import system_of

if TYPE_CHECKING:
    from setl.channel.file import Pipeline

_POLL = 0.2
_LOADING = "whole tables are still being loaded, so rows of them may be missing"


@dataclass(frozen=True, slots=True)
class WaitContext:
    """What `StoredArrivals` needs.

    Attributes:
        pipelines: those that bring the target forward, their references resolved. Several share a
            topic of several partitions.
        arbiter: a session.
        health: tells how one of them does.
        nid: as whom to ask the source.
        timeout: seconds that a wait takes at most.
        clock: for the timeout.
        pause: waits for so many seconds.
        progress: is told in words what is waited for.
    """

    pipelines: Mapping[PipelineId, Pipeline]
    arbiter: Arbiter
    health: Callable[[PipelineId], Health]
    nid: str
    timeout: float
    clock: Clock
    pause: Callable[[float], None]
    progress: Callable[[str], None]


class StoredArrivals:
    """`setl.bulk.position_waiter.PositionWaiter` of pipelines that other processes run."""

    def __init__(self, context: WaitContext) -> None:
        """Nothing is asked yet."""
        self._context = context
        self._failing: dict[PipelineId, float] = {}

    def end(self) -> StreamEnd | None:
        """See `PositionWaiter.end`."""
        ident, pipeline = next(iter(self._context.pipelines.items()))
        position_to_reach = system_of(pipeline.source).position_to_reach
        return stream_end(
            pipeline, lambda: position_to_reach(pipeline, ident.channel, self._context.nid, "now")
        )

    def wait(self, end: StreamEnd) -> Arrival:
        """See `PositionWaiter.wait`."""
        until = self._context.clock.monotonic() + self._context.timeout
        self._failing.clear()
        notes: list[str] = []
        for ident, pipeline in self._context.pipelines.items():
            found = self._wait_for(ident, pipeline, end, until)
            if found.wait_outcome is not WaitOutcome.CAUGHT_UP:
                return found
            notes.append(found.why)
        return Arrival(WaitOutcome.CAUGHT_UP, next(filter(None, notes), ""))

    def _wait_for(
        self, ident: PipelineId, pipeline: Pipeline, end: StreamEnd, until: float
    ) -> Arrival:
        context, passed = self._context, system_of(pipeline.source).passed
        wanted = entries_to_load(pipeline)
        while True:
            reached: Checkpoint | None = None
            try:
                reached = read_stored(pipeline, ident.channel, context.arbiter).checkpoint
                if reached is not None and end.is_past(reached, passed):
                    loading = is_loading(reached.load, wanted)
                    return Arrival(WaitOutcome.CAUGHT_UP, _LOADING if loading else "")
                why = _distance(pipeline, reached, end)
            except TransientError as error:
                why = f"how far it is cannot be read: {error}"
            verdict, health = self._judged(ident, why, until)
            if verdict is not Verdict.WAITING:
                return Arrival(
                    WaitOutcome.LATE, _late(ident, verdict, health, why, context.timeout)
                )
            context.progress(f"waits for {ident}: {why}")
            context.pause(_POLL)

    def _judged(self, ident: PipelineId, why: str, until: float) -> tuple[Verdict, Health]:
        now, health = self._context.clock.monotonic(), self._context.health(ident)
        if not health.failed:
            self._failing.pop(ident, None)
        since = self._failing.setdefault(ident, now) if health.failed else now
        return judge(why, health, failed_for=now - since, left=until - now), health


def _late(ident: PipelineId, verdict: Verdict, health: Health, why: str, timeout: float) -> str:
    if verdict is Verdict.TIMEOUT:
        return f"{ident} is not there after {timeout:g} s: {why}"
    if health.wanted is not ChannelState.START:
        return f"{ident} does not run, its channel is set to {health.wanted.value}: {why}"
    return f"{ident} does not run, its last error is: {health.error or 'unknown'}; {why}"


def _distance(pipeline: Pipeline, reached: Checkpoint | None, end: StreamEnd) -> str:
    """How far a pipeline is from an end, in words."""
    if reached is None:
        return "it has stored no checkpoint yet"
    if end.position is None:
        return f"it is {max(0.0, end.time - reached.timestamp):,.0f} s behind"
    source = system_of(pipeline.source)
    try:
        distance = source.distance(reached.resume, end.position)
    except SetlError:  # only for people
        distance = None
    if distance is None:
        return f"it is at {reached.resume}, and {end.position} is wanted"
    return f"it is {distance:,} {source.unit} behind"
