"""What Spark says about the jobs that it runs."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from pyspark import SparkContext

from setl.run.stalls.stall import JobView

_JOBS = 3  # of a group, newest first: one load is one job, except while Spark plans

_RUNNING = "RUNNING"


class _Tasks(NamedTuple):
    """Tasks of one Spark stage; one that Spark has not planned yet has none."""

    all: int = 0
    active: int = 0
    finished: int = 0
    failed: int = 0


def look_at_group(context: SparkContext, group: str) -> JobView | None:
    """The running job of a group, None if none runs.

    A few calls into the JVM, some milliseconds each; blocks for as long as the JVM does. Errors
    of py4j pass through.
    """
    tracker = context.statusTracker()
    stages: dict[int, _Tasks] = {}
    for job in sorted(tracker.getJobIdsForGroup(group), reverse=True)[:_JOBS]:
        info = cast("Any", tracker.getJobInfo(job))
        if info is not None and info.status == _RUNNING:
            for stage in cast("list[int]", info.stageIds):
                stages[stage] = _tasks(context, stage)
    if not stages:
        return None
    earlier = [tasks for stage, tasks in stages.items() if stage != max(stages)]
    active = sum(tasks.active for tasks in stages.values())
    return JobView(
        tasks=sum(tasks.all for tasks in stages.values()),
        active=active,
        finished=sum(tasks.finished for tasks in stages.values()),
        failed=sum(tasks.failed for tasks in stages.values()),
        loading=bool(earlier) and all(tasks.finished >= tasks.all > 0 for tasks in earlier),
        elsewhere=max(
            0, sum(_tasks(context, s).active for s in tracker.getActiveStageIds()) - active
        ),
        executors=_executors(context),
    )


def _tasks(context: SparkContext, stage: int) -> _Tasks:
    info = cast("Any", context.statusTracker().getStageInfo(stage))
    if info is None:
        return _Tasks()
    return _Tasks(info.numTasks, info.numActiveTasks, info.numCompletedTasks, info.numFailedTasks)


def _executors(context: SparkContext) -> int:
    """Processes that run tasks; the driver is one of them only if there is no other."""
    tracker = cast("Any", context)._jsc.sc().statusTracker()  # noqa: SLF001 - not in Python's
    return max(1, len(tracker.getExecutorInfos()) - 1)
