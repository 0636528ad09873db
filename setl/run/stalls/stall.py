"""Why a pipeline stands still: from what is seen of it to one reason. Pure.

A pipeline that has nothing to do does not stall, nor does one that is at something large and
advances in it. What counts as an advance is said in `setl.run.measured.pace`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from setl.counting import count
from setl.load.target_view import LockWait, Statement, TargetView
from setl.run.measured.pace import Pace, Reason, Retrying, Stage, Stall
from setl.select.source import Blocked

LIMIT = 60.0
"""Seconds without an advance after which a pipeline counts as stalled."""

_SAME_ERROR = 3  # attempts that failed alike: that the next one advances for a while is no hope
_LOCK_WAIT_TIMEOUT = "[1205]"  # how setl.systems.mysql.connection.translate ends that error
_WRITING = frozenset({Stage.TAKE_OVER, Stage.LOAD, Stage.CHECKPOINT})


@dataclass(frozen=True, slots=True)
class QueueView:
    """Select, as seen from outside.

    Attributes:
        unacked: batches without a termin.
        full: whether there is no room for another, so that Select has to wait.
        silent: seconds since an entry was read.
        heartbeats: heartbeats that were written to the source since then.
        blocked: why the source delivers nothing although there is more, None normally.
    """

    unacked: int = 0
    full: bool = False
    silent: float = 0.0
    heartbeats: int = 0
    blocked: Blocked | None = None


@dataclass(frozen=True, slots=True)
class JobView:
    """The Spark job of a load.

    Attributes:
        tasks: how many it has, over all its stages.
        active: of these, how many run.
        finished: how many have finished.
        failed: how many have failed.
        loading: whether nothing but its last stage, which loads, is left.
        elsewhere: tasks of other jobs that run in the same session.
        executors: processes that run tasks.
        silent: seconds for which Spark has not answered the question, 0 if it did.
    """

    tasks: int = 0
    active: int = 0
    finished: int = 0
    failed: int = 0
    loading: bool = False
    elsewhere: int = 0
    executors: int = 0
    silent: float = 0.0

    @property
    def movement(self) -> Hashable:
        """Differs between two looks if the job advanced."""
        return (self.tasks, self.finished, self.failed, self.active > 0)


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that a diagnosis is made from.

    Attributes:
        pace: how the run moves.
        suspended: whether no load may start, since the arbiter does not answer.
        queue: Select.
        job: the Spark job of the load, None if it was not looked at or there is none.
        target: the target, None if it was not asked or has not answered yet.
        waits: lock waits as they were last seen; attempts give up on a lock and come back to
            it, so that one look may find none.
        hanging: a commit that did not end, as it was last seen.
        waits_age: seconds since both were seen.
    """

    pace: Pace
    suspended: bool = False
    queue: QueueView = field(default_factory=QueueView)
    job: JobView | None = None
    target: TargetView | None = None
    waits: tuple[LockWait, ...] = ()
    hanging: Statement | None = None
    waits_age: float = 0.0


def diagnose(seen: Situation, limit: float = LIMIT) -> Stall | None:
    """Whether a pipeline stands still, and the reason that explains it best.

    Args:
        seen: what is known.
        limit: seconds without an advance that are no stall yet.
    """
    pace = seen.pace
    retrying = _lasting(pace, limit)
    if retrying is not None:  # also between two runs, when the next one needs another epoch
        return _explained(seen, retrying.stage, retrying.seconds, retrying, limit)
    if pace.stage is Stage.NONE or pace.still < limit:
        return None
    if pace.stage is Stage.SELECT:
        return _silent_source(seen, limit)
    return _explained(seen, pace.stage, pace.still, None, limit)


def _lasting(pace: Pace, limit: float) -> Retrying | None:
    """The retries of a run that has come to nothing by them for too long."""
    retrying = pace.retrying
    if retrying is None or retrying.attempts < 2 or retrying.seconds < limit:
        return None
    if pace.stage is Stage.SELECT and pace.in_stage >= limit:
        return None  # this attempt got through to waiting for the source
    long_and_well = pace.attempt >= limit and pace.still < limit
    return None if long_and_well and retrying.same < _SAME_ERROR else retrying


