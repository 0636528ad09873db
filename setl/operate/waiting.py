"""Waits until a pipeline has brought everything up to a position of its source to its target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.values import ChannelState, PipelineId
from setl.clock import Clock
from setl.errors import SetlError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition, Position
from setl.operate.positions.position import position_text
from setl.operate.positions.stored import Stored, opened_states, read_stored
from setl.run.table_loads.choice import entries_to_load, is_loading
from setl.systems.registry import system_of

if TYPE_CHECKING:
    from setl.channel.file import Pipeline

_GRACE = 5.0
"""Seconds for which a pipeline may say that it failed: its next attempt may begin just then."""

_POLL = 0.2


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
class Waited:
    """How far a wait is.

    Attributes:
        verdict: whether it is over, and how.
        position: what is waited for.
        reached: how far the stored checkpoint is, None if nothing is stored or known.
        why: why it is not passed, in words; "" if it is.
        seconds: since the wait began.
        behind: from `reached` to the position in `unit`, None if that cannot be compared.
        unit: ``bytes`` or ``records``.
    """

    verdict: Verdict
    position: Position
    reached: Position | None = None
    why: str = ""
    seconds: float = 0.0
    behind: int | None = None
    unit: str = "bytes"

    @property
    def position_text(self) -> str:
        """The position for people: its GTIDs where it is known by them alone."""
        if isinstance(self.position, BinlogPosition) and not self.position.file:
            return f"GTID {self.position.gtid}"
        return position_text(self.position)


def missing_to(checkpoint: Checkpoint | None, *, passed: bool, wanted: Sequence[str] = ()) -> str:
    """Why a checkpoint does not say that all up to a position is in the target; "" if it does.

    Args:
        checkpoint: what is stored, None if nothing is.
        passed: whether its position to read on from lies at the position or behind it.
        wanted: entries of the channel file whose tables are to be loaded as a whole.
    """
    if checkpoint is None:
        return "no checkpoint is stored yet"
    if not passed:
        return f"it is at {checkpoint}"
    if is_loading(checkpoint.load, wanted):
        return "whole tables are still being loaded"
    return ""


def judge(why: str, health: Health, *, failed_for: float, left: float) -> Verdict:
    """What to do next.

    Args:
        why: see `missing_to`.
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
    position: Position,
    *,
    arbiter: Arbiter,
    health: Callable[[], Health],
    timeout: float,
    clock: Clock,
    pause: Callable[[float], None],
    progress: Callable[[Waited], None] | None = None,
) -> Waited:
    """Wait until the stored checkpoint says that all before a position is in the target.

    Nothing is written. A server that does not answer is asked again until the timeout.

    Args:
        pipeline: from a channel file with its references resolved.
        ident: its full name.
        position: see `SourceSystem.position_to_reach`.
        arbiter: a session.
        health: tells how the pipeline does.
        timeout: seconds to wait at most.
        clock: for the timeout.
        pause: waits for so many seconds.
        progress: is told how far it is, each time that was looked at.

    Raises:
        FatalError: what is stored cannot be read.
        ConfigurationError: the target refuses the account.
    """
    with opened_states(pipeline, ident.channel) as ask:
        return _wait_for(
            pipeline,
            position,
            look=lambda: read_stored(pipeline, ident.channel, arbiter, ask),
            health=health,
            timeout=timeout,
            clock=clock,
            pause=pause,
            progress=progress,
        )


def _wait_for(
    pipeline: Pipeline,
    position: Position,
    *,
    look: Callable[[], Stored],
    health: Callable[[], Health],
    timeout: float,
    clock: Clock,
    pause: Callable[[float], None],
    progress: Callable[[Waited], None] | None,
) -> Waited:
    source = system_of(pipeline.source)
    wanted = entries_to_load(pipeline)
    began = clock.monotonic()
    failing: float | None = None
    while True:
        reached: Checkpoint | None = None
        behind: int | None = None
        try:
            stored = look()
            reached = stored.checkpoint
            passed = reached is not None and source.passed(reached.resume, position)
            why = stored.damage or missing_to(reached, passed=passed, wanted=wanted)
            if reached is not None and not passed:
                behind = _distance(pipeline, reached.resume, position)
        except TransientError as error:
            why = str(error)
        now = clock.monotonic()
        seen = health() if why else Health(ChannelState.START)
        failing = (now if failing is None else failing) if seen.failed else None
        verdict = judge(
            why,
            seen,
            failed_for=0.0 if failing is None else now - failing,
            left=began + timeout - now,
        )
        waited = Waited(
            verdict,
            position,
            None if reached is None else reached.resume,
            _explained(why, seen, verdict),
            now - began,
            behind,
            source.unit,
        )
        if verdict is not Verdict.WAITING:
            return waited
        if progress is not None:
            progress(waited)
        pause(_POLL)


def _distance(pipeline: Pipeline, reached: Position, position: Position) -> int | None:
    try:
        return system_of(pipeline.source).distance(reached, position)
    except SetlError:  # only for people; the wait itself goes on
        return None


def _explained(why: str, health: Health, verdict: Verdict) -> str:
    if not why:
        return ""
    if verdict is Verdict.STOPPED and health.wanted is not ChannelState.START:
        why = f"{why}, and its channel is set to {health.wanted.value}"
    return f"{why}; its last error: {health.error}" if health.error else why
