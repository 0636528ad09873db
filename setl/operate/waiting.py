"""Waits until pipelines that other processes run have brought everything up to a position over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.values import ChannelState, PipelineId
from setl.bulk.position_waiter import Arrival, WaitOutcome
from setl.clock import Clock
from setl.errors import SetlError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition, Position
from setl.model.stream_end import StreamEnd
from setl.operate.positions.position import position_text
from setl.operate.positions.stored import opened_states, read_stored
from setl.run.table_loads.choice import entries_to_load, is_loading
from setl.run.verification.compared_source import stream_end
from setl.systems.registry import system_of
from setl.waiting import polling

if TYPE_CHECKING:
    from setl.channel.file import Pipeline

_GRACE = 5.0
"""Seconds for which a pipeline may say that it failed: its next attempt may begin just then."""

_POLL = 0.2
_LOADING = "whole tables are still being loaded"


class Verdict(Enum):
    """What became of a wait."""

    WAITING = "waiting"
    PASSED = "passed"
    TIMEOUT = "timeout"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Health:
    """What is known of a pipeline beside its checkpoint.

    Attributes:
        wanted: the state that its channel is set to.
        failed: whether whoever leads it says that it has failed.
        error: its last error, "" if there is none or nobody says.
    """

    wanted: ChannelState
    failed: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class WaitContext:
    """With what is waited.

    Attributes:
        arbiter: a session.
        health: tells how a pipeline does.
        clock: for time limits.
        pause: waits for so many seconds.
    """

    arbiter: Arbiter
    health: Callable[[PipelineId], Health]
    clock: Clock
    pause: Callable[[float], object]


@dataclass(frozen=True, slots=True)
class Waited:
    """How far a wait is.

    Attributes:
        verdict: whether it is over, and how.
        position: what is waited for; None for a time.
        reached: how far the stored checkpoint is, None if nothing is stored or known.
        why: why it is not passed, in words; "" if it is.
        seconds: since the wait began.
        behind: from `reached` to the position in `unit`, None if that cannot be compared.
        unit: ``bytes`` or ``records``.
        loading: whether whole tables are still being loaded.
    """

    verdict: Verdict
    position: Position | None
    reached: Position | None = None
    why: str = ""
    seconds: float = 0.0
    behind: int | None = None
    unit: str = "bytes"
    loading: bool = False

    @property
    def position_text(self) -> str:
        """The position for people: its GTIDs where it is known by them alone."""
        if isinstance(self.position, BinlogPosition) and not self.position.file:
            return f"GTID {self.position.gtid}"
        return position_text(self.position)


def judge(why: str, health: Health, *, failed_for: float, left: float) -> Verdict:
    """What to do next.

    Args:
        why: why a wait is not over, "" if it is.
        health: what is known of the pipeline.
        failed_for: seconds for which it has been said to have failed without a break.
        left: seconds until the timeout.
    """
    if not why:
        return Verdict.PASSED
    if health.wanted is not ChannelState.START or failed_for >= _GRACE:
        return Verdict.STOPPED
    return Verdict.TIMEOUT if left <= 0 else Verdict.WAITING


def wait_for(
    pipeline: Pipeline,
    ident: PipelineId,
    end: StreamEnd,
    context: WaitContext,
    *,
    timeout: float,
    progress: Callable[[Waited], None],
    loads_too: bool = True,
) -> Waited:
    """Wait until the stored checkpoint says that all before an end is in the target.

    Nothing is written. A server that does not answer is asked again until the timeout.

    Args:
        pipeline: from a channel file with its references resolved.
        ident: its full name.
        end: see `SourceSystem.position_to_reach`.
        context: with what is waited.
        timeout: seconds to wait at most.
        progress: is called with how far it is, each time that was looked at.
        loads_too: whether tables that are loaded as a whole have to be complete, too.

    Raises:
        FatalError: what is stored cannot be read.
        ConfigurationError: the target refuses the account.
    """
    clock, source, wanted = context.clock, system_of(pipeline.source), entries_to_load(pipeline)
    began = clock.monotonic()
    failing: float | None = None
    with opened_states(pipeline, ident.channel) as ask:
        for left in polling(timeout, _POLL, monotonic=clock.monotonic, pause=context.pause):
            reached, behind, loading = None, None, False
            try:
                stored = read_stored(pipeline, ident.channel, context.arbiter, ask)
                reached = stored.checkpoint
                loading = reached is not None and is_loading(reached.load, wanted)
                past = reached is not None and end.is_past(reached, source.passed)
                behind = None if past else _distance(pipeline, reached, end)
                far = f", {behind:,} {source.unit} behind" if behind else ""
                why = stored.damage or _why_not_past(reached, end, past=past, far=far)
                if not why and loads_too and loading:
                    why = _LOADING
            except TransientError as error:
                why = str(error)
            now = clock.monotonic()
            seen = context.health(ident) if why else Health(ChannelState.START)
            failing = (now if failing is None else failing) if seen.failed else None
            verdict = judge(
                why, seen, failed_for=0.0 if failing is None else now - failing, left=left
            )
            waited = Waited(
                verdict,
                end.position,
                None if reached is None else reached.resume,
                _explained(why, seen, verdict),
                now - began,
                behind,
                source.unit,
                loading,
            )
            if verdict is not Verdict.WAITING:
                return waited
            progress(waited)
    raise AssertionError("the last look gives a verdict")


def _why_not_past(reached: Checkpoint | None, end: StreamEnd, *, past: bool, far: str) -> str:
    """Why a checkpoint does not say that all before an end is in the target; "" if it does."""
    if reached is None:
        return "no checkpoint is stored yet"
    if past:
        return ""
    if end.position is None:
        return f"it is {max(0.0, end.time - reached.timestamp):,.0f} s behind"
    return f"it is at {reached}{far}"


def _distance(pipeline: Pipeline, reached: Checkpoint | None, end: StreamEnd) -> int | None:
    if reached is None or end.position is None:
        return None
    try:
        return system_of(pipeline.source).distance(reached.resume, end.position)
    except SetlError:  # only for people; the wait itself goes on
        return None


def _explained(why: str, health: Health, verdict: Verdict) -> str:
    if not why:
        return ""
    if verdict is Verdict.STOPPED and health.wanted is not ChannelState.START:
        why = f"{why}, and its channel is set to {health.wanted.value}"
    return f"{why}; its last error: {health.error}" if health.error else why


class StoredPositionWaiter:
    """`setl.bulk.position_waiter.PositionWaiter` of pipelines that other processes run."""

    def __init__(
        self,
        pipelines: Mapping[PipelineId, Pipeline],
        context: WaitContext,
        *,
        nid: str,
        timeout: float,
        show: Callable[[str], None],
    ) -> None:
        """Nothing is asked yet.

        Args:
            pipelines: those that bring the target forward, their references resolved. Several
                share a topic of several partitions.
            context: with what is waited.
            nid: as whom to ask the source.
            timeout: seconds that a wait takes at most.
            show: is called with what is waited for, in words.
        """
        self._pipelines = pipelines
        self._context = context
        self._nid = nid
        self._timeout = timeout
        self._show = show

    def end(self) -> StreamEnd | None:
        """See `PositionWaiter.end`."""
        ident, pipeline = next(iter(self._pipelines.items()))
        position_to_reach = system_of(pipeline.source).position_to_reach
        return stream_end(
            pipeline, lambda: position_to_reach(pipeline, ident.channel, self._nid, "now")
        )

    def wait(self, end: StreamEnd) -> Arrival:
        """See `PositionWaiter.wait`."""
        clock = self._context.clock
        until, loading = clock.monotonic() + self._timeout, False
        for ident, pipeline in self._pipelines.items():

            def show(waited: Waited, ident: PipelineId = ident) -> None:
                self._show(f"waits for {ident}: {waited.why}")

            left = max(0.0, until - clock.monotonic())
            waited = wait_for(
                pipeline, ident, end, self._context, timeout=left, progress=show, loads_too=False
            )
            if waited.verdict is not Verdict.PASSED:
                late = waited.verdict is Verdict.TIMEOUT
                how = f"is not there after {self._timeout:g} s" if late else "does not run"
                return Arrival(WaitOutcome.LATE, f"{ident} {how}: {waited.why}")
            loading = loading or waited.loading
        note = f"{_LOADING}, so rows of them may be missing" if loading else ""
        return Arrival(WaitOutcome.CAUGHT_UP, note)
