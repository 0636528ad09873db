"""What Spark's tasks run: deal changes out by key, merge the shares of some keys, write them.

An exception that leaves a task reaches the driver as text. A typed error is worth more than
that, so tasks return outcomes; only a defect is raised.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark import TaskContext

from setl import failpoints
from setl.errors import SetlError
from setl.garbage_collection import keep_what_is_loaded
from setl.load.sink import LoadTicket, SinkSettings
from setl.load.worker import resolve_conflicts, sink_for
from setl.model.change import TargetChanges
from setl.model.conflict import History
from setl.model.faulty import FaultyRow
from setl.transform.merging import merge
from setl.transform.share import Dealt, Share, deal
from setl.transform.work import TransformPlan


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What one load task did.

    Attributes:
        rows: row changes decoded on its behalf.
        redelivered: of these, changes that were applied before.
        upserts: rows or documents written.
        deletes: deletes sent.
        stale: writes refused as older than what the target holds.
        transform_seconds: time in decoding, compaction and mapping.
        load_seconds: time in the target.
        dead_letters: see `Loaded`.
        lettered: see `Loaded`.
        fault: see `Loaded`.
        conflicts_source: see `Loaded`.
        conflicts_target: see `Loaded`.
        error: why it failed; then nothing else counts.
        repeated: whether Spark has run this task before, and lost sight of it.
    """

    rows: int = 0
    redelivered: int = 0
    upserts: int = 0
    deletes: int = 0
    stale: int = 0
    transform_seconds: float = 0.0
    load_seconds: float = 0.0
    dead_letters: int = 0
    lettered: frozenset[str] = frozenset()
    fault: str = ""
    conflicts_source: int = 0
    conflicts_target: int = 0
    error: SetlError | None = None
    repeated: bool = False


def load(
    settings: SinkSettings, ticket: LoadTicket, slot: int, shares: Iterable[bytes]
) -> TaskReport:
    """Second stage: merge the shares of this task's keys and write them."""
    task = TaskContext.get()
    if task is not None:
        keep_what_is_loaded(collect_rarely=True)
    report = _load(settings, ticket, slot, shares)
    return report if task is None else replace(report, repeated=task.attemptNumber() > 0)


def _load(
    settings: SinkSettings, ticket: LoadTicket, slot: int, shares: Iterable[bytes]
) -> TaskReport:
    received: list[Share] = [pickle.loads(share) for share in shares]  # noqa: S301 - our own
    for share in received:
        if share.error is not None:
            return TaskReport(error=share.error)
    started = time.monotonic()
    changes = merge([part for share in received for part in share.changes])
    merged = time.monotonic()
    report = TaskReport(
        rows=sum(s.rows for s in received),
        redelivered=sum(s.redelivered for s in received),
        transform_seconds=sum(s.seconds for s in received) + merged - started,
    )
    faulty = [row for share in received for row in share.faulty]
    ticket = replace(ticket, slot=slot)
    histories = [history for share in received for history in share.histories]
    if histories:
        report = _resolve_conflicts(settings, ticket, histories, report)
        if report.error is not None:
            return report
    if not (faulty or ticket.retried or any(part.upserts or part.deletes for part in changes)):
        return report
    return _write(settings, ticket, changes, faulty, report)


def _write(
    settings: SinkSettings,
    ticket: LoadTicket,
    changes: Sequence[TargetChanges],
    faulty: Sequence[FaultyRow],
    report: TaskReport,
) -> TaskReport:
    started = time.monotonic()
    try:
        failpoints.reached("task.before_load")
        loaded = sink_for(settings).apply(ticket, changes, faulty)
    except SetlError as error:
        return TaskReport(error=error)
    return replace(
        report,
        upserts=report.upserts + loaded.upserts,
        deletes=report.deletes + loaded.deletes,
        stale=loaded.stale,
        load_seconds=report.load_seconds + time.monotonic() - started,
        dead_letters=loaded.dead_letters,
        lettered=loaded.lettered,
        fault=loaded.fault,
    )


def _resolve_conflicts(
    settings: SinkSettings, ticket: LoadTicket, histories: Sequence[History], report: TaskReport
) -> TaskReport:
    try:
        failpoints.reached("task.before_load")
        loaded = resolve_conflicts(settings, ticket, histories)
    except SetlError as error:
        return TaskReport(error=error)
    return replace(
        report,
        upserts=loaded.upserts,
        deletes=loaded.deletes,
        load_seconds=loaded.seconds,
        conflicts_source=loaded.conflicts_source,
        conflicts_target=loaded.conflicts_target,
    )


def deal_stretch(plan: TransformPlan, items: bytes, buckets: int) -> Dealt:
    """First stage: see `deal`."""
    keep_what_is_loaded(collect_rarely=True)
    return deal(plan, items, buckets)
