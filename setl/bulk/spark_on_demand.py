"""A Spark session that starts when it is first needed: servers' checksums need none."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import SparkSession


class SparkOnDemand:
    """Starts a session at most once; used by any thread."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        """Nothing is started yet; `start` is called when the session is first asked for."""
        self._start = start
        self._lock = threading.Lock()
        self._session: SparkSession | None = None

    @classmethod
    def of(cls, spark: SparkSession | SparkOnDemand) -> SparkOnDemand:
        """The same for a session that is there already."""
        return spark if isinstance(spark, SparkOnDemand) else cls(lambda: spark)

    @property
    def session(self) -> SparkSession:
        """The session; the first call waits for its start, and raises what that raises."""
        with self._lock:
            if self._session is None:
                self._session = self._start()
            return self._session

    def stop(self) -> None:
        """Stop the session if it was started."""
        with self._lock:
            if self._session is not None:
                self._session.stop()
                self._session = None
