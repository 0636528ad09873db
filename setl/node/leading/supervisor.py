"""The pipeline controllers of a node: one for each pipeline that it is able to lead."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from arbiter.arbiter import Arbiter
from arbiter.campaign import Campaign
from arbiter.election import ElectionSettings
from arbiter.errors import ArbiterError, Contact
from arbiter.snapshot import Snapshot
from arbiter.turns import Preference, queues
from arbiter.values import Channel, ChannelState, Facts, PipelineId
from setl.clock import Clock
from setl.log import fields
from setl.node.leading.cycle_problems import CycleProblem
from setl.node.leading.pipeline_controller import PipelineController
from setl.node.stored import pipelines_of, preference_of
from setl.run.measured.progress import Progress
from setl.run.run import PipelineRun

_log = logging.getLogger(__name__)

RunBuilder = Callable[[Channel, str, int, Progress], PipelineRun]
"""Builds a run from the stored channel, the pipeline's name, the epoch and its progress."""


_AT_ONCE: Final = 8
"""Leaderships that are taken over side by side."""

_SURE: Final = 0.5
"""Part of the session timeout for which silence is not worth a decision; see `deadline`."""


def _nothing_missing(_channel: Channel, _pipeline: str) -> str:
    return ""


@dataclass(slots=True)
class _Assignment:
    """A pipeline controller, and what it was begun for.

    Attributes:
        controller: the pipeline controller.
        definition: the channel's, as it was then.
        preference: which nodes the pipeline prefers.
        leaving: whether it ends, because its channel changed or went away.
        problem: what went wrong with it unexpectedly.
        stepping_down: whether it steps down once nothing runs.
        complaint: what the arbiter refused last, "" for nothing.
        decided_on: what its last decision was made of; None if it has to decide anyhow.
    """

    controller: PipelineController
    definition: object
    preference: Preference
    problem: CycleProblem
    leaving: bool = False
    stepping_down: bool = False
    complaint: str = ""
    decided_on: _Seen | None = None


class _Seen(NamedTuple):
    """What all decisions of one look have in common; the facts are the same if nothing is new."""

    facts: Facts
    session: int
    warm: bool

    def same(self, other: _Seen | None) -> bool:
        """Whether both are of looks between which nothing has changed."""
        return other is not None and self.facts is other.facts and self[1:] == other[1:]


