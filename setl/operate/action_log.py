"""Keeps in the log of actions what an operator does, from wherever he does it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError
from arbiter.requests import Requester
from arbiter.values import OperatorAction
from setl.log import fields

_log = logging.getLogger(__name__)

DONE = "done"
_BROKEN_OFF = "ended before it was done"
NOT_DONE = "not done: "


UNDER_WAY = "under way"
_ABANDONED = "not known: whoever did it ended, or lost ZooKeeper, before it was over"


def outcome_of(action: OperatorAction) -> str:
    """What came of an action, as people read it."""
    return action.outcome or (_ABANDONED if action.abandoned else UNDER_WAY)


def was_done(action: OperatorAction) -> bool:
    """Whether an action is known to have been done."""
    return bool(action.ended) and not action.outcome.startswith((NOT_DONE, _BROKEN_OFF))


@dataclass(slots=True)
class ActionOutcome:
    """What whoever acts has to tell.

    Attributes:
        outcome: what came of it, as a sentence; "" for nothing more than that it is done.
    """

    outcome: str = ""


@contextmanager
def recorded(
    arbiter: Arbiter,
    requester: Requester,
    what: str,
    on: str,
    now: Callable[[], float] = time.time,
) -> Generator[ActionOutcome]:
    """Keep an action before it is done, and its outcome afterwards.

    Order: what cannot be kept is not done. An outcome that cannot be kept changes nothing about
    what was done: the log says "under way" then, and the process's own log says why.

    Args:
        arbiter: keeps the log.
        requester: who acts.
        what: what he does, such as ``start``.
        on: the channel, pipeline or other thing.
        now: seconds since 1970 UTC.

    Raises:
        ArbiterError: the action could not be kept, or what the body raises.
    """
    action = arbiter.actions.add(OperatorAction(requester.by, what, on, requester.now))
    entry = ActionOutcome()
    try:
        yield entry
    except BaseException as error:
        _end(arbiter, action, _failure(error, entry), now())
        raise
    _end(arbiter, action, entry.outcome or DONE, now())


def _failure(error: BaseException, entry: ActionOutcome) -> str:
    if isinstance(error, KeyboardInterrupt | SystemExit):
        # What was asked for may come about without whoever asked.
        return f"{entry.outcome}; nobody waited for the end" if entry.outcome else _BROKEN_OFF
    return f"{NOT_DONE}{error}" if str(error) else f"{NOT_DONE}{type(error).__name__}"


def _end(arbiter: Arbiter, entry: OperatorAction, outcome: str, at: float) -> None:
    try:
        arbiter.actions.end(entry, outcome, at)
    except ArbiterError as error:
        _log.warning(
            "outcome of an action not kept",
            extra=fields(action=entry.id, what=entry.what, outcome=outcome, error=str(error)),
        )
