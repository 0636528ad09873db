"""What must hold after a drill, as pure functions over what was seen.

Set checker and bank follow Jepsen's and TiCDC's tests of the same names: what was acknowledged
is there, nothing else is, and money neither appears nor goes away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from setl.codec.dts.relayed import HEARTBEAT, RelayPosition
from setl.systems.mysql.stored.marks import MAX_SLOTS, mark_id
from setl_drills.binlog import Transaction


@dataclass(frozen=True, slots=True)
class SetVerdict:
    """The set checker's outcome.

    Attributes:
        lost: acknowledged at the source, absent from the target.
        unexpected: in the target, never committed at the source.
    """

    lost: frozenset[int]
    unexpected: frozenset[int]


def check_set(
    acknowledged: AbstractSet[int], uncertain: AbstractSet[int], found: AbstractSet[int]
) -> SetVerdict:
    """Compare what a site's users know with what the other site holds of it."""
    return SetVerdict(
        lost=frozenset(acknowledged - found),
        unexpected=frozenset(found - acknowledged - uncertain),
    )


def check_bank(balances: Mapping[int, int], accounts: int, opening: int) -> list[str]:
    """The accounts of one site, as they are on one site: none is missing, the sum is right."""
    problems: list[str] = []
    if len(balances) != accounts:
        problems.append(f"{len(balances)} accounts instead of {accounts}")
    total = sum(balances.values())
    if total != accounts * opening:
        problems.append(f"the accounts hold {total} instead of {accounts * opening}")
    return problems


def check_equal(ours: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    """Tables whose checksums differ between two sites."""
    return [
        f"table {table}: {ours.get(table)} on one site, {theirs.get(table)} on the other"
        for table in sorted({*ours, *theirs})
        if ours.get(table) != theirs.get(table)
    ]


def check_documents(
    rows: Mapping[str, Mapping[str, object]], documents: Mapping[str, Mapping[str, object]]
) -> tuple[list[str], list[str], list[str]]:
    """Compare a table with its index, by key: the missing, the extra and the different ones."""
    missing = sorted(set(rows) - set(documents))
    extra = sorted(set(documents) - set(rows))
    different = [
        key for key in sorted(set(rows) & set(documents)) if dict(rows[key]) != dict(documents[key])
    ]
    return missing, extra, different


def count_echoes(transactions: Iterable[Transaction], site: str) -> int:
    """Row changes on one site that came back to where they were written.

    A transaction with a mark was written by a pipeline and may hold only rows of the other
    site; one without was written by the site's users and may hold only rows of their own.
    """
    return sum(
        count
        for transaction in transactions
        for (_, writer), count in transaction.rows.items()
        if (writer == site) is bool(transaction.marks)
    )


def check_epochs(transactions: Iterable[Transaction], pipeline_key: str) -> list[str]:
    """At most one epoch writes: what a target's binlog says of one pipeline, in commit order.

    Every load transaction must carry the epoch that the fence was raised to last, so epochs
    never fall and none writes before it was raised. Checkpoints follow the same rule.
    """
    first = mark_id(pipeline_key, 0)
    problems: list[str] = []
    fence: int | None = None
    highest = 0
    for transaction in transactions:
        for pipeline, epoch in transaction.fences:
            if pipeline == pipeline_key:
                if fence is not None and epoch < fence:
                    problems.append(f"{transaction.position}: fence fell from {fence} to {epoch}")
                fence = epoch
        written = [
            ("load", _epoch(info))
            for ident, _, info in transaction.marks
            if first <= ident < first + MAX_SLOTS
        ]
        written += [("checkpoint", e) for p, e in transaction.checkpoints if p == pipeline_key]
        for what, epoch in written:
            if epoch < highest:
                problems.append(
                    f"{transaction.position}: {what} of epoch {epoch} after epoch {highest}"
                )
            elif fence is not None and epoch != fence:
                problems.append(
                    f"{transaction.position}: {what} of epoch {epoch} while the fence is at {fence}"
                )
            highest = max(highest, epoch)
    return problems


def _epoch(info: str) -> int:
    """The epoch in a mark's CHANNEL_INFO, see `setl.systems.mysql.stored.marks.mark_info`."""
    head = info.partition(".")[0]
    return int(head) if head.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class StreamVerdict:
    """How a stream of changes compares with what should be in it.

    Attributes:
        lost: changes that are missing.
        repeated: changes that are there, but too often, or were never made.
        moved: whether the order is wrong, though nothing is lost or repeated.
    """

    lost: int
    repeated: int
    moved: bool


def check_stream(wanted: Sequence[Hashable], found: Sequence[Hashable]) -> StreamVerdict:
    """Compare a stream with what should be in it, each as often and in the same order."""
    should, are = Counter(wanted), Counter(found)
    lost, repeated = (should - are).total(), (are - should).total()
    moved = not lost and not repeated and list(wanted) != list(found)
    return StreamVerdict(lost, repeated, moved)


def check_relay_positions(positions: Iterable[RelayPosition]) -> list[str]:
    """Places of a partition grow from record to record; only heartbeats repeat theirs."""
    problems: list[str] = []
    last: RelayPosition | None = None
    for position in positions:
        if last is not None and (
            position.order < last.order
            or (position.order == last.order and position.ordinal != HEARTBEAT)
        ):
            problems.append(f"{position.encoded().decode()} follows {last.encoded().decode()}")
        last = position
    return problems


@dataclass(frozen=True, slots=True)
class Advance:
    """A load transaction that was seen in the target.

    Attributes:
        at: when it was seen, seconds since 1970.
        epoch: under which epoch it was written.
    """

    at: float
    epoch: int


def outage_until_epoch(
    advances: Sequence[Advance], fault_at: float, former: int
) -> tuple[float, int] | None:
    """Seconds from a fault to the first load of a newer epoch, and that epoch; None if none."""
    for advance in advances:
        if advance.at >= fault_at and advance.epoch > former:
            return advance.at - fault_at, advance.epoch
    return None


def longest_silence(advances: Sequence[Advance], begin: float, end: float) -> float:
    """Seconds from `begin` to the end of the longest time without a load, between two times.

    For faults that need no new leader: a load that was under way when the fault came may still
    be committed, so the end of the longest silence is what counts.
    """
    seen = [begin, *(a.at for a in advances if begin <= a.at <= end), end]
    gaps = [(after - before, after) for before, after in pairwise(seen)]
    return max(gaps)[1] - begin


def longest_gap(advances: Sequence[Advance], begin: float, end: float) -> float:
    """The longest time without a load between two times, in seconds."""
    seen = [begin, *(a.at for a in advances if begin <= a.at <= end), end]
    return max(after - before for before, after in pairwise(seen))


def median(values: Sequence[float]) -> float | None:
    """The middle value (the lower of two); None without values."""
    return sorted(values)[(len(values) - 1) // 2] if values else None


def check_flat(
    samples: Sequence[float], *, factor: float, allowance: float
) -> tuple[bool, float, float]:
    """Whether a quantity stays flat: the median of the last third against that of the first.

    Args:
        samples: in order of time; with fewer than six nothing can be said, and it counts as flat.
        factor: how many times the first median the last one may be.
        allowance: what it may be larger in any case.

    Returns:
        Whether it is flat, and both medians.
    """
    third = len(samples) // 3
    if third < 2:
        value = median(samples) or 0.0
        return True, value, value
    first = median(samples[:third]) or 0.0
    last = median(samples[-third:]) or 0.0
    return last <= max(first * factor, first + allowance), first, last
