"""Describes a versioned table of MariaDB as it would be without a history.

A target gets its live rows. What it keeps of the past is its own, so a table that setl creates
keeps nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from setl.codec.sql.created_table import Definition, definitions_of
from setl.codec.sql.table_keys import key_definition
from setl.codec.sql.tokens import Token, tokenize

_VERSIONING = ("SYSTEM", "VERSIONING")


def without_versioning(text: str) -> str:
    """The text of SHOW CREATE TABLE without what makes a table versioned; itself for others."""
    definitions = list(definitions_of(text))
    first, last = definitions[0], definitions[-1]
    options = text[last.end :]
    bare = _without_words(options, tokenize(options), ("WITH", *_VERSIONING))
    if bare == options:
        return text
    ends = {d.column.lower() for d in definitions if d.column and _is_of_row(d)}
    remaining = [shown for d in definitions if (shown := _definition(d, ends))]
    return text[: first.start] + ",\n  ".join(remaining) + _without_history(bare)


def _definition(definition: Definition, ends: set[str]) -> str:
    words = [token.word for token in definition.tokens]
    if definition.column.lower() in ends or "SYSTEM_TIME" in words[:3]:
        return ""
    if key_definition(definition) is not None:
        return _without_parts(definition, ends)
    text = definition.text
    for word in ("WITH", "WITHOUT"):
        text = _without_words(text, tokenize(text), (word, *_VERSIONING))
    return text


def _is_of_row(definition: Definition) -> bool:
    words = [token.word for token in definition.tokens]
    return any(words[i : i + 2] == ["AS", "ROW"] for i in range(len(words)))


def _without_parts(definition: Definition, ends: set[str]) -> str:
    text = definition.text
    for at in range(len(definition.tokens) - 1, 0, -1):
        token, before = definition.tokens[at], definition.tokens[at - 1]
        if before.word == "," and token.name.lower() in ends:
            start, end = before.start - definition.start, token.end - definition.start
            text = text[:start] + text[end:]
    return text


def _without_words(text: str, tokens: Sequence[Token], words: Sequence[str]) -> str:
    for at in _found(tokens, words):
        start, end = tokens[at].start, tokens[at + len(words) - 1].end
        return text[:start].rstrip() + text[end:]
    return text


def _without_history(options: str) -> str:
    """Options without PARTITION BY SYSTEM_TIME, behind which nothing else stands."""
    tokens = tokenize(options)
    for at in _found(tokens, ("PARTITION", "BY", "SYSTEM_TIME")):
        return options[: tokens[at].start].rstrip()
    return options


def _found(tokens: Sequence[Token], words: Sequence[str]) -> Iterator[int]:
    for at in range(len(tokens)):
        if [token.word for token in tokens[at : at + len(words)]] == list(words):
            yield at
