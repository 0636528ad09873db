"""When a load of tables waits, so that what matters more gets on."""

from __future__ import annotations

from collections.abc import Callable

from setl.channel.fields.load_limits import LoadLimits
from setl.clock import Clock
from setl.counting import count
from setl.systems.replicas import ReplicaBehind

_LOOK_SECONDS = 1.0  # after which it is seen whether a limit is still passed


class Throttle:
    """Holds the steps of a load back while a limit of the channel file is passed."""

    def __init__(self, limits: LoadLimits, lag: Callable[[], float | None], clock: Clock) -> None:
        """Nothing is held back yet.

        Args:
            limits: the limits.
            lag: seconds by which the target is behind, None if that is not known.
            clock: tells the time.
        """
        self._limits = limits
        self._lag = lag
        self._clock = clock
        self._not_before = 0.0
        self._replicas_known = 0.0
        self.count = 0
        self.waits_for = ""

    @property
    def now(self) -> bool:
        """Whether the next step has to wait, as far as is known. Asks nobody."""
        return self._clock.monotonic() < self._not_before

    def may_step(
        self, busy: Callable[[], int], replica: Callable[[], ReplicaBehind | None] | None = None
    ) -> bool:
        """Whether a step may begin; if not, it is not asked again for a while.

        Args:
            busy: asks the source how many statements it carries out.
            replica: asks which replica of the target is behind most; None if there is none.

        Raises:
            SetlError: what `busy` raises.
        """
        limits, lag = self._limits, self._lag()
        self.waits_for = ""
        if limits.lag is not None and lag is not None and lag > limits.lag:
            self.waits_for = f"the target is {lag:.1f} s behind"
        elif limits.threads_running is not None:
            running = busy()
            if running > limits.threads_running:
                self.waits_for = f"the source carries out {count(running, 'statement')}"
        if not self.waits_for and limits.replica_lag is not None and replica is not None:
            self.waits_for = self._replica(limits.replica_lag, replica)
        if not self.waits_for:
            return True
        self.wait_for(self.waits_for)
        return False

    def _replica(self, limit: float, replica: Callable[[], ReplicaBehind | None]) -> str:
        """What a replica is waited for; each is asked once a second at most."""
        now = self._clock.monotonic()
        if now < self._replicas_known:
            return ""
        behind = replica()
        if behind is not None and behind.seconds > limit:
            return str(behind)
        self._replicas_known = self._clock.monotonic() + _LOOK_SECONDS
        return ""

    def wait_for(self, what: str) -> None:
        """The next step waits for something that no limit is about."""
        self.waits_for = what
        self.count += 1
        self._not_before = self._clock.monotonic() + _LOOK_SECONDS

    def loaded(self, rows: int, seconds: float) -> None:
        """A step has loaded so many rows in so many seconds."""
        rate = self._limits.rows_per_second
        if rate:
            rest = rows / rate - seconds
            self._not_before = self._clock.monotonic() + max(0.0, rest)

    def most_rows(self, rows: int) -> int:
        """How many rows a step may have, if it would have so many: about those of a second."""
        rate = self._limits.rows_per_second
        return min(rows, rate) if rate else rows
