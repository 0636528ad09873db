"""Which number of an ENUM or SET a value stands for.

Servers keep a number: that of an ENUM's label, from 1 on, or 0 for what is no label; a bit for each
label of a SET. Rows hold the text that a server prints for it. Some numbers print alike: two labels
may be the same text (a server without strict mode takes such definitions), an ENUM may have a label
that is empty text, as its number 0 prints, and so may a SET, whose empty set prints like that.

Of several numbers that print alike, one has the text: the one that a server finds when it is given
the text. Rows hold the others as number and text behind a mark, so that two different values of a
column are never the same value of a row. The mark is half of a surrogate pair, which has no UTF-8
form: what does not know of such numbers has to refuse the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from setl.model.change import Value
from setl.model.schema import Column, Kind

LABELLED: Final = frozenset({Kind.ENUM, Kind.SET})
"""Kinds whose values are labels."""

_TYPES: Final = frozenset({"enum", "set"})
_MARK: Final = "\ud801"
_MAX_CACHED: Final = 4_096  # of a SET's values

NumberOf = Callable[[Value], int]


def begins_with_half(text: str) -> bool:
    """Whether text begins with half of a surrogate pair, which JSON can write, and no text has.

    Values of rows mark with it what is not plain text: labels here, bytes in
    `setl.printable.BYTES_OF_TEXT`.
    """
    return "\ud800" <= text[:1] <= "\udfff"


def print_alike(labels: Sequence[str]) -> bool:
    """Whether two numbers of an ENUM or SET with these labels print alike."""
    return "" in labels or len(set(labels)) < len(labels)


def of_numbers(kind: Kind, labels: Sequence[str]) -> Callable[[int], str]:
    """What gives the value of a number; it raises LookupError for one that no label has."""
    if kind is Kind.SET:
        return lru_cache(_MAX_CACHED)(_Sets(labels).value)
    known = ["", *labels]
    if print_alike(labels):
        numbers = _numbers(labels)
        known = [
            text if numbers[text] == n else marked(f"{n}={text}") for n, text in enumerate(known)
        ]
    return known.__getitem__


def to_numbers(kind: Kind, labels: Sequence[str]) -> NumberOf:
    """What gives the number of a value; it raises LookupError for one that the labels lack.

    A value that is a number behind the mark is the same number here, if that prints alike, too.
    """
    if kind is Kind.SET:
        return lru_cache(_MAX_CACHED)(_Sets(labels).number)
    numbers, value_of = _numbers(labels), of_numbers(kind, labels)
    numbers |= {value_of(n): n for n in range(len(labels) + 1)}
    return numbers.__getitem__  # pyright: ignore[reportReturnType] - other types are not found


def is_marked(value: object) -> bool:
    """Whether a value is a number of an ENUM or SET that prints like another one."""
    return isinstance(value, str) and value[:1] == _MARK


def unmarked(value: str) -> str:
    """A number with its text, without the mark; `marked` is the inverse."""
    return value[len(_MARK) :]


def marked(text: str) -> str:
    """Inverse of `unmarked`."""
    return _MARK + text


def shown(value: str) -> str:
    """A value for messages: for a number behind the mark the number with the text."""
    if not is_marked(value):
        return value
    number, _, text = unmarked(value).partition("=")
    return f"{text!r}, number {number} of the labels"


def is_numbered(column: Column) -> bool:
    """Whether text may not find the right label in a table's column.

    The labels have to be known. Numbers find it then, for as long as the labels stay.
    """
    held = column.capacity
    if held is None or held.type not in _TYPES or not held.labels:
        return False
    return held.alike or print_alike(held.labels)


def printed(kind: Kind, labels: Sequence[str], number: int) -> str:
    """A number as servers print it; LookupError for one that no label has."""
    if kind is Kind.ENUM:
        return ("", *labels)[number]
    text = ""
    for label in _Sets(labels).chosen(number):
        text = f"{text},{label}" if text else label
    return text


def _numbers(labels: Sequence[str]) -> dict[str, int]:
    """The number that a server gives each text of an ENUM."""
    numbers = {"": 0}
    for number in range(len(labels), 0, -1):
        numbers[labels[number - 1]] = number
    return numbers


class _Sets:
    """The numbers and texts of a SET."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = labels
        self._bits = {label: 1 << i for i, label in reversed([*enumerate(labels)])}
        self._sure = not print_alike(labels)

    def chosen(self, number: int) -> list[str]:
        if number >> len(self._labels):
            raise LookupError(f"a SET of {len(self._labels)} labels has the bits {number:b}")
        return [label for i, label in enumerate(self._labels) if number >> i & 1]

    def value(self, number: int) -> str:
        text = ",".join(self.chosen(number))
        return text if self._sure or self._parsed(text) == number else marked(f"{number}={text}")

    def number(self, value: Value) -> int:
        if not is_marked(value):
            return self._parsed(str(value))
        number = int(unmarked(str(value)).partition("=")[0])
        if self.value(number) != value:
            raise LookupError(value)
        return number

    def _parsed(self, text: str) -> int:
        number = 0
        for label in text.split(",") if text else ():
            number |= self._bits[label]
        return number
