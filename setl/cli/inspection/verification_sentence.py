"""What standing verification says, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setl.counting import count
from setl.operate.units import duration, figure

_NAMED = 3  # rows of a table


def standing_sentence(verification: Mapping[str, Any]) -> str:
    """How standing verification does, in one line.

    Args:
        verification: `setl.run.measured.figures.VerificationFigures` as JSON.
    """
    number, tables = (
        verification["differences"],
        len(verification["findings"]) + verification["unnamed_tables"],
    )
    parts = ["nothing is known to differ"]
    if number:
        keys = count(number, "key")
        parts = [f"{keys} of {count(tables, 'table')} differ{'s' if number == 1 else ''}"]
    parts.append(f"pass {verification['number']} is at {100 * verification['coverage']:.0f} %")
    if verification["age"] is not None and verification["last"]:
        parts.append(f"the last whole one ended {duration(verification['age'])} ago")
    if verification["tables_left_out"]:
        parts.append(count(verification["tables_left_out"], "table") + " could not be compared")
    if verification["repairs_no_more"]:
        parts.append(verification["repairs_no_more"])
    if verification["error"]:
        parts.append(f"it fails: {verification['error']}")
    return ", ".join(parts)


def finding_sentence(found: Mapping[str, Any]) -> str:
    """What was found in a table.

    Args:
        found: `setl.model.standing.TableFinding` as JSON.
    """
    counts = [
        f"{found[kind]:,} {kind}"
        for kind in ("missing", "extra", "different", "undecided")
        if found[kind]
    ]
    parts = [f"in {found['target']}: {', '.join(counts) or 'nothing found'}"]
    if found["error"]:
        parts.append(f"could not be compared: {found['error']}")
    rows = [f"{row['key']} {row['what']}" for row in found["rows"][:_NAMED]]
    return "; ".join([*parts, *([f"such as {', '.join(rows)}"] if rows else [])])


def differences_of(verification: Mapping[str, Any] | None) -> int | None:
    """Keys that differ, None if nothing is verified."""
    return verification["differences"] if verification else None


def verification_figures(verification: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Every figure of standing verification, as rows of `setl status`; none if there is none."""
    if not verification:
        return []
    last: Mapping[str, Any] = verification["last"] or {}
    plain = {
        name: value for name, value in verification.items() if not isinstance(value, dict | list)
    }
    return [
        *(_figure(name.replace("_", " "), figure(name, value)) for name, value in plain.items()),
        *(
            _figure(f"last pass, {name.replace('_', ' ')}", figure(name, value))
            for name, value in last.items()
        ),
        *(_figure(found["table"], finding_sentence(found)) for found in verification["findings"]),
        *(
            _figure(name, f"compared as a whole each time: {why}")
            for name, why in verification.get("whole", {}).items()
        ),
    ]


def _figure(name: str, value: object) -> dict[str, Any]:
    return {"figure": f"verification: {name}", "value": value}
