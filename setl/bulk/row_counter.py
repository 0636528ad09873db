"""Shows the progress of a Spark job that reads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from pyspark.sql import SparkSession

Progress = Callable[[int], None]
"""Is told the number of rows read so far, on both sides together."""

_SECONDS = 0.5


class RowCounter:
    """Counts rows read in tasks and reports them while the block runs.

    Spark hands counts over at the end of each task, so the number grows in steps of a part.
    """

    def __init__(self, spark: SparkSession, progress: Progress | None) -> None:
        self.rows = spark.sparkContext.accumulator(0)
        self._progress = progress
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._report, name="rows read", daemon=True)

    def _report(self) -> None:
        while self._progress is not None and not self._done.wait(_SECONDS):
            self._progress(self.rows.value)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self._progress is not None:
            self._progress(self.rows.value)
