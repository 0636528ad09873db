"""The first half of a Spark task: transform a share of a batch and deal it out by key.

An exception that leaves a task reaches the driver as text. A typed error is worth more than
that, so it travels inside the share; only a defect is raised.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from setl.config.routing import Route
from setl.errors import SetlError
from setl.model.change import TargetChanges
from setl.transform.work import TransformPlan, WorkItem, compact, project, split


@dataclass(frozen=True, slots=True)
class Share:
    """What one task of the first stage hands to one task of the second.

    Attributes:
        changes: changes of the second task's keys.
        rows: row changes decoded; counted in one share of each first task only.
        redelivered: of these, changes that were applied before.
        seconds: time the first task took, counted likewise.
        error: why the first task gave up.
    """

    changes: list[TargetChanges] = field(default_factory=list[TargetChanges])
    rows: int = 0
    redelivered: int = 0
    seconds: float = 0.0
    error: SetlError | None = None


Dealt = list[tuple[int, bytes]]
"""Pickled shares, each with the number of the load task that it is for."""


def deal(plan: TransformPlan, items: bytes, buckets: int) -> Dealt:
    """Transform pickled work items and deal the changes out to `buckets` load tasks."""
    started = time.monotonic()
    try:
        work: list[WorkItem] = pickle.loads(items)  # noqa: S301 - made by our own driver
        compacted = compact(plan, work)
        routes = [route for route, _, _ in compacted.survivors]
        changes = zip(routes, project(compacted.survivors), strict=True)
        by_bucket = by_buckets(changes, buckets)
    except SetlError as error:
        return refused(error)
    return packed(by_bucket, compacted.rows, compacted.redelivered, time.monotonic() - started)


def by_buckets(
    changes: Iterable[tuple[Route, TargetChanges]], buckets: int
) -> dict[int, list[TargetChanges]]:
    """Changes by the number of the load task that writes their keys."""
    result: dict[int, list[TargetChanges]] = {}
    for route, target_changes in changes:
        for bucket, part in split(target_changes, route.group, buckets).items():
            result.setdefault(bucket, []).append(part)
    return result


def packed(
    by_bucket: dict[int, list[TargetChanges]], rows: int, redelivered: int, seconds: float
) -> Dealt:
    """Pickled shares; the counts go with the share of the first load task."""
    shares = {bucket: Share(changes) for bucket, changes in by_bucket.items()}
    shares[0] = Share(by_bucket.get(0, []), rows, redelivered, seconds)
    return [(bucket, pickle.dumps(share, protocol=5)) for bucket, share in shares.items()]


def refused(error: SetlError) -> Dealt:
    """The share of a task that gave up."""
    return [(0, pickle.dumps(Share(error=error), protocol=5))]
