"""Reads the keys and the options of a table as SHOW CREATE TABLE writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from setl.codec.sql.created_table import Definition, definitions_of
from setl.codec.sql.names import listed, name_of
from setl.codec.sql.tokens import Token, TokenKind, literal_text, tokenize

_KINDS: Final = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "VECTOR"})
_TWO_WORDS: Final = frozenset({"DEFAULT", "DATA", "INDEX"})


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A part of a key.

    Attributes:
        column: the column, "" for an expression.
        length: characters or bytes of it that count, "" for all.
        descending: whether it runs down.
    """

    column: str
    length: str = ""
    descending: bool = False


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """A key of a table.

    Attributes:
        kind: PRIMARY, UNIQUE, KEY, FULLTEXT, SPATIAL or VECTOR.
        name: its name in backticks, "" of a primary key.
        parts: what it is made of.
        options: words behind the parts, and OVERLAPS, which stands behind the last one.
    """

    kind: str
    name: str
    parts: tuple[KeyPart, ...]
    options: tuple[str, ...] = ()

    @property
    def unique(self) -> bool:
        """Whether it lets no two rows agree."""
        return self.kind in ("PRIMARY", "UNIQUE")

    @property
    def overlapless(self) -> bool:
        """Whether it lets no two rows agree whose periods overlap (MariaDB)."""
        return "OVERLAPS" in self.options

    @property
    def odd(self) -> bool:
        """Whether it is of a kind that not every server knows."""
        special = self.overlapless or "HASH" in self.options
        return special or self.kind == "VECTOR" or not all(p.column for p in self.parts)


def key_definition(definition: Definition) -> KeyDefinition | None:
    """The key that a definition is, None if it is a column or a constraint."""
    tokens = definition.tokens
    kind = tokens[0].word
    if kind not in _KINDS:
        return None
    open_at = next(i for i, t in enumerate(tokens) if t.word == "(")
    close = _closing(tokens, open_at)
    name = next((t.text for t in tokens[:open_at] if t.kind is TokenKind.NAME), "")
    parts = tuple(_part(part) for part in listed(tokens[open_at + 1 : close]))
    options = tuple(t.word for t in tokens[close + 1 :] if t.word)
    if tokens[close - 1].word == "OVERLAPS":
        options = ("OVERLAPS", *options)
    return KeyDefinition("KEY" if kind == "INDEX" else kind, name, parts, options)


def _part(tokens: Sequence[Token]) -> KeyPart:
    down = tokens[-1].word == "DESC"
    if tokens[0].kind is not TokenKind.NAME:
        return KeyPart("", descending=down)
    length = tokens[2].text if len(tokens) > 2 and tokens[1].word == "(" else ""
    return KeyPart(name_of(tokens[0]), length, down)


def _closing(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].word == "(") - (tokens[i].word == ")")
        if not depth:
            return i
    return len(tokens)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What stands behind the definitions of a table.

    Attributes:
        values: text of each option's value by its name, such as ``ENGINE``, in order.
        partitions: the text from PARTITION BY on, "" if there is none.
    """

    values: dict[str, str]
    partitions: str = ""


def table_options(text: str) -> TableOptions:
    """The options in a text of SHOW CREATE TABLE."""
    # Comments that are executed are the server's own words here; positions in the text stay.
    rest = literal_text(text)[list(definitions_of(text))[-1].end :]
    found = tokenize(rest)
    first = next((i for i, t in enumerate(found) if t.word == ")"), -1) + 1
    values: dict[str, str] = {}
    at = first
    while at < len(found):
        word = found[at].word
        if word == "PARTITION":
            return TableOptions(values, rest[found[at].start :].strip())
        if word in (",", ""):
            at += 1
            continue
        name = word
        at += 1
        if word in _TWO_WORDS and at < len(found):
            name = f"{word} {found[at].word}"
            at += 1
        if at < len(found) and found[at].word == "=":
            at += 1
        if at < len(found) and found[at].word == "(":
            end = _closing(found, at)
            values[name] = rest[found[at].start : found[min(end, len(found) - 1)].end]
            at = end + 1
        elif at < len(found):
            values[name] = found[at].text
            at += 1
    return TableOptions(values)
