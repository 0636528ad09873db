"""Runs that transform and load on Spark."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from setl.errors import FatalError, SetlError
from setl.node.roles import LOAD
from setl.pipeline.assembly import build_run
from setl.pipeline.running import RunBuilder
from setl.pipeline.spark_session import JvmWatch, SparkSettings, start_session
from setl.pipeline.warming import warm


class SparkEngine:
    """See `setl.node.engine.Engine`. One Spark session for all runs of the process."""

    serves = (LOAD,)

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self._spark: SparkSession | None = None
        self._jvm_watch: JvmWatch | None = None

    def start(self, lost: Callable[[SetlError], None]) -> None:
        """See `setl.node.engine.Engine.start`; takes about 10 seconds."""
        self._spark = start_session(self._settings)
        self._jvm_watch = JvmWatch(lost)
        self._jvm_watch.start()
        warm(self._spark)

    @property
    def build_run(self) -> RunBuilder:
        """See `setl.node.engine.Engine.build_run`."""
        if self._spark is None:
            raise FatalError("the Spark session is not started", hint="This is a defect")
        return partial(build_run, spark=self._spark)

    def stop(self) -> None:
        """See `setl.node.engine.Engine.stop`."""
        if self._jvm_watch is not None:
            self._jvm_watch.stop()
        if self._spark is not None:
            # A signal to the whole process group has ended the JVM already.
            with suppress(Py4JError, OSError):
                self._spark.stop()
