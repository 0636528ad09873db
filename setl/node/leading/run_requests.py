"""Carries out what an operator asks of a leader: rollback, restart, a look at the loads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from arbiter.arbiter import Arbiter
from arbiter.errors import Conflict, NotFound, Unreachable
from arbiter.values import LeaderLock, PipelineId, Signal, SignalKind, SignalState
from setl.log import fields

_log = logging.getLogger(__name__)

_KINDS = frozenset((SignalKind.ROLLBACK, SignalKind.RESTART, SignalKind.LOADS))


@dataclass(slots=True)
class _UnderWay:
    """A request that is being carried out.

    Attributes:
        signal: the request.
        done: whether the run that was told has carried it out by itself.
        text: the answer once it is done.
        tries: attempts at a run before it was begun. A run of a later one begins at the
            checkpoint and as it is configured now, which is what each of these requests wants.
    """

    signal: Signal
    done: Callable[[], bool]
    text: str
    tries: int


class Controls:
    """What the requests act on; given by the pipeline's pipeline controller.

    Attributes:
        rollback: tells the run to go back to its checkpoint; the event says that it has. None
            if nothing runs.
        restart: tells the run to end in order, or forgets why the last one failed.
        look_at_loads: tells the run that requests to load tables may have changed.
        tries: how many runs this node has tried to begin; grows with each.
        begun: which of them has begun last, counted from 1; 0 if none has.
        failed: why the run failed, "" if it did not.
    """

    def __init__(
        self,
        *,
        rollback: Callable[[], threading.Event | None],
        restart: Callable[[], None],
        look_at_loads: Callable[[], None],
        tries: Callable[[], int],
        begun: Callable[[], int],
        failed: Callable[[], str],
    ) -> None:
        self.rollback = rollback
        self.restart = restart
        self.look_at_loads = look_at_loads
        self.tries = tries
        self.begun = begun
        self.failed = failed


class RunRequests:
    """Carries the requests to one pipeline out, one at a time, and answers them.

    A request is answered when it is done, not when it is understood: whoever waits for the
    answer finds the pipeline as it was asked to be. One whose leader died meanwhile is answered
    by the next leader.
    """

    def __init__(
        self, pipeline: PipelineId, nid: str, arbiter: Arbiter, controls: Controls
    ) -> None:
        self._pipeline = pipeline
        self._nid = nid
        self._arbiter = arbiter
        self._controls = controls
        self._under_way: _UnderWay | None = None

    def attend(self, signals: Iterable[Signal], leader_lock: LeaderLock) -> None:
        """Look at the requests as the leader `leader_lock`; never waits for the pipeline."""
        open_ = [s for s in signals if s.kind in _KINDS and s.state is SignalState.PENDING]
        if self._under_way is not None:
            if self._under_way.signal.id not in {s.id for s in open_}:
                self._under_way = None  # answered
            else:
                self._follow_up(self._under_way)
                return
        for signal in open_:
            if signal.kind is SignalKind.LOADS:
                # A run that begins later looks automatically.
                self._controls.look_at_loads()
                self._answer(signal, SignalState.DONE, "the leader looks at the loads")
            elif signal.epoch != leader_lock.epoch:
                why = f"the leader has changed: {leader_lock.nid} leads, {leader_lock.leadership}"
                self._answer(signal, SignalState.REFUSED, why)
            else:
                self._begin(signal)
                return

    def _begin(self, signal: Signal) -> None:
        tries = self._controls.tries()
        if signal.kind is SignalKind.ROLLBACK:
            event = self._controls.rollback()
            if event is None:
                why = self._controls.failed()
                text = f"it has failed: {why}" if why else "nothing runs"
                self._answer(signal, SignalState.REFUSED, f"{text}; a restart starts it again")
                return
            text = "rolled back to the checkpoint and reading from there"
            self._under_way = _UnderWay(signal, event.is_set, text, tries)
        else:
            self._controls.restart()
            self._under_way = _UnderWay(signal, lambda: False, "ended and restarted", tries)

    def _follow_up(self, under_way: _UnderWay) -> None:
        """Answer it if it is done, or never will be: a request that stays open stops all others."""
        signal, failed = under_way.signal, self._controls.failed()
        if under_way.done() or self._controls.begun() > under_way.tries:
            self._answer(signal, SignalState.DONE, under_way.text)
        elif not failed:
            return
        elif signal.kind is SignalKind.ROLLBACK or self._controls.tries() > under_way.tries:
            self._answer(signal, SignalState.REFUSED, f"it has failed: {failed}")
        else:
            self._controls.restart()  # the run failed only after it was told to end

    def _answer(self, signal: Signal, state: SignalState, text: str) -> None:
        try:
            self._arbiter.signals.answer(self._pipeline, signal, state, text)
        except (Conflict, NotFound, Unreachable) as error:
            # Still open, or taken back: the next look finds out.
            _log.debug("signal not answered", extra=fields(error=str(error)))
            return
        _log.info(
            "request answered",
            extra=fields(
                channel=self._pipeline.channel,
                pipeline=self._pipeline.pipeline,
                nid=self._nid,
                request=signal.kind.value,
                outcome=state.value,
                answer=text,
            ),
        )
