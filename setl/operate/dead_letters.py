"""Which dead letters may be loaded again, and which are left to a decision of their own. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from arbiter.requests import Refused
from setl.load.deadletters.letter import DeadLetter, State

WAITING = (State.OPEN, State.RETRY)
"""The states in which a letter waits for a decision or for its retry."""


@dataclass(frozen=True, slots=True)
class Loadable:
    """What of some dead letters can be loaded again.

    Attributes:
        letters: these.
        unknown: how many are left out since nobody knows which row they are about.
    """

    letters: Sequence[DeadLetter]
    unknown: int = 0


def missing(found: Sequence[DeadLetter], ids: Collection[str]) -> None:
    """Refuse if a letter that is named is not there."""
    gone = set(ids) - {letter.id for letter in found}
    if gone:
        raise Refused(f"there is no dead letter {', '.join(sorted(gone))}; nothing was done")


def loadable(chosen: Sequence[DeadLetter], *, force: bool, everything: bool) -> Loadable:
    """Those that may be loaded again; what is chosen by its id must be, or nothing is done.

    Args:
        chosen: letters.
        force: whether those count whose rows are not known, which may bring old values back.
        everything: whether all were meant, and not each by its id.

    Raises:
        Refused: one that is chosen by its id cannot be loaded.
    """
    superseded = [x.id for x in chosen if x.state is State.SUPERSEDED]
    unknown = [] if force else [x.id for x in chosen if x.state in WAITING and not x.key_hash]
    if superseded and not everything:
        raise Refused(
            f"refused: {', '.join(superseded)} is superseded, since its row has changed again; the"
            " later change counts. `setl deadletter drop` removes it"
        )
    if unknown and not everything:
        raise Refused(
            f"refused: which row {', '.join(unknown)} is about is not known, so a later change of"
            " it may be undone; --force loads it all the same"
        )
    left_out = {*superseded, *unknown}
    return Loadable([x for x in chosen if x.id not in left_out], len(unknown))
