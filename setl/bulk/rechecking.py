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

from setl.bulk.arrivals import Arrived
from setl.bulk.comparison import Difference, What, judge

Contents = Mapping[str, list[bytes]]
"""By key, what one side's rows of it say, a digest for each row; keys without a row are left out.
"""


class Look(NamedTuple):
    """One look at the keys that are pending.

    Attributes:
        before: what the source had before the target was waited for.
        target: what the target had then.
        after: what the source had after that.
        arrived: whether the target had everything that the source had when it was read first.
    """

    before: Contents
    target: Contents
    after: Contents
    arrived: Arrived


@dataclass(slots=True)
class Rechecked:
    """What became of keys that differed at first.

    Attributes:
        different: those that differ.
        undecided: those whose row at the source changed at every look.
        caught_up: how many agreed in the end.
    """

    different: list[Difference] = field(default_factory=list[Difference])
    undecided: list[Difference] = field(default_factory=list[Difference])
    caught_up: int = 0


class Rechecking:
    """Follows keys that differ through one look after another.

    A key agrees if the target has what the source had before or after: then it follows. It differs
    if it does not agree although the source stood still and the target has everything, twice with
    the same rows at both sides. All others are pending.
    """

    def __init__(self, differences: Iterable[Difference]) -> None:
        """Nothing has been looked at again yet."""
        self._pending = {difference.key: difference for difference in differences}
        self._seen = {key: {d.source} for key, d in self._pending.items()}
        self._done = Rechecked()
        self._moved: set[str] = set()
        # What both sides had at the last look, of keys that seem to differ.
        self._stood: dict[str, tuple[frozenset[bytes], tuple[bytes, ...]]] = {}
        self._arrived = Arrived.UNKNOWN

    @property
    def pending(self) -> list[Difference]:
        """The keys that have to be looked at again, as they were last."""
        return list(self._pending.values())

    def look(self, look: Look) -> None:
        """Take in what a look at the pending keys has found."""
        self._arrived = look.arrived
        self._moved = set()
        for key, difference in list(self._pending.items()):
            self._judge(key, difference, look)

    def end(self) -> Rechecked:
        """What became of the keys, after the last look; those still pending are judged by it."""
        for key, difference in self._pending.items():
            if key in self._stood:
                self._done.different.append(difference)
            elif self._arrived is Arrived.THERE:
                self._done.undecided.append(difference)
            elif self._follows(key, difference):
                self._done.caught_up += 1
            else:
                self._done.different.append(difference)
        self._pending = {}
        return self._done

    def _judge(self, key: str, difference: Difference, look: Look) -> None:
        before, after = frozenset(look.before.get(key, ())), frozenset(look.after.get(key, ()))
        rows = look.target.get(key, [])
        target = sorted(set(rows))
        what = judge(after, target, len(rows))
        latest = replace(
            difference,
            what=what or What.DIFFERENT,
            source=after,
            target=frozenset(target),
        )
        if what is None or judge(before, target, len(rows)) is None:
            del self._pending[key]
            self._done.caught_up += 1
        elif before == after and look.arrived is Arrived.THERE:
            stands = after, tuple(target)
            if self._stood.get(key) == stands:
                del self._pending[key]
                self._done.different.append(latest)
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

    def _follows(self, key: str, difference: Difference) -> bool:
        """Whether the target has what a source that moves on had in one of the looks before."""
        earlier = self._seen[key] - {difference.source}
        return key in self._moved and any(
            difference.target == source or (difference.target and difference.target <= source)
            for source in earlier
        )