def _silent_source(seen: Situation, limit: float) -> Stall | None:
    """There is more in the source, or heartbeats that were written to it do not come back."""
    queue = seen.queue
    blocked = queue.blocked
    if blocked is not None and blocked.seconds >= limit:
        reason = Reason.TRANSACTION if blocked.transaction else Reason.SOURCE_SILENT
        return Stall(Stage.SELECT, blocked.seconds, reason, f"{blocked.what}. {blocked.hint}")
    if queue.silent < limit or queue.heartbeats < 2:
        return None
    heartbeats = count(queue.heartbeats, "heartbeat was", "heartbeats were")
    return Stall(
        Stage.SELECT,
        queue.silent,
        Reason.SOURCE_SILENT,
        f"no entry has come since then, although {heartbeats} written",
    )


def _explained(
    seen: Situation, stage: Stage, seconds: float, retrying: Retrying | None, limit: float
) -> Stall:
    """The first reason that holds, from the surest to the vaguest."""
    cause = (
        _arbiter(seen)
        or _target(seen, stage, retrying, limit)
        or _spark(seen, stage)
        or _retries(retrying)
        or _task(seen, stage)
    )
    where = stage
    if cause is None and seen.queue.full:
        cause = Reason.BACK_PRESSURE, f"nothing goes on before this {stage.value} has ended"
    if cause is None:
        cause = Reason.UNKNOWN, _nothing_seen(seen)
    reason, detail = cause
    if reason is Reason.TASK_SLOW and _transforms(seen):
        where = Stage.TRANSFORM
    more: list[str] = []
    if retrying is not None and reason is not Reason.RETRYING:
        more.append(_attempts(retrying))
    if seen.queue.full:
        more.append(
            f"Select waits: {count(seen.queue.unacked, 'batch is', 'batches are')} unacknowledged"
        )
    return Stall(where, seconds, reason, "; ".join([detail, *more] if detail else more))


_Found = tuple[Reason, str] | None


def _arbiter(seen: Situation) -> _Found:
    if not seen.suspended:
        return None
    return Reason.ARBITER, "no load may start while nobody can say who leads"


def _target(seen: Situation, stage: Stage, retrying: Retrying | None, limit: float) -> _Found:
    """What the target has to do with it."""
    if stage not in _WRITING:
        return None
    target = seen.target
    if target is not None and target.error:
        return Reason.TARGET_SILENT, target.error
    if target is not None and (found := _hanging(target.waits, target.hanging, limit)):
        return Reason.TARGET_SLOW, f"{found} on {target.name}"
    if target is not None and target.waits:
        return Reason.LOCK, _waiting(target.waits)
    if retrying is not None and _LOCK_WAIT_TIMEOUT in retrying.error:
        return Reason.LOCK, _waited(seen, limit)
    return None if target is None else _busy(target, limit, again=retrying is not None)


def _hanging(waits: tuple[LockWait, ...], commit: Statement | None, limit: float) -> str | None:
    """A commit that does not end, unless what is waited for is held by somebody else."""
    holders = {wait.holder for wait in waits}
    if commit is None or commit.seconds < limit / 2 or not holders <= {commit.connection}:
        return None
    return (
        f"a commit of connection {commit.connection} has not ended for {commit.seconds:.0f} s"
        f" ({commit.state})"
    )


def _busy(target: TargetView, limit: float, *, again: bool) -> _Found:
    """A target that answers, and in which nobody conflicts with it."""
    slow = [s for s in target.statements if s.seconds >= limit / 2]
    if slow:
        return Reason.TARGET_SLOW, _slow(slow, target)
    if target.rejecting:
        return Reason.BACK_PRESSURE, f"{target.name} is too busy: {target.rejecting}"
    # What failed and is tried again has given its connections up itself.
    if target.gone and not (again or target.statements or target.open):
        gone = ", ".join(map(str, target.gone))
        text = f"{target.name} answers, but does not know connection {gone}"
        return Reason.TARGET_SILENT, f"{text}, over which was written"
    return None


