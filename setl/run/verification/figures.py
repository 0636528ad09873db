"""What is reported of standing verification, and how it heeds what the run reports. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from setl.model.standing import Verification
from setl.run.measured.figures import (
    COMPARING,
    FAILING,
    REPAIRING,
    THROTTLED,
    WAITING,
    Figures,
    RunState,
    VerificationFigures,
    VerifiedSoFar,
)
from setl.run.verification.course import coverage, differences, seconds_left, standing

REPAIRS_NO_MORE = (
    "more keys differ than one pass repairs (repair_limit); `setl verify --repair` repairs them"
)
_NOTHING = VerifiedSoFar()


def verification_figures(
    state: Verification,
    every: float,
    now: float,
    *,
    waits_for: str = "",
    error: str = "",
    whole: Mapping[str, str] | None = None,
    counters: VerifiedSoFar = _NOTHING,
) -> VerificationFigures:
    """What is told of verification.

    Args:
        state: how far it is.
        every: seconds from one pass's beginning to the next one's.
        now: seconds since 1970.
        waits_for: what it is throttled by.
        error: why it could not compare last.
        whole: see `VerificationFigures.whole`.
        counters: of this leadership.
    """
    done = state.now
    word = COMPARING if state.under_way else WAITING
    if state.repair is not None:
        word = REPAIRING
    elif waits_for:
        word = THROTTLED
    if error:
        word = FAILING
    next_at = None if state.under_way else now + seconds_left(state, every, now)
    return VerificationFigures(
        word,
        waits_for=waits_for,
        error=error,
        number=done.number,
        begun=done.begun,
        table=state.position.table if state.position else "",
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


def reason_to_wait(figures: Figures, lag: float) -> str:
    """Why nothing is to be compared now, for people; "" if nothing speaks against it.

    Args:
        figures: how the run does.
        lag: seconds by which the target may be behind.
    """
    if figures.state is not RunState.RUNNING:
        return f"the pipeline is {figures.state.value}"
    if figures.stalled:
        return f"the pipeline stands still: {figures.stalled}"
    if figures.table_load is not None and not figures.table_load.ended:
        return "whole tables are loaded"
    if figures.lag is not None and figures.lag > lag:
        return f"the target is {figures.lag:.1f} s behind"
    return ""
