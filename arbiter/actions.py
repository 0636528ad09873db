"""The log of what operators did.

An action that has not ended belongs to the session in which it was kept. A znode that ends with
that session tells whether anybody is left who will say what came of it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from arbiter.errors import Conflict, NotFound
from arbiter.payloads import action_payload, read_action
from arbiter.tree import Tree
from arbiter.values import OperatorAction
from arbiter.znodes import Changed, Exists, Missing, Znode

_log = logging.getLogger(__name__)

MAX_ACTIONS = 500
"""Actions that are kept for people to look at."""

_LONGEST = 4000  # characters of one text; an outcome may hold a whole report


class Actions:
    """Actions, each in a znode of its own."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def add(self, action: OperatorAction) -> OperatorAction:
        """Keep what an operator is about to do; returns it with its id. Not idempotent.

        Order: it is kept before it is done, so that nothing is done that nobody finds again. The
        oldest actions beyond a limit are removed; so are the ends of very long texts. For people
        only: nobody decides anything by it.
        """
        session = self._tree.session()
        self._register_session(session)
        folder, stored = self._tree.paths.actions, replace(_shortened(action), session=session)
        ident = self._tree.append_below_root(folder, "action-", action_payload(stored))
        names = self._tree.znodes.children(folder)
        self._tree.trim(folder, names[: max(0, len(names) - MAX_ACTIONS)])
        return replace(stored, id=ident)

    def end(self, action: OperatorAction, outcome: str, at: float) -> OperatorAction:
        """Say what came of an action, and when.

        Raises:
            Conflict: somebody has said so already.
            NotFound: it was removed meanwhile.
        """
        ended = _shortened(replace(action, outcome=outcome, ended=at))
        path = f"{self._tree.paths.actions}/{action.id}"
        try:
            revision = self._tree.znodes.write(path, action_payload(ended), action.revision)
        except Changed:
            raise Conflict(f"the outcome of {action.id} is known already") from None
        except Missing:
            raise NotFound(f"the action {action.id} is gone") from None
        return replace(ended, revision=revision)

    def all(self) -> Sequence[OperatorAction]:
        """What operators did, oldest first; what cannot be read is left out.

        Of one whose session ended before anybody said what came of it, `abandoned` says so.
        """
        found = [
            action
            for name, znode in self._tree.read_folder(self._tree.paths.actions)
            if (action := self._read(name, znode)) is not None
        ]
        if any(_is_open(action) for action in found):
            alive = set(self._tree.znodes.children(self._tree.paths.acting))
            found = [self._examined(action, alive) for action in found]
        return found

    def _read(self, name: str, znode: Znode) -> OperatorAction | None:
        wrong: list[str] = []
        action = read_action(name, znode.data, znode.version, wrong)
        if action is None:
            path = f"{self._tree.paths.actions}/{name}"
            extra = {"setl": {"znode": path, "error": "; ".join(wrong)}}
            _log.warning("action cannot be read", extra=extra)
        return action

    def _examined(self, action: OperatorAction, alive: Collection[str]) -> OperatorAction:
        """Whether somebody is still there who will say what came of it."""
        if not _is_open(action) or f"{action.session:x}" in alive:
            return action
        # Its session may have ended in order since the action was read, and said it before.
        znode = self._tree.znodes.read(f"{self._tree.paths.actions}/{action.id}")
        now = (self._read(action.id, znode) if znode is not None else None) or action
        return replace(now, abandoned=_is_open(now))

    def _register_session(self, session: int) -> None:
        path = self._tree.paths.acting_in(session)
        if self._tree.znodes.read(path) is None:
            with suppress(Exists):
                self._tree.create(path, b"", ephemeral=True, session=session)


def _is_open(action: OperatorAction) -> bool:
    return bool(action.session and not action.ended)


def _shortened(action: OperatorAction) -> OperatorAction:
    return replace(
        action,
        by=action.by[:_LONGEST],
        what=action.what[:_LONGEST],
        on=action.on[:_LONGEST],
        outcome=action.outcome[:_LONGEST],
    )