class Supervisor:
    """Begins and ends pipeline controllers as channels come, change and go; used by one thread.

    `current` may be called from any thread.
    """

    def __init__(
        self,
        nid: str,
        arbiter: Arbiter,
        election: ElectionSettings,
        clock: Clock,
        *,
        serves: tuple[str, ...],
        build: RunBuilder,
        wake: Callable[[], None],
        missing_for: Callable[[Channel, str], str] = _nothing_missing,
    ) -> None:
        """There is no pipeline controller yet.

        Args:
            nid: the node.
            arbiter: its session.
            election: the rules of take-over.
            clock: for all times.
            serves: the kinds of pipelines that the node is able to lead.
            build: builds runs.
            wake: makes the node look again soon.
            missing_for: what the node lacks for a pipeline of a channel, "" for nothing.
        """
        self._missing_for = missing_for
        self._nid = nid
        self._arbiter = arbiter
        self._election = election
        self._clock = clock
        self._serves = serves
        self._build = build
        self._wake = wake
        self._assigned: dict[PipelineId, _Assignment] = {}
        self._arranged: Facts | None = None
        self._pool: ThreadPoolExecutor | None = None

    def current(self) -> list[PipelineController]:
        """The present pipeline controllers."""
        return [assigned.controller for assigned in list(self._assigned.values())]

    @property
    def busy(self) -> bool:
        """Whether anything runs."""
        return any(controller.busy for controller in self.current())

    def tick(self, snapshot: Snapshot, *, warm: bool) -> float | None:
        """Begin and end pipeline controllers as channels want it; let each act on one look.

        A pipeline controller at rest is skipped as long as looks show the same, so that many idle
        pipelines cost little.

        Returns:
            Monotonic time at which one of them has to decide again although nothing changes;
            None if there is none.
        """
        if snapshot.contact is Contact.CONNECTED:
            self._arrange(snapshot.facts)
        seen = _Seen(snapshot.facts, snapshot.session, warm) if _is_sure(snapshot) else None
        deciding = {
            ident: assigned
            for ident, assigned in self._assigned.items()
            if seen is None
            or assigned.stepping_down
            or not (seen.same(assigned.decided_on) and assigned.controller.at_rest)
        }
        ranks = self._ranks(snapshot.facts) if deciding else {}

        def decide(ident: PipelineId) -> float | None:
            assigned = deciding[ident]
            again = self._decide(ident, assigned, snapshot, warm=warm, rank=ranks.get(ident, 0))
            assigned.decided_on = (
                seen if again is None and not assigned.controller.problem else None
            )
            return again

        # To take many over one after another would take as many round trips as they are.
        vacant = [ident for ident in deciding if ident in ranks]
        due = [decide(ident) for ident in deciding if ident not in ranks]
        if len(vacant) > 1:
            self._pool = self._pool or ThreadPoolExecutor(_AT_ONCE, "campaign")
            due += self._pool.map(decide, vacant)
        else:
            due += map(decide, vacant)
        return min((again for again in due if again is not None), default=None)

    def _decide(
        self,
        ident: PipelineId,
        assigned: _Assignment,
        snapshot: Snapshot,
        *,
        warm: bool,
        rank: int,
    ) -> float | None:
        """Let one pipeline controller decide and act; returns as `tick`."""
        if assigned.leaving and not assigned.controller.busy:
            return None  # it must not restart what it was begun for
        if assigned.stepping_down:
            # This look still shows the leadership that ends; the next one is another.
            self._step_down(ident, assigned)
            return None
        try:
            again = assigned.controller.tick(snapshot, warm=warm, rank=rank)
        except ArbiterError as error:
            self._complain(ident, assigned, error)
            assigned.controller.problem = f"ZooKeeper refuses: {error}"
        except Exception as error:  # noqa: BLE001 - a defect: the other pipeline controllers go on
            assigned.problem.occurred(error)
            assigned.controller.problem = assigned.problem.sentence
            # A leadership that nobody looks after follows no operator: another may do better.
            assigned.stepping_down = True
            self._step_down(ident, assigned)
        else:
            if not assigned.leaving:  # whose trouble, if any, is to leave
                assigned.problem.passed()
                assigned.controller.problem = ""
            return again
        return None

    def step_down(self) -> None:
        """Drain all pipeline controllers without waiting; those that run nothing step down."""
        for ident, assigned in self._assigned.items():
            assigned.stepping_down = True
            self._step_down(ident, assigned)

    def _step_down(self, ident: PipelineId, assigned: _Assignment) -> None:
        """Drain a pipeline controller without waiting; it steps down if nothing runs any more."""
        try:
            assigned.controller.step_down()
        except ArbiterError as error:
            self._complain(ident, assigned, error)
        except Exception as error:  # noqa: BLE001 - a defect: the other pipeline controllers go on
            assigned.problem.occurred(error)
        else:
            assigned.stepping_down = assigned.controller.busy

    def close(self, patience: float) -> None:
        """Drain all pipeline controllers side by side, and step down.

        Args:
            patience: seconds that each may take to finish what it is writing.
        """
        if self._pool is not None:
            self._pool.shutdown()
        controllers = self.current()
        for controller in controllers:
            try:
                controller.drain()
            except Exception as error:  # noqa: BLE001 - the others have to be drained, too
                _log.warning("run not drained", extra=fields(error=str(error)))
        for controller in controllers:
            try:
                controller.close(patience)
            except Exception as error:  # noqa: BLE001 - the others have to be closed, too
                # The session ends with the process, and every leadership with it.
                _log.warning("node did not step down", extra=fields(error=str(error)))

    def _arrange(self, facts: Facts) -> None:
        """Begin a controller for each pipeline; end those whose channel changed or went away."""
        if facts is self._arranged and not any(
            assigned.leaving for assigned in self._assigned.values()
        ):
            return
        channels = facts.channels.values()
        wanted = {ident: channel for channel in channels for ident in pipelines_of(channel)}
        left: set[PipelineId] = set()
        for ident, assigned in list(self._assigned.items()):
            # One that leaves does so to its end, even if its definition comes back meanwhile: it
            # may have been told to drain, and is then restarted.
            gone = ident not in wanted or assigned.definition != wanted[ident].definition
            if (assigned.leaving or gone) and self._has_ended(ident, assigned):
                left.add(ident)
        for ident, channel in wanted.items():
            preference = preference_of(channel, ident.pipeline)
            # This look still shows the leadership that has just ended; the next one is another.
            if ident in left:
                continue
            if ident not in self._assigned and preference.served_by(self._serves):
                controller = self._controller(ident, channel, preference)
                log_fields = {"channel": ident.channel, "pipeline": ident.pipeline}
                problem = CycleProblem(self._clock, self._nid, **log_fields)
                self._assigned[ident] = _Assignment(
                    controller, channel.definition, preference, problem
                )
        self._arranged = None if left else facts

    def _has_ended(self, ident: PipelineId, assigned: _Assignment) -> bool:
        """Drain a pipeline controller without waiting; whether it has ended and stepped down."""
        assigned.leaving = True
        try:
            if assigned.controller.busy:
                assigned.controller.drain()
                return False
            assigned.controller.close(0)
        except ArbiterError as error:
            self._complain(ident, assigned, error)
            return False
        except Exception as error:  # noqa: BLE001 - a defect: the other pipeline controllers go on
            assigned.problem.occurred(error)
            assigned.controller.problem = assigned.problem.sentence
            return False
        del self._assigned[ident]
        return True

    def _controller(
        self, ident: PipelineId, channel: Channel, preference: Preference
    ) -> PipelineController:
        campaign = Campaign(
            self._arbiter,
            ident,
            self._nid,
            self._election,
            self._clock,
            preference=preference,
            serves=self._serves,
        )
        return PipelineController(
            ident,
            nid=self._nid,
            arbiter=self._arbiter,
            campaign=campaign,
            build=partial(self._build, channel, ident.pipeline),
            clock=self._clock,
            wake=self._wake,
            missing_for=lambda seen: self._missing_for(seen, ident.pipeline),
            preference=preference,
        )

    def not_ready(self) -> dict[PipelineId, str]:
        """The pipelines that this node cannot lead as it is, and what it is missing for them."""
        return {
            controller.pipeline: controller.not_ready
            for controller in self.current()
            if controller.not_ready
        }

    def _ranks(self, facts: Facts) -> dict[PipelineId, int]:
        """This node's place in the queue for every pipeline that no node leads.

        While the others have not heard yet that this node is warm, it is in no queue; it then
        comes last, which costs the delay of a rank.
        """
        vacant = [
            ident
            for ident in self._assigned
            if ident not in facts.leader_locks
            and ident.channel in facts.channels
            and facts.channels[ident.channel].state is not ChannelState.STOP
        ]
        ranks: dict[PipelineId, int] = {}
        preferences = {ident: self._assigned[ident].preference for ident in vacant}
        for ident, queue in queues(vacant, facts, preferences).items():
            ranks[ident] = queue.index(self._nid) if self._nid in queue else len(queue)
        return ranks

    def _complain(self, pipeline: PipelineId, assigned: _Assignment, error: ArbiterError) -> None:
        """Say once what the arbiter refuses; a cycle later it is the same."""
        level = logging.DEBUG if assigned.complaint == str(error) else logging.WARNING
        assigned.complaint = str(error)
        log_fields = fields(
            channel=pipeline.channel,
            pipeline=pipeline.pipeline,
            nid=self._nid,
            error=str(error),
        )
        _log.log(level, "ZooKeeper refuses", extra=log_fields)


def _is_sure(snapshot: Snapshot) -> bool:
    """Whether it is certain who leads; if not, every pipeline controller has to decide."""
    silent = snapshot.taken - snapshot.last_contact
    return snapshot.contact is Contact.CONNECTED and silent < _SURE * snapshot.session_timeout
