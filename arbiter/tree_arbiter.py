"""The rules of arbitration over any tree of znodes: who may change what."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from arbiter.actions import Actions
from arbiter.alarms import Alarms
from arbiter.arbiter import Conflict, Contact, Invalid, NotFound
from arbiter.journal import Journal
from arbiter.loads import Loads
from arbiter.paths import Paths
from arbiter.payloads import (
    MAX_BASE,
    channel_payload,
    cutover_payload,
    epoch_payload,
    mainstem_payload,
    node_payload,
    position_payload,
    read_channel,
    read_cutover,
    read_epoch,
    read_mainstem,
    read_node,
    read_position,
    read_verification,
    verification_payload,
)
from arbiter.reading import read_facts
from arbiter.tree import ATTEMPTS, Tree
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
from arbiter.znodes import Changed, Exists, Missing, SessionOver, Znode, Znodes

_KEPT_SECONDS = 30.0
"""After which facts are read again although nothing tells of a change."""


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
        self._tree = Tree(znodes, self._paths)
        self._journal = Journal(self._tree, history_limit)
        self._loads = Loads(self._tree)
        self._actions = Actions(self._tree)
        self._alarms = Alarms(self._tree)
        self._monotonic = monotonic
        self._kept: tuple[int, float, Facts] | None = None  # news, when it was read, what

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
        """See `arbiter.arbiter.Arbiter.announce`.

        Only the owner tells a node's own znode from another's of the same name. One that an
        earlier process left behind looks just like a living rival, and stays until that
        session expires: the caller tries again for as long as a session can last. The znode
        of an earlier session of this very process is not in the way, since ZooKeeper removes
        a session's znodes before it carries out anything that comes after its end.
        """
        path, data = self._paths.node(node.nid), node_payload(node)
        session = self._tree.session()
        for _ in range(ATTEMPTS):
            try:
                self._tree.create(path, data, ephemeral=True, session=session)
            except Exists:
                found = self._znodes.read(path)
                if found is None:
                    continue
                if found.owner != session:
                    raise Conflict(_taken(read_node(node.nid, found.data))) from None
                if found.data != data and not self._written(path, data, found, session):
                    continue
            self._znodes.rejoined(session)
            return
        raise Conflict(f"the node {node.nid!r} keeps being changed by somebody else")

    def nodes(self) -> Sequence[NodeInfo]:
        """See `arbiter.arbiter.Arbiter.nodes`."""
        nids = self._znodes.children(self._paths.nodes)
        found = self._znodes.read_all([f"{self._paths.nodes}/{nid}" for nid in nids])
        return [
            read_node(nid, znode.data)
            for nid, znode in zip(nids, found, strict=True)
            if znode is not None
        ]

    def facts(self) -> Facts:
        """See `arbiter.arbiter.Arbiter.facts`."""
        news, now, kept = self._znodes.news(), self._monotonic(), self._kept
        if kept is not None and kept[0] == news and now - kept[1] < _KEPT_SECONDS:
            return kept[2]
        facts = read_facts(self._znodes, self._paths)
        self._kept = None if news is None else (news, now, facts)
        return facts

    # -- channels -------------------------------------------------------------------------

    def put_channel(self, name: str, definition: Mapping[str, Any]) -> Channel:
        """See `arbiter.arbiter.Arbiter.put_channel`."""
        path = self._paths.channel(name)
        for _ in range(ATTEMPTS):
            found = self._znodes.read(path)
            try:
                if found is None:
                    data = channel_payload(name, ChannelState.STOP, definition)
                    return read_channel(name, data, self._tree.create(path, data).version)
                state = read_channel(name, found.data, found.version).state
                data = channel_payload(name, state, definition)
                return read_channel(name, data, self._znodes.write(path, data, found.version))
            except (Exists, Changed, Missing):
                continue
        raise Conflict(f"the channel {name!r} keeps being changed by somebody else")

    def channels(self) -> Sequence[Channel]:
        """See `arbiter.arbiter.Arbiter.channels`."""
        names = self._znodes.children(self._paths.channels)
        found = self._znodes.read_all([f"{self._paths.channels}/{name}" for name in names])
        return [
            read_channel(name, znode.data, znode.version)
            for name, znode in zip(names, found, strict=True)
            if znode is not None
        ]

    def channel(self, name: str) -> Channel:
        """See `arbiter.arbiter.Arbiter.channel`."""
        found = self._znodes.read(self._paths.channel(name))
        if found is None:
            raise NotFound(f"there is no channel {name!r}")
        return read_channel(name, found.data, found.version)

    def set_state(self, channel: Channel, state: ChannelState) -> Channel:
        """See `arbiter.arbiter.Arbiter.set_state`.

        Writes even if the state is the same: a new revision tells nodes that a pipeline which
        failed for good is to be tried again.
        """
        if channel.damage:
            # It would be written over with an empty one.
            raise Invalid(
                f"the channel {channel.name!r} {channel.damage}; `setl apply` stores it anew"
            )
        data = channel_payload(channel.name, state, channel.definition)
        try:
            path = self._paths.channel(channel.name)
            revision = self._znodes.write(path, data, channel.revision)
        except Changed:
            raise Conflict(f"the channel {channel.name!r} was changed meanwhile") from None
        except Missing:
            raise NotFound(f"there is no channel {channel.name!r}") from None
        return read_channel(channel.name, data, revision)

    def remove_channel(self, channel: Channel) -> None:
        """See `arbiter.arbiter.Arbiter.remove_channel`."""
        if channel.state is not ChannelState.STOP:
            raise Invalid(f"the channel {channel.name!r} is not stopped")
        path = self._paths.channel(channel.name)
        for _ in range(ATTEMPTS):
            found = self._tree.read_below(path)
            for name, znode in found:
                if znode.owner:
                    pipeline = name.removeprefix(f"{path}/").partition("/")[0]
                    raise Conflict(f"somebody leads {channel.name}/{pipeline}")
            below = [(name, znode.version) for name, znode in found]
            try:
                # The folders below may have got something new meanwhile, which a look shows.
                self._znodes.delete_all([*below, (path, channel.revision)])
            except Changed:
                now = self._znodes.read(path)
                if now is None or now.version != channel.revision:
                    break
                continue
            return
        raise Conflict(f"the channel {channel.name!r} was changed meanwhile")

    # -- mainstems ------------------------------------------------------------------------

    def campaign(self, pipeline: PipelineId, nid: str) -> Mainstem:
        """See `arbiter.arbiter.Arbiter.campaign`."""
        path, session = self._paths.mainstem(pipeline), self._tree.session()
        self._paths.node(nid)  # refuses a name that could never be announced
        for _ in range(ATTEMPTS):
            base = self.epoch_base()
            data = mainstem_payload(nid, MainstemStatus.TAKING, session, base)
            try:
                made = self._tree.create_below(
                    pipeline, path, data, ephemeral=True, session=session
                )
            except Exists:
                found = self.mainstem(pipeline)
                if found is None:
                    continue
                return found
            # A server may answer from a state of the past until it has carried out a write of
            # this session, so the base it gave before may have been raised since.
            if self.epoch_base() == base:
                return _mainstem(made)
            self.resign(pipeline, _mainstem(made))
        raise Conflict(f"the mainstem of {pipeline} keeps coming and going")

    def mainstem(self, pipeline: PipelineId) -> Mainstem | None:
        """See `arbiter.arbiter.Arbiter.mainstem`."""
        found = self._znodes.read(self._paths.mainstem(pipeline))
        if found is None:
            return None
        return _mainstem(found)

    def set_mainstem_status(
        self, pipeline: PipelineId, held: Mainstem, status: MainstemStatus
    ) -> Mainstem:
        """See `arbiter.arbiter.Arbiter.set_mainstem_status`."""
        path = self._paths.mainstem(pipeline)
        for _ in range(ATTEMPTS):
            found = self._held(path, held)
            if found is None:
                raise Conflict(f"epoch {held.epoch} of {pipeline} is over")
            base = held.epoch - found.created
            data = mainstem_payload(held.nid, status, held.session, base)
            try:
                if self._written(path, data, found, held.session):
                    return read_mainstem(data, created=found.created, owner=found.owner)
            except SessionOver:
                raise Conflict(f"epoch {held.epoch} of {pipeline} is over") from None
        raise Conflict(f"the mainstem of {pipeline} keeps being changed by somebody else")

    def resign(self, pipeline: PipelineId, held: Mainstem) -> None:
        """See `arbiter.arbiter.Arbiter.resign`."""
        path = self._paths.mainstem(pipeline)
        for _ in range(ATTEMPTS):
            found = self._held(path, held)
            if found is None:
                return
            try:
                self._znodes.delete(path, found.version, session=held.session)
            except (Missing, SessionOver):
                return
            except Changed:
                continue
            return
        raise Conflict(f"the mainstem of {pipeline} keeps being changed by somebody else")

    def depose(self, pipeline: PipelineId, seen: Mainstem) -> None:
        """See `arbiter.arbiter.Arbiter.depose`."""
        path = self._paths.mainstem(pipeline)
        for _ in range(ATTEMPTS):
            found = self._znodes.read(path)
            if found is None or _mainstem(found).epoch != seen.epoch:
                return
            try:
                self._znodes.delete(path, found.version)
            except Missing:
                return
            except Changed:
                continue
            return
        raise Conflict(f"the mainstem of {pipeline} keeps being changed by somebody else")

    # -- epochs ---------------------------------------------------------------------------

    def epoch_base(self) -> int:
        """See `arbiter.arbiter.Arbiter.epoch_base`; raises Invalid if it cannot be read."""
        found = self._znodes.read(self._paths.epoch)
        return 0 if found is None else read_epoch(found.data)

    def raise_epoch_base(self, base: int) -> int:
        """See `arbiter.arbiter.Arbiter.raise_epoch_base`."""
        if not 0 <= base <= MAX_BASE:
            raise Invalid(f"not a base for epochs: {base}; it lies between 0 and {MAX_BASE}")
        path, data = self._paths.epoch, epoch_payload(base)
        for _ in range(ATTEMPTS):
            found = self._znodes.read(path)
            kept = 0 if found is None else _base_or_none(found.data)
            if kept is not None and kept >= base:
                return kept
            try:
                if found is None:
                    self._tree.create(path, data)
                else:
                    self._znodes.write(path, data, found.version)
            except (Exists, Changed, Missing):
                continue
            return base
        raise Conflict("the epoch's base keeps being changed by somebody else")

    def next_epoch(self) -> int:
        """See `arbiter.arbiter.Arbiter.next_epoch`."""
        session = self._tree.session()
        path = self._paths.probe(session)
        for _ in range(ATTEMPTS):
            try:
                # Ephemeral: what a call that failed half-way leaves behind goes with the session.
                made = self._tree.create(path, b"", ephemeral=True, session=session)
                self._znodes.delete(path, made.version, session=session)
            except Exists:
                with suppress(Missing, Changed):
                    self._znodes.delete(path, 0, session=session)
                continue
            except Missing:
                continue
            return self.epoch_base() + made.created
        raise Conflict("the probe for epochs keeps coming and going")

    # -- positions ------------------------------------------------------------

    def stored_position(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.stored_position`; raises Invalid if it cannot be read."""
        found = self._znodes.read(self._paths.position(pipeline))
        if found is None:
            return None
        return read_position(str(pipeline), found.data), found.version

    def store_position(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.arbiter.Arbiter.store_position`."""
        path = self._paths.position(pipeline)
        data = position_payload(str(pipeline), value)
        try:
            if revision is None:
                return self._tree.create_below(pipeline, path, data).version
            return self._znodes.write(path, data, revision)
        except (Exists, Changed, Missing):
            raise Conflict(f"the position of {pipeline} was changed meanwhile") from None

    def replace_position(self, pipeline: PipelineId, value: Mapping[str, Any]) -> None:
        """See `arbiter.arbiter.Arbiter.replace_position`."""
        found = self._znodes.read(self._paths.position(pipeline))
        self.store_position(pipeline, value, found.version if found else None)

    # -- cut-overs ------------------------------------------------------------

    def cutover(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.cutover`."""
        found = self._znodes.read(self._paths.cutover(pipeline))
        return None if found is None else (read_cutover(str(pipeline), found.data), found.version)

    def store_cutover(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.arbiter.Arbiter.store_cutover`."""
        path, data = self._paths.cutover(pipeline), cutover_payload(str(pipeline), value)
        try:
            if revision is None:
                return self._tree.create_below(pipeline, path, data).version
            return self._znodes.write(path, data, revision)
        except (Exists, Changed, Missing):
            raise Conflict(f"somebody else carries on the cut-over of {pipeline}") from None

    def forget_cutover(self, pipeline: PipelineId, revision: int) -> None:
        """See `arbiter.arbiter.Arbiter.forget_cutover`."""
        try:
            self._znodes.delete(self._paths.cutover(pipeline), revision)
        except (Changed, Missing):
            raise Conflict(f"somebody else carries on the cut-over of {pipeline}") from None

    # -- standing verification ------------------------------------------------------------

    def verification(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.verification`."""
        found = self._znodes.read(self._paths.verification(pipeline))
        return None if found is None else (read_verification(found.data), found.version)

    def store_verification(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.arbiter.Arbiter.store_verification`."""
        path, data = self._paths.verification(pipeline), verification_payload(str(pipeline), value)
        try:
            if revision is None:
                return self._tree.create_below(pipeline, path, data).version
            return self._znodes.write(path, data, revision)
        except (Exists, Changed, Missing):
            raise Conflict(f"somebody else verifies {pipeline}") from None

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

    # -- how ------------------------------------------------------------------------------

    def _held(self, path: str, held: Mainstem) -> Znode | None:
        """The mainstem's znode if it is still `held`, by this very session and epoch."""
        if held.session == 0 or held.session != self._znodes.session_id():
            return None
        found = self._znodes.read(path)
        if found is None or (_mainstem(found).epoch, found.owner) != (held.epoch, held.session):
            return None
        return found

    def _written(self, path: str, data: bytes, found: Znode, session: int) -> bool:
        """Write over `found`, in `session`; False if it has changed and must be read again."""
        try:
            self._znodes.write(path, data, found.version, session=session)
        except (Changed, Missing):
            return False
        return True


def _mainstem(znode: Znode) -> Mainstem:
    # The znode's owner is what counts, also right after its creation: it is what others see.
    return read_mainstem(znode.data, created=znode.created, owner=znode.owner)


def _base_or_none(data: bytes) -> int | None:
    """The base that is kept; None for a damaged one, which an operator may write over."""
    try:
        return read_epoch(data)
    except Invalid:
        return None


def _taken(other: NodeInfo) -> str:
    """Why a node id cannot be had: who has it."""
    who = f"process {other.pid} on {other.host}" if other.host else "another process"
    return (
        f"the node id {other.nid!r} is in use by {who}; choose another one with --id or"
        " SETL_NODE_ID, or end that process"
    )
