"""Who sends alarms, and what is stored of them."""

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
        """Try to become the one that sends alarms; returns who it is afterwards, me or another.

        It is me exactly if its session is `session_id()`. A sender that tells somebody replaces one
        that tells nobody. Idempotent. Crash: the position is free when the session of whoever has
        it ends. Two may believe for a moment that they have it; what they keep is a
        compare-and-set, so that one of them finds out.
        """
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
        """Who sends alarms, None if nobody does."""
        found = self._tree.znodes.read(self._tree.paths.alarm_sender)
        return None if found is None else read_sender(found.data, found.owner)

    def read(self) -> tuple[dict[str, Any], int] | None:
        """What is stored of alarms, and its revision; None if nothing is.

        What cannot be read is empty: alarms that hold are raised again.
        """
        return self._read(self._tree.paths.alarm_state)

    def store(self, value: Mapping[str, Any], revision: int | None) -> int:
        """Store it if its revision is still `revision` (None: there is none yet).

        Returns the new revision. Raises Conflict, or Invalid if it is too large.
        """
        return self._store(self._tree.paths.alarm_state, "alarms", value, revision)

    def silences(self) -> tuple[dict[str, Any], int] | None:
        """What is stored of silences, as `read`; what cannot be read is empty."""
        return self._read(self._tree.paths.alarm_silences)

    def store_silences(self, value: Mapping[str, Any], revision: int | None) -> int:
        """Store silences, as `store`."""
        return self._store(self._tree.paths.alarm_silences, "silences", value, revision)

    def _read(self, path: str) -> tuple[dict[str, Any], int] | None:
        found = self._tree.znodes.read(path)
        return None if found is None else (read_alarms(found.data), found.version)

    def _store(self, path: str, what: str, value: Mapping[str, Any], revision: int | None) -> int:
        data = alarms_payload(what, value)
        try:
            if revision is None:
                return self._tree.create(path, data).version
            return self._tree.znodes.write(path, data, revision)
        except (Exists, Changed, Missing):
            raise Conflict(f"the {what} were changed concurrently") from None
