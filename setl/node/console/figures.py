"""Figures of pipelines over time, for the charts: recorded here, or asked of other nodes.

The last half hour is kept point by point. What is older is kept as one point a minute, so that
half a day fits into some ten thousand bytes. Time is passed in; nothing here has a clock.
"""

from __future__ import annotations

import logging
import math
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Any, NamedTuple, cast

from arbiter.values import NodeInfo, PipelineId
from setl.clock import Clock
from setl.node.cluster.answers import asked
from setl.node.console.links import series_link
from setl.node.status import NodeStatus, PipelineStatus

FINE_SECONDS = 5.0
FINE_POINTS = 360
COARSE_SECONDS = 60.0
COARSE_POINTS = 720


class Point(NamedTuple):
    """What a pipeline did at one time; NaN stands for what is not known.

    Attributes:
        at: seconds since 1970 UTC.
        lag: seconds by which the target is behind.
        rows: row changes applied a second.
        pending: batches selected and not yet acknowledged.
    """

    at: float
    lag: float
    rows: float
    pending: float


_WIDTH = len(Point._fields)


class Ring:
    """The last so many points, as plain numbers."""

    def __init__(self, points: int) -> None:
        """Hold `points` of them."""
        self._points = points
        self._values = array("d")
        self._next = 0

    def __len__(self) -> int:
        return len(self._values) // _WIDTH

    def add(self, point: Point) -> None:
        """Keep a point; the oldest one goes if there is no room."""
        if len(self) < self._points:
            self._values.extend(point)
            return
        start = self._next * _WIDTH
        self._values[start : start + _WIDTH] = array("d", point)
        self._next = (self._next + 1) % self._points

    def __iter__(self) -> Iterator[Point]:
        """The points, oldest first."""
        for i in range(len(self)):
            start = (self._next + i) % len(self) * _WIDTH
            yield Point(*self._values[start : start + _WIDTH])


class Series:
    """Points of one pipeline in two resolutions. For one thread, or under a lock."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._fine = Ring(FINE_POINTS)
        self._coarse = Ring(COARSE_POINTS)
        self._minute: list[Point] = []

    def add(self, point: Point) -> None:
        """Keep what is so at `point.at`; times must not go backwards."""
        self._fine.add(point)
        if self._minute and _minute(point.at) != _minute(self._minute[0].at):
            self._coarse.add(_summary(self._minute))
            self._minute = []
        self._minute.append(point)

    @property
    def last(self) -> float:
        """Time of the newest point, 0 if there is none."""
        return self._minute[-1].at if self._minute else 0.0

    def points(self, since: float = 0.0) -> list[Point]:
        """The points after a time, oldest first; minutes where points themselves are gone."""
        fine = list(self._fine)
        # A minute of which some points are still there would be told twice.
        edge = _minute(fine[0].at) if fine else math.inf
        coarse = [p for p in self._coarse if _minute(p.at) < edge]
        return [point for point in (*coarse, *fine) if point.at > since]


def _minute(at: float) -> int:
    return int(at // COARSE_SECONDS)


def _summary(points: Sequence[Point]) -> Point:
    """One point for several: the worst lag and queue, and the average of rows."""
    rows = [p.rows for p in points if not math.isnan(p.rows)]
    return Point(
        points[0].at,
        _most(p.lag for p in points),
        sum(rows) / len(rows) if rows else math.nan,
        _most(p.pending for p in points),
    )


def _most(values: Iterable[float]) -> float:
    return max((v for v in values if not math.isnan(v)), default=math.nan)


def as_columns(points: Sequence[Point]) -> dict[str, list[float | None]]:
    """Points as a list for each figure, as charts want them; None for what is not known."""
    return {
        name: [None if math.isnan(value) else round(value, 4) for value in column]
        for name, column in zip(
            Point._fields, zip(*points, strict=True) if points else [()] * _WIDTH, strict=True
        )
    }


def of_columns(columns: Mapping[str, Sequence[float | None]]) -> list[Point]:
    """Inverse of `as_columns`; empty for what another release has written in another way."""
    lists = [columns.get(name, ()) for name in Point._fields]
    if len({len(each) for each in lists}) != 1:
        return []
    return [
        Point(*(math.nan if value is None else float(value) for value in values))
        for values in zip(*lists, strict=True)
    ]


def merged(all_points: Iterable[Sequence[Point]]) -> list[Point]:
    """What several nodes recorded of one pipeline while each of them led, as one series.

    Two leaders never overlap for longer than a sample, so that the order of time is enough.
    """
    return sorted((point for points in all_points for point in points), key=lambda p: p.at)


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


TIMEOUT = 1.5
_AT_ONCE = 16
_MOST_BYTES = 1 << 20


def recorded_elsewhere(
    nodes: Iterable[NodeInfo], pipeline: PipelineId, since: float
) -> list[list[Point]]:
    """What each node recorded after a time; empty for one that does not answer in time.

    Args:
        nodes: whom to ask, side by side.
        pipeline: the pipeline.
        since: seconds since 1970 UTC.
    """
    others: list[NodeInfo] = [node for node in nodes if node.http.startswith("http")]
    if not others:
        return []
    with ThreadPoolExecutor(min(len(others), _AT_ONCE)) as pool:
        addresses = [f"{n.http}{series_link(pipeline)}?since={since}&own=yes" for n in others]
        return list(pool.map(_recorded, addresses))


def _recorded(address: str) -> list[Point]:
    try:
        value = asked(address, TIMEOUT, _MOST_BYTES)
        return of_columns(cast("dict[str, Any]", value)) if isinstance(value, dict) else []
    except (OSError, HTTPException, ValueError, TypeError):
        return []
