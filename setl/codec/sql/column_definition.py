"""Reads the definition of a column as SHOW CREATE TABLE writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from setl.codec.sql.created_table import Definition

_SIGNS: Final = frozenset({"UNSIGNED", "SIGNED", "ZEROFILL"})

# What an attribute begins with, where a default's value may end.
_ATTRIBUTES: Final = frozenset({
    "ON", "COMMENT", "CHECK", "INVISIBLE", "VISIBLE", "AUTO_INCREMENT", "GENERATED", "AS", "NOT",
    "COLLATE", "CHARACTER", "SRID", "REF_SYSTEM_ID", "COLUMN_FORMAT", "STORAGE", "WITHOUT", "WITH",
    "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "COMPRESSED", "DEFAULT",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column. Texts are as they stand there, quotes and all.

    Attributes:
        name: its name.
        type: its type, with sign and labels.
        charset: its character set, "" if the table's holds.
        collation: its collation, "" if none is named.
        nullable: whether it takes NULL.
        default: its default's value or expression, "" if it has none.
        on_update: what an UPDATE sets it to, "" for nothing.
        counter: whether it has AUTO_INCREMENT.
        invisible: whether ``SELECT *`` leaves it out.
        generated: the expression that gives its values, without parentheses; "" if it is stored.
        stored: whether what an expression gives is stored.
        comment: its comment, "" if it has none.
        check: the condition of its CHECK, without parentheses; "" if it has none.
        of_period: whether it is the beginning or the end of a row's period.
    """

    name: str
    type: str
    charset: str = ""
    collation: str = ""
    nullable: bool = True
    default: str = ""
    on_update: str = ""
    counter: bool = False
    invisible: bool = False
    generated: str = ""
    stored: bool = False
    comment: str = ""
    check: str = ""
    of_period: bool = False

    @property
    def base_type(self) -> str:
        """The name of its type in lower case, without length and sign."""
        return self.type.partition("(")[0].split()[0].lower()


def column_definition(definition: Definition) -> ColumnDefinition:
    """The column that a definition defines; see `Definition.column`."""
    return _Reader(definition).read()


class _Reader:
    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._tokens = definition.tokens
        self._words = [token.word for token in definition.tokens]
        self._at = 1

    def read(self) -> ColumnDefinition:
        found: dict[str, object] = {}
        type_text = self._type()
        while self._at < len(self._words):
            self._attribute(found)
        return ColumnDefinition(self._definition.column, type_text, **found)  # pyright: ignore[reportArgumentType]

    def _type(self) -> str:
        first = self._at
        self._at += 1
        if self._word() == "(":
            self._at = self._behind()
        while self._word() in _SIGNS:
            self._at += 1
        return self._text(first, self._at)

    def _attribute(self, found: dict[str, object]) -> None:
        word, following = self._word(), self._word(1)
        if word == "NOT" and following == "NULL":
            found["nullable"] = False
            self._at += 2
        elif word == "CHARACTER" and following == "SET":
            found["charset"] = self._tokens[self._at + 2].name
            self._at += 3
        elif word == "COLLATE":
            found["collation"] = self._tokens[self._at + 1].name
            self._at += 2
        elif word == "DEFAULT":
            found["default"] = self._value(self._at + 1)
        elif word == "ON" and following == "UPDATE":
            found["on_update"] = self._value(self._at + 2)
        elif word in ("AUTO_INCREMENT", "INVISIBLE"):
            found["counter" if word == "AUTO_INCREMENT" else "invisible"] = True
            self._at += 1
        elif word == "COMMENT":
            found["comment"] = self._text(self._at + 1, self._at + 2)
            self._at += 2
        elif word == "CHECK" and following == "(":
            self._at += 1
            found["check"] = self._inside()
        elif word == "AS" and following == "ROW":
            found["of_period"] = True
            self._at += 3
        elif word == "AS" and following == "(":
            self._at += 1
            found["generated"] = self._inside()
            found["stored"] = self._word() in ("STORED", "PERSISTENT")
        else:
            self._at += 1

    def _value(self, first: int) -> str:
        self._at = first
        depth = 0
        while self._at < len(self._words):
            word = self._word()
            if not depth and self._at > first and word in _ATTRIBUTES:
                break
            depth += (word == "(") - (word == ")")
            self._at += 1
        return self._text(first, self._at)

    def _inside(self) -> str:
        first = self._at
        self._at = self._behind()
        return self._text(first + 1, self._at - 1)

    def _behind(self) -> int:
        """Index behind the parenthesis that closes the one at the current place."""
        depth = 0
        for at in range(self._at, len(self._words)):
            depth += (self._words[at] == "(") - (self._words[at] == ")")
            if not depth:
                return at + 1
        return len(self._words)

    def _word(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._words[at] if at < len(self._words) else ""

    def _text(self, first: int, end: int) -> str:
        if end <= first:
            return ""
        start = self._definition.start
        return self._definition.text[
            self._tokens[first].start - start : self._tokens[end - 1].end - start
        ]
