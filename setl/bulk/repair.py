"""What is to be sent again so that a target is as its source."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from setl.bulk.comparison import What
from setl.bulk.verdict import TableVerdict
from setl.model.load_request import LoadRequest, in_pieces


@dataclass(frozen=True, slots=True)
class Repair:
    """What can be repaired of one target.

    Attributes:
        target: the target, for people.
        requests: loads that send the keys that differ again.
        keys: how many keys these are.
        left: how many keys differ besides, of which nobody can say what they are at the source, or
            that are more than are looked at at once.
    """

    target: str
    requests: tuple[LoadRequest, ...]
    keys: int
    left: int


def repair_of(
    verdict: TableVerdict, by: str, now: float, only: Collection[What] = tuple(What)
) -> Repair:
    """The requests that repair what a comparison found.

    A row is sent as the source has it when it is sent. So a difference that has vanished by then
    does no harm.

    Args:
        verdict: what was found.
        by: who asks, for people.
        now: seconds since 1970.
        only: which differences to repair.
    """
    differing = verdict.differing
    keys = [key for key, what in differing.keys if what in only]
    requests = tuple(
        LoadRequest(
            tables=(verdict.table,),
            key=differing.columns,
            keys=tuple(some),
            reason="repair",
            by=by,
            sent=now,
        )
        for some in in_pieces(keys)
    )
    counts = {
        What.MISSING: verdict.missing,
        What.EXTRA: verdict.extra,
        What.DIFFERENT: verdict.different,
    }
    found = sum(counts[what] for what in only)
    return Repair(verdict.target, requests, len(keys), max(0, found - len(keys)))
