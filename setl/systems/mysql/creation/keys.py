"""Writes the keys, constraints, options and partitions of a table for a target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from setl.codec.sql.created_table import Definition
from setl.codec.sql.table_keys import KeyDefinition, TableOptions, key_definition
from setl.codec.sql.tokens import TokenKind, tokenize
from setl.systems.mysql.creation.dialect import Dialect
from setl.systems.mysql.creation.expression import is_legible, is_portable, renamed
from setl.systems.mysql.identifiers import quote

# Options that say where on the machine a table lies, or count what only the source has counted.
_LEFT_OUT: Final = frozenset({
    "AUTO_INCREMENT", "TABLESPACE", "DATA DIRECTORY", "INDEX DIRECTORY", "SECONDARY_ENGINE",
    "ENGINE", "STORAGE", "DEFAULT CHARSET", "CHARSET", "COLLATE",
})  # fmt: skip
_COMMON_ROW_FORMATS: Final = frozenset({"DYNAMIC", "COMPACT", "REDUNDANT"})
_POSITIONS: Final = re.compile(
    r"\s*\b(?:DATA DIRECTORY|INDEX DIRECTORY|TABLESPACE)\s*=\s*('[^']*'|`[^`]*`|\w+)"
)
_ILLEGIBLE: Final = "? may stand for another character in"
_ENGINE: Final = re.compile(r"\bENGINE\s*=\s*\w+", re.IGNORECASE)

# What MySQL and MariaDB both understand in PARTITION BY.
_PARTITION_WORDS: Final = frozenset({
    "PARTITION", "BY", "RANGE", "LIST", "HASH", "KEY", "LINEAR", "COLUMNS", "PARTITIONS",
    "SUBPARTITION", "SUBPARTITIONS", "VALUES", "LESS", "THAN", "MAXVALUE", "IN", "ENGINE",
    "INNODB", "COMMENT", "NULL", "YEAR", "MONTH", "DAYOFMONTH", "TO_DAYS", "TO_SECONDS", "MOD",
    "UNIX_TIMESTAMP", "ABS", "FLOOR", "CEILING", "HOUR", "MINUTE", "SECOND", "QUARTER",
})  # fmt: skip


@dataclass(slots=True)
class KeyWriter:
    """Writes what stands beside the columns of one table.

    Attributes:
        here: the source.
        there: the target.
        names: the target's name for each column, by the source's in lower case.
        as_it_is: whether all columns pass under their own names, to a server of one family.
        named: whether constraints may keep their names, which are unique in a schema of MySQL.
        notes: takes what is not as at the source, as sentences.
    """

    here: Dialect
    there: Dialect
    names: Mapping[str, str]
    as_it_is: bool
    named: bool
    notes: list[str] = field(default_factory=list[str])

    def key(self, definition: Definition) -> tuple[KeyDefinition, str] | None:
        """A key with its text for the target; None for what is none, or cannot be one there."""
        key = key_definition(definition)
        if key is None:
            return None
        shown = f"the key {key.name.strip('`')}" if key.name else "the primary key"
        if not is_legible(definition.text):
            self.notes.append(f"{shown} is left out: {_ILLEGIBLE} {definition.text}")
            return None
        if self.as_it_is:
            return key, definition.text
        if key.odd:
            self.notes.append(f"{shown} is left out: it is of a kind that may not be known there")
            return None
        parts: list[str] = []
        for part in key.parts:
            name = self.names.get(part.column.lower())
            if name is None:
                self.notes.append(f"{shown} is left out: {part.column} does not reach the target")
                return None
            length = f"({part.length})" if part.length else ""
            parts.append(f"{quote(name)}{length}{' DESC' if part.descending else ''}")
        if "PARSER" in key.options:
            self.notes.append(f"{shown} has no parser of its own")
        kind = {"PRIMARY": "PRIMARY KEY", "KEY": "KEY"}.get(key.kind, f"{key.kind} KEY")
        return key, " ".join(filter(None, [kind, key.name, f"({', '.join(parts)})"]))

    def constraint(self, definition: Definition) -> str:
        """A CHECK or a period for the target, "" if it is left out."""
        words = [token.word for token in definition.tokens]
        if "CHECK" in words[:3]:
            at = definition.tokens[words.index("CHECK")].start - definition.start
            return self._check(definition.text, definition.text[at:])
        if definition.is_foreign_key or self.as_it_is:
            return "" if definition.is_foreign_key else definition.text
        self.notes.append(f"left out: {definition.text}")
        return ""

    def _check(self, whole: str, text: str) -> str:
        if not is_legible(text):
            self.notes.append(f"left out: {_ILLEGIBLE} {text}")
            return ""
        if self.as_it_is:
            return whole if self.named else text
        condition = renamed(text[len("CHECK") :].strip(), self.names)
        foreign = self.here.mariadb != self.there.mariadb
        strange = foreign and condition is not None and not is_portable(condition, exact=False)
        if condition is None or strange:  # such as by NOT ENFORCED
            self.notes.append(f"left out: {text}")
            return ""
        return f"CHECK {condition}"

    def options(self, options: TableOptions, collation: str) -> str:
        """The options for the target.

        Args:
            options: the source's.
            collation: the default collation of the source's table.
        """
        engine = options.values.get("ENGINE", "InnoDB")
        foreign = self.here.mariadb != self.there.mariadb
        keeps_engine = not foreign and engine.upper() in self.there.engines
        if not keeps_engine and engine.upper() != "INNODB":
            self.notes.append(f"it is InnoDB; the source's {engine} would have no transactions")
        nearest = self.there.nearest(collation, keyed=False)
        pieces = [
            f"ENGINE={engine if keeps_engine else 'InnoDB'}",
            f"DEFAULT CHARSET={self.there.collations[nearest]}",
            f"COLLATE={nearest}",
        ]
        for name, value in options.values.items():
            known = name == "COMMENT" or (
                name == "ROW_FORMAT" and value.upper() in _COMMON_ROW_FORMATS and not foreign
            )
            if name not in _LEFT_OUT and (keeps_engine or known):
                pieces.append(f"{name}={value}")
        return " ".join(pieces)

    def partitions(self, options: TableOptions, *, unchanged: bool) -> str:
        """The partitions for the target, "" if there are none.

        Args:
            options: the source's.
            unchanged: whether the target has the columns and the unique keys of the source; all
                of its unique keys have to have the columns that partitions go by.
        """
        text = options.partitions
        if not text:
            return ""
        text = _ENGINE.sub("ENGINE = InnoDB", _POSITIONS.sub("", text))
        foreign = self.here.mariadb != self.there.mariadb
        if not unchanged or (foreign and self._strange(text)):
            self.notes.append("it has no partitions; the source's table has some")
            return ""
        return text

    def _strange(self, text: str) -> bool:
        """Whether partitions have something that the other product may not know."""
        tokens = tokenize(text)
        before = ["", *(t.word for t in tokens)]
        words = {
            t.word
            for t, last in zip(tokens, before, strict=False)
            if t.kind is TokenKind.WORD and last not in ("PARTITION", "SUBPARTITION")
        }
        known = _PARTITION_WORDS | {name.upper() for name in self.names}
        return any(word not in known and not word[0].isdigit() for word in words)
