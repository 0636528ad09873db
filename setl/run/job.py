"""The Spark job that transforms and loads a stretch of the stream."""

from __future__ import annotations

import logging
import math
import pickle
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from setl.channel.routing import Route
from setl.clock import SystemClock
from setl.errors import DataError, FencedError, SetlError, SharedTableError, TransientError
from setl.extract.extractor import RoutedRows
from setl.load.deadletters.letter import DeadLetter
from setl.load.sink import LoadTicket, SinkSettings
from setl.log import fields
from setl.model.change import Row
from setl.model.position import version_generation
from setl.run.load_work import LoadWork, TableRoute, stretches
from setl.run.prepared_queries import PreparedQueries
from setl.run.reloading import reload_of
from setl.run.sorting import Sorting
from setl.run.spark_errors import spark_error
from setl.run.spark_session import parallelism
from setl.run.stalls.spark_jobs import look_at_group
from setl.run.stalls.stall import JobView
from setl.run.tasks import TaskReport, deal_stretch, load
from setl.transform.expression_faults import MOST_FAULTY, faulty_rows
from setl.transform.expressions import ExpressionBranch
from setl.transform.share import Dealt, deal
from setl.transform.work import TransformPlan

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load did, summed over its tasks.

    Attributes:
        rows: row changes applied, before compaction.
        redelivered: of these, changes that an earlier leadership had applied.
        upserts: rows or documents written.
        deletes: deletes sent.
        stale: writes refused as older than what the target holds.
        conflicts_source: see `setl.load.sink.Loaded`.
        conflicts_target: see `setl.load.sink.Loaded`.
        dead_letters: faulty rows that were put aside.
        lettered: ``schema.table`` or indexes that these were meant for.
        fault: the error of one of them, "" if there is none.
        tasks: load tasks.
        seconds: time by stage, summed over tasks.
    """

    rows: int = 0
    redelivered: int = 0
    upserts: int = 0
    deletes: int = 0
    stale: int = 0
    conflicts_source: int = 0
    conflicts_target: int = 0
    dead_letters: int = 0
    lettered: frozenset[str] = frozenset()
    fault: str = ""
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
        # Of the job that runs: its tasks may write; they do nothing else.
        self._writing = self._only_loads = False
        self._branches: dict[TableRoute, ExpressionBranch] = {}
        self._sorting = Sorting(plan, self._branch)
        self._standing = PreparedQueries(spark, plan, sink)
        self._undivided = sink.undivided_tables(SystemClock())

    def applied_through(self, ticket: LoadTicket) -> int:
        """Version up to which the target may hold this pipeline's changes already; 0 if unknown.

        Raises:
            SetlError: the target cannot be asked.
        """
        return self._sink.applied_through(ticket)

    def forget_loaded(self, ticket: LoadTicket) -> None:
        """Forget how far the target's tables have come; raises SetlError."""
        self._sink.forget_loaded(ticket)

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
            work = self._sorting.work(rows, version_generation(ticket.through))
            estimated = sum(max(1, row.entry.rows) for row in rows)
            tasks = self._begin(estimated, ticket)
        except (Py4JError, OSError, EOFError) as error:
            raise self._spark_error(error) from error
        if tasks > 1:
            targets = {route.target for row in rows for route in row.routes}
            plan = replace(plan, undivided=self._undivided.among(targets))
        return self._load(plan, work, ticket, tasks)

    def reload(self, letters: Sequence[DeadLetter], ticket: LoadTicket) -> LoadReport:
        """Load dead letters again, in one task; those whose rows are in are gone afterwards.

        Args:
            letters: not too many, since they have to fit into one task.
            ticket: on whose behalf; `LoadTicket.retried` names the letters.

        Raises:
            FatalError: one of them cannot be loaded any more.
            SetlError: as `run`.
        """
        items, ready = reload_of(letters, self._plan.router, self._plan.codec)
        work = LoadWork(ready=[ready] if ready else [])
        try:
            for item, routes in items:
                work.add(item, *self._sorting.routes(item.table, routes))
            self._begin(len(letters), ticket)
        except (Py4JError, OSError, EOFError) as error:
            raise self._spark_error(error) from error
        return self._load(self._plan, work, ticket, 1)

    def _load(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> LoadReport:
        while True:
            try:
                reports = self._run(plan, work, ticket, tasks)
            except SetlError:
                raise
            except Exception as error:  # noqa: BLE001 - Spark's own; raised again with its kind
                plan = self._without_faulty(plan, work, tasks, error)
                continue
            repeated = any(report.repeated for report in reports)
            self._abandoned = self._abandoned or repeated
            self._undivide(reports)
            raise_worst(report.error for report in reports)
            if repeated:
                # The first run of the task may be frozen or cut off. It must not write any more
                # when later loads have, and only another epoch keeps it from that (I2, I15).
                raise TransientError(
                    "Spark ran a task of the load a second time, and the first may still be at it"
                )
            return _summed(reports)

    def _undivide(self, reports: Sequence[TaskReport]) -> None:
        """Have one task write a table that several were about to write; see `SharedTableError`."""
        for report in reports:
            if isinstance(report.error, SharedTableError):
                schema, _, table = report.error.where["table"].partition(".")
                self._undivided.add((schema, table))

    def _without_faulty(
        self, plan: TransformPlan, work: LoadWork, tasks: int, error: Exception
    ) -> TransformPlan:
        """The plan without the rows on which expressions fail; raises if that was not it."""
        failure = self._spark_error(error)
        found: dict[tuple[int, Row, int], DataError] = {}
        if plan.isolates and isinstance(failure, DataError) and len(plan.excluded) < MOST_FAULTY:
            # Expressions are evaluated before anything is loaded, so nothing was.
            for place, items in work.by_branch.items():
                cut, branch = stretches(items, tasks), self._branches[place]
                found.update(faulty_rows(branch, plan, cut, self._spark_error))
        if not found:
            # Spark reports a failed job while other tasks of it still run, for seconds.
            self._abandoned = self._abandoned or self._writing
            raise failure from error
        return replace(plan, excluded={**plan.excluded, **found})

    def _run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport]:
        self._writing, self._only_loads = True, False
        if tasks > 1:
            return self._run_dealt(plan, work, ticket, tasks)
        return (self._run_evaluated if work.by_branch else self._run_alone)(plan, work, ticket)

    def _begin(self, estimated: int, ticket: LoadTicket) -> int:
        """Name the jobs of this thread after the pipeline; returns how many tasks are worth it."""
        # Never interrupt: a thread that is interrupted while it waits for a new Python process has
        # Spark 4.2 and later take their parent for dead and end all of them, other pipelines' too.
        # (https://github.com/apache/spark/pull/53476: a select that returns nothing, which it
        # does at an interrupt, counts as a timeout.)
        self._context.setJobGroup(self._group, f"batch {ticket.batch_id}", interruptOnCancel=False)
        self._context.setLocalProperty("spark.scheduler.pool", self._group)
        self._refuse_if_cancelled()
        wanted = math.ceil(estimated / self._rows_per_task)
        return max(1, min(parallelism(self._spark), wanted))

    def _refuse_if_cancelled(self) -> None:
        # Cancelling ends the jobs that it finds, and the next one is not among them yet.
        if self._cancelled:
            raise TransientError("the load was cancelled")

    def _branch(self, place: TableRoute, route: Route) -> None:
        """Make the branch of a route with expressions, if it is not there yet."""
        if place not in self._branches:
            self._branches[place] = ExpressionBranch(self._spark, self._plan, route)

    def _run_alone(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket
    ) -> list[TaskReport]:
        """A small batch: one task does everything, without a shuffle."""
        sink, ready = self._sink, work.ready

        def transform_and_load(items: bytes) -> TaskReport:
            dealt = deal_stretch(plan, items, 1)
            return load(sink, ticket, 0, [*ready, *(share for _, share in dealt)])

        shares = [pickle.dumps(work.plain, protocol=5)]
        return self._context.parallelize(shares, 1).map(transform_and_load).collect()

    def _run_evaluated(
        self,
        plan: TransformPlan,
        work: LoadWork,
        ticket: LoadTicket,
    ) -> list[TaskReport]:
        """A small batch with expressions: Spark evaluates, and the same task loads everything."""
        reports = self._standing.run(plan, work, self._branches, ticket)
        if reports is not None:
            return reports
        sink, ready, blob = self._sink, work.ready, pickle.dumps(work.plain, protocol=5)

        def collect_and_load(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            shares = [*ready]
            shares += [share for batch in batches for share in batch.column("share").to_pylist()]
            shares += [share for _, share in deal(plan, blob, 1)]
            report = pickle.dumps(load(sink, ticket, 0, shares), protocol=5)
            yield pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], names=["report"])

        branches = [(self._branches[at], items) for at, items in work.by_branch.items()]
        frames = [branch.shares(plan, [items], 1) for branch, items in branches]
        whole = reduce(DataFrame.union, frames).coalesce(1)
        reports = whole.mapInArrow(collect_and_load, "report binary").collect()
        return [pickle.loads(row[0]) for row in reports]  # noqa: S301 - made by our own task

    def _run_dealt(
        self,
        plan: TransformPlan,
        work: LoadWork,
        ticket: LoadTicket,
        tasks: int,
    ) -> list[TaskReport]:
        """A large batch, or one with expressions: decode side by side, then load by key.

        In a job each, and the shares come through the driver in between. They are small after
        compaction, so this takes less time than a shuffle, which goes through files; and while
        rows are decoded nothing can be written yet, whatever goes wrong with a task.
        """
        self._writing = False
        by_slot: dict[int, list[bytes]] = {}
        for slot, share in self._dealt(plan, work, tasks):
            by_slot.setdefault(slot, []).append(share)
        self._refuse_if_cancelled()
        self._writing = self._only_loads = True
        sink, dealt = self._sink, list(by_slot.items())
        loading = self._context.parallelize(dealt, len(dealt))
        return loading.map(lambda part: load(sink, ticket, *part)).collect()

    def _dealt(self, plan: TransformPlan, work: LoadWork, tasks: int) -> Dealt:
        shares: list[RDD[tuple[int, bytes]]] = []
        if work.plain:
            cut = stretches(work.plain, tasks)
            blobs = [pickle.dumps(stretch, protocol=5) for stretch in cut]
            shares.append(
                self._context.parallelize(blobs, len(blobs)).flatMap(
                    lambda items: deal_stretch(plan, items, tasks)
                )
            )
        for place, items in work.by_branch.items():
            frame = self._branches[place].shares(plan, stretches(items, tasks), tasks)
            shares.append(frame.rdd.map(lambda row: (int(row[0]), bytes(row[1]))))
        return (shares[0] if len(shares) == 1 else self._context.union(shares)).collect()

    def cancel(self) -> None:
        """Cancel the load that runs, if any; it counts as ended then.

        Its tasks go on until they notice, or until Spark ends their Python processes, which it
        does within about four seconds. The fence holds them, and whoever may not let them write
        ends their connections (see `Work.end_writers`).

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
            seen = look_at_group(self._context, self._group)
        except Exception as error:
            raise self._spark_error(error) from error
        return replace(seen, loading=True) if seen is not None and self._only_loads else seen

    def _spark_error(self, error: Exception) -> SetlError:
        return spark_error(error, cancelled=self._cancelled)


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
        dead_letters=sum(r.dead_letters for r in reports),
        lettered=frozenset[str]().union(*(r.lettered for r in reports)),
        fault=next((r.fault for r in reports if r.fault), ""),
        conflicts_source=sum(r.conflicts_source for r in reports),
        conflicts_target=sum(r.conflicts_target for r in reports),
        tasks=len(reports),
        seconds={
            "transform": sum(r.transform_seconds for r in reports),
            "load": sum(r.load_seconds for r in reports),
        },
    )
