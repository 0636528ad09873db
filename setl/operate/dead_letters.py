"""Which dead letters may be loaded again, and which are left to a decision of their own. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arbiter.requests import Refused
from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.load.deadletters.remapped import is_remapped
from setl.load.deadletters.store import DeadLetterStore

if TYPE_CHECKING:
    from setl.channel.routes.routing import Router

WAITING = (State.OPEN, State.RETRY)
"""The states in which a letter waits for a decision or for its retry."""


@dataclass(frozen=True, slots=True)
class Loadable:
    """What of some dead letters can be loaded again.

    Attributes:
        letters: these.
        unknown: how many are left out since nobody knows which row they are about.
        remapped: how many are left out since their tables are mapped in another way now.
    """

    letters: Sequence[DeadLetter]
    unknown: int = 0
    remapped: int = 0

    @property
    def left_out(self) -> str:
        """What a person is told of those that are left out; "" if none is."""
        parts: list[str] = []
        if self.unknown:
            parts.append(f"{self.unknown} left out, whose rows are not known")
        if self.remapped:
            parts.append(
                f"{self.remapped} left out, whose tables the channel file maps in another way now"
            )
        return "; ".join(parts)


def missing(found: Collection[str], ids: Collection[str]) -> None:
    """Refuse if a letter that is named, by its id, is not there."""
    gone = set(ids).difference(found)
    if gone:
        raise Refused(f"there is no dead letter {', '.join(sorted(gone))}; nothing was done")


def loadable(
    chosen: Sequence[DeadLetter], router: Router, *, force: bool, everything: bool
) -> Loadable:
    """Those that may be loaded again; what is chosen by its id must be, or nothing is done.

    Args:
        chosen: letters.
        router: the pipeline's routes as they are now.
        force: whether those count whose rows are not known, or whose tables are mapped in another
            way now, which may bring old values back.
        everything: whether all were meant, and not each by its id.

    Raises:
        Refused: one that is chosen by its id cannot be loaded.
    """
    superseded = [x.id for x in chosen if x.state is State.SUPERSEDED]
    waiting = [] if force else [x for x in chosen if x.state in WAITING]
    remapped = [x for x in waiting if is_remapped(x, router)]
    others = {x.id for x in remapped}
    unknown = [x.id for x in waiting if not x.key_hash and x.id not in others]
    if superseded and not everything:
        raise Refused(
            f"refused: {', '.join(superseded)} is superseded, since its row has changed again; the"
            " later change counts. Dropping removes it"
        )
    if unknown and not everything:
        raise Refused(
            f"refused: which row {', '.join(unknown)} is about is not known, so a later change of"
            " it may be undone; --force loads it all the same"
        )
    if remapped and not everything:
        raise Refused(
            "refused: the channel file maps "
            + ", ".join(sorted({x.source or x.target for x in remapped}))
            + f" in another way than when {', '.join(x.id for x in remapped)} was put aside;"
            " `setl resend` sends the row as it is now, and --force loads the letter all the same,"
            " a row that was mapped already as it is, into "
            + ", ".join(sorted({x.target for x in remapped}))
        )
    left_out = {*superseded, *unknown, *others}
    return Loadable([x for x in chosen if x.id not in left_out], len(unknown), len(remapped))


def forced_elsewhere(letters: Sequence[DeadLetter], router: Router) -> set[str]:
    """Ids of those that `loadable` let through though their tables are mapped in another way."""
    return {x.id for x in letters if x.key_hash and is_remapped(x, router)}


def seek_retry(store: DeadLetterStore, ids: Collection[str], elsewhere: Collection[str]) -> None:
    """Have a leader load letters that `loadable` has let through.

    Args:
        store: has them.
        ids: the letters.
        elsewhere: see `forced_elsewhere`.
    """
    # Else a leader takes them for letters that nobody has decided about since the mapping changed.
    store.forget_keys(elsewhere)
    store.mark(ids, State.RETRY)
