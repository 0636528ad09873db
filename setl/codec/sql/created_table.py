"""The text of SHOW CREATE TABLE, taken apart: what stands in its parentheses, and behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from setl.codec.sql.tokens import Token, tokenize


class Definition(NamedTuple):
    """A column, key or constraint of a table.

    Attributes:
        text: as it stands there, without the comma.
        tokens: what it consists of.
        start: index of its first character.
        end: index behind its last one.
    """

    text: str
    tokens: Sequence[Token]
    start: int
    end: int

    @property
    def is_foreign_key(self) -> bool:
        """Whether it is a foreign key."""
        words = [token.word for token in self.tokens[:4]]
        return "FOREIGN" in (words[0], *words[2:3]) and words[0] in ("FOREIGN", "CONSTRAINT")

    @property
    def column(self) -> str:
        """The name of the column that it defines, "" if it is something else."""
        # SHOW CREATE TABLE has each column's name in backticks, and no keyword.
        return "" if self.tokens[0].word else self.tokens[0].name


def definitions_of(text: str) -> Iterator[Definition]:
    """The columns, keys and constraints in a text of SHOW CREATE TABLE, in order."""
    depth, held = 0, list[Token]()
    for token in tokenize(text):
        depth += token.word == "("
        depth -= token.word == ")"
        if held and (not depth or (depth == 1 and token.word == ",")):
            start, end = held[0].start, _executed_end(text, held[-1].end, token.start)
            yield Definition(text[start:end].rstrip(), tuple(held), start, end)
            held = []
            if not depth:
                return
        elif depth > 1 or (depth == 1 and token.word != "("):
            held.append(token)


def _executed_end(text: str, last: int, following: int) -> int:
    """Where a definition ends, which may be behind the end of a comment that is executed."""
    closing = text.rfind("*/", last, following)
    return last if closing < 0 else closing + 2


def made_elsewhere(text: str, name: str) -> str:
    """The statement that makes a table of another name, if there is none.

    Without foreign keys, and without the next value of AUTO_INCREMENT.

    Args:
        text: as SHOW CREATE TABLE gives it.
        name: the new name, in backticks where it needs them.
    """
    found = list(definitions_of(text))
    kept = [definition.text for definition in found if not definition.is_foreign_key]
    rest = text[found[-1].end :]
    rest_tokens = tokenize(rest)
    for at, token in enumerate(rest_tokens[:-2]):
        if token.word == "AUTO_INCREMENT" and rest_tokens[at + 1].word == "=":
            rest = rest[: token.start] + rest[rest_tokens[at + 2].end :].lstrip(" ")
            break
    return f"CREATE TABLE IF NOT EXISTS {name} (\n  " + ",\n  ".join(kept) + rest


def without_counter(definition: Definition) -> str:
    """What stands behind the name of a column, without AUTO_INCREMENT, which needs a key."""
    text = definition.text
    for token in reversed(definition.tokens[1:]):
        if token.word == "AUTO_INCREMENT":
            at = token.start - definition.start
            text = text[:at].rstrip() + text[at + len(token.text) :]
    return text[len(definition.tokens[0].text) :]
