"""Records the figures of the pipelines that a node leads, for the charts."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable

from arbiter.values import PipelineId
from setl.clock import Clock
from setl.node.console.figures.series import FINE_SECONDS, Point, Series
from setl.node.status import NodeStatus, PipelineStatus

_log = logging.getLogger(__name__)

MOST_PIPELINES = 512
"""Pipelines that are recorded; the one that was not led for the longest time is throttled."""


class Recorder:
    """Keeps a series for each pipeline that this node leads or led; from any thread."""

    def __init__(self, most: int = MOST_PIPELINES) -> None:
        """Nothing is recorded yet; `most` pipelines will be."""
        self._most = most
        self._lock = threading.Lock()
        self._series: dict[PipelineId, Series] = {}

    def record(self, status: NodeStatus, at: float) -> None:
        """Add a point to each pipeline that the node leads.

        Args:
            status: the node, as of now.
            at: seconds since 1970 UTC.
        """
        with self._lock:
            for line in status.pipelines:
                if line.mine:
                    self._add(line, at)

    def points(self, pipeline: PipelineId, since: float = 0.0) -> list[Point]:
        """What was recorded of a pipeline here; empty if nothing was."""
        with self._lock:
            series = self._series.get(pipeline)
            return series.points(since) if series else []

    def _add(self, line: PipelineStatus, at: float) -> None:
        pipeline = PipelineId(line.channel, line.pipeline)
        # The end of the dictionary is what was led last.
        series = self._series.pop(pipeline, None) or Series()
        self._series[pipeline] = series
        while len(self._series) > self._most:
            del self._series[next(iter(self._series))]
        figures = line.figures
        if at > series.last:
            lag = math.nan if figures.lag is None else figures.lag
            series.add(Point(at, lag, figures.rows_per_second, float(figures.pending)))


class Sampler:
    """A thread that records every few seconds, until it is stopped."""

    def __init__(
        self,
        recorder: Recorder,
        status: Callable[[], NodeStatus],
        clock: Clock,
    ) -> None:
        """Record nothing yet.

        Args:
            recorder: keeps what is recorded.
            status: the node, as of now.
            clock: for the time of each point.
        """
        self._recorder = recorder
        self._status = status
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="console-sampler", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; returns at once."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(FINE_SECONDS):
            try:
                self._recorder.record(self._status(), self._clock.now())
            except Exception:  # noqa: BLE001 - a defect must not end the charts for good
                _log.exception("figures were not recorded")
