"""Warming a Spark session: after it, the first batch pays for nothing but itself (I4)."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from pyspark import SparkContext
from pyspark.sql import SparkSession

from setl.garbage_collection import freeze_loaded_objects
from setl.run.runners.prepared_queries import WarmUp
from setl.run.spark.session import parallelism
from setl.run.spark.worker_daemon import TASK_MODULES

_ROUNDS = 3  # the JVM compiles what it has run a few times
# Spark ends all workers of an executor that had no task for a minute. Each time costs 40 ms of
# processor time, and on a cluster an executor may get none of the tasks.
KEEP_SECONDS = 20.0
KEEP_LOCAL_SECONDS = 40.0

_log = logging.getLogger(__name__)


def warm(context: SparkContext) -> None:
    """Start Python workers, import what tasks need, and run the plain kinds of jobs a few times.

    Takes a few seconds and blocks.
    """
    tasks = parallelism(context)

    def touch(part: int) -> int:
        # On a cluster, where nothing has been imported yet.
        for module in TASK_MODULES:
            importlib.import_module(module)
        # Otherwise each worker's first load would do it, in a tenth of a second.
        freeze_loaded_objects(collect_rarely=True)
        return part

    for _ in range(_ROUNDS):
        context.parallelize(range(tasks * 2), tasks * 2).map(touch).collect()
        context.parallelize([b""], 1).map(len).collect()


def warm_queries(spark: SparkSession) -> WarmUp:
    """The same for loads with Spark SQL, which have workers and classes of their own.

    It takes as long again as all else, so it is left to nodes that have such pipelines. Returns
    what goes on keeping the workers warm.
    """
    warm_up = WarmUp(spark)
    for _ in range(_ROUNDS):
        warm_up.run()
        warm_up = WarmUp(spark)
    return warm_up


class KeepWarm:
    """Keeps workers from being ended while there is nothing to load, in a thread of its own.

    Without it the first change after a quiet minute would wait for new ones, for a second or
    two, and so would the first batch after a take-over (I4).
    """

    def __init__(
        self,
        context: SparkContext,
        prepare: Callable[[], Callable[[], None]],
        *,
        every: float = KEEP_SECONDS,
    ) -> None:
        """Do nothing yet.

        Args:
            context: where jobs run.
            prepare: makes queries warm, and gives what keeps them so; see `warm_queries`.
            every: seconds between two small jobs.
        """
        self._prepare = prepare
        self._warm_up: Callable[[], None] | None = None
        self._context = context
        self._every = every
        self._queries = False
        self._modules: tuple[str, ...] = ()
        self._asked = False  # to do it now, not when it is time
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._keep, name="warmth", daemon=True)

    def start(self, *, queries: bool = False) -> None:
        """Begin; plain jobs must be warm.

        Args:
            queries: also make queries warm, before this returns.
        """
        if queries:
            self._queries = True
            self._warm_up = self._prepare()
        self._thread.start()

    def with_queries(self) -> None:
        """From now on keep queries warm too; does not wait until they are."""
        with self._changed:
            self._queries = self._asked = True
            self._changed.notify_all()

    def with_modules(self, names: Iterable[str]) -> None:
        """From now on have modules imported, here and in workers; does not wait until they are.

        Client libraries take a quarter of a second of processor time in each process, which a
        take-over would wait for: here to build the run, and in a worker for its first load.
        """
        with self._changed:
            self._modules = tuple(sorted({*self._modules, *names}))
            self._asked = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Do it no more; a job that runs is not waited for."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _keep(self) -> None:
        context = self._context
        tasks, imported = parallelism(context), ()
        while self._wait():
            try:
                modules = self._modules
                needed = partial(_imported, modules)
                # Spark takes the worker that was idle for longest, and there are more than tasks.
                for _ in range(1 if modules == imported else _ROUNDS):
                    context.parallelize(range(tasks), tasks).map(needed).count()
                imported = modules
                needed(0)
                if self._queries and self._warm_up is None:
                    self._warm_up = self._prepare()
                if self._warm_up is not None:
                    self._warm_up()
            except Exception as error:  # noqa: BLE001 - whoever loads finds out what it is
                _log.debug("workers could not be kept warm: %r", error)

    def _wait(self) -> bool:
        """Wait for the next time; whether there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._asked, self._every)
            self._asked = False
            return not self._stopping


def _imported(modules: tuple[str, ...], part: int) -> int:
    for module in modules:
        with suppress(ImportError):  # a run says what is missing
            importlib.import_module(module)
    return part
