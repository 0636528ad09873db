"""Spark that starts when it is first needed, and only as much of it as is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark import SparkContext
from pyspark.sql import SparkSession

from setl.transform.sql_limits import limit


class SparkOnDemand:
    """Starts Spark at most once; used by any thread.

    Jobs over Python values need the context alone. What analyses and runs SQL needs a session
    besides, whose classes take the JVM a second or more: checksums of servers need neither, and
    loads without Spark SQL no session.
    """

    def __init__(self, start: Callable[[], SparkContext]) -> None:
        """Nothing is started yet; `start` is called when Spark is first asked for."""
        self._start = start
        self._lock = threading.RLock()
        self._context: SparkContext | None = None
        self._session: SparkSession | None = None

    @classmethod
    def of(cls, spark: SparkSession | SparkOnDemand) -> SparkOnDemand:
        """The same for a session that is there already."""
        return spark if isinstance(spark, SparkOnDemand) else cls(lambda: spark.sparkContext)

    @property
    def context(self) -> SparkContext:
        """The context; the first call waits for its start, and raises what that raises."""
        with self._lock:
            if self._context is None:
                self._context = self._start()
            return self._context

    @property
    def session(self) -> SparkSession:
        """The session over `context`; as that, and the first call makes the session."""
        with self._lock:
            if self._session is None:
                _ = self.context  # of which it takes its settings
                self._session = limit(SparkSession.builder.getOrCreate())
            return self._session

    def stop(self) -> None:
        """Stop what was started."""
        with self._lock:
            if self._context is not None:
                # A session knows that its context has stopped: the next one is another.
                stop = self._context.stop if self._session is None else self._session.stop
                self._context = self._session = None
                stop()
