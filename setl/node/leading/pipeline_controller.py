"""One pipeline on one node: its part in the election, and its run while this node leads."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

from arbiter.arbiter import Arbiter
from arbiter.campaign import Campaign, ElectionState
from arbiter.election import Action
from arbiter.errors import Contact
from arbiter.snapshot import Snapshot
from arbiter.turns import ANY, Preference
from arbiter.values import Channel, LeaderLock, PipelineId, SignalState
from setl.clock import Clock
from setl.error_text import ErrorText
from setl.errors import (
    FencedError,
    NodeFullError,
    NodeNotReadyError,
    SetlError,
    TransientError,
    unexpected,
)
from setl.node.leading.fitness import NotReady
from setl.node.leading.pipeline_thread import PipelineThread
from setl.node.leading.record import LeadershipRecord, leadership_fields
from setl.node.leading.run_requests import Controls, RunRequests
from setl.node.status import PipelineStatus
from setl.run.backoff import Backoff
from setl.run.measured.distributions import Distributions
from setl.run.measured.figures import RunState
from setl.run.measured.progress import Progress
from setl.run.run import PipelineRun

_log = logging.getLogger(__name__)

RunFactory = Callable[[int, Progress], PipelineRun]
"""Builds a run for an epoch; raises SetlError if the pipeline cannot be built."""


class PipelineController:
    """Leads one pipeline on this node, or waits to lead it.

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
        missing_for: Callable[[Channel], str] = lambda _: "",
        preference: Preference = ANY,
    ) -> None:
        """Nothing runs yet.

        Args:
            pipeline: whose pipeline controller it is.
            nid: the node.
            arbiter: its session.
            campaign: its part in the election.
            build: builds runs.
            clock: for all times.
            wake: makes the node look again soon.
            missing_for: what the node is seen to lack for the pipeline, "" for nothing.
            preference: who may lead it.
        """
        self.pipeline = pipeline
        self._not_ready = NotReady(pipeline, nid, preference, missing_for, clock)
        self._not_ready_reason = ""
        self._nid = nid
        self._arbiter = arbiter
        self._campaign = campaign
        self._build = build
        self._clock = clock
        self._wake = wake
        self._progress = Progress(clock)
        self._run = PipelineThread(f"run-{pipeline}")
        self._tries = 0  # attempts at a run, whether it could be built or not
        self._begun = 0  # the last of them whose run has begun
        self._record = LeadershipRecord(pipeline, nid, arbiter, clock)
        self._own_lock: LeaderLock | None = None
        self._failed_at: int | None = None  # channel revision under which the run failed
        self._fenced: tuple[int, int] | None = None  # epoch, revision; another epoch may do
        self._election: ElectionState | None = None
        self.problem = ""  # why the last tick failed, for people
        self._burnt_epoch = 0  # last epoch under which a run left tasks behind
        self._random = random.Random()  # noqa: S311 - jitter is no secret
        self._not_before = 0.0  # monotonic time of the next attempt
        self._idle: Action | None = None  # see `at_rest`
        self._disturbed = False  # by the watchdog, since the last tick began
        self._requests = RunRequests(
            pipeline,
            nid,
            arbiter,
            Controls(
                rollback=self._run.rollback,
                restart=self._restart,
                look_at_loads=self._run.look_at_loads,
                tries=lambda: self._tries,
                begun=lambda: self._begun,
                failed=lambda: self._progress.figures().error if self._failed else "",
            ),
        )

    @property
    def _failed(self) -> bool:
        """Whether this leadership has failed for good."""
        own_lock, fenced = self._own_lock, self._fenced
        return self._failed_at is not None or bool(
            fenced and own_lock and fenced[0] == own_lock.epoch
        )

    @property
    def _trying_again(self) -> bool:
        """Whether the last run has left something to be tried again under another epoch."""
        return self._progress.state is RunState.RETRYING

    @property
    def busy(self) -> bool:
        """Whether a run still works, and leadership must not be given away yet."""
        return self._run.busy

    def tick(self, snapshot: Snapshot, *, warm: bool, rank: int | None) -> float | None:
        """Decide and act on one look at the cluster.

        Args:
            snapshot: what was seen.
            warm: whether this node could lead at once.
            rank: in the queue if no node leads.

        Returns:
            Monotonic time at which to decide again even if nothing changes, see `Decision.due`.

        Raises:
            ArbiterError: the arbiter refuses what was decided.
        """
        # First of all: whatever the watchdog does from now on is for the next tick.
        self._idle, self._disturbed = None, False
        channel = snapshot.facts.channels.get(self.pipeline.channel)
        self._not_ready_reason = self._not_ready.find(channel, snapshot.facts)
        # Once, and before what a run leaves behind, since it may end during this tick.
        busy = self.busy
        election = self._campaign.cycle(
            snapshot,
            busy=busy,
            ready=warm,
            burnt_epoch=self._burnt_epoch,
            rank=rank,
            not_ready=self._not_ready_reason,
        )
        self._election = election
        action = election.decision.action
        if election.ended_at is not None and self._own_lock is not None:
            self._record.ended(self._own_lock, election.ended_at, stopped=election.stopped)
        if action is Action.LEAD and election.leader_lock is not None:
            if busy:
                self._lead_on(election.leader_lock)
            else:
                self._lead(election.leader_lock, channel.revision if channel else -1)
            signals = snapshot.facts.signals.get(self.pipeline, ())
            self._requests.attend(signals, election.leader_lock)
            cost = self._progress.handover_cost()
            if cost is not None:
                self._record.taken_over(election.leader_lock, election, cost)
            if self._progress.state is RunState.RUNNING:
                self._record.works(election.leader_lock)
        elif action is Action.SUSPEND:
            self.suspend()
        elif action is Action.ABORT:
            self.abort()
        elif action in (Action.HOLD, Action.DRAIN):
            self._drain(RunState.PAUSED if action is Action.HOLD else RunState.STOPPED)
        elif not self.busy:
            self._stand_by(action)
        signals = snapshot.facts.signals.get(self.pipeline, ())
        asked = any(signal.state is SignalState.PENDING for signal in signals)
        if not (self._not_ready_reason or asked or self._not_ready.has_failure):
            self._idle = action
        return election.decision.due

    @property
    def at_rest(self) -> bool:
        """Whether another tick would change nothing, as long as looks at the cluster show the same.

        To be asked by the thread that calls `tick`.
        """
        if self._disturbed:
            return False
        if self._idle is Action.LEAD:
            own_lock = self._own_lock
            recorded = own_lock is not None and self._record.has_cost_of(own_lock)
            return self.busy and recorded and self._record.at_work
        return self._idle in (Action.FOLLOW, Action.IDLE) and not self.busy

    @property
    def not_ready(self) -> str:
        """What this node lacks to lead the pipeline, "" if nothing is known."""
        return self._not_ready_reason

    def _stand_by(self, action: Action) -> None:
        """Nothing runs here, and this node does not lead, or only to have another epoch."""
        self._own_lock = None
        if self._not_ready_reason and action is not Action.IDLE:
            # Another leads, or nobody can; either way this node says why it is not the one.
            self._failed_at = None
            led = action is Action.FOLLOW
            self._progress.enter(
                RunState.STANDBY if led else RunState.FAILED, self._not_ready_reason
            )
            return
        if action is Action.IDLE:
            self._failed_at = None
            self._progress.enter(RunState.STOPPED)
        elif action is Action.FOLLOW:
            self._failed_at = None  # if it comes back to this node, it is tried again
            self._progress.enter(RunState.STANDBY)
        elif self._failed_at is None and not self._trying_again:
            self._progress.enter(RunState.STANDBY)

    def suspend(self) -> None:
        """Let no new load start; called from the watchdog too, so it must not block."""
        self._run.suspend()
        self._disturbed = True  # last: a tick in between would forget it

    def abort(self) -> None:
        """Cancel what runs, at once (I3).

        Its epoch is burnt: a cancelled task may still be writing, and only a higher epoch in the
        target's fence can tell its transactions from those of the next run.
        """
        if self.busy:
            self._burnt_epoch = self._own_lock.epoch if self._own_lock else self._burnt_epoch
            self._run.abort()
        self._disturbed = True  # last, as in `suspend`

    def drain(self) -> None:
        """Let the run finish what is loading, then end; returns at once."""
        self._run.stop()

    def step_down(self) -> None:
        """Drain, and step down once nothing runs; returns at once, so call it again.

        For a leader that cannot look after its leadership. Nothing happens without one.

        Raises:
            ArbiterError: whether it stepped down is not known.
        """
        self.drain()
        if not self.busy:
            self._leave_lead()

    def _restart(self) -> None:
        self._failed_at = self._fenced = None
        self.drain()

    def _lead_on(self, leader_lock: LeaderLock) -> None:
        """Lead with the run that there was when this was decided.

        If it has ended since, the next tick decides: its epoch may be burnt, or its pipeline
        controller is to end with it.
        """
        if self._own_lock is None or self._own_lock.epoch != leader_lock.epoch:
            self.abort()  # a run of an earlier epoch has no business any more
        elif self._arbiter.session.contact() is Contact.CONNECTED:  # still, after the look
            self._run.resume()
        else:
            self._disturbed = True

    def _lead(self, leader_lock: LeaderLock, revision: int) -> None:
        """Begin a run, unless it is to wait or has failed for good."""
        if self._failed_at == revision or self._fenced == (leader_lock.epoch, revision):
            return  # it failed for good; the operator's next `start` changes the revision
        if self._clock.monotonic() < self._not_before:
            return
        if self._own_lock is None or self._own_lock.epoch != leader_lock.epoch:
            before = self._progress if self._trying_again else None
            self._progress = Progress(self._clock, before)
        self._own_lock = leader_lock
        self._failed_at = None
        self._tries += 1
        self._run.start(lambda: self._work(leader_lock, revision))

    def _drain(self, then: RunState) -> None:
        self.drain()
        if not self.busy:
            self._failed_at = None
            self._progress.enter(then)

    def _work(self, leader_lock: LeaderLock, revision: int) -> None:
        """The run's thread: build it, run it, and keep what it failed with."""
        counted = self._progress.figures().retries
        try:
            self._progress.begin_attempt()
            run = self._build(leader_lock.epoch, self._progress)
            self._run.built(run)
            self._begun = self._tries
            self._record.begun(leader_lock, self._election)
            try:
                run.run()
            finally:
                if run.abandoned:
                    self._burnt_epoch = leader_lock.epoch
        except TransientError as error:
            self._try_again(leader_lock, error, counted)
            if isinstance(error, NodeFullError):
                self._not_ready.note_failure(revision, error)
        except SetlError as error:
            fenced = isinstance(error, FencedError)
            if fenced:
                self._fenced = leader_lock.epoch, revision
            else:
                if isinstance(error, NodeNotReadyError):
                    self._not_ready.note_failure(revision, error)
                self._failed_at = revision
            error.at(pipeline=self.pipeline)
            self._progress.enter(RunState.FAILED, error.text)
            _log.error(
                "pipeline is fenced off" if fenced else "pipeline failed",
                extra=self._fields(leader_lock, error=str(error)),
            )
            self._record.failed(leader_lock, self._election, error.text)
        except Exception as error:  # noqa: BLE001 - a defect: shown in status, the others go on
            self._failed_at, shown = revision, unexpected(error)
            self._progress.enter(RunState.FAILED, shown)
            _log.exception("pipeline failed unexpectedly", extra=self._fields(leader_lock))
            self._record.failed(leader_lock, self._election, shown)
        finally:
            self._wake()

    def _try_again(self, leader_lock: LeaderLock, error: TransientError, counted: int) -> None:
        """Run again later, under another epoch: the last run left something to be retried."""
        self._burnt_epoch = leader_lock.epoch
        error.at(pipeline=self.pipeline)
        if self._progress.figures().retries == counted:
            # It did not fail where it could be counted.
            self._progress.failed(error.brief, shown=error.text)
        else:
            self._progress.enter(RunState.RETRYING, error.text)
        attempts = self._progress.figures().attempts
        wait = Backoff(self._random, failures=max(0, attempts - 1)).failed()
        self._not_before = self._clock.monotonic() + wait
        _log.warning(
            "pipeline tries again in another leadership",
            extra=self._fields(
                leader_lock,
                error=str(error),
                attempt=attempts,
                wait=round(wait, 2),
            ),
        )
        self._record.failed(leader_lock, self._election, error.text)

    def _fields(self, leader_lock: LeaderLock, **values: object) -> dict[str, object]:
        return leadership_fields(self.pipeline, self._nid, leader_lock, **values)

    def status(self) -> PipelineStatus:
        """The pipeline controller as others see it."""
        election = self._election
        leader_lock = election.leader_lock if election else None
        return PipelineStatus(
            channel=self.pipeline.channel,
            pipeline=self.pipeline.pipeline,
            leader=leader_lock.nid if leader_lock else "",
            epoch=leader_lock.epoch if leader_lock else 0,
            leadership=leader_lock.number if leader_lock else 0,
            mine=bool(election and election.leads),
            decision=self.problem or self._decision(),
            figures=self._progress.figures(),
            not_ready=self._not_ready_reason,
        )

    def _decision(self) -> ErrorText:
        if self._election is None:
            return ErrorText("not decided yet", "not decided yet")
        decision = self._election.decision
        return ErrorText(decision.sentence, decision.public or decision.sentence)

    def measured(self) -> Distributions:
        """Histograms of what was measured here in its last leadership."""
        return self._progress.measured()

    def close(self, timeout: float) -> None:
        """Drain, then step down."""
        self.drain()
        self._run.join(timeout)
        if self.busy:
            self.abort()
        if not self.busy:
            self._leave_lead()

    def _leave_lead(self) -> None:
        """Release the leader lock, if it is this node's own, and record that."""
        if self._campaign.step_down() and self._own_lock is not None:
            self._record.ended(self._own_lock, self._clock.now())
