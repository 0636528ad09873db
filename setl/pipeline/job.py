"""The Spark job that transforms and loads a stretch of the stream."""

from __future__ import annotations

import logging
import math
import pickle
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from setl.config.routing import Route
from setl.errors import DataError, FatalError, FencedError, SetlError, TransientError
from setl.extract.extractor import RoutedRows
from setl.load.port import LoadTicket
from setl.load.worker import SinkSettings, applied_through
from setl.log import fields
from setl.model.position import document_version, version_generation
from setl.pipeline.spark_session import jvm_exit, parallelism, spark_gone
from setl.pipeline.stalls.spark_jobs import look_at_group
from setl.pipeline.stalls.stall import JobView
from setl.pipeline.tasks import TaskReport, load, load_share
from setl.transform.expressions import ExpressionBranch
from setl.transform.share import deal
from setl.transform.work import TransformPlan, WorkItem

_log = logging.getLogger(__name__)

# A JVM that is killed closes its connections before it counts as ended, on a busy machine by
# a second or two.
_JVM_END_SECONDS = 5.0

TableRoute = tuple[int, str, str]
"""A route's index, and the schema and table that go by it."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load did, summed over its tasks.

    Attributes:
        rows: row changes applied, before compaction.
        redelivered: of these, changes that an earlier leadership had applied.
        upserts: rows or documents written.
        deletes: deletes sent.
        stale: writes refused as older than what the target holds.
        tasks: load tasks.
        seconds: time by stage, summed over tasks.
    """

    rows: int = 0
    redelivered: int = 0
    upserts: int = 0
    deletes: int = 0
    stale: int = 0
    tasks: int = 0
    seconds: dict[str, float] = field(default_factory=dict[str, float])


