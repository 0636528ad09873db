"""Dead letters that are loaded again: which are meant, asking for it, and what becomes of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError
from arbiter.values import PipelineId
from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.load.deadletters.store import DeadLetterStore
from setl.operate.dead_letters import Loadable, forced_elsewhere, loadable, missing, seek_retry

if TYPE_CHECKING:
    from setl.channel.routes.routing import Router

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

    def waits(self) -> bool:
        """Whether any still waits for the leader; it reads no rows, so it may be asked often."""
        return State.RETRY in self._left().values()

    def outcome(self, arbiter: Arbiter) -> RetryOutcome:
        """What has become of them so far."""
        left = self._left()
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
