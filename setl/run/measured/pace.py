"""How a run moves: its stage, since when, and when something last advanced in it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum

from setl.clock import Clock
from setl.error_text import READ_MORE, ErrorText

Order = tuple[int, tuple[int, int]]
"""How far a run has come, see `setl.model.checkpoint.Checkpoint.order`."""


class Stage(Enum):
    """Where a run is. Transform and Load are one Spark job, whose mark is LOAD."""

    NONE = ""  # it does not run
    TAKE_OVER = "take over"
    SELECT = "select"
    EXTRACT = "extract"
    TRANSFORM = "transform"
    LOAD = "load"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Retrying:
    """A run that has failed and not succeeded since.

    Attributes:
        stage: where it failed last.
        attempts: how often it failed in a row.
        same: how often of these it failed with the last error, numbers in it aside.
        seconds: since it entered the stage in which it failed first.
        error: the last error.
    """

    stage: Stage
    attempts: int
    same: int
    seconds: float
    error: str


@dataclass(frozen=True, slots=True)
class Pace:
    """How a run moves, as of one moment; all times in seconds until then.

    Attributes:
        stage: where it is.
        in_stage: since it came there.
        still: since something advanced: it came to the stage, or something was seen to advance
            inside it, such as a task that finished.
        attempt: since it began, or began again after an error.
        retrying: set while it fails and tries again.
    """

    stage: Stage = Stage.NONE
    in_stage: float = 0.0
    still: float = 0.0
    attempt: float = 0.0
    retrying: Retrying | None = None


class Reason(Enum):
    """Why a pipeline stands still."""

    LOCK = "waiting for lock"
    TARGET_SLOW = "target slow"
    TARGET_SILENT = "target does not answer"
    BACK_PRESSURE = "back-pressure"
    SOURCE_SILENT = "source silent"
    TRANSACTION = "waiting for transaction"
    ARBITER = "waiting for ZooKeeper"
    SPARK = "Spark does not run the job"
    TASK_SLOW = "task slow"
    RETRYING = "retrying"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stall:
    """A pipeline that stands still.

    Attributes:
        stage: where.
        seconds: for how long nothing has advanced.
        reason: why.
        detail: who conflicts with it, for people.
    """

    stage: Stage
    seconds: float
    reason: Reason
    detail: str = ""

    def __str__(self) -> str:
        return f"{self._summary}: {self.detail}" if self.detail else self._summary

    @property
    def text(self) -> ErrorText:
        """Both forms: the detail may quote errors, statements and accounts of servers."""
        return ErrorText(str(self), f"{self._summary}; {READ_MORE}")

    @property
    def _summary(self) -> str:
        return f"{self.stage.value}: no progress for {self.seconds:.0f} s, {self.reason.value}"


class PaceTracker:
    """Notes what a run does and when. Not thread-safe: whoever owns it has a lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stage = Stage.NONE
        self._since = self._began = clock.monotonic()
        self._moved = -math.inf
        self._failures = self._same = 0
        self._failing_since = 0.0
        self._failed_in = Stage.NONE
        self._error = ""
        self._furthest: Order | None = None

    def go_on_from(self, before: PaceTracker) -> None:
        """Count the failures of an earlier run of the same pipeline as this one's."""
        self._failures, self._same = before._failures, before._same
        self._failing_since, self._failed_in = before._failing_since, before._failed_in
        self._error, self._furthest = before._error, before._furthest

    def enter(self, stage: Stage) -> None:
        """The run comes to a stage; the take-over begins an attempt."""
        now = self._clock.monotonic()
        if stage is Stage.TAKE_OVER:
            self._began = now
        if stage is not self._stage:
            self._stage, self._since = stage, now

    def moved(self) -> None:
        """Something advanced inside the stage."""
        self._moved = self._clock.monotonic()

    def failed(self, error: str, reached: Order | None = None) -> None:
        """The run rolls back and will try again.

        Args:
            error: why.
            reached: how far it had come, None if it had not begun.
        """
        # Waiting for the source is no part of the trouble, however long it took before.
        if not self._failures:
            waiting = self._stage is Stage.SELECT
            self._failing_since = self._clock.monotonic() if waiting else self._since
        self._same = self._same + 1 if _alike(error, self._error) else 1
        self._failures += 1
        self._failed_in, self._error = self._stage, error
        if reached is not None:
            self._furthest = max(reached, self._furthest or reached)

    def succeeded(self, reached: Order | None = None) -> bool:
        """A batch is acknowledged; returns whether the run gets on.

        An attempt begins at the checkpoint and first does again what was done before. That is no
        success: what failed comes behind it.

        Args:
            reached: up to where it is kept that it has come, None if that is further than ever.
        """
        again = reached is not None and self._furthest is not None and reached <= self._furthest
        if self._failures and again:
            return False
        self.forget_failures()
        self.moved()
        return True

    def forget_failures(self) -> None:
        """What failed before is over, or not tried again."""
        self._failures = self._same = 0
        self._error = ""
        self._furthest = None

    def pace(self) -> Pace:
        """How the run moves now."""
        now = self._clock.monotonic()
        return Pace(
            stage=self._stage,
            in_stage=now - self._since,
            still=now - max(self._since, self._moved),
            attempt=now - self._began,
            retrying=Retrying(
                self._failed_in, self._failures, self._same, now - self._failing_since, self._error
            )
            if self._failures
            else None,
        )


def _alike(one: str, other: str) -> bool:
    """Whether two errors differ in nothing but numbers, such as those of batches or ports."""
    return re.sub(r"\d+", "0", one) == re.sub(r"\d+", "0", other)
