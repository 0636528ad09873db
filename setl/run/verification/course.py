"""The course of standing verification: what comes next, and what was found. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from setl.model.standing import (
    SAMPLED_TABLES,
    SAMPLES,
    TABLES,
    DifferingRow,
    RangeRepair,
    TableFinding,
    Verification,
    VerificationPass,
    VerificationPosition,
    cut,
    no_finding,
)

if TYPE_CHECKING:
    # Spark comes with these, and figures of all pipelines are reported with what is here.
    from setl.bulk.range_comparison import RangeOutcome
    from setl.bulk.verdict import TableVerdict


class Name(NamedTuple):
    """What is compared: source tables, and the target they go into."""

    table: str
    target: str


def seconds_left(state: Verification, every: float, now: float) -> float:
    """Seconds until a pass is to begin; 0 if one is due or under way.

    Args:
        state: how far verification is.
        every: seconds from one pass's beginning to the next one's.
        now: seconds since 1970.
    """
    if state.under_way or not state.now.number:
        return 0.0
    # A clock that was set back does not put the next pass off for longer than that.
    return min(every, max(0.0, state.now.begun + every - now))


def begun(
    state: Verification, tables: Sequence[Name], expected: int | None, now: float
) -> Verification:
    """The next pass begins.

    Args:
        state: how far verification is; no pass is under way.
        tables: what there is to compare.
        expected: rows in all, as the source estimates them; None if nobody knows.
        now: seconds since 1970.
    """
    first = min(tables, default=None)
    state = replace(
        state,
        since=state.since or now,
        now=VerificationPass(state.now.number + 1, now),
        rows_expected=expected,
        position=None if first is None else _beginning_of(first),
        repair=None,
        asked=0,
        repairs_no_more=False,
        unnamed_tables=0,
        unnamed_differences=0,
    )
    return state if first is not None else _ended(state, tables, now)


def on_the_way(state: Verification, tables: Sequence[Name], now: float) -> Verification:
    """A pass that is under way goes on with the tables that there are by now."""
    position = state.position
    if position is not None and Name(position.table, position.target) in tables:
        return state
    behind = None if position is None else Name(position.table, position.target)
    return _at_table_behind(replace(state, repair=None), behind, tables, now)


def found_in(name: Name, verdict: TableVerdict, now: float) -> TableFinding:
    """What a comparison of a range has found, as it is kept."""
    rows = [
        DifferingRow(cut(each.key), each.what.value, tuple(c.name for c in each.columns))
        for each in verdict.sample_keys[:SAMPLES]
    ]
    return replace(
        no_finding(*name),
        missing=verdict.missing,
        extra=verdict.extra,
        different=verdict.different,
        undecided=verdict.undecided,
        at=now,
        rows=tuple(rows),
    )


def to_repair(
    state: Verification, requests: Sequence[str], keys: int, size: int, finding: TableFinding
) -> Verification:
    """What differs in the next range is sent again; the pass stays before it.

    Args:
        state: how far verification is.
        requests: ids of the requests that send it.
        keys: how many keys they name.
        size: rows that the range was to have.
        finding: what differs in it.
    """
    return replace(
        state,
        repair=RangeRepair(tuple(requests), keys, size, finding),
        asked=state.asked + keys,
        now=replace(state.now, found=state.now.found + finding.differences),
    )


def compared(
    state: Verification,
    outcome: RangeOutcome,
    finding: TableFinding,
    tables: Sequence[Name],
    now: float,
) -> Verification:
    """A range is done: it was compared, after a repair for the second time.

    Args:
        state: how far verification is.
        outcome: of the comparison.
        finding: what it found, see `found_in`.
        tables: what there is to compare.
        now: seconds since 1970.
    """
    position, before = state.position, state.repair
    assert position is not None
    counted = before.found.differences if before else 0
    done = replace(
        state.now,
        rows=state.now.rows + outcome.rows,
        found=state.now.found + max(0, finding.differences - counted),
        repaired=state.now.repaired + max(0, counted - finding.differences),
        undecided=state.now.undecided + finding.undecided,
    )
    so_far = position.so_far.plus(finding) if not finding.silent else position.so_far
    position = replace(position, after=outcome.last, so_far=so_far, failures=0)
    state = replace(state, now=done, position=position, repair=None)
    if outcome.last is not None:
        return state
    state = _with_finding(state, so_far)
    return _at_table_behind(state, Name(position.table, position.target), tables, now)


def warned(state: Verification) -> Verification:
    """It was said that the table at the position differs."""
    assert state.position is not None
    return replace(state, position=replace(state.position, warned=True))


def failed(state: Verification) -> Verification:
    """The next range could not be compared."""
    if state.position is None:
        return state
    position = replace(state.position, failures=state.position.failures + 1)
    return replace(state, position=position)


def left_out(state: Verification, error: str, tables: Sequence[Name], now: float) -> Verification:
    """The rest of the table at the position is left out of this pass.

    What was found in the table before stays, since nobody knows better.
    """
    position = state.position
    assert position is not None
    current = _current_finding(state, position)
    known = _known(state, current)
    finding = current if known is None or _weight(current) >= _weight(known) else known
    now_ = replace(state.now, tables_left_out=state.now.tables_left_out + 1)
    state = _with_finding(
        replace(state, now=now_, repair=None), replace(finding, error=cut(error), at=now)
    )
    return _at_table_behind(state, Name(position.table, position.target), tables, now)


def standing(state: Verification) -> tuple[TableFinding, ...]:
    """Tables of which there is something to say now, those that differ most first.

    Of the table that is being compared: what is known to differ in it, or what differed in it
    before if that was more.
    """
    findings = list(state.findings)
    if state.position is not None:
        current = _current_finding(state, state.position)
        known = _known(state, current)
        if known is None:
            findings += [current] if not current.silent else []
        elif _weight(current) >= _weight(known):
            findings = [current if each.of_same_table(current) else each for each in findings]
    return tuple(sorted(findings, key=lambda f: (-f.differences, f.table, f.target)))


def differences(state: Verification) -> int:
    """Keys that differ, as far as is known now."""
    return state.unnamed_differences + sum(found.differences for found in standing(state))


def coverage(state: Verification) -> float:
    """Fraction of the current or last pass that is complete: from 0 to 1.

    By rows, as far as the source's estimate is right. A pass that has left out tables does not
    come to 1.
    """
    now = state.now
    if not now.number:
        return 0.0
    expected = max(state.rows_expected or 0, now.rows)
    part = now.rows / expected if expected else 0.0
    if state.under_way:
        return min(part, 0.999)
    return 1.0 if not now.tables_left_out else min(part, 0.999)


def pause_after(rows: int, seconds: float, rate: int) -> float:
    """Seconds to wait after so many rows took so long, to compare no more than `rate` a second."""
    return max(0.0, rows / rate - seconds)


def _beginning_of(name: Name) -> VerificationPosition:
    return VerificationPosition(name.table, name.target, None, no_finding(*name))


def _at_table_behind(
    state: Verification, done: Name | None, tables: Sequence[Name], now: float
) -> Verification:
    """At the beginning of the first table behind one, or at the end of the pass."""
    following = min((name for name in tables if done is None or name > done), default=None)
    if following is None:
        return _ended(state, tables, now)
    return replace(state, position=_beginning_of(following))


def _ended(state: Verification, tables: Sequence[Name], now: float) -> Verification:
    """The pass has come to its end; tables that are gone are not spoken of any more."""
    there = {(cut(name.table), cut(name.target)) for name in tables}
    done = replace(state.now, ended=now)
    remaining = tuple(f for f in state.findings if (f.table, f.target) in there)
    return replace(state, now=done, position=None, repair=None, last=done, findings=remaining)


def _with_finding(state: Verification, finding: TableFinding) -> Verification:
    """With what was found in a table instead of what was known of it."""
    others = tuple(f for f in state.findings if not f.of_same_table(finding))
    if finding.silent:
        return replace(state, findings=others)
    if len(others) >= TABLES:
        return replace(
            state,
            findings=others,
            unnamed_tables=state.unnamed_tables + 1,
            unnamed_differences=state.unnamed_differences + finding.differences,
        )
    if sum(bool(f.rows) for f in others) >= SAMPLED_TABLES:
        finding = replace(finding, rows=())
    return replace(state, findings=(*others, finding))


def _known(state: Verification, finding: TableFinding) -> TableFinding | None:
    return next((f for f in state.findings if f.of_same_table(finding)), None)


def _current_finding(state: Verification, position: VerificationPosition) -> TableFinding:
    """What differs in the table at the position, what is being repaired included."""
    return position.so_far if state.repair is None else position.so_far.plus(state.repair.found)


def _weight(finding: TableFinding) -> tuple[int, int]:
    return finding.differences, finding.undecided
