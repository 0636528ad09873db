"""The labels of ENUM and SET columns, as a server describes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from setl.codec.charset import BINARY, binary_label
from setl.codec.sql.tokens import TokenKind, text_of, tokenize

Ask = Callable[[str, tuple[str, ...]], Sequence[Sequence[Any]]]

_MOST_ASKED: Final = 1_000
_BEYOND: Final = ("\U0001f600", "\U0001f601")
# Others take m for n (macce), y for ~ (big5), i for j (Latin), ccs for cscs (Hungarian), and more.
CASE_ALONE: Final = frozenset(
    {"ascii_general_ci", "latin1_bin", "latin1_swedish_ci", "utf8mb3_bin", "utf8mb3_general_ci",
     "utf8mb3_unicode_ci", "utf8mb4_0900_ai_ci", "utf8mb4_bin", "utf8mb4_general_ci",
     "utf8mb4_uca1400_ai_ci", "utf8mb4_unicode_520_ci", "utf8mb4_unicode_ci", "utf8_bin",
     "utf8_general_ci", "utf8_unicode_ci"}
)  # fmt: skip
"""Collations that ignore nothing but case in printable ASCII."""


def labels_of(column_type: str) -> tuple[str, ...]:
    """The labels of an ENUM or SET, from a type such as ``enum('a','it''s')``; () for others.

    MySQL writes bytes of the character set ``binary`` that are no UTF-8 as ``x'ff'``.
    """
    labels: list[str] = []
    hexadecimal = False
    for token in tokenize(column_type):
        if token.kind is TokenKind.TEXT:
            text = text_of(token)
            labels.append(binary_label(bytes.fromhex(text)) if hexadecimal else text)
        hexadecimal = token.word == "X"
    return tuple(labels)


def sure_labels(column_type: str) -> tuple[str, ...]:
    """The labels, or none of them if one holds a question mark.

    information_schema puts that instead of characters beyond the Basic Multilingual Plane.
    """
    labels = labels_of(column_type)
    return () if any("?" in label for label in labels) else labels


def are_alike(labels: Sequence[str], charset: str, collation: str, ask: Ask) -> bool:
    """Whether a collation takes some of the labels for one, which mostly needs no question.

    Args:
        labels: of one column.
        charset: its character set.
        collation: its collation.
        ask: has the server answer a query with placeholders.
    """
    if charset == BINARY or (collation in CASE_ALONE and _differ_beside_case(labels)):
        return False
    if len(labels) > _MOST_ASKED:
        return True  # which costs more care than it needs, and no more
    one = f"CONVERT(%s USING {charset}) COLLATE {collation}"
    rows = " UNION ALL ".join([f"SELECT {one} AS label", *[f"SELECT {one}"] * (len(labels) - 1)])
    [(different,)] = ask(f"SELECT COUNT(DISTINCT label) FROM ({rows}) AS labels", tuple(labels))
    return int(different) < len(labels)


def may_be_alike(column_type: str, charset: str, collation: str, ask: Ask) -> bool:
    """Whether a collation may take labels for one that `sure_labels` does not know.

    Many distinguish no characters beyond the Basic Multilingual Plane.

    Args:
        column_type: see `labels_of`.
        charset: see `are_alike`.
        collation: likewise.
        ask: likewise.
    """
    labels = [label.replace("?", _BEYOND[0]) for label in labels_of(column_type)]
    alike = are_alike(_BEYOND, charset, collation, ask)
    return alike and are_alike(labels, charset, collation, ask)


def _differ_beside_case(labels: Sequence[str]) -> bool:
    """Whether labels of printable ASCII differ in more than case."""
    folded = {label.lower() for label in labels}
    return len(folded) == len(labels) and all(map(_is_plain, labels))


def _is_plain(label: str) -> bool:
    return label.isascii() and label.isprintable()
