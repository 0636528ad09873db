"""How the leader of a pipeline knows that its target has what the source has shown."""

from __future__ import annotations

import threading
from collections.abc import Callable

from setl.bulk.position_waiter import Arrival, WaitOutcome
from setl.clock import Clock
from setl.model.checkpoint import Checkpoint
from setl.model.position import Position
from setl.model.stream_end import StreamEnd
from setl.waiting import polling

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
        for _ in polling(
            self._longest, _POLL_SECONDS, monotonic=self._clock.monotonic, pause=self._stopping.wait
        ):
            reached = self._reached()
            if reached is not None and end.is_past(reached, self._passed):
                return Arrival(WaitOutcome.CAUGHT_UP)
        if self._stopping.is_set():
            return Arrival(WaitOutcome.LATE, "the pipeline is ending")
        why = f"the pipeline did not come there within {self._longest:g} s"
        return Arrival(WaitOutcome.LATE, why)
