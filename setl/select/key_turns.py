"""Where a batch has to end for actions of foreign keys, which a source carries out unlogged.

When a parent is deleted, its child rows go as they are at that moment: what was done to them
before has to be in the target, and what is done to them later must not be. So such a delete never
shares a batch with a change of a related table that is no delete. Deletes may come in any order
among each other: what the action of one removes is not there for the others, and nothing comes.
A batch with an action is applied alone, and the checkpoint before and behind it is stored, as with
a schema change: an action that is repeated must not find rows that came later.

Rows of tables without such keys are free to be anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from setl.model.entry import Entry


class Turn(Enum):
    """What entries of related tables do."""

    REMOVES = "removes"  # rows, and nothing acts
    CHANGES = "changes"  # inserts, or updates that no key acts on
    ACTS = "acts"  # removes rows of which some may have children
    MOVES = "moves"  # changes columns that children refer to

    def follows(self, before: Turn | None) -> bool:
        """Whether it may be in a batch behind what is there of related tables."""
        if before is None:
            return True
        if self is Turn.MOVES or before is Turn.MOVES:
            return False
        if self is Turn.ACTS:
            return before is not Turn.CHANGES
        return before is not Turn.ACTS or self is Turn.REMOVES

    def joined(self, before: Turn | None) -> Turn:
        """What a batch does with it; it `follows` what is there."""
        if before is None or before is Turn.REMOVES:
            return self
        return before

    @property
    def single_batch(self) -> bool:
        """Whether its batch is applied alone."""
        return self in (Turn.ACTS, Turn.MOVES)


class KeyTurns(Protocol):
    """Tells what entries do. Called by the thread that reads."""

    @property
    def tables(self) -> frozenset[tuple[str, str]]:
        """The related tables; only their rows are asked about."""
        ...

    def divided(self, entry: Entry) -> Sequence[tuple[Entry, Turn]]:
        """Rows of one of them in parts, each with what it does.

        Raises:
            SetlError: a row cannot be decoded.
        """
        ...
