"""Notes how batches pass through the stages, and tells it when they have ended."""

from __future__ import annotations

from collections.abc import Sequence

from setl.clock import Clock
from setl.model.batch import Batch
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.run.tracing.trace import BatchTrace, Span, Tracer


class Course:
    """Of the batches that are applied together; used by one run's thread.

    Does nothing without a tracer.
    """

    def __init__(self, tracer: Tracer | None, leadership: Leadership, clock: Clock) -> None:
        self._tracer = tracer
        self._leadership = leadership
        self._clock = clock
        self._batches: Sequence[Batch] = ()
        self._spans: list[Span] = []
        self._since = 0.0

    def begins(self, batches: Sequence[Batch]) -> None:
        """Extract begins."""
        if self._tracer is not None:
            self._batches, self._spans, self._since = batches, [], self._clock.now()

    def extracted(self) -> None:
        """Extract has ended."""
        if self._tracer is not None:
            self._passed("extract", self._clock.now())

    def loads(self) -> None:
        """What runs on Spark begins now."""
        if self._tracer is not None:
            self._since = self._clock.now()

    def loaded(self, report: Loaded) -> None:
        """The target has everything.

        Transform and Load are one job. Transform counts as over when the first task begins to
        write. That is told by the clock of where the task ran, so it is kept within the job.
        """
        if self._tracer is not None and report.rows:
            now = self._clock.now()
            wrote = min(max(report.began or now, self._since), now)
            self._passed("transform", wrote)
            self._passed("load", now)

    def acknowledged(self) -> None:
        """The batches have ended well."""
        self._export("")

    def failed(self, error: str) -> None:
        """They are rolled back; in the stage in which they were."""
        if self._tracer is not None and self._batches:
            stage = "load" if self._spans else "extract"
            self._passed(stage, self._clock.now())
        self._export(error)

    def _passed(self, stage: str, now: float) -> None:
        self._spans.append(Span(stage, self._since, max(now, self._since)))
        self._since = now

    def _export(self, error: str) -> None:
        batches, self._batches = self._batches, ()
        if self._tracer is None or not batches:
            return
        now = self._clock.now()
        ago = now - self._clock.monotonic()
        self._tracer.export(
            [self._trace(batch, len(batches), ago, now, error) for batch in batches]
        )

    def _trace(self, batch: Batch, together: int, ago: float, now: float, error: str) -> BatchTrace:
        spans, begun = tuple(self._spans), self._spans[0].begun if self._spans else now
        if batch.closed:
            begun = min(batch.opened + ago, begun)
            # A batch that waits for the one before it has been selected, and is nowhere else.
            spans = (Span("select", begun, max(begun, batch.closed + ago)), *spans)
        return BatchTrace(
            self._leadership,
            batch.id,
            str(batch.checkpoint.resume),
            batch.rows,
            batch.size,
            together,
            begun,
            max(now, begun),
            spans,
            error,
        )
