"""Runs that transform and load on Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from py4j.protocol import Py4JError

from setl.channel.rules.spark_sql import has_spark_sql
from setl.errors import FatalError, SetlError
from setl.node.engines.engine import RunBuilder
from setl.node.roles import LOAD
from setl.run.assembly import build_run
from setl.run.runners.warming import (
    KEEP_LOCAL_SECONDS,
    KEEP_SECONDS,
    KeepWarm,
    warm,
    warm_queries,
)
from setl.run.spark.errors import start_error
from setl.run.spark.executors import ContextWatch, check_executors, wait_for_executors
from setl.run.spark.session import JvmWatch, SparkSettings, start_context
from setl.run.tracing.trace import Tracer
from setl.systems.modules import modules_of
from setl.transform.spark_on_demand import SparkOnDemand

_log = logging.getLogger(__name__)


# A load of which a task is lost has to be done again under another epoch, since the task may
# only be cut off (I2). So Spark need not do it again first, and wait for the rows that it locks.
_CONF = {"spark.task.maxFailures": "1"}


class SparkEngine:
    """See `setl.node.engines.engine.Engine`. One Spark application for all runs of the process.

    It has a session once a pipeline with Spark SQL asks for one.
    """

    serves = (LOAD,)

    def __init__(self, settings: SparkSettings, tracer: Tracer | None = None) -> None:
        """Nothing is started yet.

        Args:
            settings: of the session.
            tracer: is told how batches passed through the stages; closed by `stop`.
        """
        self._tracer = tracer
        self._settings = replace(settings, conf={**_CONF, **settings.conf})
        self._spark: SparkOnDemand | None = None
        self._jvm_watch: JvmWatch | None = None
        self._context_watch: ContextWatch | None = None
        self._warmth: KeepWarm | None = None
        self._queries = False
        self._modules: frozenset[str] = frozenset()

    def prepare_for(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """See `setl.node.engines.engine.Engine.prepare_for`."""
        known = list(definitions)
        modules = self._modules.union(*map(modules_of, known))
        if modules != self._modules:
            self._modules = modules
            if self._warmth is not None:
                self._warmth.with_modules(modules)
        if self._queries or not any(map(has_spark_sql, known)):
            return
        self._queries = True
        if self._warmth is not None:
            self._warmth.with_queries()

    def start(self, lost: Callable[[SetlError], None], stopping: Callable[[], bool]) -> None:
        """See `setl.node.engines.engine.Engine.start`.

        Takes about 10 seconds, and as long as the cluster gives no executors.

        Raises:
            ConfigurationError: the cluster's workers cannot run tasks.
            FatalError: the session cannot be started, or its JVM ended meanwhile.
        """
        try:
            self._start(lost, stopping)
        except SetlError:
            raise
        except Exception as error:
            raise start_error(error) from error

    def _start(self, lost: Callable[[SetlError], None], stopping: Callable[[], bool]) -> None:
        spark = SparkOnDemand(partial(start_context, self._settings, workers=True))
        context = spark.context
        self._spark = spark
        self._jvm_watch = JvmWatch(lost)
        self._jvm_watch.start()
        self._context_watch = ContextWatch(context, lost)
        self._context_watch.start()
        if not self._settings.is_local:
            if not wait_for_executors(context, stopping):
                return
            check_executors(context)
        warm(context)
        every = KEEP_LOCAL_SECONDS if self._settings.is_local else KEEP_SECONDS
        warmth = KeepWarm(context, lambda: warm_queries(spark.session).run, every=every)
        warmth.start(queries=self._queries)
        self._warmth = warmth
        warmth.with_modules(self._modules)  # by a thread, so that the node is ready before

    def last_answer(self) -> float | None:
        """See `setl.node.engines.engine.Engine.last_answer`: that of the session's JVM."""
        return None if self._context_watch is None else self._context_watch.answered

    @property
    def build_run(self) -> RunBuilder:
        """See `setl.node.engines.engine.Engine.build_run`."""
        if self._spark is None:
            raise FatalError("the Spark session is not started", hint="This is a defect")
        return partial(build_run, spark=self._spark, tracer=self._tracer)

    def stop(self) -> None:
        """See `setl.node.engines.engine.Engine.stop`."""
        for watch in (self._jvm_watch, self._context_watch, self._warmth):
            if watch is not None:
                watch.stop()
        if self._tracer is not None:
            self._tracer.close()
        if self._spark is not None:
            # A signal to the whole process group has ended the JVM already.
            with suppress(Py4JError, OSError):
                self._spark.stop()
