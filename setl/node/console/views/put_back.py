"""Cut-overs on a page that somebody has put back since: what they said holds no more. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
