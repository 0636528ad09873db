"""Reads the text of SHOW CREATE TABLE: columns, keys, constraints and options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from setl.codec.sql.names import listed, name_of, read_name
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


class ForeignKey(NamedTuple):
    """A foreign key as SHOW CREATE TABLE writes it.

    Attributes:
        name: of the constraint.
        columns: of the child, in order.
        schema: the parent's, "" if it is the child's own.
        parent: the table that it refers to.
        parent_columns: columns of the parent, in order.
        actions: what it does by itself, such as ``ON DELETE SET NULL``; not RESTRICT or NO ACTION.
    """

    name: str
    columns: tuple[str, ...]
    schema: str
    parent: str
    parent_columns: tuple[str, ...]
    actions: tuple[str, ...]


_ACTIONS: Final = {"CASCADE": ("CASCADE",), "SET": ("SET NULL", "SET DEFAULT")}


def foreign_key_of(definition: Definition) -> ForeignKey | None:
    """The foreign key that a definition is; None if it is something else, or has no name."""
    if not definition.is_foreign_key or definition.tokens[0].word != "CONSTRAINT":
        return None
    tokens = definition.tokens
    words = [token.word for token in tokens]
    columns, at = _names(tokens, words.index("("))
    found = read_name(tokens, at + 1)  # behind REFERENCES
    if found is None:
        return None
    parent, at = found
    parent_columns, at = _names(tokens, at)
    name, actions = name_of(tokens[1]), actions_among(words[at:])
    return ForeignKey(name, columns, parent.schema, parent.name, parent_columns, actions)


def actions_among(words: Sequence[str]) -> tuple[str, ...]:
    """The actions of foreign keys, see `ForeignKey.actions`, in the words of a statement's text."""
    actions: list[str] = []
    for here in range(len(words) - 2):
        verb, event, first = words[here : here + 3]
        if verb == "ON" and event in ("DELETE", "UPDATE"):
            said = " ".join(words[here + 2 : here + 4]) if first == "SET" else first
            if said in _ACTIONS.get(first, ()):
                actions.append(f"ON {event} {said}")
    return tuple(actions)


def _names(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], int]:
    """The names in the parentheses that open at `at`, and the index behind them."""
    close = next(i for i in range(at, len(tokens)) if tokens[i].word == ")")
    return tuple(name_of(column[0]) for column in listed(tokens[at + 1 : close])), close + 1


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


def without_next_number(text: str) -> str:
    """A text of SHOW CREATE TABLE without the next value of AUTO_INCREMENT, which rows change."""
    tokens = tokenize(text)
    for at, token in enumerate(tokens[:-2]):
        if token.word == "AUTO_INCREMENT" and tokens[at + 1].word == "=":
            return text[: token.start] + text[tokens[at + 2].end :].lstrip(" ")
    return text


def without_counter(definition: Definition) -> str:
    """What stands behind the name of a column, without AUTO_INCREMENT, which needs a key."""
    text = definition.text
    for token in reversed(definition.tokens[1:]):
        if token.word == "AUTO_INCREMENT":
            at = token.start - definition.start
            text = text[:at].rstrip() + text[at + len(token.text) :]
    return text[len(definition.tokens[0].text) :]
