"""Warming a Spark session: after it, the first batch pays for nothing but itself (I4)."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from setl.garbage import keep_what_is_loaded
from setl.pipeline.spark_session import parallelism
from setl.pipeline.standing_jobs import Rehearsal
from setl.pipeline.worker_daemon import TASK_MODULES

_ROUNDS = 3  # the JVM compiles what it has run a few times
_KEEP_SECONDS = 20.0  # Spark ends all workers of an executor that had no task for a minute

_log = logging.getLogger(__name__)


def warm(spark: SparkSession) -> Rehearsal:
    """Start Python workers, import what tasks need, and run each kind of job a few times.

    Takes a few seconds and blocks. Returns what goes on keeping the workers for expressions warm.
    """
    tasks = parallelism(spark)
    context = spark.sparkContext

    def touch(part: int) -> int:
        # On a cluster, where nothing has been imported yet.
        for module in TASK_MODULES:
            importlib.import_module(module)
        # Otherwise each worker's first load would do it, in a tenth of a second.
        keep_what_is_loaded(collect_rarely=True)
        return part

    rehearsal = Rehearsal(spark)
    for _ in range(_ROUNDS):
        context.parallelize(range(tasks * 2), tasks * 2).map(touch).collect()
        context.parallelize([b""], 1).map(len).collect()
        rehearsal.run()
        rehearsal = Rehearsal(spark)
    return rehearsal


class WarmthKeeper:
    """Keeps workers from being ended while there is nothing to load, in a thread of its own.

    Without it the first change after a quiet minute would wait for new ones, for a second or
    two, and so would the first batch after a take-over (I4).
    """

    def __init__(
        self,
        spark: SparkSession,
        rehearse: Callable[[], None] | None = None,
        *,
        every: float = _KEEP_SECONDS,
    ) -> None:
        """Do nothing yet.

        Args:
            spark: the session.
            rehearse: runs a query; expressions have workers of their own, other than plain jobs.
            every: seconds between two small jobs.
        """
        self._rehearse = rehearse
        self._spark = spark
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="warmth", daemon=True)

    def start(self) -> None:
        """Begin; the session must be warm."""
        self._thread.start()

    def stop(self) -> None:
        """Do it no more; a job that runs is not waited for."""
        self._stopping.set()

    def _keep(self) -> None:
        context = self._spark.sparkContext
        tasks = parallelism(self._spark)
        while not self._stopping.wait(self._every):
            try:
                context.parallelize(range(tasks), tasks).map(_nothing).count()
                if self._rehearse is not None:
                    self._rehearse()
            except Exception as error:  # noqa: BLE001 - whoever loads finds out what it is
                _log.debug("workers could not be kept warm: %r", error)


def _nothing(part: int) -> int:
    return part