class LoadJob:
    """Runs one Spark job for each load of a pipeline, under a job group of its own.

    Order: the caller runs one load after another (I15). Crash: a load whose outcome is unknown
    is run again from the checkpoint; sinks are idempotent.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        name: str,
        plan: TransformPlan,
        sink: SinkSettings,
        rows_per_task: int,
    ) -> None:
        self._spark = spark
        self._context = spark.sparkContext
        self._group = f"setl {name}"
        self._plan = plan
        self._sink = sink
        self._rows_per_task = rows_per_task
        self._cancelled = False
        self._cancelling: threading.Thread | None = None
        self._abandoned = False
        self._branches: dict[TableRoute, ExpressionBranch] = {}

    def applied_through(self, ticket: LoadTicket) -> int:
        """Version up to which the target may hold this pipeline's changes already; 0 if unknown.

        Raises:
            SetlError: the target cannot be asked.
        """
        return applied_through(self._sink, ticket)

    def run(
        self, rows: Sequence[RoutedRows], ticket: LoadTicket, redelivered_through: int
    ) -> LoadReport:
        """Transform and load; returns when the target has everything.

        Args:
            rows: what to load, in source order.
            ticket: on whose behalf.
            redelivered_through: what `applied_through` said when the leadership began; rows up
                to there are counted as redelivered.

        Raises:
            SetlError: the most serious error of any task; part of the load may be in the target.
            TransientError: Spark itself failed, or the load was cancelled.
            SparkGone: the session's JVM has ended.
        """
        plan = replace(self._plan, applied_through=redelivered_through)
        try:
            plain, by_branch = self._items(rows, version_generation(ticket.through))
            tasks = self._begin(rows, ticket)
        except (Py4JError, OSError, EOFError) as error:
            raise self._spark_error(error) from error
        try:
            if tasks == 1 and not by_branch:
                reports = self._run_alone(plan, plain, ticket)
            elif tasks == 1:
                reports = self._run_evaluated(plan, plain, by_branch, ticket)
            else:
                reports = self._run_dealt(plan, plain, by_branch, ticket, tasks)
        except SetlError:
            raise
        except Exception as error:
            # Spark reports a failed job while other tasks of it still run, for seconds.
            self._abandoned = True
            raise self._spark_error(error) from error
        raise_worst(report.error for report in reports)
        return _summed(reports)

    def _begin(self, rows: Sequence[RoutedRows], ticket: LoadTicket) -> int:
        """Name the jobs of this thread after the pipeline; returns how many tasks are worth it."""
        self._context.setJobGroup(self._group, f"batch {ticket.batch_id}", interruptOnCancel=True)
        self._context.setLocalProperty("spark.scheduler.pool", self._group)
        if self._cancelled:
            # Cancelling ends the jobs that it finds, and this one is not among them yet.
            raise TransientError("the load was cancelled")
        estimated = sum(max(1, row.entry.rows) for row in rows)
        wanted = math.ceil(estimated / self._rows_per_task)
        return max(1, min(parallelism(self._spark), wanted))

    def _items(
        self, rows: Sequence[RoutedRows], generation: int
    ) -> tuple[list[WorkItem], dict[TableRoute, list[WorkItem]]]:
        """Entries as work items: for plain routes, and for each route with expressions."""
        plain: list[WorkItem] = []
        by_branch: dict[TableRoute, list[WorkItem]] = {}
        sorted_out: dict[tuple[str, str], tuple[tuple[int, ...], list[TableRoute]]] = {}
        for entry, routes in rows:
            name = (entry.schema, entry.table)
            found = sorted_out.get(name)
            if found is None:
                found = sorted_out[name] = self._sort_out(name, routes)
            version = document_version(generation, entry.position)
            indexes, evaluated = found
            if indexes:
                plain.append(WorkItem(indexes, version, entry.context, entry.payload))
            for place in evaluated:
                item = WorkItem((place[0],), version, entry.context, entry.payload)
                by_branch.setdefault(place, []).append(item)
        return plain, by_branch

    def _sort_out(
        self, name: tuple[str, str], routes: Sequence[Route]
    ) -> tuple[tuple[int, ...], list[TableRoute]]:
        """The plain routes of a table, and those with expressions, whose branches it makes."""
        evaluated: list[TableRoute] = []
        for route in routes:
            if route.expressions or route.where:
                place = (route.index, *name)
                evaluated.append(place)
                if place not in self._branches:
                    self._branches[place] = ExpressionBranch(self._spark, self._plan, route)
        plain = tuple(r.index for r in routes if not (r.expressions or r.where))
        return plain, evaluated

    def _run_alone(
        self, plan: TransformPlan, items: list[WorkItem], ticket: LoadTicket
    ) -> list[TaskReport]:
        """A small batch: one task does everything, without a shuffle."""
        sink = self._sink

        def work(share: bytes) -> TaskReport:
            return load(sink, ticket, 0, (blob for _, blob in deal(plan, share, 1)))

        return self._context.parallelize([pickle.dumps(items, protocol=5)], 1).map(work).collect()

    def _run_evaluated(
        self,
        plan: TransformPlan,
        plain: list[WorkItem],
        by_branch: dict[TableRoute, list[WorkItem]],
        ticket: LoadTicket,
    ) -> list[TaskReport]:
        """A small batch with expressions: Spark evaluates, and the same task loads everything."""
        sink, blob = self._sink, pickle.dumps(plain, protocol=5)

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            shares = [share for batch in batches for share in batch.column("share").to_pylist()]
            shares += [share for _, share in deal(plan, blob, 1)]
            report = pickle.dumps(load(sink, ticket, 0, shares), protocol=5)
            yield pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], names=["report"])

        frames = [self._branches[at].shares(plan, [items], 1) for at, items in by_branch.items()]
        whole = reduce(DataFrame.union, frames).coalesce(1)
        reports = whole.mapInArrow(work, "report binary").collect()
        return [pickle.loads(row[0]) for row in reports]  # noqa: S301 - made by our own task

    def _run_dealt(
        self,
        plan: TransformPlan,
        plain: list[WorkItem],
        by_branch: dict[TableRoute, list[WorkItem]],
        ticket: LoadTicket,
        tasks: int,
    ) -> list[TaskReport]:
        """A large batch, or one with expressions: decode side by side, then deal out by key."""
        sink = self._sink
        shares: list[RDD[Any]] = []
        if plain:
            blobs = [pickle.dumps(stretch, protocol=5) for stretch in stretches(plain, tasks)]
            shares.append(
                self._context.parallelize(blobs, len(blobs)).flatMap(
                    lambda blob: deal(plan, blob, tasks)
                )
            )
        for place, items in by_branch.items():
            frame = self._branches[place].shares(plan, stretches(items, tasks), tasks)
            shares.append(frame.rdd.map(lambda row: (int(row[0]), bytes(row[1]))))
        dealt = shares[0] if len(shares) == 1 else self._context.union(shares)
        return (
            dealt.partitionBy(tasks, int)
            .mapPartitionsWithIndex(lambda slot, part: [load_share(sink, ticket, slot, part)])
            .collect()
        )

    def cancel(self) -> None:
        """Cancel the load that runs, if any; its tasks are interrupted and roll back.

        Returns at once. Spark is told in a thread of its own: a JVM that hangs would hold up
        the caller, who has other loads to cancel.
        """
        self._cancelled = True
        if self._cancelling is None or not self._cancelling.is_alive():
            self._cancelling = threading.Thread(
                target=self._cancel_group, name=f"cancel-{self._group}", daemon=True
            )
            self._cancelling.start()

    def _cancel_group(self) -> None:
        try:
            self._context.cancelJobGroup(self._group)
        except (Py4JError, OSError) as error:
            # Nothing runs in a JVM that is gone.
            _log.warning(
                "a load could not be cancelled", extra=fields(load=self._group, error=repr(error))
            )

    @property
    def abandoned(self) -> bool:
        """Whether a load has failed in Spark itself, so that tasks of it may still be writing."""
        return self._abandoned

    def activity(self) -> JobView | None:
        """The Spark job that loads, None if none runs. May block while Spark does not answer.

        Raises:
            SparkGone: the session's JVM has ended.
            TransientError: Spark could not be asked.
        """
        try:
            return look_at_group(self._context, self._group)
        except Exception as error:
            raise self._spark_error(error) from error

    def _spark_error(self, error: Exception) -> SetlError:
        """What kind of error a failed Spark job is.

        Spark gives SQLSTATE class 22 ("data exception") to what an expression cannot do with
        a value; a Python traceback is a defect in a task, since tasks return their errors.
        """
        # First, since the text of an error from Java is fetched from the JVM.
        ended = jvm_exit(_JVM_END_SECONDS if _cut_off(error) else 0)
        if ended is not None:
            return spark_gone(ended)
        if self._cancelled:
            return TransientError("the load was cancelled")
        text = str(error)
        refused = re.search(r"\[[A-Z_.]+\][^\n]*SQLSTATE: 22\w{3}", text)
        if refused is not None:
            return DataError(
                f"an expression cannot be evaluated: {refused.group(0)}",
                hint="Mend the expression in the channel file, for example with try_cast",
            )
        if "Python worker exited unexpectedly" in text:
            return TransientError(
                "a Python worker of Spark ended in the middle of a task",
                hint="If it happens again: memory that ran out is the usual cause",
            )
        if "PythonException" in text and "Traceback" in text:
            last = text.partition("Traceback")[2].partition("\n\n")[0].strip().splitlines()[-1]
            return FatalError(f"a Spark task failed unexpectedly: {last}", hint="This is a defect")
        return TransientError(f"the Spark job failed: {text.strip()[:500]}")


def _cut_off(error: Exception) -> bool:
    """Whether this is how it looks from Python when the JVM goes away."""
    if isinstance(error, Py4JJavaError):
        return False
    return isinstance(error, (Py4JError, OSError, EOFError))


def stretches(items: list[WorkItem], count: int) -> list[list[WorkItem]]:
    """Cut items into at most `count` stretches of about the same number of bytes, in order."""
    if count == 1:
        return [items]
    total = sum(len(item.payload) for item in items)
    limit = max(1, math.ceil(total / count))
    result: list[list[WorkItem]] = [[]]
    size = 0
    for item in items:
        if size >= limit and len(result) < count:
            result.append([])
            size = 0
        result[-1].append(item)
        size += len(item.payload)
    return result


def raise_worst(errors: Any) -> None:
    """Raise the error that decides: fenced before final before transient ones; else return."""
    worst: SetlError | None = None
    for error in errors:
        if error is not None and (worst is None or _gravity(error) > _gravity(worst)):
            worst = error
    if worst is not None:
        raise worst


def _gravity(error: SetlError) -> int:
    if isinstance(error, FencedError):
        return 2
    return 0 if isinstance(error, TransientError) else 1


def _summed(reports: Sequence[TaskReport]) -> LoadReport:
    return LoadReport(
        rows=sum(r.rows for r in reports),
        redelivered=sum(r.redelivered for r in reports),
        upserts=sum(r.upserts for r in reports),
        deletes=sum(r.deletes for r in reports),
        stale=sum(r.stale for r in reports),
        tasks=len(reports),
        seconds={
            "transform": sum(r.transform_seconds for r in reports),
            "load": sum(r.load_seconds for r in reports),
        },
    )
