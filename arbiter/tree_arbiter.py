"""The rules of arbitration, over any tree of znodes: who may change what, and how it is proved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from arbiter.paths import Paths, ancestors
from arbiter.payloads import (
    channel_payload,
    history_payload,
    mainstem_payload,
    node_payload,
    position_payload,
    read_channel,
    read_history,
    read_mainstem,
    read_node,
    read_position,
)
from arbiter.port import Conflict, Contact, Invalid, NotFound, Unreachable
from arbiter.values import (
    Channel,
    ChannelState,
    HistoryItem,
    Mainstem,
    MainstemStatus,
    NodeInfo,
    PipelineId,
)
from arbiter.znodes import Changed, Exists, Missing, SessionOver, Znode, Znodes

_ATTEMPTS = 5
"""How often a call looks again when others write at the same time."""


class TreeArbiter:
    """Implements `arbiter.port.Arbiter`, whose method descriptions hold here."""

    def __init__(self, znodes: Znodes, *, root: str = "/setl", history_limit: int = 100) -> None:
        """Work under `root`, and keep `history_limit` history items of each pipeline."""
        if history_limit < 1:
            raise Invalid(f"the history limit must be at least 1, not {history_limit}")
        self._znodes = znodes
        self._paths = Paths.under(root)
        self._history_limit = history_limit

    # -- the session ----------------------------------------------------------------------

    @property
    def session_timeout(self) -> float:
        """See `arbiter.port.Arbiter.session_timeout`."""
        return self._znodes.session_timeout

    def contact(self) -> Contact:
        """See `arbiter.port.Arbiter.contact`."""
        return self._znodes.contact()

    def last_contact(self) -> float:
        """See `arbiter.port.Arbiter.last_contact`."""
        return self._znodes.last_contact()

    def session_id(self) -> int:
        """See `arbiter.port.Arbiter.session_id`."""
        return self._znodes.session_id()

    def watch(self, wake: Callable[[], None]) -> None:
        """See `arbiter.port.Arbiter.watch`."""
        self._znodes.watch(wake)

    def close(self) -> None:
        """See `arbiter.port.Arbiter.close`."""
        self._znodes.close()

    # -- nodes ----------------------------------------------------------------------------

    def announce(self, node: NodeInfo) -> None:
        """See `arbiter.port.Arbiter.announce`.

        Only the owner tells a node's own znode from another's of the same name. One that an
        earlier process left behind looks just like a living rival, and stays until that
        session expires: the caller tries again for as long as a session can last. The znode
        of an earlier session of this very process is not in the way, since ZooKeeper removes
        a session's znodes before it carries out anything that comes after its end.
        """
        path, data = self._paths.node(node.nid), node_payload(node)
        session = self._session()
        for _ in range(_ATTEMPTS):
            try:
                self._create(path, data, ephemeral=True, session=session)
            except Exists:
                found = self._znodes.read(path)
                if found is None:
                    continue
                if found.owner != session:
                    raise Conflict(
                        f"another session ({found.owner:#x}) uses the node id {node.nid!r}"
                    ) from None
                if found.data != data and not self._written(path, data, found, session):
                    continue
            self._znodes.rejoined(session)
            return
        raise Conflict(f"the node {node.nid!r} keeps being changed by somebody else")

    def nodes(self) -> Sequence[NodeInfo]:
        """See `arbiter.port.Arbiter.nodes`."""
        nids = self._znodes.children(self._paths.nodes)
        found = self._znodes.read_all([f"{self._paths.nodes}/{nid}" for nid in nids])
        return [
            read_node(nid, znode.data)
            for nid, znode in zip(nids, found, strict=True)
            if znode is not None
        ]

    # -- channels -------------------------------------------------------------------------

    def put_channel(self, name: str, definition: Mapping[str, Any]) -> Channel:
        """See `arbiter.port.Arbiter.put_channel`."""
        path = self._paths.channel(name)
        for _ in range(_ATTEMPTS):
            found = self._znodes.read(path)
            try:
                if found is None:
                    data = channel_payload(name, ChannelState.STOP, definition)
                    return read_channel(name, data, self._create(path, data).version)
                state = read_channel(name, found.data, found.version).state
                data = channel_payload(name, state, definition)
                return read_channel(name, data, self._znodes.write(path, data, found.version))
            except (Exists, Changed, Missing):
                continue
        raise Conflict(f"the channel {name!r} keeps being changed by somebody else")

    def channels(self) -> Sequence[Channel]:
        """See `arbiter.port.Arbiter.channels`."""
        names = self._znodes.children(self._paths.channels)
        found = self._znodes.read_all([f"{self._paths.channels}/{name}" for name in names])
        return [
            read_channel(name, znode.data, znode.version)
            for name, znode in zip(names, found, strict=True)
            if znode is not None
        ]

    def channel(self, name: str) -> Channel:
        """See `arbiter.port.Arbiter.channel`."""
        found = self._znodes.read(self._paths.channel(name))
        if found is None:
            raise NotFound(f"there is no channel {name!r}")
        return read_channel(name, found.data, found.version)

    def set_state(self, channel: Channel, state: ChannelState) -> Channel:
        """See `arbiter.port.Arbiter.set_state`.

        Writes even if the state is the same: a new revision tells nodes that a pipeline which
        failed for good is to be tried again.
        """
        data = channel_payload(channel.name, state, channel.definition)
        try:
            path = self._paths.channel(channel.name)
            revision = self._znodes.write(path, data, channel.revision)
        except Changed:
            raise Conflict(f"the channel {channel.name!r} was changed meanwhile") from None
        except Missing:
            raise NotFound(f"there is no channel {channel.name!r}") from None
        return read_channel(channel.name, data, revision)

    # -- mainstems ------------------------------------------------------------------------

    def campaign(self, pipeline: PipelineId, nid: str) -> Mainstem:
        """See `arbiter.port.Arbiter.campaign`."""
        path, session = self._paths.mainstem(pipeline), self._session()
        self._paths.node(nid)  # refuses a name that could never be announced
        data = mainstem_payload(nid, MainstemStatus.TAKING, session)
        for _ in range(_ATTEMPTS):
            try:
                made = self._create_below(pipeline, path, data, ephemeral=True, session=session)
            except Exists:
                found = self.mainstem(pipeline)
                if found is None:
                    continue
                return found
            # The znode's owner is what counts, also here: it is what others will see.
            return read_mainstem(made.data, epoch=made.created, owner=made.owner)
        raise Conflict(f"the mainstem of {pipeline} keeps coming and going")

    def mainstem(self, pipeline: PipelineId) -> Mainstem | None:
        """See `arbiter.port.Arbiter.mainstem`."""
        found = self._znodes.read(self._paths.mainstem(pipeline))
        if found is None:
            return None
        return read_mainstem(found.data, epoch=found.created, owner=found.owner)

    def set_mainstem_status(
        self, pipeline: PipelineId, held: Mainstem, status: MainstemStatus
    ) -> Mainstem:
        """See `arbiter.port.Arbiter.set_mainstem_status`."""
        path = self._paths.mainstem(pipeline)
        data = mainstem_payload(held.nid, status, held.session)
        for _ in range(_ATTEMPTS):
            found = self._held(path, held)
            if found is None:
                raise Conflict(f"epoch {held.epoch} of {pipeline} is over")
            try:
                if self._written(path, data, found, held.session):
                    return read_mainstem(data, epoch=found.created, owner=found.owner)
            except SessionOver:
                raise Conflict(f"epoch {held.epoch} of {pipeline} is over") from None
        raise Conflict(f"the mainstem of {pipeline} keeps being changed by somebody else")

    def resign(self, pipeline: PipelineId, held: Mainstem) -> None:
        """See `arbiter.port.Arbiter.resign`."""
        path = self._paths.mainstem(pipeline)
        for _ in range(_ATTEMPTS):
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

    # -- positions and history ------------------------------------------------------------

    def stored_position(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.port.Arbiter.stored_position`; raises Invalid if it cannot be read."""
        found = self._znodes.read(self._paths.position(pipeline))
        if found is None:
            return None
        return read_position(str(pipeline), found.data), found.version

    def store_position(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.port.Arbiter.store_position`."""
        path = self._paths.position(pipeline)
        data = position_payload(str(pipeline), value)
        try:
            if revision is None:
                return self._create_below(pipeline, path, data).version
            return self._znodes.write(path, data, revision)
        except (Exists, Changed, Missing):
            raise Conflict(f"the position of {pipeline} was changed meanwhile") from None

    def add_history(self, pipeline: PipelineId, item: HistoryItem) -> None:
        """See `arbiter.port.Arbiter.add_history`."""
        folder = self._paths.history(pipeline)
        data = history_payload(item)
        try:
            self._znodes.create(f"{folder}/item-", data, sequential=True)
        except Missing:
            self._make_folder(pipeline, folder)
            self._znodes.create(f"{folder}/item-", data, sequential=True)
        for name in self._znodes.children(folder)[: -self._history_limit]:
            try:
                # Items are never written twice, so their version is always 0.
                self._znodes.delete(f"{folder}/{name}", 0)
            except (Missing, Changed):
                continue  # somebody else trims too

    def history(self, pipeline: PipelineId) -> Sequence[HistoryItem]:
        """See `arbiter.port.Arbiter.history`."""
        folder = self._paths.history(pipeline)
        names = self._znodes.children(folder)
        found = self._znodes.read_all([f"{folder}/{name}" for name in names])
        items = [read_history(znode.data) for znode in found if znode is not None]
        return [item for item in items if item is not None]

    # -- how ------------------------------------------------------------------------------

    def _session(self) -> int:
        session = self._znodes.session_id()
        if session == 0:
            raise Unreachable("there is no session now")
        return session

    def _held(self, path: str, held: Mainstem) -> Znode | None:
        """The mainstem's znode if it is still `held`, by this very session and epoch."""
        if held.session == 0 or held.session != self._znodes.session_id():
            return None
        found = self._znodes.read(path)
        if found is None or (found.created, found.owner) != (held.epoch, held.session):
            return None
        return found

    def _written(self, path: str, data: bytes, found: Znode, session: int) -> bool:
        """Write over `found`, in `session`; False if it has changed and must be read again."""
        try:
            self._znodes.write(path, data, found.version, session=session)
        except (Changed, Missing):
            return False
        return True

    def _create(
        self, path: str, data: bytes, *, ephemeral: bool = False, session: int = 0
    ) -> Znode:
        """Create a znode, and what is missing above it."""
        try:
            return self._znodes.create(path, data, ephemeral=ephemeral, session=session)
        except Missing:
            for above in ancestors(path):
                self._make(above)
            return self._znodes.create(path, data, ephemeral=ephemeral, session=session)

    def _create_below(
        self,
        pipeline: PipelineId,
        path: str,
        data: bytes,
        *,
        ephemeral: bool = False,
        session: int = 0,
    ) -> Znode:
        """Create a znode of a pipeline, and the pipeline's folder, but never its channel."""
        try:
            return self._znodes.create(path, data, ephemeral=ephemeral, session=session)
        except Missing:
            self._make_folder(pipeline, self._paths.pipeline(pipeline))
            return self._znodes.create(path, data, ephemeral=ephemeral, session=session)

    def _make_folder(self, pipeline: PipelineId, folder: str) -> None:
        try:
            for path in dict.fromkeys((self._paths.pipeline(pipeline), folder)):
                self._make(path)
        except Missing:
            # A channel made here would have no definition, and look like a damaged one.
            raise NotFound(f"there is no channel {pipeline.channel!r}") from None

    def _make(self, path: str) -> None:
        try:
            self._znodes.create(path, b"")
        except Exists:
            return
