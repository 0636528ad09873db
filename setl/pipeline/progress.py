"""What a pipeline has done so far, as numbers for status, metrics and people."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field, replace
from enum import Enum

from setl.clock import Clock

_SAMPLES = 4096  # lag samples kept: over an hour of heartbeats at one a second
_RATE_WINDOW = 10.0  # seconds over which rows a second are averaged


class RunState(Enum):
    """What a pipeline is doing on the node that leads it."""

    STANDBY = "standby"
    TAKING = "taking over"
    RUNNING = "running"
    RETRYING = "retrying"
    SUSPENDED = "suspended"
    PAUSED = "paused"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Figures:
    """A snapshot; counters start at 0 with each leadership.

    Attributes:
        state: what the pipeline is doing.
        error: the error that it is retrying after or failed with, "" if none.
        position: up to where everything is applied, as text.
        rows_total: row changes applied since the pipeline's first start, over all leaderships.
        rows_applied: row changes decoded and applied, before compaction.
        rows_redelivered: of these, changes that an earlier leadership had already applied.
        rows_loopback: row changes dropped because this channel wrote them.
        rows_unmapped: rows entries dropped because no mapping wants their table.
        upserts: rows or documents written, after compaction.
        deletes: deletes sent, after compaction.
        stale: writes the target refused because it holds something newer.
        batches: batches acknowledged.
        loads: Spark jobs that loaded them; fewer than batches when the pipeline is behind.
        retries: rollbacks.
        pending: batches selected and not yet acknowledged.
        lag: seconds from commit at the source to applied, None while unknown.
        lag_p50: median of the samples kept, None without samples.
        lag_p99: 99th percentile of the samples kept.
        rows_per_second: average of the last seconds.
        first_applied_at: when this leadership applied its first batch with rows, seconds since
            1970, None before.
        seconds: time spent by stage.
    """

    state: RunState = RunState.STANDBY
    error: str = ""
    position: str = ""
    rows_total: int = 0
    rows_applied: int = 0
    rows_redelivered: int = 0
    rows_loopback: int = 0
    rows_unmapped: int = 0
    upserts: int = 0
    deletes: int = 0
    stale: int = 0
    batches: int = 0
    loads: int = 0
    retries: int = 0
    pending: int = 0
    lag: float | None = None
    lag_p50: float | None = None
    lag_p99: float | None = None
    rows_per_second: float = 0.0
    first_applied_at: float | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])


class Progress:
    """Collects the figures of one pipeline; written by its threads, read by any."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._figures = Figures()
        self._lags: deque[float] = deque(maxlen=_SAMPLES)
        self._rows: deque[tuple[float, int]] = deque()

    def enter(self, state: RunState, error: str = "") -> None:
        """Say what the pipeline is doing now, and with which error."""
        with self._lock:
            self._figures = replace(self._figures, state=state, error=error)

    def enter_if(self, current: RunState, state: RunState) -> None:
        """Go on to `state` and forget the error, but only from `current`."""
        with self._lock:
            if self._figures.state is current:
                self._figures = replace(self._figures, state=state, error="")

    def add(self, **counters: int) -> None:
        """Add to counters, named as in `Figures`."""
        with self._lock:
            current = self._figures
            self._figures = replace(
                current, **{k: getattr(current, k) + v for k, v in counters.items()}
            )

    def spent(self, stage: str, seconds: float) -> None:
        """Add to the time spent in a stage."""
        with self._lock:
            spent = dict(self._figures.seconds)
            spent[stage] = spent.get(stage, 0.0) + seconds
            self._figures = replace(self._figures, seconds=spent)

    def resumed(self, position: str, rows_total: int) -> None:
        """The pipeline goes on from a stored checkpoint."""
        with self._lock:
            self._figures = replace(self._figures, position=position, rows_total=rows_total)

    def applied(self, rows: int, position: str, pending: int) -> None:
        """A load of `rows` row changes is acknowledged up to `position`."""
        with self._lock:
            now = self._clock.now()
            first = self._figures.first_applied_at
            self._figures = replace(
                self._figures,
                position=position,
                pending=pending,
                rows_total=self._figures.rows_total + rows,
                first_applied_at=now if first is None and rows else first,
            )
            if rows:
                self._rows.append((self._clock.monotonic(), rows))

    def sample_lag(self, seconds: float) -> None:
        """A heartbeat written `seconds` ago at the source has passed through the pipeline."""
        with self._lock:
            self._lags.append(max(0.0, seconds))
            self._figures = replace(self._figures, lag=max(0.0, seconds))

    def figures(self) -> Figures:
        """The figures as of now."""
        with self._lock:
            horizon = self._clock.monotonic() - _RATE_WINDOW
            while self._rows and self._rows[0][0] < horizon:
                self._rows.popleft()
            lags = sorted(self._lags)
            return replace(
                self._figures,
                rows_per_second=sum(n for _, n in self._rows) / _RATE_WINDOW,
                lag_p50=percentile(lags, 0.50),
                lag_p99=percentile(lags, 0.99),
            )


def percentile(ordered: list[float], fraction: float) -> float | None:
    """The value below which `fraction` of the ordered samples lie; None without samples."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]
