"""The Spark job that transforms and loads a stretch of the stream."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError

from setl.channel.routes.routing import Route
from setl.clock import SystemClock
from setl.errors import DataError, FencedError, SetlError, SharedTableError, TransientError
from setl.extract.extractor import RoutedRows
from setl.load.deadletters.dead_letter import DeadLetter
from setl.load.sink import LoadTicket, RefuseTargets, SinkSettings
from setl.log import fields
from setl.model.change import Row
from setl.model.loaded import Loaded
from setl.run.loads.fault_positions import with_position
from setl.run.loads.reloading import reload_of
from setl.run.loads.sorting import Sorting
from setl.run.runners.runner import LoadState, Phase
from setl.run.runners.tasks import TaskReport
from setl.run.runners.ways import Ways
from setl.run.runners.work import LoadWork, TableRoute, insert_partitions
from setl.run.spark.errors import spark_error
from setl.run.spark.session import parallelism
from setl.run.stalls.spark_jobs import look_at_group
from setl.run.stalls.stall import JobView
from setl.run.targets.foreign_versions import ForeignVersions
from setl.run.targets.identities import Identities
from setl.transform.expression_faults import MOST_FAULTY, faulty_rows
from setl.transform.expressions import ExpressionBranch
from setl.transform.spark_on_demand import SparkOnDemand
from setl.transform.work import TransformPlan, WorkItem

_log = logging.getLogger(__name__)


class LoadJob:
    """Runs one Spark job for each load of a leadership, under a job group of its own.

    Order: the caller runs one load after another (I15). Crash: a load whose outcome is unknown
    is run again from the checkpoint; sinks are idempotent.
    """

    def __init__(
        self,
        spark: SparkOnDemand,
        *,
        name: str,
        epoch: int,
        plan: TransformPlan,
        sink: SinkSettings,
        rows_per_task: int,
        identities: Identities | None = None,
        versions: ForeignVersions | None = None,
        refuse: RefuseTargets | None = None,
    ) -> None:
        self._spark = spark
        self._context = spark.context
        self._pool = f"setl {name}"
        # A leader that is given up is cancelled again and again. The last time may come when the
        # next one of the same pipeline has begun, in the same session.
        self._group = f"{self._pool} {epoch}"
        self._plan = plan
        self._sink = sink
        self._rows_per_task = rows_per_task
        self._state = LoadState()
        self._cancelling: threading.Thread | None = None
        self._branches: dict[TableRoute, ExpressionBranch] = {}
        self._sorting = Sorting(plan, self._branch)
        self._identities = identities
        self._versions = versions
        self._refuse = refuse
        self._single_writer = sink.single_writer_tables(SystemClock())
        self._ways = Ways(spark, plan, self._branches, sink, self._state)

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
    ) -> Loaded:
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
        targets = {route.target for row in rows for route in row.routes}
        self._single_writer.check_name_collisions(targets, ticket.schema_version)
        try:
            work = self._sorting.work(rows, ticket.version_of)
            estimated = sum(max(1, row.entry.rows) for row in rows)
            tasks = self._begin(estimated, ticket)
        except (Py4JError, OSError, EOFError) as error:
            raise self._spark_error(error) from error
        if ticket.key_actions:
            tasks = 1  # children go with their parents, in one transaction
        if tasks > 1:
            plan = replace(plan, single_writer=self._single_writer.among(targets))
        ticket = self._checked(targets, ticket)
        return self._noted(targets, ticket, self._load(plan, work, ticket, tasks))

    def reload(self, letters: Sequence[DeadLetter], ticket: LoadTicket) -> Loaded:
        """Load dead letters again, in one task; those whose rows are in are gone afterwards.

        Args:
            letters: not too many, since they have to fit into one task.
            ticket: on whose behalf; `LoadTicket.retry_ids` names the letters.

        Raises:
            FatalError: one of them cannot be loaded any more.
            TargetReplacedError: their target is another one now.
            SetlError: as `run`.
        """
        items, ready, targets = reload_of(letters, self._plan.router, self._plan.codec)
        work = LoadWork(ready=[ready] if ready else [])
        try:
            for item, routes in items:
                work.add(item, *self._sorting.routes(item.table, routes))
            self._begin(len(letters), ticket)
        except (Py4JError, OSError, EOFError) as error:
            raise self._spark_error(error) from error
        ticket = self._checked(targets, ticket)
        return self._noted(targets, ticket, self._load(self._plan, work, ticket, 1))

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return parallelism(self._context)

    def load_ranges(
        self, items: Sequence[tuple[WorkItem, Sequence[Route]]], ticket: LoadTicket
    ) -> Loaded:
        """Load rows that tasks read from their tables; returns when the target has them.

        Args:
            items: what to read, with the routes it goes by; no two hold the same row.
            ticket: on whose behalf; `through` is the version that the rows get.

        Raises:
            SetlError: as `run`.
        """
        work = LoadWork()
        targets = {route.target for _, routes in items for route in routes}
        self._single_writer.check_name_collisions(targets, ticket.schema_version)
        try:
            for item, routes in items:
                numbered = item._replace(version=ticket.through)
                work.add(numbered, *self._sorting.routes(item.table, routes))
            self._begin(len(items), ticket)
            # Rows of one table that could be in each other's way are written by one task.
            together = self._single_writer.among(targets)
            # What both sites write is decided about in one transaction after another anyway.
            decided = any(route.conflict for _, routes in items for route in routes)
            tasks = 1 if together or decided else min(self.parallelism, len(items))
        except (Py4JError, OSError, EOFError) as error:
            raise self._spark_error(error) from error
        ticket = self._checked(targets, ticket)
        return self._noted(targets, ticket, self._load(self._plan, work, ticket, tasks))

    def _checked(self, targets: Collection[tuple[str, str]], ticket: LoadTicket) -> LoadTicket:
        """The ticket for these targets; they are those of before and do no more than take rows."""
        if self._refuse is not None:
            self._refuse(targets)
        if self._identities is not None:
            self._identities.check(targets)
            # What sinks know of an index is of the one that had its name before.
            known_of = ticket.schema_version + self._identities.others
            ticket = replace(ticket, schema_version=known_of)
        return ticket

    def _noted(
        self, targets: Collection[tuple[str, str]], ticket: LoadTicket, report: Loaded
    ) -> Loaded:
        """What was loaded, which changes what is known of the targets."""
        if self._versions is not None:
            self._versions.check(ticket, report)
        if self._identities is not None:
            self._identities.loaded(targets, report)
        return report

    def _load(self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int) -> Loaded:
        plan = plan.ending_at(ticket.position)
        while True:
            try:
                self._state.phase = Phase.BOTH
                reports = self._ways.run(plan, work, ticket, tasks)
            except SetlError:
                raise
            except Exception as error:  # noqa: BLE001 - Spark's own; raised again with its kind
                plan = self._without_faulty(plan, work, tasks, error)
                continue
            repeated = any(report.repeated for report in reports)
            self._state.abandoned = self._state.abandoned or repeated
            self._undivide(reports)
            raise_worst(report.error and with_position(report.error, ticket) for report in reports)
            if repeated:
                # The first run of the task may be frozen or cut off. It must not write any more
                # when later loads have, and only another epoch keeps it from that (I2, I15).
                raise TransientError(
                    "Spark ran a task of the load a second time, and the first may still be running"
                )
            return sum((report.loaded for report in reports), Loaded())

    def _undivide(self, reports: Sequence[TaskReport]) -> None:
        """Have one task write a table that several were about to write; see `SharedTableError`."""
        for report in reports:
            if isinstance(report.error, SharedTableError):
                schema, _, table = report.error.where["table"].partition(".")
                self._single_writer.add((schema, table))

    def _without_faulty(
        self, plan: TransformPlan, work: LoadWork, tasks: int, error: Exception
    ) -> TransformPlan:
        """The plan without the rows on which expressions fail; raises if that was not it."""
        failure = self._spark_error(error)
        faulty: dict[tuple[int, Row, int], DataError] = {}
        if plan.isolates and isinstance(failure, DataError) and len(plan.excluded) < MOST_FAULTY:
            # Expressions are evaluated before anything is loaded, so nothing was.
            for position, items in work.by_branch.items():
                cut, branch = insert_partitions(items, tasks), self._branches[position]
                faulty.update(faulty_rows(branch, plan, cut, self._spark_error))
        if not faulty:
            # Spark reports a failed job while other tasks of it still run, for seconds.
            self._state.abandoned = self._state.abandoned or self._state.may_write
            raise failure from error
        return replace(plan, excluded={**plan.excluded, **faulty})

    def _begin(self, estimated: int, ticket: LoadTicket) -> int:
        """Name the jobs of this thread after the pipeline; returns how many tasks are worth it."""
        # Never interrupt: a thread that is interrupted while it waits for a new Python process has
        # Spark 4.2 and later take their parent for dead and end all of them, other pipelines' too.
        # (https://github.com/apache/spark/pull/53476: a select that returns nothing, which it
        # does at an interrupt, counts as a timeout.)
        self._context.setJobGroup(self._group, f"batch {ticket.batch_id}", interruptOnCancel=False)
        self._context.setLocalProperty("spark.scheduler.pool", self._pool)
        self._state.refuse_if_cancelled()
        wanted = math.ceil(estimated / self._rows_per_task)
        return max(1, min(parallelism(self._context), wanted))

    def _branch(self, table_route: TableRoute, route: Route) -> None:
        """Make the branch of a route with expressions, if it is not there yet."""
        if table_route not in self._branches:
            self._branches[table_route] = ExpressionBranch(self._spark.session, self._plan, route)

    def cancel(self) -> None:
        """Cancel the load that runs, if any; it counts as ended then.

        Its tasks go on until they notice, or until Spark ends their Python processes, which it
        does within about four seconds. The fence holds them, and whoever may not let them write
        ends their connections (see `Work.end_writers`).

        Returns at once. Spark is told in a thread of its own: a JVM that hangs would hold up
        the caller, who has other loads to cancel.
        """
        self._state.cancelled = True
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
        return self._state.abandoned

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
        loading = seen is not None and self._state.phase is Phase.LOAD
        return replace(seen, loading=True) if seen is not None and loading else seen

    def _spark_error(self, error: Exception) -> SetlError:
        return spark_error(error, cancelled=self._state.cancelled)


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
