"""Findings that say the same of many tables, which a person reads once. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from setl.systems.finding import Finding

_FEWEST: Final = 4
"""Fewer are shown one by one, as they are short then, and each beside its table."""
_NAMED: Final = 5


def alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The same findings, those together that differ in nothing but the table and its statements.

    They come where the first of them was. Errors that may be accepted stay alone: each table needs
    a decision of its own.
    """
    keys = [_key(finding) for finding in findings]
    counts = Counter(keys)
    groups: dict[Hashable, list[Finding]] = {}
    for index, (key, finding) in enumerate(zip(keys, findings, strict=True)):
        alone = key is None or counts[key] < _FEWEST
        groups.setdefault((index,) if alone else key, []).append(finding)
    return list(groups.values())


def where_of(group: Sequence[Finding]) -> str:
    """The pipeline and its end, without the tables."""
    return _without_table(group[0]) if len(group) > 1 else group[0].where


def named(group: Sequence[Finding]) -> str:
    """The first of a group's tables, and how many more there are."""
    names = ", ".join(finding.location for finding in group[:_NAMED])
    more = len(group) - _NAMED
    return f"{names} and {more} more" if more > 0 else names


def statements_of(group: Sequence[Finding]) -> int:
    """How many different statements fix them; a script has each once."""
    return len({statement for finding in group for statement in finding.statements})


def _key(finding: Finding) -> Hashable:
    if not finding.code or (finding.level == "error" and finding.acceptable):
        return None
    if not finding.location or _without_table(finding) == finding.where:
        return None
    instructions = tuple(line for line in finding.hint if not line.endswith(";"))
    parts = finding.level, finding.code, finding.what, _without_table(finding), finding.server
    return (*parts, instructions, finding.unseen, finding.mapping_lines)


def _without_table(finding: Finding) -> str:
    return finding.where.removesuffix(f", {finding.location}")
