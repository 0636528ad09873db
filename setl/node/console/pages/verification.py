"""What the page of a pipeline shows of standing verification. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from setl.operate import units

_KINDS = ("missing", "extra", "different", "undecided")


@dataclass(frozen=True, slots=True)
class FindingRow:
    """What was found in one table, as text."""

    table: str
    missing: str
    extra: str
    different: str
    undecided: str
    error: str


@dataclass(frozen=True, slots=True)
class VerificationPart:
    """Standing verification.

    Attributes:
        sentence: how far it is, in a sentence.
        percent: how much of the pass is done, of 100.
        under_way: whether a pass is.
        findings: tables of which there is something to say.
        unnamed: differing tables besides.
    """

    sentence: str
    percent: int
    under_way: bool
    findings: Sequence[FindingRow]
    unnamed: int


def verification_part(
    verification: Mapping[str, Any] | None, now: float
) -> VerificationPart | None:
    """What a leader tells of it, None if it tells nothing.

    Args:
        verification: `setl.run.measured.figures.VerificationFigures` as JSON.
        now: seconds since 1970 UTC.
    """
    if not verification:
        return None
    percent, coming = (
        round(100 * (verification.get("coverage") or 0.0)),
        verification.get("next_at"),
    )
    differences = verification.get("differences") or 0
    words = [
        units.count(differences, "key differs", "keys differ") if differences else "nothing differs"
    ]
    words.append(
        f"pass {verification.get('number', 0)} {verification.get('state', '')}, {percent} % done"
    )
    if verification.get("table"):
        words.append(f"now {verification['table']}")
    if verification.get("waits_for"):
        words.append(f"is throttled by {verification['waits_for']}")
    if coming is not None:
        words.append(f"the next one in {units.duration(max(0.0, coming - now))}")
    if verification.get("repaired"):
        words.append(units.count(verification["repaired"], "key") + " repaired")
    if verification.get("tables_left_out"):
        words.append(
            units.count(verification["tables_left_out"], "table") + " could not be compared"
        )
    findings: Sequence[Mapping[str, Any]] = verification.get("findings") or ()
    return VerificationPart(
        ", ".join(words),
        percent,
        coming is None,
        [_row(found) for found in findings],
        int(verification.get("unnamed_tables") or 0),
    )


def _row(found: Mapping[str, Any]) -> FindingRow:
    return FindingRow(
        table=str(found.get("target") or found.get("table")),
        error=str(found.get("error") or ""),
        **{kind: units.count(found.get(kind, 0)) for kind in _KINDS},
    )
