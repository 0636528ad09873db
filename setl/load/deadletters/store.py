"""The port of dead letter stores: beside the target's rows, in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from setl.errors import ConfigurationError, FatalError
from setl.load.deadletters.dead_letter import DeadLetter, State


class Pending(NamedTuple):
    """The facts that tell whether a later change supersedes a dead letter."""

    id: str
    key_hash: str
    version: int


@dataclass(frozen=True, slots=True)
class Tally:
    """How many dead letters a pipeline has.

    Attributes:
        open: those that somebody has to decide about, or that wait for their retry.
        retry: of these, those that wait for their retry.
        superseded: those that need nothing any more.
        targets: tables or indexes that open ones were meant for, with the number of each.
    """

    open: int
    retry: int
    superseded: int
    targets: dict[str, int]


class DeadLetterStore(Protocol):
    """Keeps dead letters of pipelines that write to one target.

    Order: one leader at a time writes letters of a pipeline (`keep`, `mark` as superseded,
    `remove`), each under its fence where there is one; operators mark and remove at any time.
    Idempotence: letters have ids of their own, so keeping them again counts an attempt and no
    letter. Crash: in MySQL what a sink does here is part of its transaction; in Elasticsearch
    letters are kept after the rows beside them and before the load is done, so a crash between
    leads to a repeat of both.

    All methods raise TransientError if the target does not answer and ConfigurationError if the
    table, index or a privilege is missing.
    """

    def keep(self, letters: Sequence[DeadLetter], *, again: Collection[str] = ()) -> None:
        """Add letters, or replace those with the same id, whose attempts go on counting.

        Args:
            letters: the letters.
            again: ids of letters that were there and were loaded again. They are only replaced:
                what an operator has dropped meanwhile does not come back.

        Raises:
            FatalError: one is larger than the target accepts.
        """
        ...

    def mark(self, ids: Collection[str], state: State) -> None:
        """Give letters another state; ids that are not there, or superseded, are skipped.

        What an operator has seen to be open may be superseded by now, and loading it again would
        bring an old value back.
        """
        ...

    def forget_keys(self, ids: Collection[str]) -> None:
        """Note that nobody can tell any more which rows these letters are about.

        Those that wait for their retry are open again; superseded ones are skipped.
        """
        ...

    def remove(self, ids: Collection[str]) -> int:
        """Remove letters; returns how many there were."""
        ...

    def pending(self, pipeline: str, target: str) -> list[Pending]:
        """The letters for one table or index that are not superseded and whose key is known."""
        ...

    def find(
        self,
        pipeline: str,
        *,
        ids: Collection[str] = (),
        target: str = "",
        states: Collection[State] = (),
        limit: int = 0,
        newest: bool = False,
    ) -> list[DeadLetter]:
        """Letters of a pipeline in stream order.

        Args:
            pipeline: ``channel/pipeline``.
            ids: only these; none for all.
            target: only those for this table or index, or from this table; "" for all.
            states: only those in one of these states; none for all.
            limit: at most so many; 0 for all.
            newest: whether the last of the stream come first.
        """
        ...

    def states(self, pipeline: str, ids: Collection[str] = ()) -> dict[str, State]:
        """The states of letters that are there, by id, without the rows in them.

        Args:
            pipeline: ``channel/pipeline``.
            ids: only these; none for all.
        """
        ...

    def tally(self, pipeline: str) -> Tally:
        """How many letters a pipeline has."""
        ...

    def trim(self, pipeline: str, most: int) -> None:
        """Remove the oldest superseded letters above so many."""
        ...


def tallied(counts: Iterable[tuple[State, str, int]]) -> Tally:
    """The tally of letters counted by state and target."""
    by_state = dict.fromkeys(State, 0)
    targets: dict[str, int] = {}
    for state, target, number in counts:
        by_state[state] += number
        if state is not State.SUPERSEDED:
            targets[target] = targets.get(target, 0) + number
    waiting = by_state[State.RETRY]
    return Tally(by_state[State.OPEN] + waiting, waiting, by_state[State.SUPERSEDED], targets)


def too_large(letter: DeadLetter, limit: str) -> FatalError:
    """The error for a letter that a store cannot hold; `limit` names the setting in the way."""
    return FatalError(
        f"a faulty row of {len(letter.payload):,} bytes is too large for a dead letter, and was"
        f" refused because: {letter.error}",
        hint=f"Raise {limit}",
        target=letter.target,
        key=letter.key_values or "",
        position=letter.position,
    )


def no_dead_letters_stored(location: str) -> ConfigurationError:
    """The error for a target that has nowhere to keep dead letters.

    `location` is what is missing.
    """
    return ConfigurationError(
        f"the target has no {location}, so no faulty row was ever put aside there",
        hint="With `faulty_rows: dead_letter` in the channel file, `setl check` prints the"
        " statements that make it; without, the pipeline stops at a faulty row",
    )
