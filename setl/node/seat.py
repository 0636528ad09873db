"""One pipeline on one node: its part in the election, and its run while this node leads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from arbiter.campaign import Campaign, Standing
from arbiter.election import Action
from arbiter.port import Arbiter, ArbiterError
from arbiter.values import HistoryItem, Mainstem, MainstemStatus, PipelineId
from setl.clock import Clock
from setl.errors import FencedError, SetlError
from setl.log import fields
from setl.node.http import PipelineStatus
from setl.pipeline.progress import Progress, RunState
from setl.pipeline.run import PipelineRun

_log = logging.getLogger(__name__)

RunFactory = Callable[[int, Progress], PipelineRun]
"""Builds a run for an epoch; raises SetlError if the pipeline cannot be built."""


class Seat:
    """A pipeline's seat on this node, taken or waited for.

    `tick` is called by the node's loop and never waits for the pipeline: a run has a thread of
    its own, and giving leadership up takes as many ticks as the run needs to drain.
    """

    def __init__(
        self,
        pipeline: PipelineId,
        *,
        nid: str,
        arbiter: Arbiter,
        campaign: Campaign,
        build: RunFactory,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self.pipeline = pipeline
        self._nid = nid
        self._arbiter = arbiter
        self._campaign = campaign
        self._build = build
        self._clock = clock
        self._wake = wake
        self._progress = Progress(clock)
        self._run: PipelineRun | None = None
        self._thread: threading.Thread | None = None
        self._held: Mainstem | None = None
        self._failed_at: int | None = None  # channel revision under which the run failed
        self._standing: Standing | None = None
        self._spent = 0  # last epoch under which a run was cancelled

    @property
    def busy(self) -> bool:
        """Whether a run still works, and leadership must not be given away yet."""
        return self._thread is not None and self._thread.is_alive()

    def tick(self, *, revision: int, warm: bool) -> None:
        """Look, decide, act. Raises ArbiterError if the arbiter does not answer."""
        standing = self._campaign.cycle(busy=self.busy, ready=warm, spent=self._spent)
        self._standing = standing
        action = standing.decision.action
        if action is Action.LEAD and standing.mainstem is not None:
            self._lead(standing.mainstem, revision)
        elif action is Action.SUSPEND:
            self.suspend()
        elif action is Action.ABORT:
            self.abort()
        elif action in (Action.HOLD, Action.DRAIN):
            self._drain(RunState.PAUSED if action is Action.HOLD else RunState.STOPPED)
        elif not self.busy:
            self._held = None
            idle = RunState.STOPPED if action is Action.IDLE else RunState.STANDBY
            self._progress.enter(idle)

    def suspend(self) -> None:
        """Let no new load start; called from the watchdog too, so it must not block."""
        if self._run is not None and self.busy:
            self._run.suspend()

    def abort(self) -> None:
        """Cancel what runs, at once (I3).

        Its epoch is spent: a cancelled task may still be writing, and only a higher epoch in the
        target's fence can tell its transactions from those of the next run.
        """
        if self._run is not None and self.busy:
            self._spent = self._held.epoch if self._held else self._spent
            self._run.abort()

    def drain(self) -> None:
        """Let the run finish what is loading, then end; returns at once."""
        if self._run is not None and self.busy:
            self._run.stop()

    def _lead(self, mainstem: Mainstem, revision: int) -> None:
        if self.busy and self._held is not None and self._held.epoch == mainstem.epoch:
            if self._run is not None:
                self._run.resume()
            return
        if self.busy:
            self.abort()  # a run of an earlier epoch has no business any more
            return
        if self._failed_at == revision and self._held and self._held.epoch == mainstem.epoch:
            return  # it failed for good; the operator's next `start` changes the revision
        if self._held is None or self._held.epoch != mainstem.epoch:
            self._progress = Progress(self._clock)
        self._held = mainstem
        self._failed_at = None
        self._thread = threading.Thread(
            target=self._work, args=(mainstem, revision), name=f"run-{self.pipeline}", daemon=True
        )
        self._thread.start()

    def _drain(self, then: RunState) -> None:
        self.drain()
        if not self.busy:
            self._failed_at = None
            self._progress.enter(then)

    def _work(self, mainstem: Mainstem, revision: int) -> None:
        """The run's thread: build it, run it, and keep what it failed with."""
        try:
            self._progress.enter(RunState.TAKING)
            self._run = self._build(mainstem.epoch, self._progress)
            self._say_overtaken(mainstem)
            self._run.run()
        except SetlError as error:
            self._failed_at = revision
            error.at(pipeline=self.pipeline)
            self._progress.enter(RunState.FAILED, str(error))
            fenced = isinstance(error, FencedError)
            _log.error(
                "pipeline is fenced off" if fenced else "pipeline failed",
                extra=self._fields(mainstem, error=str(error)),
            )
        except Exception as error:  # noqa: BLE001 - a defect: shown in status, the others go on
            self._failed_at = revision
            self._progress.enter(RunState.FAILED, f"unexpected {type(error).__name__}: {error}")
            _log.exception("pipeline failed unexpectedly", extra=self._fields(mainstem))
        finally:
            self._wake()

    def _say_overtaken(self, mainstem: Mainstem) -> None:
        """Tell the cluster; a refusal is not acted on here, the next tick will see why."""
        try:
            self._arbiter.set_mainstem_status(self.pipeline, mainstem, MainstemStatus.OVERTAKE)
            reason = self._standing.reason if self._standing else ""
            self._arbiter.add_history(
                self.pipeline,
                HistoryItem(mainstem.epoch, self._nid, reason, self._clock.now()),
            )
        except ArbiterError as error:
            _log.warning(
                "leadership could not be recorded", extra=self._fields(mainstem, error=str(error))
            )

    def _fields(self, mainstem: Mainstem, **values: object) -> dict[str, object]:
        return fields(
            channel=self.pipeline.channel,
            pipeline=self.pipeline.pipeline,
            nid=self._nid,
            epoch=mainstem.epoch,
            **values,
        )

    def status(self) -> PipelineStatus:
        """The seat as others see it."""
        standing = self._standing
        mainstem = standing.mainstem if standing else None
        return PipelineStatus(
            channel=self.pipeline.channel,
            pipeline=self.pipeline.pipeline,
            leader=mainstem.nid if mainstem else "",
            epoch=mainstem.epoch if mainstem else 0,
            mine=bool(standing and standing.mine),
            decision=standing.decision.sentence if standing else "not decided yet",
            figures=self._progress.figures(),
        )

    def close(self, timeout: float) -> None:
        """Drain, then give the leadership up."""
        self.drain()
        if self._thread is not None:
            self._thread.join(timeout)
        if self.busy:
            self.abort()
        if not self.busy:
            self._campaign.resign()
