"""Brings both sites to the same outcome for a row, from what they read of each other.

`setl.systems.mysql.conflicts.outcome` says what the outcome is. To find it, a site has to know both
sites' writes. The other's it reads. Its own are in its binlog, not in its tables (nothing there
says how new a deleted row was), so the other site tells them: each load writes down, in
``retl.setl_recent``, what it took in of each row, and that is read back by the opposite
pipeline. So each site hears of its own writes, and how much of its own stream each write of the
other has seen: everything up to the last load that the other wrote down before it.

A site keeps what it took in of a row until the other has *passed* it: has read what was written
down, and with it everything that was written here before. Then all writes that the other had
not seen are known, and what follows has seen it. Until then, every load that concerns the row
takes the outcome of what is known by now. Where the row is not the one that was expected, the
site's own last write is guessed, and counts as known. The last outcome may turn out to be another
one than what was left here. Then it is written, and kept until the other has passed that, too.

A row that was read from the source's table comes in as a write that nobody made (`row_read`). It is
kept until the source has passed it, as any other. By then all is known that the target's clients
had done to it, though its own site did not know: a delete that was under way, above all. Where
something is kept of the row already, the source has written it, and no row that was read
matters. Where the target's own row stays, it is reported, and the source takes it for a row that
was read. So both hold the same two rows against each other, and no load in the other direction is
needed.

When the writes have stopped, both sites know the same writes, so they hold the same row; and
nothing is told about what says nothing new, so the exchange ends. Nothing of it depends on what
is delivered when: `tests/unit/systems/mysql/conflicts` explores that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from setl.model.change import ABSENT, Row, filled
from setl.model.conflict import Mark, SiteWrites, Step, WritesSeen
from setl.systems.mysql.conflicts.outcome import (
    Guess,
    is_unwritten,
    joined,
    likely_winner,
    unwritten,
    winner_of,
)
from setl.systems.mysql.conflicts.resolve import Rules, Winner, same


class RowMemory(NamedTuple):
    """What a site keeps of a row that the other site has written.

    Attributes:
        theirs: what the source did.
        ours: what the target did, as far as the source told it.
        left: the row that a load left here last.
        through: up to which version the source was taken in by then.
        guess: what the target itself did, as far as that could not be known.
    """

    theirs: SiteWrites
    ours: SiteWrites | None
    left: Row | None
    through: int
    guess: Guess | None = None

    @property
    def plain(self) -> bool:
        """Whether nothing that is known of it could make another outcome."""
        return self.ours is None and self.guess is None and same(self.left, self.theirs.row)


class NewWrites(NamedTuple):
    """What a load brings of a row.

    Attributes:
        theirs: what the source did, None for nothing.
        before: the row that the first of its writes replaced.
        ours: what it tells of the target's own writes, None for nothing.
        passed: whether it has read what the target wrote down last about the row.
        through: up to which version this load takes the source in.
    """

    theirs: SiteWrites | None
    before: Row | None
    ours: SiteWrites | None
    passed: bool
    through: int

    @property
    def written(self) -> bool:
        """Whether it tells of a write of any client. Then no row that was read matters."""
        return self.theirs is not None or (self.ours is not None and not is_unwritten(self.ours))


class RowOutcome(NamedTuple):
    """What becomes of a row.

    Attributes:
        row: what the target holds now.
        memory: what it keeps, None for nothing.
        is_reported: whether this is to be told to the source.
        winner: whose write stays, where both had written; None where they had not.
    """

    row: Row | None
    memory: RowMemory | None
    is_reported: bool
    winner: Winner | None


def row_outcome(
    rules: Rules, current: Row | None, memory: RowMemory | None, new: NewWrites
) -> RowOutcome:
    """What becomes of a row when a load brings something of it.

    Args:
        rules: the policy.
        current: what the target holds.
        memory: what it keeps, None for nothing.
        new: what the load brings.
    """
    theirs = memory.theirs if memory else None
    ours = memory.ours if memory else None
    if new.ours is not None:
        ours = joined(rules, ours, new.ours)
    if new.theirs is not None:
        theirs = joined(rules, theirs, new.theirs)
    if theirs is None:
        return RowOutcome(current, None, False, None)  # noqa: FBT003
    guess = _guess(current, memory, new, ours)
    if guess is None:
        winner = winner_of(rules, theirs, ours)
    else:
        winner = likely_winner(rules, theirs, ours, guess)
    if winner is Winner.SOURCE:
        row = _filled(theirs.row, current)
    else:
        row = current if guess is not None or ours is None else _filled(ours.row, current)
    changed = not same(row, current)
    conflict = None
    apart = guess is not None or not _followed(theirs, ours)
    if changed if new.theirs is None else apart:
        conflict = Winner.BOTH if same(theirs.row, current) else winner
    if new.theirs is not None or changed:
        remembered = RowMemory(theirs, ours, row, new.through, guess)
        return RowOutcome(row, remembered, True, conflict)  # noqa: FBT003
    if memory is None or new.passed:
        return RowOutcome(row, None, False, conflict)  # noqa: FBT003
    return RowOutcome(row, memory._replace(ours=ours, guess=guess), False, conflict)  # noqa: FBT003


def row_read(
    rules: Rules, current: Row | None, memory: RowMemory | None, row: Row | None, through: int
) -> RowOutcome:
    """What becomes of a row when one is read from the source's table, or told to be there.

    Args:
        rules: the policy.
        current: what the target holds.
        memory: what it keeps, None for nothing.
        row: what the source holds, as it was after all that the target has taken in.
        through: up to which version the target has taken the source in.

    Returns:
        The outcome; where it tells and the target's row stays, the source is to take that in.
    """
    if memory is not None or same(row, current):
        return RowOutcome(current, memory, False, None)  # noqa: FBT003
    theirs, ours = unwritten(rules, row), None if current is None else unwritten(rules, current)
    winner = winner_of(rules, theirs, ours)
    left = _filled(row, current) if winner is Winner.SOURCE else current
    remembered = RowMemory(theirs, ours, left, through)
    return RowOutcome(left, remembered, True, None if ours is None else winner)  # noqa: FBT003


def _guess(
    current: Row | None, memory: RowMemory | None, new: NewWrites, ours: SiteWrites | None
) -> Guess | None:
    """The target's own last write, if it is not known."""
    if memory is None:
        reported = ours is not None and (new.theirs is None or ours.last > new.theirs.seen)
        expected, seen, old = ours.row if reported and ours else new.before, 0, None
    else:
        # Tables are read without any progress in the stream. So what was written just before has
        # seen as much of it as what was written after, and counts as before.
        reached = memory.through + (1 if is_unwritten(memory.theirs) else 0)
        after = ours is not None and ours.seen >= reached
        expected = ours.row if after and ours else memory.left
        seen, old = memory.through, None if new.passed else memory.guess
        # Nothing locks a row that is not there. So a load may have left it so while a client was
        # inserting one, which had not seen what that load took in.
        if memory.left is None and ours is not None and not after and same(current, ours.row):
            return old
    return old if same(current, expected) else Guess(current, seen)


