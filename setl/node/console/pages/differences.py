"""The rows that a comparison found to differ, as sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from setl.node.console.pages.letter_rows import visible


def difference_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What differs, a line for each row; as many as the command names.

    Args:
        rows: what ``setl verify -o json`` prints, a mapping for each target. Long values are cut
            in it.
    """
    return [line for row in rows for line in _of(row)]


def _of(row: Mapping[str, Any]) -> Iterator[str]:
    samples: Sequence[Mapping[str, Any]] = row.get("sample_keys") or ()
    undecided: Sequence[str] = row.get("undecided_keys") or ()
    for sample in samples:
        columns: Sequence[Mapping[str, Any]] = sample.get("columns") or ()
        unlike = ", ".join(map(_column, columns))
        yield f"{row['target']}: {visible(str(sample['key']))}: {sample['what']}" + (
            f" in {unlike}" if unlike else ""
        )
    for key in undecided:
        yield f"{row['target']}: {visible(str(key))}: undecided, it changed at every look"
    found = int(row.get("differences") or 0) + int(row.get("undecided") or 0)
    unnamed = found - len(samples) - len(undecided)
    if unnamed > 0 and (samples or undecided):
        yield f"{row['target']}: and {unnamed:,} more"
    if row.get("note"):
        yield f"{row['target']}: note: {row['note']}"


def _column(column: Mapping[str, Any]) -> str:
    source, target = (_value(column.get(side)) for side in ("source", "target"))
    return f"{column['name']} (source {source}, target {target})"


def _value(value: object) -> str:
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, str) else str(value)
