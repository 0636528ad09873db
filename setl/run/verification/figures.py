"""What is told of standing verification: in status, in metrics and by commands. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from setl.model.standing import TableFinding, Verification, VerificationPass
from setl.run.verification.course import coverage, differences, seconds_left, standing

WAITING = "waiting"
COMPARING = "comparing"
REPAIRING = "repairing"
GIVING_WAY = "giving way"
FAILING = "failing"

REPAIRS_NO_MORE = (
    "more keys differ than one pass repairs (repair_limit); `setl verify --repair` repairs them"
)


@dataclass(frozen=True, slots=True)
class VerifiedSoFar:
    """Counters of one leadership.

    Attributes:
        rows: rows of the source compared.
        found: keys found to differ, those repaired since included.
        repaired: of these, keys that were sent again and did not differ any more.
    """

    rows: int = 0
    found: int = 0
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class VerificationFigures:
    """How standing verification does.

    Attributes:
        state: ``waiting`` for the next pass, ``comparing``, ``repairing``, ``giving way`` or
            ``failing``.
        waits_for: what it gives way to, "" for nothing.
        error: why it could not compare, "" if it could.
        number: the pass that is under way, or the last one; 0 before the first.
        begun: when that began, seconds since 1970; 0 before the first.
        table: the table that is compared, "" for none.
        rows: rows of the source compared in this pass.
        rows_expected: rows that it will compare, as the source estimates them; None if unknown.
        coverage: how much of the pass is done, from 0 to 1.
        next_at: when the next pass is to begin, seconds since 1970; None while one is under way.
        age: seconds since the last whole pass ended, or since the first began while none has
            ended; None before.
        differences: keys that differ, as far as is known.
        undecided: keys that changed at every look, in this pass.
        tables_left_out: tables that could not be compared in this pass.
        repaired: keys repaired in this pass.
        repairs_no_more: why nothing more is repaired in this pass, "" if it is.
        last: the last whole pass, None if there was none.
        findings: tables of which there is something to say.
        unnamed_tables: differing tables besides.
        whole: why some targets are compared as a whole each time, by their name; as far as this
            leadership has seen it.
        counters: of this leadership.
    """

    state: str
    waits_for: str = ""
    error: str = ""
    number: int = 0
    begun: float = 0.0
    table: str = ""
    rows: int = 0
    rows_expected: int | None = None
    coverage: float = 0.0
    next_at: float | None = None
    age: float | None = None
    differences: int = 0
    undecided: int = 0
    tables_left_out: int = 0
    repaired: int = 0
    repairs_no_more: str = ""
    last: VerificationPass | None = None
    findings: Sequence[TableFinding] = ()
    unnamed_tables: int = 0
    whole: Mapping[str, str] = field(default_factory=dict[str, str])
    counters: VerifiedSoFar = VerifiedSoFar()


def verification_figures(
    state: Verification,
    every: float,
    now: float,
    *,
    waits_for: str = "",
    error: str = "",
    whole: Mapping[str, str] | None = None,
    counters: VerifiedSoFar = VerifiedSoFar(),
) -> VerificationFigures:
    """What is told of verification.

    Args:
        state: how far it is.
        every: seconds from one pass's beginning to the next one's.
        now: seconds since 1970.
        waits_for: what it gives way to.
        error: why it could not compare last.
        whole: see `VerificationFigures.whole`.
        counters: of this leadership.
    """
    done = state.now
    word = COMPARING if state.under_way else WAITING
    if state.repair is not None:
        word = REPAIRING
    elif waits_for:
        word = GIVING_WAY
    if error:
        word = FAILING
    next_at = None if state.under_way else now + seconds_left(state, every, now)
    return VerificationFigures(
        word,
        waits_for=waits_for,
        error=error,
        number=done.number,
        begun=done.begun,
        table=state.place.table if state.place else "",
        rows=done.rows,
        rows_expected=state.rows_expected,
        coverage=round(coverage(state), 4),
        next_at=next_at,
        age=age(state, now),
        differences=differences(state),
        undecided=done.undecided,
        tables_left_out=done.tables_left_out,
        repaired=done.repaired,
        repairs_no_more=REPAIRS_NO_MORE if state.repairs_no_more else "",
        last=state.last,
        findings=standing(state),
        unnamed_tables=state.unnamed_tables,
        whole=dict(whole or {}),
        counters=counters,
    )


def age(state: Verification, now: float) -> float | None:
    """See `VerificationFigures.age`."""
    since = state.last.ended if state.last is not None else state.since
    return max(0.0, round(now - since, 1)) if since else None
