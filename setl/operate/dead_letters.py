"""Dead letters as operators handle them: which may be loaded again, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError
from arbiter.requests import Refused
from arbiter.values import PipelineId
from setl.load.deadletters.ambiguous import is_remapped
from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.load.deadletters.store import DeadLetterStore
from setl.waiting import polling

if TYPE_CHECKING:
    from setl.channel.routes.routing import Router

_POLL_SECONDS = 0.5

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


_AT_ONCE = 200
"""Letters whose rows are in memory at the same time: each may be of many megabytes."""


def letters_of(
    store: DeadLetterStore, ident: PipelineId, ids: Collection[str]
) -> Iterator[Sequence[DeadLetter]]:
    """Letters with their rows, some at a time; those that are gone by then are left out."""
    wanted = sorted(ids)
    for first in range(0, len(wanted), _AT_ONCE):
        yield store.find(str(ident), ids=wanted[first : first + _AT_ONCE])


@dataclass(frozen=True, slots=True)
class RetryOutcome:
    """What became of letters that were to be loaded again.

    Attributes:
        gone: how many are there no more: they were loaded, or dropped.
        refused: ids of those that were refused again.
        waiting: ids of those that wait for a leader.
        superseded: how many need nothing any more, since their rows have changed meanwhile.
        dropped: whether somebody dropped letters of the pipeline meanwhile, or nobody knows. Then
            nobody can tell which of those that are gone were loaded.
    """

    gone: int
    refused: frozenset[str]
    waiting: frozenset[str]
    superseded: int
    dropped: bool

    @property
    def in_doubt(self) -> bool:
        """Whether letters are gone of which nobody can tell that they were loaded."""
        return self.dropped and self.gone > 0

    def __str__(self) -> str:
        loaded = "loaded or dropped by somebody meanwhile" if self.in_doubt else "loaded"
        words = (
            f"{self.gone} {loaded}, {len(self.refused)} refused again,"
            f" {len(self.waiting)} waiting for a leader"
        )
        return words + (f", {self.superseded} superseded meanwhile" if self.superseded else "")


class Retry:
    """Letters of a pipeline that somebody wants to be loaded again.

    Attributes:
        wanted: ids of those that can be.
        left_out: what a person is told of the others, see `Loadable.left_out`.
    """

    def __init__(
        self,
        store: DeadLetterStore,
        ident: PipelineId,
        ids: Collection[str],
        router: Router,
        *,
        force: bool,
    ) -> None:
        """Choose; nothing is asked for yet.

        Args:
            store: has the letters.
            ident: their pipeline.
            ids: the letters; none for all.
            router: see `setl.operate.dead_letters.loadable`.
            force: likewise.

        Raises:
            Refused: one that is named is not there, or cannot be loaded again.
        """
        self._store, self._ident = store, ident
        self._drops: frozenset[str] = frozenset()
        found = store.states(str(ident), ids)
        missing(found, ids)
        wanted: set[str] = set()
        forced: set[str] = set()
        unknown = remapped = 0
        for letters in letters_of(store, ident, found):
            some = loadable(letters, router, force=force, everything=not ids)
            wanted.update(x.id for x in some.letters)
            forced.update(forced_elsewhere(some.letters, router))
            unknown, remapped = unknown + some.unknown, remapped + some.remapped
        self.wanted = frozenset(wanted)
        self.left_out = Loadable((), unknown, remapped).left_out
        self._forced = forced

    def ask(self, arbiter: Arbiter) -> None:
        """Have the leader load them."""
        self._drops = _drops(arbiter, self._ident, ended=True)
        seek_retry(self._store, self.wanted, self._forced)

    def outcome(
        self, arbiter: Arbiter, timeout: float, pause: Callable[[float], object]
    ) -> RetryOutcome:
        """What has become of them once none waits for the leader any more, or after `timeout`.

        Args:
            arbiter: the cluster.
            timeout: seconds.
            pause: waits for so many seconds.
        """
        left: Mapping[str, State] = {}
        for _ in polling(timeout, _POLL_SECONDS, pause=pause):
            left = self._left()  # reads no rows, so it may be asked often
            if State.RETRY not in left.values():
                break
        gone = len(self.wanted) - len(left)

        def in_state(state: State) -> frozenset[str]:
            return frozenset(i for i, each in left.items() if each is state)

        return RetryOutcome(
            gone,
            in_state(State.OPEN),
            in_state(State.RETRY),
            len(in_state(State.SUPERSEDED)),
            dropped=gone > 0 and self._somebody_dropped(arbiter),
        )

    def _left(self) -> dict[str, State]:
        return self._store.states(str(self._ident), self.wanted) if self.wanted else {}

    def _somebody_dropped(self, arbiter: Arbiter) -> bool:
        try:
            return not _drops(arbiter, self._ident) <= self._drops
        except ArbiterError:
            return True  # nobody knows


def _drops(arbiter: Arbiter, ident: PipelineId, *, ended: bool = False) -> frozenset[str]:
    """The actions that drop letters of a pipeline; with `ended` only those that are over."""
    return frozenset(
        action.id
        for action in arbiter.actions.all()
        if action.what == "drop" and action.on == str(ident) and (action.ended or not ended)
    )
