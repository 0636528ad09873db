"""Tells rows that are on their way from rows that differ.

Both sides of a working pipeline are never read at the same instant, so a row that changes while it
is compared looks different. Such keys are read again: the source, then the target when it has
everything that the source had then, then the source once more. If the source's row is the same
both times, the target had to have it. But a row that goes and comes back between the two readings
looks as if it had stood still. So a key has to look the same in two looks, one after the other.

Where nobody can tell what the target has, keys are read again a few times, and count as different
if they do not come to agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from setl.bulk.comparison import NOTHING, Difference, Held, Merging, What, judge
from setl.bulk.position_waiter import WaitOutcome

Contents = Mapping[str, Held]
"""By key, what one side has under it; keys without a row are left out."""


class Look(NamedTuple):
    """One look at the keys that are pending.

    Attributes:
        before: what the source had before the target was waited for.
        target: what the target had then.
        after: what the source had after that.
        wait_outcome: whether the target had everything that the source had when it was read first.
    """

    before: Contents
    target: Contents
    after: Contents
    wait_outcome: WaitOutcome


@dataclass(slots=True)
class Rechecked:
    """What became of keys that differed at first.

    Attributes:
        different: those that differ.
        undecided: those whose row at the source changed at every look.
        caught_up: how many agreed in the end.
        more_source_rows: how many rows more than at first the source has under all these keys, as
            they were when they were judged; negative if it has fewer.
        more_target_rows: the same of the target.
        more_merged: the same of `Comparison.merged`.
    """

    different: list[Difference] = field(default_factory=list[Difference])
    undecided: list[Difference] = field(default_factory=list[Difference])
    caught_up: int = 0
    more_source_rows: int = 0
    more_target_rows: int = 0
    more_merged: int = 0


class Rechecking:
    """Follows keys that differ through one look after another.

    A key agrees if the target has what the source had before or after: then it follows. It differs
    if it does not agree although the source stood still and the target has everything, twice with
    the same rows at both sides. All others are pending.
    """

    def __init__(self, differences: Iterable[Difference], merging: Merging) -> None:
        """Nothing has been looked at again yet.

        Args:
            differences: the keys.
            merging: which rows of the source may be one row of the target.
        """
        self._merging = merging
        self._first = {difference.key: difference for difference in differences}
        self._pending = dict(self._first)
        self._seen = {key: {d.source} for key, d in self._pending.items()}
        self._done = Rechecked()
        self._moved: set[str] = set()
        # What both sides had at the last look, of keys that seem to differ.
        self._stood: dict[str, tuple[Held, Held]] = {}
        self._wait_outcome = WaitOutcome.UNKNOWN

    @property
    def pending(self) -> list[Difference]:
        """The keys that have to be looked at again, as they were last."""
        return list(self._pending.values())

    def look(self, look: Look) -> None:
        """Take in what a look at the pending keys has found."""
        self._wait_outcome = look.wait_outcome
        self._moved = set()
        for key, difference in list(self._pending.items()):
            self._judge(key, difference, look)

    def end(self) -> Rechecked:
        """What became of the keys, after the last look; those still pending are judged by it."""
        for key, difference in self._pending.items():
            followed = self._followed(key, difference)
            if key in self._stood:
                self._differs(difference)
            elif self._wait_outcome is WaitOutcome.CAUGHT_UP:
                self._counts(difference)
                self._done.undecided.append(difference)
            elif followed is not None:
                self._agrees(replace(difference, source=followed))
            else:
                self._differs(difference)
        self._pending = {}
        return self._done

    def _judge(self, key: str, difference: Difference, look: Look) -> None:
        before, after = look.before.get(key, NOTHING), look.after.get(key, NOTHING)
        target = look.target.get(key, NOTHING)
        what = judge(after, target, self._merging)
        latest = replace(difference, what=what or What.DIFFERENT, source=after, target=target)
        if what is None:
            del self._pending[key]
            self._agrees(latest)
        elif judge(before, target, self._merging) is None:
            del self._pending[key]
            self._agrees(replace(latest, source=before))
        elif before == after and look.wait_outcome is WaitOutcome.CAUGHT_UP:
            stands = after, target
            if self._stood.get(key) == stands:
                del self._pending[key]
                self._differs(latest)
            else:
                self._stood[key] = stands
                self._pending[key] = latest
                self._seen[key].add(after)
        else:
            self._stood.pop(key, None)
            if not before == after == difference.source:
                self._moved.add(key)
            self._seen[key] |= {before, after}
            self._pending[key] = latest

    def _followed(self, key: str, difference: Difference) -> Held | None:
        """What a source that moves on had in an earlier look, if the target has just that."""
        if key not in self._moved:
            return None
        earlier = self._seen[key] - {difference.source}
        agreeing = (s for s in earlier if judge(s, difference.target, self._merging) is None)
        return next(agreeing, None)

    def _agrees(self, difference: Difference) -> None:
        self._counts(difference)
        self._done.caught_up += 1

    def _differs(self, difference: Difference) -> None:
        self._counts(difference)
        self._done.different.append(difference)

    def _counts(self, now: Difference) -> None:
        """Count the rows of a key as they were judged, in place of those found at first."""
        first, done = self._first[now.key], self._done
        done.more_source_rows += now.source.rows - first.source.rows
        done.more_target_rows += now.target.rows - first.target.rows
        merging = self._merging
        done.more_merged += now.source.merged(merging) - first.source.merged(merging)
