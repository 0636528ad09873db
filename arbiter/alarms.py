"""Who sends alarms, and what is kept of them, as `arbiter.arbiter.Arbiter` describes it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from arbiter.errors import Conflict
from arbiter.payloads import alarms_payload, read_alarms, read_sender, sender_payload
from arbiter.tree import ATTEMPTS, Tree
from arbiter.values import AlarmSender
from arbiter.znodes import Changed, Exists, Missing


class Alarms:
    """One ephemeral znode for the sender, and two persistent ones."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def take(self, sender: AlarmSender) -> AlarmSender:
        """See `arbiter.arbiter.Arbiter.send_alarms`."""
        path, session = self._tree.paths.alarm_sender, self._tree.session()
        mine = replace(sender, session=session)
        for _ in range(ATTEMPTS):
            found = self._tree.znodes.read(path)
            if found is None:
                with suppress(Exists):
                    self._tree.create(path, sender_payload(mine), ephemeral=True, session=session)
                    return mine
                continue
            other = read_sender(found.data, found.owner)
            if other.session == session or other.receivers or not mine.receivers:
                return other
            with suppress(Changed, Missing):
                self._tree.znodes.delete(path, found.version, session=session)
        raise Conflict("the sender of alarms keeps being changed by others")

    def sender(self) -> AlarmSender | None:
        """See `arbiter.arbiter.Arbiter.alarm_sender`."""
        found = self._tree.znodes.read(self._tree.paths.alarm_sender)
        return None if found is None else read_sender(found.data, found.owner)

    def read(self, path: str) -> tuple[dict[str, Any], int] | None:
        """What is kept at a path, and its revision."""
        found = self._tree.znodes.read(path)
        return None if found is None else (read_alarms(found.data), found.version)

    def store(self, path: str, what: str, value: Mapping[str, Any], revision: int | None) -> int:
        """Keep it by compare-and-set; returns the new revision."""
        data = alarms_payload(what, value)
        try:
            if revision is None:
                return self._tree.create(path, data).version
            return self._tree.znodes.write(path, data, revision)
        except (Exists, Changed, Missing):
            raise Conflict(f"the {what} were changed by somebody else meanwhile") from None
