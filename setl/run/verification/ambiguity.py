"""What differs in two looks at a range; what differs in one may be on its way. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from setl.bulk.comparing import key_text
from setl.bulk.comparison import What
from setl.bulk.verdict import DifferingKeys

if TYPE_CHECKING:
    from setl.bulk.verdict import KeyDifference, TableVerdict

_KINDS = (What.MISSING, What.EXTRA, What.DIFFERENT)


def seen_twice(first: TableVerdict, again: TableVerdict) -> TableVerdict:
    """What two comparisons of a range, one after the other, both say.

    Where each of them had judged for itself what is on its way, a key counts if it differs in the
    same way both times. Where they could not, since rows come from several tables or from a
    processor, it counts only if its values are the same both times as well; see `stood_still`.

    Args:
        first: the comparison before.
        again: the comparison after.
    """
    if not (first.differing.columns and again.differing.columns):
        return stood_still(first, again)
    before = set(first.differing.keys)
    known = [each for each in again.differing.keys if each in before]
    counts: list[int] = []
    for kind in _KINDS:
        rest = min(_unknown(first, kind), _unknown(again, kind))
        counts.append(sum(what is kind for _, what in known) + rest)
    differing = replace(again.differing, keys=tuple(known))
    named = {(sample.key, sample.what) for sample in first.sample_keys}
    complete = len(first.sample_keys) == first.differences
    samples = [s for s in again.sample_keys if not complete or (s.key, s.what) in named]
    return _with(again, counts, samples, differing)


def stood_still(first: TableVerdict, again: TableVerdict) -> TableVerdict:
    """What two comparisons both say of rows that did not change in between.

    Rows that may be changed on both sides tell no other way that they differ. A key whose values
    were others the second time is undecided, and none to repair.
    """
    before = {sample.key: sample for sample in first.sample_keys}
    still = [s for s in again.sample_keys if before.get(s.key) == s and _is_shown(s)]
    unnamed = [min(_unnamed(first, kind), _unnamed(again, kind)) for kind in _KINDS]
    counts = [
        sum(s.what is kind for s in still) + rest
        for kind, rest in zip(_KINDS, unnamed, strict=True)
    ]
    moved = [s for s in again.sample_keys if s not in still]
    changed = sum(s.what is What.DIFFERENT for s in moved)
    again = replace(again, undecided=again.undecided + changed)
    return _with(again, counts, still, _still_differing(first, again, {s.key for s in moved}))


def _still_differing(
    first: TableVerdict, again: TableVerdict, moved: Collection[str]
) -> DifferingKeys:
    """The keys that differed in the same way both times, but those that are known to have moved."""
    before, found = set(first.differing.keys), again.differing
    keys = [k for k in found.keys if k in before and key_text(k[0]) not in moved]
    return replace(found, keys=tuple(keys))


def _is_shown(sample: KeyDifference) -> bool:
    """Whether it still differed when its values were read to be shown."""
    return sample.what is not What.DIFFERENT or bool(sample.columns or sample.source_rows)


def _count(verdict: TableVerdict, kind: What) -> int:
    return {
        What.MISSING: verdict.missing,
        What.EXTRA: verdict.extra,
        What.DIFFERENT: verdict.different,
    }[kind]


def _unknown(verdict: TableVerdict, kind: What) -> int:
    """Keys of a kind whose values at the source nobody knows."""
    known = sum(what is kind for _, what in verdict.differing.keys)
    return max(0, _count(verdict, kind) - known)


def _unnamed(verdict: TableVerdict, kind: What) -> int:
    named = sum(sample.what is kind for sample in verdict.sample_keys)
    return max(0, _count(verdict, kind) - named)


def _with(
    verdict: TableVerdict,
    counts: Iterable[int],
    samples: Iterable[KeyDifference],
    differing: DifferingKeys,
) -> TableVerdict:
    missing, extra, different = counts = list(counts)
    differing = replace(differing, unknown=max(0, sum(counts) - len(differing.keys)))
    return replace(
        verdict,
        missing=missing,
        extra=extra,
        different=different,
        sample_keys=tuple(samples),
        differing=differing,
    )
