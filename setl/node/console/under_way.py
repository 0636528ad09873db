"""Long work on the pages: cut-overs put back since, and work that another node began. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from arbiter.values import OperatorAction
from setl.node.console.actions.jobs import Job
from setl.node.console.actions.long_work import LONG_WORK
from setl.operate import units
from setl.operate.action_log import was_done

_TITLE = LONG_WORK["cutover"].action.verb
_ABORT = "cutover --abort"


def without_put_back(actions: Sequence[OperatorAction], jobs: Iterable[Job]) -> list[Job]:
    """The same work; a cut-over that was put back says so, and no more what to do then.

    Args:
        actions: oldest first.
        jobs: long work on some pipelines.
    """
    ends = {each.on: each for each in actions if each.what == _ABORT and was_done(each)}
    return [_now(job, ends.get(job.on)) for job in jobs]


def _now(job: Job, end: OperatorAction | None) -> Job:
    if job.title != _TITLE or job.state != "done" or end is None or end.at < job.began:
        return job
    return replace(job, lines=(f"It was put back at {units.moment(end.at)} UTC by {end.by}",))


_SHOWN_SECONDS = 86_400.0
"""For how long it is told that something was broken off, if nobody does it again."""


def work_elsewhere(
    actions: Sequence[OperatorAction], on: str, own: Collection[Job], session: int, now: float
) -> list[Job]:
    """What of the log of actions is long work on something, newest first.

    Args:
        actions: oldest first.
        on: the pipeline, or what else it is about.
        own: the work that was begun from this node, which is shown anyway.
        session: this node's; what was begun in it is its own, ended or not.
        now: seconds since 1970 UTC.
    """
    last = {each.what: each for each in actions if each.on == on and each.what in LONG_WORK}
    titles = {job.title for job in own if job.state not in ("done", "failed")}
    found = [
        _job(action)
        for action in last.values()
        if not action.ended and action.session != session and now - action.at < _SHOWN_SECONDS
    ]
    return sorted(
        (job for job in found if job.title not in titles), key=lambda job: job.began, reverse=True
    )


def _job(action: OperatorAction) -> Job:
    title = LONG_WORK[action.what].action.verb
    words = f"by {action.by}"
    if not action.abandoned:
        return Job(0, action.on, title, "under way", action.at, words=words)
    reported = (
        "Whoever did it ended, or lost ZooKeeper, before it was over. What it had asked leaders for"
        " is done all the same; for the rest, begin it again"
    )
    return Job(0, action.on, title, "broken off", action.at, words=words, lines=(reported,))
