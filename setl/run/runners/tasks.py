"""What Spark's tasks run: deal changes out by key, merge the shares of some keys, write them.

An exception that leaves a task reaches the driver as text. A typed error is worth more than
that, so tasks return outcomes; only a defect is raised.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark import TaskContext

from setl import failpoints
from setl.errors import SetlError
from setl.garbage_collection import freeze_loaded_objects
from setl.load.sink import LoadTicket, SinkSettings
from setl.load.worker import resolve_conflicts, sink_for
from setl.model.change import TargetChanges
from setl.model.conflict import History
from setl.model.loaded import Loaded
from setl.model.table_rows import ByTable, TableRows, added
from setl.model.target_name import target_name
from setl.run.spark.shared_memory import received
from setl.transform.merging import merge
from setl.transform.partition import Partition, Shuffled, partitions_of, shuffle
from setl.transform.work import TransformPlan

NOTHING = Loaded()
_NO_ROWS = TableRows()


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The outcome of one load task.

    Attributes:
        loaded: what it did.
        error: why it failed; then nothing else counts.
        repeated: whether Spark has run this task before, and lost sight of it.
    """

    loaded: Loaded = NOTHING
    error: SetlError | None = None
    repeated: bool = False

    def then(self, other: TaskReport) -> TaskReport:
        """This and what the same task did next."""
        return TaskReport(
            self.loaded + other.loaded,
            self.error or other.error,
            self.repeated or other.repeated,
        )


def load(
    settings: SinkSettings, ticket: LoadTicket, slot: int, partitions: Iterable[bytes | Partition]
) -> TaskReport:
    """Second stage: merge the shares of this task's keys and write them.

    Args:
        settings: where to.
        ticket: on whose behalf.
        slot: the number of this task in its load.
        partitions: pickled, if they come from other processes.
    """
    task = TaskContext.get()
    if task is not None:
        freeze_loaded_objects(collect_rarely=True)
    report = _load(settings, ticket, slot, partitions)
    return report if task is None else replace(report, repeated=task.attemptNumber() > 0)


def _load(
    settings: SinkSettings, ticket: LoadTicket, slot: int, partitions: Iterable[bytes | Partition]
) -> TaskReport:
    received = [_unpickled(partition) for partition in partitions]
    for partition in received:
        if partition.error is not None:
            return TaskReport(error=partition.error)
    started = time.monotonic()
    changes = merge([part for partition in received for part in partition.changes])
    histories = [history for partition in received for history in partition.histories]
    merged = time.monotonic()
    loaded = Loaded(
        rows=sum(s.rows for s in received),
        redelivered=sum(s.redelivered for s in received),
        tables=_by_table(changes, histories),
        transform_seconds=sum(s.seconds for s in received) + merged - started,
    )
    faulty = [row for partition in received for row in partition.faulty]
    ticket = replace(ticket, slot=slot)
    loaded = replace(loaded, began=time.time())
    try:
        if histories:
            failpoints.reached("task.before_load")
            loaded += resolve_conflicts(settings, ticket, histories)
        if faulty or ticket.retry_ids or any(part.upserts or part.deletes for part in changes):
            failpoints.reached("task.before_load")
            began = time.monotonic()
            written = sink_for(settings).apply(ticket, changes, faulty)
            # With the connection that it may have opened.
            loaded += replace(written, seconds=time.monotonic() - began)
    except SetlError as error:
        return TaskReport(error=error)
    return TaskReport(loaded)


def _unpickled(data: bytes | Partition) -> Partition:
    return pickle.loads(received(data)) if isinstance(data, bytes) else data  # noqa: S301 - our own


def _by_table(changes: Iterable[TargetChanges], histories: Iterable[History]) -> ByTable:
    """What a task writes, by table; counted once a table, not once a row."""
    counts: ByTable = {}
    for part in changes:
        rows = TableRows(len(part.upserts), len(part.deletes))
        if rows != _NO_ROWS:
            counts = added(counts, {target_name(part.target): rows})
    for history in histories:
        if history.steps:
            counts = added(
                counts, {target_name(history.target): TableRows(contested=len(history.steps))}
            )
    return counts


def shuffle_partition(plan: TransformPlan, items: bytes, buckets: int) -> Shuffled:
    """First stage: see `shuffle`."""
    freeze_loaded_objects(collect_rarely=True)
    return shuffle(plan, received(items), buckets)


def transform(plan: TransformPlan, items: bytes) -> list[Partition]:
    """First stage of a task that is the second one, too: the shares of packed work items."""
    return [*partitions_of(plan, received(items), 1).values()]
