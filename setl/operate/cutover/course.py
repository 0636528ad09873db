"""Takes the steps of a cut-over one after another, and puts things back where one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, TypeVar

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Conflict, Unreachable
from arbiter.requests import Refused
from arbiter.values import PipelineId
from setl.clock import Clock
from setl.errors import SetlError, TransientError
from setl.operate.cutover.steps import (
    CutOver,
    Known,
    Rules,
    Step,
    StepReport,
    objections,
    still_stopped,
)
from setl.systems.write_stop import Writes
from setl.waiting import polling

_POLL = 0.5
_T = TypeVar("_T")


class Failed(Exception):  # noqa: N818 - reads as what it is
    """A step cannot be taken; nothing of it is left to be put back."""


class CutOverAccess(Protocol):
    """Whatever a cut-over does outside.

    Order: `stop` only after the record that says how to put it back is kept. Idempotence: every
    call may be repeated. A crash between two calls leaves the record, which says what comes next.
    All raise SetlError where a server does not answer or refuses.
    """

    def known(self) -> Known:
        """What is known of channel, source and way back."""
        ...

    def differences(self) -> list[str]:
        """How source and target differ, one sentence for each target; empty if they do not."""
        ...

    def writes(self) -> Writes | None:
        """Whether the source takes writes."""
        ...

    def stop(self) -> None:
        """Make the source read-only."""
        ...

    def restore(self, settings: Mapping[str, str]) -> None:
        """Put the source's settings back."""
        ...

    def drain(self, timeout: float) -> str:
        """Wait until all that the source has is in the target; why it is not, "" if it is."""
        ...

    def way_back(self, timeout: float) -> str | None:
        """The same of the way back; None if there is none."""
        ...


