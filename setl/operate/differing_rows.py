"""The rows that a comparison found to differ, in words that the command and the console share.

Pure. Keys and values are whatever people wrote, so nothing of them is invisible here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from setl.counting import count
from setl.printable import printable


class DifferenceLine(NamedTuple):
    """A line about a target's rows.

    Attributes:
        words: which row, and what is wrong with it; or how many more there are.
        columns: what differs in it, for each such column.
    """

    words: str
    columns: tuple[str, ...] = ()


def differing_rows(row: Mapping[str, Any]) -> Iterator[DifferenceLine]:
    """What differs in one target, nothing if nothing does.

    Args:
        row: of what ``setl verify -o json`` prints. Long values are cut in it.
    """
    samples: Sequence[Mapping[str, Any]] = row.get("sample_keys") or ()
    undecided: Sequence[str] = row.get("undecided_keys") or ()
    found = int(row.get("differences") or 0) + int(row.get("undecided") or 0)
    if not found:
        return
    for sample in samples:
        columns: Sequence[Mapping[str, Any]] = sample.get("columns") or ()
        words = f"{printable(str(sample['key']))}: {sample['what']}{_rows(sample)}"
        yield DifferenceLine(words, tuple(map(_column, columns)))
    for key in undecided:
        yield DifferenceLine(f"{printable(str(key))}: undecided, it changed at every look")
    unnamed = found - len(samples) - len(undecided)
    if 0 < unnamed < found:
        yield DifferenceLine(f"and {count(unnamed)} more")
    if row.get("note"):
        yield DifferenceLine(f"note: {row['note']}")


def _rows(sample: Mapping[str, Any]) -> str:
    """How many rows of the key there are, if it is not one on each side that has it."""
    there, here = int(sample.get("source_rows") or 0), int(sample.get("target_rows") or 0)
    if max(there, here) <= 1:
        return ""
    return f", {count(there, 'row')} at the source and {here:,} at the target"


def _column(column: Mapping[str, Any]) -> str:
    source, target = (_value(column.get(side)) for side in ("source", "target"))
    return f"{printable(str(column['name']))}: source {source}, target {target}"


def _value(value: object) -> str:
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, str) else str(value)
