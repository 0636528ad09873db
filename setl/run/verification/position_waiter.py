"""How the leader of a pipeline knows that its target has what the source has shown."""

from __future__ import annotations

import threading
from collections.abc import Callable

from setl.bulk.position_waiter import Arrival, WaitOutcome
from setl.clock import Clock
from setl.model.checkpoint import Checkpoint
from setl.model.position import Position
from setl.model.stream_end import StreamEnd

_POLL_SECONDS = 0.05
_LONGEST_SECONDS = 30.0  # a pipeline that is further behind is left alone


class RunPositionWaiter:
    """Looks at how far the run has come, in the same process.

    See `setl.bulk.position_waiter.PositionWaiter`.

    Called by the thread that verifies, never by that of the run.
    """

    def __init__(
        self,
        *,
        end: Callable[[], StreamEnd],
        passed: Callable[[Position, Position], bool],
        reached: Callable[[], Checkpoint | None],
        stopping: threading.Event,
        clock: Clock,
        longest: float = _LONGEST_SECONDS,
    ) -> None:
        """Nothing is asked yet.

        Args:
            end: asks for the end of the source's stream; raises SetlError.
            passed: see `SourceSystem.passed`.
            reached: up to where everything is applied.
            stopping: set when nobody waits any more.
            clock: for the limit of a wait.
            longest: seconds that a wait may take.
        """
        self._end = end
        self._passed = passed
        self._reached = reached
        self._stopping = stopping
        self._clock = clock
        self._longest = longest

    def end(self) -> StreamEnd:
        """See `PositionWaiter.end`."""
        return self._end()

    def wait(self, end: StreamEnd) -> Arrival:
        """See `PositionWaiter.wait`."""
        until = self._clock.monotonic() + self._longest
        while not self._is_past(end):
            if self._clock.monotonic() >= until:
                why = f"the pipeline did not come there within {self._longest:g} s"
                return Arrival(WaitOutcome.LATE, why)
            if self._stopping.wait(_POLL_SECONDS):
                return Arrival(WaitOutcome.LATE, "the pipeline is ending")
        return Arrival(WaitOutcome.CAUGHT_UP)

    def _is_past(self, end: StreamEnd) -> bool:
        """Whether everything before an end is applied."""
        reached = self._reached()
        return reached is not None and end.is_past(reached, self._passed)
