"""The first half of a Spark task: transforms a share of a batch and splits it by key.

An exception that leaves a task reaches the driver as text. A typed error is worth more than
that, so it travels inside the share; only a defect is raised.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from setl.channel.routes.routing import Route
from setl.errors import SetlError
from setl.model.change import TargetChanges
from setl.model.conflict import History
from setl.model.faulty import FaultyRow
from setl.transform.history import separated
from setl.transform.packing import unpacked
from setl.transform.partition_compaction import compact
from setl.transform.placement import split
from setl.transform.projection import project
from setl.transform.work import TransformPlan


@dataclass(frozen=True, slots=True)
class Partition:
    """What one task of the first stage hands to one task of the second.

    Attributes:
        changes: changes of the second task's keys.
        rows: row changes decoded; counted in one share of each first task only.
        redelivered: of these, changes that were applied before.
        seconds: time the first task took, counted likewise.
        faulty: rows that cannot be transformed.
        histories: what is said of rows that both sites write; all of it goes to the first task.
        error: why the first task gave up.
    """

    changes: list[TargetChanges] = field(default_factory=list[TargetChanges])
    rows: int = 0
    redelivered: int = 0
    seconds: float = 0.0
    faulty: list[FaultyRow] = field(default_factory=list[FaultyRow])
    histories: list[History] = field(default_factory=list[History])
    error: SetlError | None = None


Shuffled = list[tuple[int, bytes]]
"""Pickled shares, each with the number of the load task that it is for."""


def shuffle(plan: TransformPlan, items: bytes, buckets: int) -> Shuffled:
    """Transform packed work items and deal the changes out to `buckets` load tasks."""
    return _pickled(partitions_of(plan, items, buckets))


def partitions_of(plan: TransformPlan, items: bytes, buckets: int) -> dict[int, Partition]:
    """As `shuffle`, for load tasks in this process."""
    started = time.monotonic()
    try:
        work = unpacked(items)
        parts = separated(plan, work)
        compacted = compact(plan, parts.rest)
        routes = [route for route, _, _ in compacted.survivors]
        changes = zip(routes, project(compacted.survivors), strict=True)
        by_bucket = by_buckets(plan, changes, buckets)
        faulty = faulty_by_buckets(plan, compacted.faulty, buckets)
    except SetlError as error:
        return {0: Partition(error=error)}
    seconds = time.monotonic() - started
    rows, redelivered = compacted.rows + parts.rows, compacted.redelivered + parts.redelivered
    return _shared(by_bucket, rows, redelivered, seconds, faulty=faulty, histories=parts.histories)


def by_buckets(
    plan: TransformPlan, changes: Iterable[tuple[Route, TargetChanges]], buckets: int
) -> dict[int, list[TargetChanges]]:
    """Changes by the number of the load task that writes their keys."""
    result: dict[int, list[TargetChanges]] = {}
    for route, target_changes in changes:
        single_writer = target_changes.keyless or route.target in plan.single_writer
        parts = split(target_changes, route.group, buckets, single_writer=single_writer)
        for bucket, part in parts.items():
            result.setdefault(bucket, []).append(part)
    return result


def faulty_by_buckets(
    plan: TransformPlan, faulty: Iterable[tuple[Route, FaultyRow]], buckets: int
) -> dict[int, list[FaultyRow]]:
    """Faulty rows by the number of the load task that writes their keys.

    There later changes of the same rows are, which make up for them.
    """
    result: dict[int, list[FaultyRow]] = {}
    for route, row in faulty:
        home = 0
        if row.key is not None:
            alone = TargetChanges(
                row.target,
                row.key_columns,
                tuple(range(len(row.key))),
                deletes=[row.key],
                delete_versions=[row.version],
                group=route.group,
                document=row.document,
            )
            (home,) = by_buckets(plan, [(route, alone)], buckets)
        result.setdefault(home, []).append(row)
    return result


def packed(
    by_bucket: dict[int, list[TargetChanges]],
    rows: int,
    redelivered: int,
    seconds: float,
    *,
    faulty: Mapping[int, list[FaultyRow]] | None = None,
) -> Shuffled:
    """Pickled shares; the counts go with the share of the first load task."""
    return _pickled(_shared(by_bucket, rows, redelivered, seconds, faulty=faulty or {}))


def _shared(
    by_bucket: dict[int, list[TargetChanges]],
    rows: int,
    redelivered: int,
    seconds: float,
    *,
    faulty: Mapping[int, list[FaultyRow]],
    histories: Sequence[History] = (),
) -> dict[int, Partition]:
    partitions = {
        bucket: Partition(by_bucket.get(bucket, []), faulty=faulty.get(bucket, []))
        for bucket in {*by_bucket, *faulty}
    }
    partitions[0] = Partition(
        by_bucket.get(0, []),
        rows,
        redelivered,
        seconds,
        faulty=faulty.get(0, []),
        histories=list(histories),
    )
    return partitions


def _pickled(partitions: Mapping[int, Partition]) -> Shuffled:
    return [
        (bucket, pickle.dumps(partition, protocol=5)) for bucket, partition in partitions.items()
    ]


def refused(error: SetlError) -> Shuffled:
    """The share of a task that gave up."""
    return _pickled({0: Partition(error=error)})
