"""How what is measured of a pipeline is distributed: which histograms there are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from setl.model.batch import Batch
from setl.model.histogram import STATEMENT_SECONDS, Histogram
from setl.run.measured.pace import Stage

_STAGE_SECONDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
_LAG_SECONDS = (
    0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0, 600.0, 1800.0, 3600.0,
)  # fmt: skip
_ROWS = (1.0, 10.0, 50.0, 100.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 2e4, 5e4, 1e5)
_BYTES = tuple(float(1 << power) for power in (8, 10, 12, 14, 16, 18, 20, 22, 24, 25, 26, 28))


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that is measured once a batch, a load, a statement or a heartbeat.

    Attributes:
        name: of the metric, with its unit.
        text: what is measured.
        bounds: upper bounds of the ranges in which it is counted.
        label: name of the label that divides it, "" if none does.
    """

    name: str
    text: str
    bounds: tuple[float, ...]
    label: str = ""


COMMIT_TO_VISIBLE = Measure(
    "setl_commit_to_visible_seconds",
    "From a commit at the source to when all up to it is in the target: of each heartbeat, or of"
    " each load where a source has none",
    _LAG_SECONDS,
)
STAGE = Measure(
    "setl_stage_duration_seconds",
    "Time in a stage: select of each batch, all others of each load; of transform and load the"
    " times of a load's tasks are added up",
    _STAGE_SECONDS,
    "stage",
)
LOAD = Measure(
    "setl_load_duration_seconds",
    "From when a load begins until its batches are acknowledged",
    _STAGE_SECONDS,
)
BATCH_ROWS = Measure("setl_batch_rows", "Row changes in a batch, as the source counts them", _ROWS)
BATCH_BYTES = Measure("setl_batch_bytes", "Bytes of the records in a batch", _BYTES)
LOAD_ROWS = Measure("setl_load_rows", "Row changes in a load, before compaction", _ROWS)
STATEMENT = Measure(
    "setl_statement_duration_seconds",
    "Time of a statement that writes rows, or of a bulk request, as a task waits for it",
    STATEMENT_SECONDS,
)

MEASURES = (COMMIT_TO_VISIBLE, STAGE, LOAD, BATCH_ROWS, BATCH_BYTES, LOAD_ROWS, STATEMENT)
"""All of them."""

Distributions = Mapping[tuple[Measure, str], Histogram]
"""By measure, and by the value of its label."""


class _Counts:
    """A histogram that is still being counted."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0


class Measured:
    """Collects histograms. Not safe for several threads at once: `Progress` has a lock."""

    def __init__(self) -> None:
        # By name: the hash of a measure would cost more than all the rest.
        self._counts: dict[tuple[str, str], tuple[Measure, _Counts]] = {}

    def observe(self, measure: Measure, *values: float, label: str = "") -> None:
        """Count values; costs about a microsecond each, so it is not for single rows."""
        own = self._of(measure, label)
        for value in values:
            own.counts[bisect_left(own.bounds, value)] += 1
            own.total += value

    def add(self, measure: Measure, histogram: Histogram, *, label: str = "") -> None:
        """Add what was counted elsewhere, such as in tasks, with the bounds of the measure."""
        if histogram.counts:
            own = self._of(measure, label)
            own.counts = [a + b for a, b in zip(own.counts, histogram.counts, strict=True)]
            own.total += histogram.total

    def took(self, batches: Sequence[Batch], seconds: float) -> None:
        """Count batches that were loaded together, in so many seconds."""
        self.observe(LOAD, seconds)
        self.observe(BATCH_ROWS, *[batch.rows for batch in batches])
        self.observe(BATCH_BYTES, *[batch.size for batch in batches])
        selected = [batch.closed - batch.opened for batch in batches if batch.closed]
        self.observe(STAGE, *selected, label=Stage.SELECT.value)

    def _of(self, measure: Measure, label: str) -> _Counts:
        found = self._counts.get((measure.name, label))
        if found is None:
            found = self._counts[measure.name, label] = measure, _Counts(measure.bounds)
        return found[1]

    def snapshot(self) -> Distributions:
        """What was counted so far."""
        return {
            (measure, label): Histogram(own.bounds, tuple(own.counts), own.total)
            for (_, label), (measure, own) in self._counts.items()
        }