class Course:
    """One cut-over, from wherever its record says that it is."""

    def __init__(  # noqa: PLR0917
        self,
        ident: PipelineId,
        arbiter: Arbiter,
        access: CutOverAccess,
        rules: Rules,
        clock: Clock,
        pause: Callable[[float], None],
        tell: Callable[[StepReport], None],
    ) -> None:
        """Nothing is done yet.

        Args:
            ident: the pipeline.
            arbiter: keeps the record.
            access: does what has to be done.
            rules: what the operator asks for.
            clock: for time limits.
            pause: waits for so many seconds.
            tell: is told what was done. An OSError says that nobody hears it any more, which
                ends the cut-over: a source is not made read-only where nobody is told.
        """
        self._ident = ident
        self._arbiter = arbiter
        self._access = access
        self._rules = rules
        self._clock = clock
        self._pause = pause
        self._report = tell
        self._revision: int | None = None

    def record(self) -> CutOver | None:
        """The record as it is kept now, None if there is no cut-over."""
        found = self._arbiter.cutovers.read(self._ident)
        self._revision = None if found is None else found[1]
        return None if found is None else CutOver.from_json(found[0])

    def carry_out(self, by: str) -> CutOver:
        """Begin a cut-over, or go on with it, to its end.

        Raises:
            Refused: a step cannot be taken; what was done is put back.
            Conflict: somebody else carries on, or puts back, the same cut-over.
            SetlError: as `abort`; things may not be put back then.
        """
        record = self.record()
        if record is None:
            record = CutOver(begun=self._clock.now(), by=by)
            self._keep(record)
        if record.aborting:
            self.abort()
            raise Refused("it was being put back, which is done now; run it again to restart")
        if record.step is Step.DONE:
            # The application may have moved: nothing is put back unasked.
            why = still_stopped(record, self._access.writes())
            if why:
                raise Refused(f"the cut-over is done, but {why}")
        try:
            while record.step is not Step.DONE:
                self._see_stopped(record)
                if record.step is Step.STOP_WRITES:
                    record = self._announced(record)
                self._take(record)
                record = record.after()
                self._keep(record)
        except Conflict:
            self._leave_to_others(record)
            raise
        except (Exception, KeyboardInterrupt) as error:
            # Whatever it is, a mistake of ours too: the source must not stay read-only for it.
            reason = _reason(error)
            self._say(StepReport(record.step, "cannot be taken", (reason,)))
            self.abort()
            raise Refused(
                f"step `{record.step.value}`: {reason}; everything is put back"
            ) from error
        return record

    def abort(self) -> CutOver | None:
        """Put back what a cut-over has changed, and forget it. Returns what it was.

        The record is marked first, so that whoever carries it on at the same time stops. It is
        forgotten last: a crash in between is fixed by calling this again.

        Raises:
            Conflict: somebody else changed it at the same time.
            SetlError: the source does not answer, or refuses; the record stays.
        """
        record = self._patiently(self._marked, "ZooKeeper does not say how to put the source back")
        if record is None:
            return None
        if record.restore is not None:
            self._restored(record.restore, record.server)
        self._patiently(self._forgotten, "the source is put back, and its record still there")
        return record

    def _marked(self) -> CutOver | None:
        record = self.record()
        if record is not None:
            self._keep(replace(record, aborting=True))
        return record

    def _forgotten(self) -> None:
        record = self.record()  # None if an earlier try has come through, and its answer has not
        if record is not None and record.aborting and self._revision is not None:
            self._arbiter.cutovers.forget(self._ident, self._revision)

    def _leave_to_others(self, mine: CutOver) -> None:
        """Somebody else changed the record: he may have put the source back before it was set."""
        theirs = self.record()
        if mine.restore is not None and (theirs is None or theirs.aborting):
            self._restored(mine.restore, mine.server)

    def _restored(self, settings: Mapping[str, str], server: str) -> None:
        def restore() -> None:
            writes = self._access.writes()
            if writes is None or writes.server != server:
                text = "another server answers as the source; nothing is set there"
                self._say(StepReport(Step.STOP_WRITES, text))
                return
            self._access.restore(settings)

        self._patiently(restore, "the source is not put back yet")

    def _patiently(self, call: Callable[[], _T], without: str) -> _T:
        """Do what putting back needs again and again: a server may be away for a moment only."""
        announced = False
        for left in self._polling():
            try:
                return call()
            except (TransientError, Unreachable) as error:
                if not left:
                    raise
                if not announced:
                    text = f"{without}; tried for {self._rules.timeout:g} s"
                    self._say(StepReport(Step.STOP_WRITES, text, (str(error),)))
                    announced = True
        raise AssertionError("the last call returns or raises")

    def _polling(self) -> Iterator[float]:
        return polling(
            self._rules.timeout, _POLL, monotonic=self._clock.monotonic, pause=self._pause
        )

    def _say(self, step_report: StepReport) -> None:
        """Tell it if somebody hears it: putting back goes on without a terminal."""
        with suppress(OSError):
            self._report(step_report)

    def _keep(self, record: CutOver) -> None:
        self._revision = self._arbiter.cutovers.store(self._ident, record.to_json(), self._revision)

    def _see_stopped(self, record: CutOver) -> None:
        why = still_stopped(record, self._access.writes() if record.relies_on_stop else None)
        if why:
            raise Failed(why)

    def _take(self, record: CutOver) -> None:
        """Take the step that comes next."""
        step, limit = record.step, self._rules.timeout
        if step is Step.CHECK:
            self._require(step, objections(self._access.known(), self._rules), "all is ready")
        elif step is Step.VERIFY or (step is Step.VERIFY_AGAIN and self._rules.verify_again):
            self._require(step, self._access.differences(), "source and target are equal")
        elif step is Step.STOP_WRITES:
            self._stop(record)
        elif step is Step.DRAIN:
            self._require(step, [self._access.drain(limit)], "the target has everything")
        elif step is Step.WAY_BACK:
            why = self._access.way_back(limit)
            text = "the way back is at its end" if why is not None else "there is no way back"
            self._require(step, [why or ""], text)

    def _announced(self, record: CutOver) -> CutOver:
        """Keep what has to be put back, before anything is set."""
        writes = self._access.writes()
        if writes is None:
            raise Failed("setl cannot tell whether the source is read-only")
        by_hand = self._rules.by_hand
        record = replace(record, server=writes.server) if by_hand else record.stopping(writes)
        self._keep(record)
        return record

    def _stop(self, record: CutOver) -> None:
        if self._rules.by_hand:
            self._await_operator()
        else:
            self._access.stop()
        now = self._access.writes()
        why = still_stopped(record.after(), now)
        if why or now is None:
            raise Failed(why)
        text = "the source is read-only"
        if now.others:
            text += f"; but {', '.join(now.others)} may write all the same: end their connections"
        self._report(StepReport(Step.STOP_WRITES, text))

    def _await_operator(self) -> None:
        announced = False
        for _ in self._polling():
            writes = self._access.writes()
            if writes is not None and writes.stopped:
                return
            if not announced:
                self._report(StepReport(Step.STOP_WRITES, "make the source read-only now"))
                announced = True
        raise Failed("the source was not made read-only in time")

    def _require(self, step: Step, problems: list[str], text: str) -> None:
        found = [problem for problem in problems if problem]
        if found:
            raise Failed("; ".join(found))
        self._report(StepReport(step, text))


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, BrokenPipeError):
        return "nobody reads the output of this command any more"
    expected = isinstance(error, Failed | SetlError | ArbiterError)
    return str(error) if expected else f"unexpected {type(error).__name__}: {error}"
