"""What the cluster is told of this node's leaderships: that it leads, and the history."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from arbiter.arbiter import Arbiter
from arbiter.campaign import ElectionState
from arbiter.election_memory import Vacancy
from arbiter.errors import ArbiterError
from arbiter.values import HistoryItem, LeaderLock, LeaderLockStatus, PipelineId
from setl.clock import Clock
from setl.error_text import public
from setl.log import fields
from setl.run.measured.figures import HandoverCost

_log = logging.getLogger(__name__)

_MAX_ERROR = 500  # characters of an error in the history
_EXACT = 1.0
"""Seconds by which nobody minds that a figure is wrong, or that two machines' clocks differ."""


class LeadershipRecord:
    """Records the leaderships of one pipeline on one node.

    A refusal is logged only: a leadership goes on without its record, and if the node leads no
    more, its next tick sees that.
    """

    def __init__(self, pipeline: PipelineId, nid: str, arbiter: Arbiter, clock: Clock) -> None:
        """Nothing is recorded yet."""
        self._pipeline = pipeline
        self._nid = nid
        self._arbiter = arbiter
        self._clock = clock
        self._noted: HistoryItem | None = None  # of the leadership that was recorded last
        self._recorded = 0  # epoch whose cost is in the history
        self._vacancy: Vacancy | None = None  # before the leadership that was noted last

    def begun(self, leader_lock: LeaderLock, election: ElectionState | None) -> None:
        """A run has begun under this leadership.

        A run that restarts under the same epoch, after a pause or a new definition, is no new
        leadership: what the history has of it stays, its time and what it has cost.
        """
        item = self._noted = self._item(leader_lock, election)

        def record() -> None:
            self._arbiter.leader_locks.set_status(
                self._pipeline, leader_lock, LeaderLockStatus.OVERTAKE
            )
            self._arbiter.history.add(self._pipeline, item)

        self._try(record, leader_lock)

    def taken_over(
        self, leader_lock: LeaderLock, election: ElectionState, cost: HandoverCost
    ) -> None:
        """Amend the history by what the change of leadership has cost; once for each epoch."""
        if self.has_cost_of(leader_lock):
            return
        self._recorded = leader_lock.epoch
        item = self._item(leader_lock, election)
        outage = least = None
        vacancy = self._vacancy
        if vacancy is not None and vacancy.noticed is not None:
            # Who gave the leadership up may have said so only after this one was noted.
            vacancy = self._vacancy_before(leader_lock, election) or vacancy
        if vacancy is not None:
            vacancy = vacancy.after(cost.stored_at)
            outage = round(max(0.0, cost.working_at - vacancy.earliest), 3)
            shortest = round(max(0.0, cost.working_at - vacancy.latest), 3)
            least = shortest if outage - shortest > _EXACT else None
        self._amend(
            replace(
                item,
                at=cost.working_at,
                outage=outage,
                outage_least=least,
                redelivered=cost.redelivered,
                applied_until=None,
            ),
            leader_lock,
        )
        _log.info(
            "pipeline has taken over",
            extra=self._fields(leader_lock, outage=outage, redelivered=cost.redelivered),
        )

    def has_cost_of(self, leader_lock: LeaderLock) -> bool:
        """Whether the history has, or was to get, what this leadership's beginning has cost."""
        return self._recorded == leader_lock.epoch

    @property
    def at_work(self) -> bool:
        """Whether the leadership that was noted last is on record as one that applies changes."""
        noted = self._noted
        return noted is not None and noted.epoch == self._recorded and noted.applied_until is None

    def works(self, leader_lock: LeaderLock) -> None:
        """It applies changes again after it had failed; nothing if that is on record."""
        noted = self._noted
        if noted is None or noted.applied_until is None:
            return
        if noted.epoch == self._recorded == leader_lock.epoch:
            self._amend(replace(noted, applied_until=None), leader_lock)

    def failed(self, leader_lock: LeaderLock, election: ElectionState | None, error: str) -> None:
        """Amend the history by what a leadership failed with, whether it had begun or not.

        One that applied nothing leaves the time until which the one before did: whoever leads
        next counts its outage from then.
        """
        short = error if len(error) <= _MAX_ERROR else error[: _MAX_ERROR - 1] + "…"
        item = self._item(leader_lock, election)
        until = self._clock.now() if self.at_work else item.applied_until
        reported = replace(item, error=short, error_public=public(error), applied_until=until)
        self._amend(reported, leader_lock)

    def ended(self, leader_lock: LeaderLock, at: float, *, stopped: bool = False) -> None:
        """It has given the leadership up, after changes were applied until `at`.

        If its channel is `stopped`, that is no outage, and the next leader counts none.
        """
        noted = self._noted
        if noted is None or noted.epoch != leader_lock.epoch:
            return
        until = at if self.at_work else noted.applied_until
        self._amend(replace(noted, applied_until=None if stopped else until), leader_lock)

    def _item(self, leader_lock: LeaderLock, election: ElectionState | None) -> HistoryItem:
        """What the history has of a leadership so far."""
        if self._noted is not None and self._noted.epoch == leader_lock.epoch:
            return self._noted
        self._vacancy = self._vacancy_before(leader_lock, election)
        return HistoryItem(
            leader_lock.epoch,
            self._nid,
            election.reason if election else "",
            self._clock.now(),
            applied_until=self._vacancy and self._vacancy.earliest,
            number=leader_lock.number,
        )

    def _vacancy_before(
        self, leader_lock: LeaderLock, election: ElectionState | None
    ) -> Vacancy | None:
        """Since when nobody applied changes: what this node saw, and what is on record.

        The leadership before may have ended long before it was given up, or never have applied
        anything; and who has only just started saw nothing.
        """
        seen, reported = election and election.vacancy, None
        before: Sequence[HistoryItem] = ()
        with suppress(ArbiterError):  # what was seen has to do
            before = [
                item
                for item in self._arbiter.history.all(self._pipeline)
                if item.epoch < leader_lock.epoch
            ]
            reported = before[-1].applied_until if before else None
        if reported is None:
            return seen
        noticed = reported if _only_guessed(before) else None
        if seen is not None and reported >= seen.earliest - _EXACT:
            reported = min(max(reported, seen.earliest), seen.latest)
        return Vacancy(reported, reported, noticed)

    def _amend(self, item: HistoryItem, leader_lock: LeaderLock) -> None:
        self._noted = item
        self._try(lambda: self._arbiter.history.add(self._pipeline, item), leader_lock)

    def _try(self, record: Callable[[], None], leader_lock: LeaderLock) -> None:
        try:
            record()
        except ArbiterError as error:
            _log.warning(
                "leadership could not be recorded",
                extra=self._fields(leader_lock, error=str(error)),
            )

    def _fields(self, leader_lock: LeaderLock, **values: object) -> dict[str, object]:
        return leadership_fields(self._pipeline, self._nid, leader_lock, **values)


def _only_guessed(before: Sequence[HistoryItem]) -> bool:
    """Whether the last leadership that applied anything did not say itself until when it did.

    Those after it have replicated what was seen of its end.
    """
    for item in reversed(before):
        if item.applied_until is None:
            return True
        if item.applied_until >= item.at:
            return False
    return False


def leadership_fields(
    pipeline: PipelineId, nid: str, leader_lock: LeaderLock, **values: object
) -> dict[str, object]:
    """The fields of a log line about a leadership."""
    return fields(
        channel=pipeline.channel,
        pipeline=pipeline.pipeline,
        nid=nid,
        epoch=leader_lock.epoch,
        leadership=leader_lock.number,
        **values,
    )
