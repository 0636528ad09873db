"""The arbiter over any tree of znodes. Each kind of znode has its rules in a module of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arbiter.actions import Actions
from arbiter.alarms import Alarms
from arbiter.channels import Channels
from arbiter.epochs import Epochs
from arbiter.errors import Contact, Invalid
from arbiter.journal import Journal
from arbiter.loads import Loads
from arbiter.mainstems import Mainstems
from arbiter.nodes import Nodes
from arbiter.paths import Paths
from arbiter.pipeline_values import PipelineValues
from arbiter.reading import read_facts
from arbiter.tree import Tree
from arbiter.values import (
    AlarmSender,
    Channel,
    ChannelState,
    Facts,
    HistoryItem,
    Mainstem,
    MainstemStatus,
    NodeInfo,
    OperatorAction,
    PipelineId,
    Signal,
    SignalState,
    StoredLoad,
)
from arbiter.znodes import Znodes

_KEPT_SECONDS = 30.0
"""After which facts are read again although no watch tells of a change, if there was any at all."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """Facts that were read.

    Attributes:
        news: see `Znodes.news`, as it was before.
        change: see `Znodes.last_change`, as it was before.
        at: monotonic time at which they were read.
        facts: the facts.
    """

    news: int
    change: int | None
    at: float
    facts: Facts

    def hold(self, news: int | None, change: int | None, now: float) -> bool:
        """Whether they still hold."""
        unchanged = change is not None and change == self.change
        return news == self.news and (unchanged or now - self.at < _KEPT_SECONDS)


class TreeArbiter:
    """Implements `arbiter.arbiter.Arbiter`, whose method descriptions hold here."""

    def __init__(
        self,
        znodes: Znodes,
        *,
        root: str = "/setl",
        history_limit: int = 100,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Work under `root`, and keep `history_limit` history items of each pipeline."""
        if history_limit < 1:
            raise Invalid(f"the history limit must be at least 1, not {history_limit}")
        self._znodes = znodes
        self._paths = Paths.under(root)
        tree = Tree(znodes, self._paths)
        self._nodes = Nodes(tree)
        self._channels = Channels(tree)
        self._epochs = Epochs(tree)
        self._mainstems = Mainstems(tree, self._epochs)
        self._values = PipelineValues(tree)
        self._journal = Journal(tree, history_limit)
        self._loads = Loads(tree)
        self._actions = Actions(tree)
        self._alarms = Alarms(tree)
        self._monotonic = monotonic
        self._kept: _Kept | None = None

    # -- the session ----------------------------------------------------------------------

    @property
    def session_timeout(self) -> float:
        """See `arbiter.arbiter.Arbiter.session_timeout`."""
        return self._znodes.session_timeout

    def contact(self) -> Contact:
        """See `arbiter.arbiter.Arbiter.contact`."""
        return self._znodes.contact()

    def last_contact(self) -> float:
        """See `arbiter.arbiter.Arbiter.last_contact`."""
        return self._znodes.last_contact()

    def trouble(self) -> str:
        """See `arbiter.arbiter.Arbiter.trouble`."""
        return self._znodes.trouble()

    def session_id(self) -> int:
        """See `arbiter.arbiter.Arbiter.session_id`."""
        return self._znodes.session_id()

    def watch(self, wake: Callable[[], None]) -> None:
        """See `arbiter.arbiter.Arbiter.watch`."""
        self._znodes.watch(wake)

    def close(self) -> None:
        """See `arbiter.arbiter.Arbiter.close`."""
        self._znodes.close()

    # -- nodes ----------------------------------------------------------------------------

    def announce(self, node: NodeInfo) -> None:
        """See `arbiter.arbiter.Arbiter.announce`."""
        self._nodes.announce(node)

    def nodes(self) -> Sequence[NodeInfo]:
        """See `arbiter.arbiter.Arbiter.nodes`."""
        return self._nodes.all()

    def facts(self) -> Facts:
        """See `arbiter.arbiter.Arbiter.facts`."""
        # Both before anything is read: what changes meanwhile makes them others.
        news, change, now = self._znodes.news(), self._znodes.last_change(), self._monotonic()
        if self._kept is not None and self._kept.hold(news, change, now):
            return self._kept.facts
        facts = read_facts(self._znodes, self._paths)
        self._kept = None if news is None else _Kept(news, change, now, facts)
        return facts

    # -- channels -------------------------------------------------------------------------

    def put_channel(self, name: str, definition: Mapping[str, Any]) -> Channel:
        """See `arbiter.arbiter.Arbiter.put_channel`."""
        return self._channels.put(name, definition)

    def store_channel(
        self, name: str, definition: Mapping[str, Any], seen: Channel | None
    ) -> Channel:
        """See `arbiter.arbiter.Arbiter.store_channel`."""
        return self._channels.store(name, definition, seen)

    def channels(self) -> Sequence[Channel]:
        """See `arbiter.arbiter.Arbiter.channels`."""
        return self._channels.all()

    def channel(self, name: str) -> Channel:
        """See `arbiter.arbiter.Arbiter.channel`."""
        return self._channels.one(name)

    def set_state(self, channel: Channel, state: ChannelState) -> Channel:
        """See `arbiter.arbiter.Arbiter.set_state`."""
        return self._channels.set_state(channel, state)

    def remove_channel(self, channel: Channel) -> None:
        """See `arbiter.arbiter.Arbiter.remove_channel`."""
        self._channels.remove(channel)

    # -- mainstems and epochs -------------------------------------------------------------

    def campaign(self, pipeline: PipelineId, nid: str) -> Mainstem:
        """See `arbiter.arbiter.Arbiter.campaign`."""
        return self._mainstems.campaign(pipeline, nid)

    def mainstem(self, pipeline: PipelineId) -> Mainstem | None:
        """See `arbiter.arbiter.Arbiter.mainstem`."""
        return self._mainstems.one(pipeline)

    def set_mainstem_status(
        self, pipeline: PipelineId, held: Mainstem, status: MainstemStatus
    ) -> Mainstem:
        """See `arbiter.arbiter.Arbiter.set_mainstem_status`."""
        return self._mainstems.set_status(pipeline, held, status)

    def resign(self, pipeline: PipelineId, held: Mainstem) -> None:
        """See `arbiter.arbiter.Arbiter.resign`."""
        self._mainstems.resign(pipeline, held)

    def depose(self, pipeline: PipelineId, seen: Mainstem) -> None:
        """See `arbiter.arbiter.Arbiter.depose`."""
        self._mainstems.depose(pipeline, seen)

    def epoch_base(self) -> int:
        """See `arbiter.arbiter.Arbiter.epoch_base`."""
        return self._epochs.base()

    def raise_epoch_base(self, base: int) -> int:
        """See `arbiter.arbiter.Arbiter.raise_epoch_base`."""
        return self._epochs.raise_base(base)

    def next_epoch(self) -> int:
        """See `arbiter.arbiter.Arbiter.next_epoch`."""
        return self._epochs.next()

    # -- values of a pipeline -------------------------------------------------------------

    def stored_position(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.stored_position`."""
        return self._values.position(pipeline)

    def position_stored_at(self, pipeline: PipelineId) -> float | None:
        """See `arbiter.arbiter.Arbiter.position_stored_at`."""
        return self._values.position_stored_at(pipeline)

    def store_position(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.arbiter.Arbiter.store_position`."""
        return self._values.store_position(pipeline, value, revision)

    def replace_position(self, pipeline: PipelineId, value: Mapping[str, Any]) -> None:
        """See `arbiter.arbiter.Arbiter.replace_position`."""
        self._values.replace_position(pipeline, value)

    def cutover(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.cutover`."""
        return self._values.cutover(pipeline)

    def cutovers(self, pipelines: Sequence[PipelineId]) -> dict[PipelineId, dict[str, Any]]:
        """See `arbiter.arbiter.Arbiter.cutovers`."""
        return self._values.cutovers(pipelines)

    def store_cutover(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.arbiter.Arbiter.store_cutover`."""
        return self._values.store_cutover(pipeline, value, revision)

    def forget_cutover(self, pipeline: PipelineId, revision: int) -> None:
        """See `arbiter.arbiter.Arbiter.forget_cutover`."""
        self._values.forget_cutover(pipeline, revision)

    def verification(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.verification`."""
        return self._values.verification(pipeline)

    def store_verification(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.arbiter.Arbiter.store_verification`."""
        return self._values.store_verification(pipeline, value, revision)

    # -- signals, loads and history -------------------------------------------------------

    def send_signal(self, pipeline: PipelineId, signal: Signal) -> Signal:
        """See `arbiter.arbiter.Arbiter.send_signal`."""
        return self._journal.send_signal(pipeline, signal)

    def signals(self, pipeline: PipelineId) -> Sequence[Signal]:
        """See `arbiter.arbiter.Arbiter.signals`."""
        return self._journal.signals(pipeline)

    def answer_signal(
        self, pipeline: PipelineId, signal: Signal, state: SignalState, answer: str
    ) -> Signal:
        """See `arbiter.arbiter.Arbiter.answer_signal`."""
        return self._journal.answer_signal(pipeline, signal, state, answer)

    def add_load(self, pipeline: PipelineId, value: Mapping[str, Any]) -> StoredLoad:
        """See `arbiter.arbiter.Arbiter.add_load`."""
        return self._loads.add(pipeline, value)

    def loads(self, pipeline: PipelineId) -> Sequence[StoredLoad]:
        """See `arbiter.arbiter.Arbiter.loads`."""
        return self._loads.all(pipeline)

    def change_load(
        self, pipeline: PipelineId, load: StoredLoad, value: Mapping[str, Any]
    ) -> StoredLoad:
        """See `arbiter.arbiter.Arbiter.change_load`."""
        return self._loads.change(pipeline, load, value)

    def remove_load(self, pipeline: PipelineId, load: StoredLoad) -> None:
        """See `arbiter.arbiter.Arbiter.remove_load`."""
        self._loads.remove(pipeline, load)

    def add_history(self, pipeline: PipelineId, item: HistoryItem) -> None:
        """See `arbiter.arbiter.Arbiter.add_history`."""
        self._journal.add_history(pipeline, item)

    def history(self, pipeline: PipelineId) -> Sequence[HistoryItem]:
        """See `arbiter.arbiter.Arbiter.history`."""
        return self._journal.history(pipeline)

    def add_action(self, action: OperatorAction) -> OperatorAction:
        """See `arbiter.arbiter.Arbiter.add_action`."""
        return self._actions.add(action)

    def end_action(self, action: OperatorAction, outcome: str, at: float) -> OperatorAction:
        """See `arbiter.arbiter.Arbiter.end_action`."""
        return self._actions.end(action, outcome, at)

    def actions(self) -> Sequence[OperatorAction]:
        """See `arbiter.arbiter.Arbiter.actions`."""
        return self._actions.all()

    # -- alarms ---------------------------------------------------------------------------

    def send_alarms(self, sender: AlarmSender) -> AlarmSender:
        """See `arbiter.arbiter.Arbiter.send_alarms`."""
        return self._alarms.take(sender)

    def alarm_sender(self) -> AlarmSender | None:
        """See `arbiter.arbiter.Arbiter.alarm_sender`."""
        return self._alarms.sender()

    def alarms(self) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.alarms`."""
        return self._alarms.read(self._paths.alarm_state)

    def store_alarms(self, value: Mapping[str, Any], revision: int | None) -> int:
        """See `arbiter.arbiter.Arbiter.store_alarms`."""
        return self._alarms.store(self._paths.alarm_state, "alarms", value, revision)

    def silences(self) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.silences`."""
        return self._alarms.read(self._paths.alarm_silences)

    def store_silences(self, value: Mapping[str, Any], revision: int | None) -> int:
        """See `arbiter.arbiter.Arbiter.store_silences`."""
        return self._alarms.store(self._paths.alarm_silences, "silences", value, revision)