def _waiting(waits: tuple[LockWait, ...]) -> str:
    first = max(waits, key=lambda wait: wait.held)
    text = f"connection {first.waiting}"
    if first.table:
        text += f" wants a lock on {first.table}"
    elif not first.holder:
        text += f" says: {first.doing}" if first.doing else " wants a lock"
    else:
        text += " wants a lock"
    if first.holder:
        who = f" ({first.who})" if first.who else ""
        text += f", which connection {first.holder}{who} holds for {first.held:.0f} s"
        text += f", {first.doing}" if first.doing else ""
    else:
        text += "; who holds it cannot be seen"
    others = len({(w.waiting, w.holder) for w in waits}) - 1
    return f"{text}; and {others} more" if others else text


def _waited(seen: Situation, limit: float) -> str:
    if seen.waits_age < limit and (seen.waits or seen.hanging):
        ago = f" (seen {seen.waits_age:.0f} s ago)"
        hanging = _hanging(seen.waits, seen.hanging, limit)
        if hanging or seen.waits:
            return (hanging or _waiting(seen.waits)) + ago
    blind = seen.target.blind if seen.target else ""
    return f"the server gave up waiting; {blind or 'who holds it was not seen'}"


def _slow(slow: list[Statement], target: TargetView) -> str:
    longest = max(slow, key=lambda statement: statement.seconds)
    state = f" ({longest.state})" if longest.state else ""
    text = (
        f"a statement of connection {longest.connection} runs for {longest.seconds:.0f} s{state}"
        f" on {target.name}"
    )
    return f"{text}; {target.blind}" if target.blind else text


def _spark(seen: Situation, stage: Stage) -> _Found:
    """The job is not worked on at all."""
    job = seen.job
    if job is None or stage is not Stage.LOAD:
        return None
    if job.silent:
        return Reason.SPARK, f"Spark has not answered for {job.silent:.0f} s"
    if job.tasks and not job.active:
        done = f"{job.finished} of {count(job.tasks, 'task')} ended and none runs"
        if not job.finished:
            done = f"none of {count(job.tasks, 'task')} has started"
        others = count(job.elsewhere, "task of other loads runs", "tasks of other loads run")
        return Reason.SPARK, f"{done}; {count(job.executors, 'executor')}, {others}"
    return None


def _task(seen: Situation, stage: Stage) -> _Found:
    """Tasks run, and the target does nothing for them."""
    job, target = seen.job, seen.target
    if job is None or stage is not Stage.LOAD or not job.active:
        return None
    if target is not None and target.statements:
        return None
    run = "runs" if job.active == 1 else "run"
    text = f"{job.active} of {count(job.tasks, 'task')} {run}, {job.finished} finished"
    if target is not None and not target.error:
        text += (
            f"; {target.name} waits for them with {count(target.open, 'transaction')} open"
            if target.open
            else f"; {target.name} runs nothing for them"
        )
    return Reason.TASK_SLOW, text


def _transforms(seen: Situation) -> bool:
    """Whether what runs is surely not writing."""
    job, target = seen.job, seen.target
    return job is not None and not job.loading and not (target is not None and target.open)


def _retries(retrying: Retrying | None) -> _Found:
    return None if retrying is None else (Reason.RETRYING, _attempts(retrying))


def _attempts(retrying: Retrying) -> str:
    alike = "alike" if retrying.same == retrying.attempts else f"{retrying.same} of them alike"
    failed = count(retrying.attempts, "attempt has failed", "attempts have failed")
    return f"{failed}, {alike}: {retrying.error}"


def _nothing_seen(seen: Situation) -> str:
    if seen.target is None:
        return ""
    return seen.target.blind or f"{seen.target.name} answers and runs nothing for it"
