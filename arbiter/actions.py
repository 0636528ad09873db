"""The log of what operators did, as `arbiter.arbiter.Arbiter` describes it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from arbiter.arbiter import Conflict, NotFound
from arbiter.payloads import action_payload, read_action
from arbiter.tree import Tree
from arbiter.values import OperatorAction
from arbiter.znodes import Changed, Missing

_log = logging.getLogger(__name__)

ACTIONS_KEPT = 500
"""Actions that are kept for people to look at."""

_LONGEST = 4000  # characters of one text; an outcome may hold a whole report


class Actions:
    """Actions, each in a znode of its own."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def add(self, action: OperatorAction) -> OperatorAction:
        """See `arbiter.arbiter.Arbiter.add_action`."""
        folder, kept = self._tree.paths.actions, _shortened(action)
        ident = self._tree.append_below_root(folder, "action-", action_payload(kept))
        names = self._tree.znodes.children(folder)
        self._tree.trim(folder, names[: max(0, len(names) - ACTIONS_KEPT)])
        return replace(kept, id=ident)

    def end(self, action: OperatorAction, outcome: str, at: float) -> OperatorAction:
        """See `arbiter.arbiter.Arbiter.end_action`."""
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
        """See `arbiter.arbiter.Arbiter.actions`."""
        folder = self._tree.paths.actions
        found: list[OperatorAction] = []
        for name, znode in self._tree.read_folder(folder):
            wrong: list[str] = []
            action = read_action(name, znode.data, znode.version, wrong)
            if action is None:
                extra = {"setl": {"znode": f"{folder}/{name}", "error": "; ".join(wrong)}}
                _log.warning("action cannot be read", extra=extra)
                continue
            found.append(action)
        return found


def _shortened(action: OperatorAction) -> OperatorAction:
    return replace(
        action,
        by=action.by[:_LONGEST],
        what=action.what[:_LONGEST],
        on=action.on[:_LONGEST],
        outcome=action.outcome[:_LONGEST],
    )
