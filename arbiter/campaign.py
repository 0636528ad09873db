"""The election of one pipeline, cycle by cycle: look, decide, change the leader lock."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from arbiter.arbiter import Arbiter
from arbiter.election import Action, Decision, ElectionSettings, View, decide
from arbiter.election_memory import (
    ElectionMemory,
    Ending,
    Vacancy,
    after_look,
    after_stepping_down,
    unwatched_since,
    vacancy_of,
)
from arbiter.errors import ArbiterError, Conflict, Contact, NotFound, Unreachable
from arbiter.handover import answers, handover_due, handover_in_vacancy
from arbiter.snapshot import Clock, Snapshot
from arbiter.turns import ANY, Preference
from arbiter.values import (
    EVERYTHING,
    ChannelState,
    LeaderLock,
    PipelineId,
    Signal,
    SignalState,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ElectionState:
    """What a node knows of a pipeline's election after a cycle.

    Attributes:
        decision: what it should do now; what concerns the leader lock is done already.
        leader_lock: who leads, as far as is known.
        leads: whether that is this node, in its present session.
        reason: while it leads, why this leadership began, for the history.
        vacancy: while it leads, since when nobody had applied anything before, seconds since
            1970; None if that is not known.
        ended_at: if this node has just given the leadership up, until when it applied changes,
            seconds since 1970.
        stopped: whether that was since its channel is stopped, which is no outage.
    """

    decision: Decision
    leader_lock: LeaderLock | None
    leads: bool
    reason: str = ""
    vacancy: Vacancy | None = None
    ended_at: float | None = None
    stopped: bool = False


class Campaign:
    """Runs the election of one pipeline for one node.

    Has no thread of its own: somebody looks every now and then, and soon after
    `Arbiter.watch` woke it, and calls `cycle` with what was seen. All calls come from one
    thread.
    """

    def __init__(
        self,
        arbiter: Arbiter,
        pipeline: PipelineId,
        nid: str,
        settings: ElectionSettings,
        clock: Clock,
        *,
        preference: Preference = ANY,
        serves: tuple[str, ...] = EVERYTHING,
    ) -> None:
        """Take part for one node, as its `arbiter.values.NodeInfo` describes it to the others."""
        self._arbiter = arbiter
        self._pipeline = pipeline
        self._nid = nid
        self._settings = settings
        self._clock = clock
        self._preference = preference
        self._never = bool(preference.why_never(nid, serves))
        self._past = ElectionMemory()
        self._asked: tuple[str, float] = ("", 0.0)  # a request's id, and when it was first seen
        self._wanted_since: float | None = None
        self._unclaimed = False
        self._reason = ""
        self._vacancy: Vacancy | None = None
        self._still_since: float | None = None  # see `vacancy_of`
        self._said: Decision | None = None

    def cycle(
        self,
        snapshot: Snapshot,
        *,
        busy: bool,
        ready: bool,
        burnt_epoch: int = 0,
        rank: int | None = 0,
        not_ready: str = "",
    ) -> ElectionState:
        """Decide once, and campaign or step down if that was decided.

        Never waits longer than the arbiter's limit for a call; an arbiter that does not answer
        is a decision too, not an error.

        Args:
            snapshot: what was seen in this cycle.
            busy: whether a run of this pipeline still works on this node.
            ready: whether this node is warm and could lead at once.
            burnt_epoch: the last epoch under which a run was cancelled here rather than ended in
                good order; it is given up for a new one before this node leads again.
            rank: this node's place in the queue for the leadership if nobody has it (see
                `arbiter.turns`).
            not_ready: what this node lacks to lead the pipeline, "" if nothing.

        Raises:
            Denied: the arbiter's access rights forbid campaigning.
            Invalid: the node's or the pipeline's name cannot be used.
        """
        view = self._view(snapshot, busy=busy, ready=ready, burnt_epoch=burnt_epoch, rank=rank)
        view = replace(view, not_ready=not_ready)
        if view.contact is Contact.CONNECTED and view.leader_lock is not None and view.leads:
            view = self._answer(view, snapshot, view.leader_lock)
        decision, seen = decide(view, self._settings), view.leader_lock
        if decision.action in (Action.SUSPEND, Action.ABORT):
            if self._still_since is None:
                # A process that stood still itself hears of the silence after it only.
                unwatched = unwatched_since(snapshot.heard_before, view.now)
                self._still_since = view.now if unwatched is None else unwatched
        elif decision.action not in (Action.STEP_DOWN, Action.WAIT, Action.CAMPAIGN):
            self._still_since = None
        ended_at, stopped = None, False
        if decision.action is Action.CAMPAIGN:
            view, decision = self._campaign(view, decision)
        elif decision.action is Action.STEP_DOWN and view.leader_lock is not None:
            handed = view.handover or view.not_ready
            ending = Ending.STEPPED_DOWN if handed else Ending.RENEWED
            if view.state is not ChannelState.START:
                ending = Ending.STOPPED
            view, decision = self._release(view, view.leader_lock, ending, decision)
            if not view.leads:
                still = view.now if self._still_since is None else self._still_since
                ended_at = self._clock.now() - self._clock.monotonic() + still
                stopped = ending is Ending.STOPPED
        self._say(decision, view.leader_lock or seen)
        if not view.leads:
            return ElectionState(
                decision, view.leader_lock, leads=False, ended_at=ended_at, stopped=stopped
            )
        return ElectionState(
            decision,
            view.leader_lock,
            leads=True,
            reason=self._reason,
            vacancy=self._vacancy,
        )

    def step_down(self) -> bool:
        """Step down so that another node takes it; nothing if this one has none.

        To be called once nothing of the pipeline runs here any more. This node does not
        campaign again before `ElectionSettings.hold_off` has passed (I5).

        Returns:
            Whether it had one.

        Raises:
            Unreachable: whether it stepped down is not known.
        """
        own_lock = self._past.own_lock
        if own_lock is None:
            return False
        self._arbiter.leader_locks.release(self._pipeline, own_lock)
        now = self._clock.monotonic()
        self._past = after_stepping_down(self._past, Ending.STEPPED_DOWN, now=now)
        return True

    def _view(
        self, snapshot: Snapshot, *, busy: bool, ready: bool, burnt_epoch: int, rank: int | None
    ) -> View:
        """What the snapshot says about this pipeline, and what is remembered of it."""
        facts, contact = snapshot.facts, snapshot.contact
        channel = facts.channels.get(self._pipeline.channel)
        leader_lock = facts.leader_locks.get(self._pipeline)
        if contact is Contact.LOST:
            leader_lock = None
        if contact is not Contact.SUSPENDED:
            self._past = after_look(
                self._past,
                now=snapshot.taken,
                contact=contact,
                session=snapshot.session,
                leader_lock=leader_lock,
                nodes=facts.nodes,
                heard_before=snapshot.heard_before,
            )
        handover = self._handover(snapshot, leader_lock)
        state = channel.state if channel else None
        if state is not ChannelState.START:
            self._wanted_since = None
        elif self._wanted_since is None:
            self._wanted_since = snapshot.taken
        if leader_lock is not None or contact is not Contact.CONNECTED:
            self._unclaimed = False
        elif state in (None, ChannelState.STOP):
            self._unclaimed = True
        return View(
            now=snapshot.taken,
            contact=contact,
            last_contact=snapshot.last_contact,
            session_timeout=snapshot.session_timeout,
            session=snapshot.session,
            nid=self._nid,
            state=state,
            leader_lock=leader_lock,
            ready=ready,
            busy=busy,
            past=self._past,
            burnt_epoch=burnt_epoch,
            rank=None if self._never else rank,
            handover=handover,
            asked_at=self._asked[1],
            target_node_gone=handover is not None and handover.to not in facts.nodes,
            wanted_since=self._wanted_since or 0.0,
            unclaimed=self._unclaimed,
        )

    def _handover(self, snapshot: Snapshot, leader_lock: LeaderLock | None) -> Signal | None:
        """The request that is to be carried out now, and since when that is known."""
        signals = self._signals(snapshot)
        if leader_lock is not None:
            return handover_due(signals, leader_lock, snapshot.now)
        handover = handover_in_vacancy(signals, snapshot.now)
        if handover is not None and handover.id != self._asked[0]:
            self._asked = (handover.id, snapshot.taken)
        return handover

    def _signals(self, snapshot: Snapshot) -> tuple[Signal, ...]:
        return snapshot.facts.signals.get(self._pipeline, ())

    def _answer(self, view: View, snapshot: Snapshot, leader_lock: LeaderLock) -> View:
        """As the leader, answer what operators asked; a request that is refused is dropped."""
        for signal, state, text in answers(
            self._signals(snapshot),
            leader_lock,
            state=view.state,
            nodes=snapshot.facts.nodes,
            preference=self._preference,
            now=snapshot.now,
            pipeline=self._pipeline,
        ):
            try:
                self._arbiter.signals.answer(self._pipeline, signal, state, text)
            except (Unreachable, Conflict, NotFound) as error:
                # The next cycle finds it unanswered, or gone.
                _log.debug("signal not answered", extra={"setl": {"error": str(error)}})
            else:
                self._log_answer(signal, state, text)
            if view.handover is not None and view.handover.id == signal.id:
                view = replace(view, handover=None)
        return view

    def _log_answer(self, signal: Signal, state: SignalState, text: str) -> None:
        _log.info(
            "request answered",
            extra={
                "setl": {
                    "channel": self._pipeline.channel,
                    "pipeline": self._pipeline.pipeline,
                    "nid": self._nid,
                    "request": signal.kind.value,
                    "outcome": state.value,
                    "answer": text,
                }
            },
        )

    def _campaign(self, view: View, decision: Decision) -> tuple[View, Decision]:
        """Try to become the leader; what comes of it is this cycle's decision."""
        self._reason = decision.sentence
        vacancy = None  # to be stopped is no outage
        if not view.unclaimed:
            vacancy = vacancy_of(self._past, view.session_timeout, self._still_since)
        self._vacancy = vacancy and vacancy.later_by(self._clock.now() - view.now)
        try:
            leader_lock = self._arbiter.leader_locks.campaign(self._pipeline, self._nid)
        except (Unreachable, Conflict, NotFound) as error:
            # If it took effect after all, the next look finds the leader lock.
            return view, _in_vain(Action.WAIT, decision, error)
        now = self._clock.monotonic()
        session, contact = self._arbiter.session.session_id(), self._arbiter.session.contact()
        self._past = after_look(
            self._past, now=now, contact=contact, session=session, leader_lock=leader_lock
        )
        view = replace(
            view,
            now=now,
            contact=contact,
            session=session,
            leader_lock=leader_lock,
            past=self._past,
            handover=None,  # it was meant for the leadership before
        )
        outcome = decide(view, self._settings)
        if outcome.action is Action.LEAD:
            won = f"{decision.sentence}; it leads now, {leader_lock.leadership}"
            outcome = Decision(Action.LEAD, won)
        return view, outcome

    def _release(
        self, view: View, own_lock: LeaderLock, ending: Ending, decision: Decision
    ) -> tuple[View, Decision]:
        try:
            self._arbiter.leader_locks.release(self._pipeline, own_lock)
        except (Unreachable, Conflict) as error:
            return view, _in_vain(decision.action, decision, error)
        self._past = after_stepping_down(self._past, ending, now=self._clock.monotonic())
        return replace(view, leader_lock=None, past=self._past), decision

    def _say(self, decision: Decision, leader_lock: LeaderLock | None) -> None:
        """One sentence each cycle; aloud only when it is news."""
        level = logging.DEBUG if decision == self._said else logging.INFO
        self._said = decision
        _log.log(
            level,
            "decision",
            extra={
                "setl": {
                    "channel": self._pipeline.channel,
                    "pipeline": self._pipeline.pipeline,
                    "nid": self._nid,
                    **({"epoch": leader_lock.epoch} if leader_lock else {}),
                    "action": decision.action.value,
                    "decision": decision.sentence,
                }
            },
        )


def _in_vain(action: Action, decision: Decision, error: ArbiterError) -> Decision:
    said = decision.public or decision.sentence
    return Decision(
        action,
        f"{decision.sentence}, without success: {error}",
        public=f"{said}, without success",
    )