def _followed(theirs: SiteWrites, ours: SiteWrites | None) -> bool:
    """Whether one of the two has seen all that the other did."""
    return ours is None or theirs.seen >= ours.last or ours.seen >= theirs.last


def site_writes_by_key(
    rules: Rules, steps: Iterable[Step], marks: Sequence[Mark], seen: int
) -> dict[Row, SiteWrites]:
    """What the source did, by key.

    Args:
        rules: the policy.
        steps: its changes, in their order.
        marks: how far it had come with the target's stream at which position, in their order.
        seen: the same before all of them.
    """
    by_key: dict[Row, SiteWrites] = {}
    index = 0
    for step in steps:
        while index < len(marks) and marks[index].version < step.version:
            seen = max(seen, marks[index].through)
            index += 1
        value = rules.value(step.after if step.after is not None else step.before)
        writes = SiteWrites(((step.version, value),), seen, step.after)
        by_key[step.key] = joined(rules, by_key.get(step.key), writes)
    return by_key


def writes_seen_by_key(rules: Rules, writes_seen: Iterable[WritesSeen]) -> dict[Row, SiteWrites]:
    """What the source tells of the target's own writes, by key."""
    by_key: dict[Row, SiteWrites] = {}
    for one in writes_seen:
        by_key[one.key] = joined(rules, by_key.get(one.key), one.writes)
    return by_key


def _filled(row: Row | None, current: Row | None) -> Row | None:
    """A row whose missing columns keep what the target holds in them."""
    if row is None or current is None or ABSENT not in row:
        return row
    return filled(row, current)
