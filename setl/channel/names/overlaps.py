"""Tells whether two table patterns overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from setl.channel.names.patterns import (
    AnyText,
    NamePattern,
    PatternError,
    TablePattern,
    TargetPattern,
    parse_table_target,
)

_DIGITS = frozenset("0123456789")


class _Token(NamedTuple):
    """Characters that may stand at a position of a name.

    Attributes:
        allowed: which; None for all.
        repeated: whether any number of them may stand there, also none.
    """

    allowed: frozenset[str] | None
    repeated: bool = False


def overlap(one: TablePattern, other: TablePattern) -> bool:
    """Whether some table matches both.

    Of a range of numbers only the digits are looked at, so two ranges that follow each other
    overlap by this answer; never the other way round.
    """
    return names_overlap(one.schema, other.schema) and names_overlap(one.table, other.table)


def reached(source: TablePattern, target: TargetPattern | None) -> TablePattern:
    """The tables to which a mapping may bring rows; None as target keeps the names."""
    if target is None:
        return source
    return TablePattern(target.schema or source.schema, target.table)


def written_tables(source: TablePattern, to: object) -> TablePattern:
    """The tables of a MySQL server that an entry may write, by its `to` as a file has it."""
    try:
        return reached(source, parse_table_target(to, source) if isinstance(to, str) else None)
    except PatternError:  # reported elsewhere
        return source


def names_overlap(one: NamePattern, other: NamePattern) -> bool:
    """Whether some name matches both; see `overlap`."""
    return _meet(_tokens(one), _tokens(other), 0, 0, set())


def _tokens(pattern: NamePattern) -> list[_Token]:
    tokens: list[_Token] = []
    for part in pattern.parts:
        if isinstance(part, str):
            tokens += [_Token(frozenset(char)) for char in part]
        elif isinstance(part, AnyText):
            tokens.append(_Token(None, repeated=not part.single))
        else:
            tokens += [_Token(_DIGITS), _Token(_DIGITS, repeated=True)]
    return tokens


def _meet(
    one: Sequence[_Token], other: Sequence[_Token], i: int, j: int, dead: set[tuple[int, int]]
) -> bool:
    """Whether some text matches `one[i:]` and `other[j:]`; `dead` keeps what failed."""
    if i == len(one) and j == len(other):
        return True
    if (i, j) in dead:
        return False
    here, there = (t[at] if at < len(t) else None for t, at in ((one, i), (other, j)))
    ways: list[tuple[int, int]] = []
    if here is not None and here.repeated:
        ways.append((i + 1, j))
    if there is not None and there.repeated:
        ways.append((i, j + 1))
    # A character that both repeat could be left out of the text as well.
    if here and there and not (here.repeated and there.repeated) and _in_common(here, there):
        ways.append((i if here.repeated else i + 1, j if there.repeated else j + 1))
    if any(_meet(one, other, *way, dead) for way in ways):
        return True
    dead.add((i, j))
    return False


def _in_common(one: _Token, other: _Token) -> bool:
    if one.allowed is None or other.allowed is None:
        return True
    return bool(one.allowed & other.allowed)
