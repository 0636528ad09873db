"""One pipeline's part in the election, cycle by cycle: look, decide, act on the mainstem."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from arbiter.clock import Clock
from arbiter.election import (
    Action,
    Decision,
    ElectionSettings,
    Ending,
    Past,
    View,
    after_look,
    after_resignation,
    decide,
)
from arbiter.port import Arbiter, Conflict, Contact, NotFound, Unreachable
from arbiter.values import ChannelState, Mainstem, PipelineId

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a node stands with a pipeline after a cycle.

    Attributes:
        decision: what it should do now; what concerns the mainstem is done already.
        mainstem: who leads, as far as is known.
        mine: whether that is this node, in its present session.
        reason: while it is mine, why this leadership began, for the history.
    """

    decision: Decision
    mainstem: Mainstem | None
    mine: bool
    reason: str = ""


class Campaign:
    """Runs the election of one pipeline for one node.

    Has no thread of its own: somebody calls `cycle` every now and then, and soon after
    `Arbiter.watch` woke it. All calls come from one thread.
    """

    def __init__(
        self,
        arbiter: Arbiter,
        pipeline: PipelineId,
        nid: str,
        settings: ElectionSettings,
        clock: Clock,
    ) -> None:
        self._arbiter = arbiter
        self._pipeline = pipeline
        self._nid = nid
        self._settings = settings
        self._clock = clock
        self._past = Past()
        self._state: ChannelState | None = None
        self._mainstem: Mainstem | None = None
        self._reason = ""
        self._said: Decision | None = None

    def cycle(self, *, busy: bool, ready: bool, spent: int = 0) -> Standing:
        """Look once, decide once, and campaign or resign if that was decided.

        Never waits longer than the arbiter's limit for a call; an arbiter that does not answer
        is a decision too, not an error.

        Args:
            busy: whether a run of this pipeline still works on this node.
            ready: whether this node is warm and could lead at once.
            spent: the last epoch under which a run was cancelled here rather than ended in good
                order; it is given up for a new one before this node leads again.

        Raises:
            Denied: the arbiter's access rights forbid looking or campaigning.
            Invalid: the node's or the pipeline's name cannot be used.
        """
        view = self._look(busy=busy, ready=ready, spent=spent)
        decision = decide(view, self._settings)
        if decision.action is Action.CAMPAIGN:
            view, decision = self._campaign(view, decision)
        elif decision.action is Action.RESIGN and view.mainstem is not None:
            ending = Ending.RENEWED if view.state is ChannelState.START else Ending.STOPPED
            view, decision = self._give_up(view, view.mainstem, ending, decision)
        self._say(decision)
        return Standing(decision, view.mainstem, view.mine, self._reason if view.mine else "")

    def resign(self) -> None:
        """Give the leadership up so that another node takes it; nothing if this one has none.

        To be called once nothing of the pipeline runs here any more. This node does not
        campaign again before `ElectionSettings.hold_off` has passed (I5).

        Raises:
            Unreachable: whether it was given up is not known.
        """
        held = self._past.held
        if held is not None:
            self._arbiter.resign(self._pipeline, held)
            now = self._clock.monotonic()
            self._past = after_resignation(self._past, Ending.RESIGNED, now=now)

    def _look(self, *, busy: bool, ready: bool, spent: int) -> View:
        contact = self._arbiter.contact()
        session = self._arbiter.session_id()
        if contact is Contact.CONNECTED:
            try:
                self._state = self._channel_state()
                self._mainstem = self._arbiter.mainstem(self._pipeline)
            except Unreachable:
                contact = _worse(self._arbiter.contact(), Contact.SUSPENDED)
            else:
                # What was read counts only if the session lived until it was read.
                contact = self._arbiter.contact()
        if contact is Contact.LOST:
            self._mainstem = None
        now = self._clock.monotonic()
        if contact is not Contact.SUSPENDED:
            self._past = after_look(
                self._past, now=now, contact=contact, session=session, mainstem=self._mainstem
            )
        return View(
            now=now,
            contact=contact,
            last_contact=self._arbiter.last_contact(),
            session_timeout=self._arbiter.session_timeout,
            session=session,
            nid=self._nid,
            state=self._state,
            mainstem=self._mainstem,
            ready=ready,
            busy=busy,
            past=self._past,
            spent=spent,
        )

    def _channel_state(self) -> ChannelState | None:
        try:
            return self._arbiter.channel(self._pipeline.channel).state
        except NotFound:
            return None

    def _campaign(self, view: View, decision: Decision) -> tuple[View, Decision]:
        """Try to become the leader; what comes of it is this cycle's decision."""
        self._reason = decision.sentence
        try:
            mainstem = self._arbiter.campaign(self._pipeline, self._nid)
        except (Unreachable, Conflict, NotFound) as error:
            # If it took effect after all, the next look finds the mainstem.
            return view, Decision(Action.WAIT, f"{decision.sentence}, without success: {error}")
        now = self._clock.monotonic()
        session, contact = self._arbiter.session_id(), self._arbiter.contact()
        self._mainstem = mainstem
        self._past = after_look(
            self._past, now=now, contact=contact, session=session, mainstem=mainstem
        )
        view = replace(
            view, now=now, contact=contact, session=session, mainstem=mainstem, past=self._past
        )
        outcome = decide(view, self._settings)
        if outcome.action is Action.LEAD:
            won = f"{decision.sentence}; it leads now, epoch {mainstem.epoch}"
            outcome = Decision(Action.LEAD, won)
        return view, outcome

    def _give_up(
        self, view: View, held: Mainstem, ending: Ending, decision: Decision
    ) -> tuple[View, Decision]:
        try:
            self._arbiter.resign(self._pipeline, held)
        except (Unreachable, Conflict) as error:
            return view, Decision(decision.action, f"{decision.sentence}, without success: {error}")
        self._mainstem = None
        self._past = after_resignation(self._past, ending, now=self._clock.monotonic())
        return replace(view, mainstem=None, past=self._past), decision

    def _say(self, decision: Decision) -> None:
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
                    "action": decision.action.value,
                    "decision": decision.sentence,
                }
            },
        )


def _worse(first: Contact, second: Contact) -> Contact:
    order = (Contact.CONNECTED, Contact.SUSPENDED, Contact.LOST)
    return max(first, second, key=order.index)
