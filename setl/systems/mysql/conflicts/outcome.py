"""Decides the outcome of a row that both sites write, from their clients' writes alone.

Each write of a client has *seen* the writes of the other site that its own site had taken in by
then, whoever won. A site's writes that the other site's last write has not seen are *news* to
it. If one site has no news for the other, the other's last write stays: it has seen everything.
If both have, the policy decides whose last write stays:

- `home`: the home site's.
- `newest`: that of the site whose news have the greater value. A row counts with the value of
  the column, a deleted one with the value that it had. Of two as great, a last write that is a
  delete stays, then the home site's.

Nothing else counts: not when anything was delivered, how often, or in which order it was met.

A row that was read from a table (`unwritten`) counts as a write that every write of a client has
seen, and that has seen none. So it only matters for a row that neither site's clients wrote. There
it stands against what the other site holds, and the policy decides between the two rows:

- `home`: the home site's.
- `newest`: that with the greater value, then the home site's.
"""

from __future__ import annotations

from typing import NamedTuple

from setl.model.change import Row
from setl.model.conflict import SiteWrites
from setl.systems.mysql.conflicts.resolve import Rules, Winner

MOST_NEWS = 1000
"""Values of one site that are remembered for a row; beyond, the oldest are joined.

Two sites may join them at different positions, and then decide differently. Only a column that goes
down with each write, before the other site answers, comes near.
"""


class Guess(NamedTuple):
    """What a site takes its own last write of a row for, as long as nobody has told it.

    Attributes:
        row: the row that is there, None for none.
        seen: up to which version of the source the write has seen it.
    """

    row: Row | None
    seen: int


_UNWRITTEN = 0  # no place of a stream is as low


def unwritten(rules: Rules, row: Row | None) -> SiteWrites:
    """A row that is there, as a write that nobody made."""
    return SiteWrites(((_UNWRITTEN, rules.value(row)),), _UNWRITTEN - 1, row)


def is_unwritten(writes: SiteWrites) -> bool:
    """Whether it is a row that nobody wrote, as far as is known."""
    return writes.last == _UNWRITTEN


def _winner_of_unwritten(rules: Rules, theirs: Row | None, ours: Row | None) -> Winner:
    """Which of two rows stays that nobody wrote; theirs is the source's."""
    if rules.age is not None:
        their_age, our_age = (rules.age(rules.value(row)) for row in (theirs, ours))
        if their_age != our_age:
            return Winner.SOURCE if their_age > our_age else Winner.TARGET
    return Winner.SOURCE if rules.from_home else Winner.TARGET


def winner_of(rules: Rules, theirs: SiteWrites | None, ours: SiteWrites | None) -> Winner:
    """Whose last write stays; theirs is the source's. One of both there is."""
    if theirs is None or ours is None:
        return Winner.TARGET if theirs is None else Winner.SOURCE
    if is_unwritten(theirs) and is_unwritten(ours):
        return _winner_of_unwritten(rules, theirs.row, ours.row)
    their_news = [value for version, value in theirs.news if version > ours.seen]
    our_news = [value for version, value in ours.news if version > theirs.seen]
    if not their_news or not our_news:
        return Winner.SOURCE if their_news else Winner.TARGET
    if rules.age is not None:
        their_age, our_age = max(map(rules.age, their_news)), max(map(rules.age, our_news))
        if their_age != our_age:
            return Winner.SOURCE if their_age > our_age else Winner.TARGET
        if (theirs.row is None) != (ours.row is None):
            return Winner.SOURCE if theirs.row is None else Winner.TARGET
    return Winner.SOURCE if rules.from_home else Winner.TARGET


def likely_winner(
    rules: Rules, theirs: SiteWrites, ours: SiteWrites | None, guess: Guess
) -> Winner:
    """Whose last write stays as far as that can be known before the target's own is reported."""
    if guess.row is None and rules.age is not None:
        return Winner.TARGET  # it deleted a row, and how new that was is not known here
    value = None if guess.row is None else rules.value(guess.row)
    later = 1 + max(theirs.seen, ours.last if ours else 0)
    return winner_of(
        rules, theirs, joined(rules, ours, SiteWrites(((later, value),), guess.seen, guess.row))
    )


def joined(rules: Rules, earlier: SiteWrites | None, later: SiteWrites) -> SiteWrites:
    """What one site did to a row, and what it did then.

    A value that a later one reaches says nothing.
    """
    if earlier is None:
        return later
    news = list(earlier.news)
    for version, value in later.news:
        while news and (rules.age is None or rules.age(news[-1][1]) <= rules.age(value)):
            news.pop()
        news.append((version, value))
    if len(news) > MOST_NEWS:
        (_, greatest), (version, _) = news[:2]
        news[:2] = [(version, greatest)]
    return SiteWrites(tuple(news), later.seen, later.row)
