"""What the cluster is told of this node's leaderships: that it leads, and the history."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from arbiter.arbiter import Arbiter, ArbiterError
from arbiter.campaign import ElectionState
from arbiter.values import HistoryItem, Mainstem, MainstemStatus, PipelineId
from setl.clock import Clock
from setl.log import fields
from setl.run.measured.figures import HandoverCost

_log = logging.getLogger(__name__)

_ERROR_KEPT = 500  # characters of an error in the history


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

    def overtaken(self, mainstem: Mainstem, reason: str) -> None:
        """A run has begun under this leadership, which began for a reason.

        A run that begins anew under the same epoch, after a pause or a new definition, is no new
        leadership: what the history has of it stays, its time and what it has cost.
        """
        item = self._noted = self._item(mainstem, reason)

        def record() -> None:
            self._arbiter.set_mainstem_status(self._pipeline, mainstem, MainstemStatus.OVERTAKE)
            self._arbiter.add_history(self._pipeline, item)

        self._try(record, mainstem)

    def taken_over(self, mainstem: Mainstem, election: ElectionState, cost: HandoverCost) -> None:
        """Amend the history by what the change of leadership has cost; once for each epoch."""
        if self.has_cost_of(mainstem):
            return
        self._recorded = mainstem.epoch
        outage = None
        if election.vacant_from is not None:
            outage = round(max(0.0, cost.working_at - election.vacant_from), 3)
        self._amend(
            replace(
                self._item(mainstem, election.reason),
                at=cost.working_at,
                outage=outage,
                redelivered=cost.redelivered,
            ),
            mainstem,
        )
        _log.info(
            "pipeline has taken over",
            extra=self._fields(mainstem, outage=outage, redelivered=cost.redelivered),
        )

    def has_cost_of(self, mainstem: Mainstem) -> bool:
        """Whether the history has, or was to get, what this leadership's beginning has cost."""
        return self._recorded == mainstem.epoch

    def failed(self, mainstem: Mainstem, reason: str, error: str) -> None:
        """Amend the history by what a leadership failed with, whether it had begun or not."""
        short = error if len(error) <= _ERROR_KEPT else error[: _ERROR_KEPT - 1] + "…"
        self._amend(replace(self._item(mainstem, reason), error=short), mainstem)

    def _item(self, mainstem: Mainstem, reason: str) -> HistoryItem:
        """What the history has of a leadership so far."""
        if self._noted is not None and self._noted.epoch == mainstem.epoch:
            return self._noted
        return HistoryItem(mainstem.epoch, self._nid, reason, self._clock.now())

    def _amend(self, item: HistoryItem, mainstem: Mainstem) -> None:
        self._noted = item
        self._try(lambda: self._arbiter.add_history(self._pipeline, item), mainstem)

    def _try(self, record: Callable[[], None], mainstem: Mainstem) -> None:
        try:
            record()
        except ArbiterError as error:
            _log.warning(
                "leadership could not be recorded", extra=self._fields(mainstem, error=str(error))
            )

    def _fields(self, mainstem: Mainstem, **values: object) -> dict[str, object]:
        return leadership_fields(self._pipeline, self._nid, mainstem, **values)


def leadership_fields(
    pipeline: PipelineId, nid: str, mainstem: Mainstem, **values: object
) -> dict[str, object]:
    """The fields of a log line about a leadership."""
    return fields(
        channel=pipeline.channel,
        pipeline=pipeline.pipeline,
        nid=nid,
        epoch=mainstem.epoch,
        **values,
    )
