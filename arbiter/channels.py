"""The channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arbiter.errors import Conflict, Invalid, NotFound
from arbiter.payloads import channel_payload, read_channel
from arbiter.tree import ATTEMPTS, Tree
from arbiter.values import Channel, ChannelState
from arbiter.znodes import Changed, Exists, Missing


class Channels:
    """A znode for each channel: its state and its definition."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._znodes = tree.znodes
        self._paths = tree.paths

    def put(self, name: str, definition: Mapping[str, Any]) -> Channel:
        """Create a channel (in state STOP) or replace its definition, keeping its state."""
        for _ in range(ATTEMPTS):
            found = self._znodes.read(self._paths.channel(name))
            seen = None if found is None else read_channel(name, found.data, found.version)
            try:
                return self.store(name, definition, seen)
            except Conflict:
                continue
        raise Conflict(f"the channel {name!r} is being changed concurrently")

    def store(self, name: str, definition: Mapping[str, Any], seen: Channel | None) -> Channel:
        """The same if nobody changed it since `seen` was read (None: there was none).

        Raises:
            Conflict: somebody changed, created or removed it; nothing was stored.
        """
        path = self._paths.channel(name)
        state = ChannelState.STOP if seen is None else seen.state
        data = channel_payload(name, state, definition)
        try:
            if seen is None:
                revision = self._tree.create(path, data).version
            else:
                revision = self._znodes.write(path, data, seen.revision)
        except (Exists, Changed, Missing):
            raise Conflict(f"the channel {name!r} was changed meanwhile") from None
        return read_channel(name, data, revision)

    def all(self) -> Sequence[Channel]:
        """All channels, sorted by name."""
        names = self._znodes.children(self._paths.channels)
        found = self._znodes.read_all([f"{self._paths.channels}/{name}" for name in names])
        return [
            read_channel(name, znode.data, znode.version)
            for name, znode in zip(names, found, strict=True)
            if znode is not None
        ]

    def one(self, name: str) -> Channel:
        """One channel. Raises NotFound."""
        found = self._znodes.read(self._paths.channel(name))
        if found is None:
            raise NotFound(f"there is no channel {name!r}")
        return read_channel(name, found.data, found.version)

    def set_state(self, channel: Channel, state: ChannelState) -> Channel:
        """Change a channel's state if nobody changed it since it was read; else Conflict.

        Writes even if the state is the same: a new revision tells nodes that a pipeline which
        failed for good is to be tried again.
        """
        if channel.damage:
            # It would be written over with an empty one.
            raise Invalid(
                f"the channel {channel.name!r} {channel.damage}; `setl apply` stores it again"
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

    def remove(self, channel: Channel) -> None:
        """Remove a stopped channel with all that is kept of its pipelines, in one step.

        Epochs of a later channel of its name are higher all the same: they come from the order
        of creation in the whole cluster.

        Raises:
            Invalid: it is not stopped.
            Conflict: a node leads a pipeline of it, or changed it since it was read; nothing
                was removed.
        """
        if channel.state is not ChannelState.STOP:
            raise Invalid(f"the channel {channel.name!r} is not stopped")
        path = self._paths.channel(channel.name)
        for _ in range(ATTEMPTS):
            found = self._tree.read_below(path)
            for name, znode in found:
                if znode.owner:
                    pipeline = name.removeprefix(f"{path}/").partition("/")[0]
                    raise Conflict(f"a node leads {channel.name}/{pipeline}")
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
