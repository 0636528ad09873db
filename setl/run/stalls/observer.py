"""Looks at a run from outside and says whether it stands still, without ever waiting for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Protocol

from setl.clock import Clock
from setl.load.target_view import TargetView
from setl.model.leadership import Leadership
from setl.run.measured.figures import RunState
from setl.run.measured.pace import Pace, Stage, Stall
from setl.run.measured.progress import Progress
from setl.run.stalls.stall import JobView, QueueView, Situation, diagnose
from setl.select.heartbeat import Heartbeat, HeartbeatStatus
from setl.select.reader import SelectLoop

_SPARK_AFTER = 5.0  # seconds in which nothing advanced, before Spark is asked about tasks
_WRITING = frozenset({Stage.TAKE_OVER, Stage.LOAD, Stage.CHECKPOINT})

Question = Callable[[], JobView | TargetView | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question that somebody else's thread asks.

    Attributes:
        value: the last answer, None before the first, or if there was nothing to say.
        age: seconds since it came.
        waiting: seconds for which the question has waited for its answer, 0 if it does not.
    """

    value: JobView | TargetView | None
    age: float
    waiting: float


class Asking(Protocol):
    """Asks questions that may take long, in threads of its own."""

    def ask(self, kind: str, key: Hashable, question: Question) -> Answer:
        """Have a question asked unless it is being asked, and return what is known; never waits.

        Args:
            kind: questions of one kind are asked one after another.
            key: which question it is; the answers to it are kept under this.
            question: asks; its SetlError counts as no answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Views:
    """What else of a pipeline can be looked at.

    Attributes:
        job: looks at the Spark job that loads; may block.
        target: looks at the target on behalf of an epoch; may block, but for some seconds only.
    """

    job: Callable[[], JobView | None] | None = None
    target: Callable[[int], TargetView] | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """A run as an observer needs it.

    Attributes:
        leadership: which one it is.
        progress: how it moves.
        select: its reading.
        heartbeat: writes to its source, None if nothing does.
        ended: whether it is over.
        views: what else can be looked at.
    """

    leadership: Leadership
    progress: Progress
    select: SelectLoop
    heartbeat: Heartbeat | None
    ended: Callable[[], bool]
    views: Views = field(default_factory=Views)


class Observer:
    """Follows one run. Used by one thread."""

    def __init__(self, run: Observed, clock: Clock, limit: float) -> None:
        """Follow a run.

        Args:
            run: the run.
            clock: for ages.
            limit: seconds without an advance that are no stall yet.
        """
        self.run = run
        self._clock = clock
        self._limit = limit
        self._entries = -1
        self._read_at = clock.monotonic()
        self._heartbeats = 0
        self._moves: dict[str, tuple[float, Hashable]] = {}
        self._waits: tuple[TargetView, float] | None = None

    def look(self, asking: Asking) -> Stall | None:
        """Look, ask what is worth asking, and diagnose."""
        progress = self.run.progress
        suspended = progress.state is RunState.SUSPENDED
        queue = self._queue()
        pace = progress.pace()
        job = self._job(pace, asking)
        target = self._target(pace, asking)
        self._follow("job", pace, job.movement if job and not job.silent else None)
        self._follow("target", pace, target.movement if target and not target.error else None)
        waits, hanging, age = (), None, 0.0
        if target is not None and (target.waits or target.hanging):
            self._waits = target, self._clock.monotonic()
        if self._waits is not None and pace.retrying is not None:
            seen, at = self._waits
            waits, hanging, age = seen.waits, seen.hanging, self._clock.monotonic() - at
        return diagnose(
            Situation(
                pace=progress.pace(),
                suspended=suspended,
                queue=queue,
                job=job,
                target=target,
                waits=waits,
                hanging=hanging,
                waits_age=age,
            ),
            self._limit,
        )

    def _queue(self) -> QueueView:
        status = self.run.select.status()
        self.run.progress.reads(status)
        heartbeats = self.run.heartbeat.status() if self.run.heartbeat else HeartbeatStatus()
        self.run.progress.report_heartbeat(heartbeats.error)
        written = heartbeats.written
        now = self._clock.monotonic()
        if status.entries != self._entries:
            self._entries, self._read_at, self._heartbeats = status.entries, now, written
        return QueueView(
            unacked=status.unacked,
            full=status.held_back,
            silent=now - self._read_at,
            heartbeats=written - self._heartbeats,
            blocked=status.blocked,
        )

    def _job(self, pace: Pace, asking: Asking) -> JobView | None:
        """Tasks that finish show that a long load advances, so this is asked early."""
        if (
            self.run.views.job is None
            or pace.stage is not Stage.LOAD
            or pace.in_stage < min(_SPARK_AFTER, self._limit / 4)
        ):
            return None
        answer = asking.ask("spark", self._key("job"), self.run.views.job)
        if answer.waiting >= self._limit / 2:
            return JobView(silent=answer.waiting)
        fresh = answer.age < pace.in_stage
        return answer.value if fresh and isinstance(answer.value, JobView) else None

    def _target(self, pace: Pace, asking: Asking) -> TargetView | None:
        """Servers are not asked for nothing: only when it already looks like a stall."""
        look, retrying = self.run.views.target, pace.retrying
        idle = pace.stage is Stage.SELECT and pace.in_stage >= self._limit
        lasting = retrying is not None and retrying.seconds >= self._limit / 2 and not idle
        failing = lasting and retrying is not None and retrying.stage in _WRITING
        writing = pace.stage in _WRITING and pace.still >= self._limit / 2
        if look is None or not (writing or failing):
            self._moves.pop("target", None)
            return None
        epoch = self.run.leadership.epoch
        answer = asking.ask("target", self._key("target"), lambda: look(epoch))
        since = pace.attempt if failing else pace.in_stage
        fresh = answer.age < min(since, self._limit)
        return answer.value if fresh and isinstance(answer.value, TargetView) else None

    def _follow(self, name: str, pace: Pace, movement: Hashable) -> None:
        """Tell the run's progress when something was seen to advance."""
        if movement is None:
            return
        entered = self._clock.monotonic() - pace.in_stage
        before = self._moves.get(name)
        # Within a tenth of a second it is the same stay in the stage.
        same_stay = before is not None and abs(before[0] - entered) < 0.1
        if same_stay and before is not None and before[1] != movement:
            self.run.progress.moved()
        if not same_stay or (before is not None and before[1] != movement):
            self._moves[name] = entered, movement

    def _key(self, what: str) -> Hashable:
        return what, self.run.leadership
