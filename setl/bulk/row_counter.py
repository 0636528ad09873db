"""Shows the progress of a Spark job that reads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from pyspark import Accumulator

from setl.transform.spark_on_demand import SparkOnDemand

Progress = Callable[[int], None]
"""Is told the number of rows read so far, on both sides together."""

_SECONDS = 0.5


class RowCounter:
    """Counts rows read in tasks, or looked at by servers, and reports them while the block runs.

    Spark hands counts over at the end of each task, so the number grows in steps of a part.
    """

    def __init__(self, spark: SparkOnDemand, progress: Progress | None) -> None:
        self._spark = spark
        self._progress = progress
        self._here = 0
        self._in_tasks: Accumulator[int] | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._report, name="rows read", daemon=True)

    @property
    def in_tasks(self) -> Accumulator[int]:
        """What tasks count with; a Spark session is needed for it."""
        if self._in_tasks is None:
            self._in_tasks = self._spark.context.accumulator(0)
        return self._in_tasks

    def add(self, rows: int) -> None:
        """Count rows that were looked at without a task; one call at a time."""
        self._here += rows

    @property
    def _rows(self) -> int:
        return self._here + (0 if self._in_tasks is None else self._in_tasks.value)

    def _report(self) -> None:
        while self._progress is not None and not self._done.wait(_SECONDS):
            self._progress(self._rows)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self._progress is not None:
            self._progress(self._rows)
