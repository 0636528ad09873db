"""Writes the definition of a column for a target, which may be another product."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from setl.codec.sql.column_definition import ColumnDefinition
from setl.codec.sql.sequence_defaults import sequence_defaults
from setl.codec.sql.tokens import TokenKind, tokenize
from setl.errors import ConfigurationError
from setl.model.schema import Column, Kind
from setl.systems.mysql.creation.dialect import Dialect
from setl.systems.mysql.creation.expression import is_legible, is_portable, renamed
from setl.systems.mysql.identifiers import quote

LARGE: Final = frozenset({
    "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob",
    "json", "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
    "multipolygon", "geometrycollection", "geomcollection", "vector",
})  # fmt: skip
"""Types that no key takes whole; MySQL gives them no default but an expression."""

# Nothing but MariaDB reads the bytes that its binlog has of these.
_MARIADBS_OWN: Final = frozenset({"uuid", "inet4", "inet6"})
_CLOCK: Final = re.compile(
    r"(current_timestamp|now|localtimestamp)\s*(\(\s*\d*\s*\))?", re.IGNORECASE
)
_FRACTION: Final = re.compile(r"\((\d)\)")

# What Spark's types are stored as. A text has no length that an expression would tell.
_COMPUTED: Final[Mapping[Kind, str]] = {
    Kind.INTEGER: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.TEXT: "LONGTEXT CHARACTER SET utf8mb4",
    Kind.BINARY: "LONGBLOB",
    Kind.DATE: "DATE",
    Kind.DATETIME: "DATETIME(6)",
    Kind.TIMESTAMP: "TIMESTAMP(6)",
    Kind.TIME: "TIME(6)",
    Kind.YEAR: "YEAR",
    Kind.BIT: "BIT(64)",
    Kind.JSON: "JSON",
}


def computed_column(column: Column) -> str:
    """The definition of a column that an expression fills.

    Raises:
        ConfigurationError: no column holds what the expression gives.
    """
    if column.kind is Kind.DECIMAL:
        kind = f"DECIMAL({column.precision},{column.scale})"
    elif column.kind is Kind.INTEGER and column.unsigned:
        kind = "BIGINT UNSIGNED"
    else:
        kind = _COMPUTED.get(column.kind, "")
    if not kind:
        raise ConfigurationError(
            f"no column of a table holds what the expression of {column.name} gives",
            hint="Give it another type with CAST, or create the table by hand",
        )
    return f"{quote(column.name)} {kind} NULL"


def takes_numbers(column: ColumnDefinition) -> bool:
    """Whether a column's default takes numbers of a sequence, which are not carried."""
    return any(sequence_defaults(tokenize(f"DEFAULT {column.default}")))


def refuse_unsure_labels(column: ColumnDefinition) -> None:
    """Refuse an ENUM or SET whose labels are not surely those that the source shows.

    Servers write ? for characters beyond the Basic Multilingual Plane, in SHOW CREATE TABLE as in
    information_schema.

    Raises:
        ConfigurationError: it is one.
    """
    if column.base_type in ("enum", "set") and "?" in column.type:
        raise ConfigurationError(
            f"a label of the column {column.name} holds a question mark, which the server also"
            " writes for characters that it cannot show",
            hint="Create the table by hand, or leave the column out with `exclude`",
        )


@dataclass(slots=True)
class ColumnWriter:
    """Writes the columns of one table.

    Attributes:
        here: the source.
        there: the target.
        names: the target's name for each column, by the source's in lower case.
        collations: of the source's columns of text, by name in lower case.
        keyed: names in lower case of columns that a unique key compares.
        notes: takes what is not as at the source, as sentences.
    """

    here: Dialect
    there: Dialect
    names: Mapping[str, str]
    collations: Mapping[str, str]
    keyed: frozenset[str]
    notes: list[str] = field(default_factory=list[str])

    @property
    def foreign(self) -> bool:
        """Whether the target is another product."""
        return self.here.mariadb != self.there.mariadb

    def write(self, column: ColumnDefinition, name: str, *, counts: bool) -> str:
        """The definition of a column under its name at the target.

        Args:
            column: the source's.
            name: the target's name of it.
            counts: whether AUTO_INCREMENT may stay.

        Raises:
            ConfigurationError: the target has no such type.
        """
        pieces = [quote(name), *self._type(column)]
        generated = self._generated(column)
        if generated:
            pieces += ["GENERATED ALWAYS AS", f"({generated})"]
            pieces.append("STORED" if column.stored else "VIRTUAL")
        if not generated or not self.there.mariadb:
            pieces.append("NULL" if column.nullable else "NOT NULL")
        default = "" if generated else self._default(column)
        if default:
            pieces.append(f"DEFAULT {default}")
        if column.on_update and not generated:
            pieces.append(f"ON UPDATE {_clock(column)}")
        if column.counter and counts:
            pieces.append("AUTO_INCREMENT")
        pieces += self._invisible(column, default or column.counter or generated)
        if column.comment:
            pieces.append(f"COMMENT {column.comment}")
        return " ".join([*pieces, *self._check(column, name)])

    def is_unsure(self, column: ColumnDefinition) -> bool:
        """Whether the source may show a default or an expression that is not the real one.

        MariaDB writes ? for characters beyond the Basic Multilingual Plane; MySQL writes the bytes
        of such a default, which mean something else in another character set, and ? in expressions.
        """
        if self.here.mariadb:
            return "?" in column.default
        if not (is_legible(column.default) and is_legible(column.generated)):
            return True
        collation = self.collations.get(column.name.lower())
        return column.default.startswith("0x") and collation not in (None, *self.there.collations)

    def _type(self, column: ColumnDefinition) -> list[str]:
        base = column.base_type
        if base in _MARIADBS_OWN and not self.there.mariadb:
            raise self._refused(column, base.upper())
        if base == "vector" and not self.there.has_vectors:
            raise self._refused(column, "VECTOR")
        if base == "json" and self.there.mariadb:
            return ["LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"]
        if base == "geomcollection":
            return ["geometrycollection"]
        collation = self.collations.get(column.name.lower())
        if collation is None or base == "json":
            return [column.type]
        keyed = column.name.lower() in self.keyed
        nearest = self.there.nearest(collation, keyed=keyed, foreign=self.foreign)
        if nearest != collation:
            self.notes.append(self.there.note_on(column.name, collation, nearest, keyed=keyed))
        return [column.type, f"CHARACTER SET {self.there.collations[nearest]} COLLATE {nearest}"]

    def _refused(self, column: ColumnDefinition, type_name: str) -> ConfigurationError:
        return ConfigurationError(
            f"the column {column.name} is {type_name}, which {self.there.product} has not",
            hint="Leave it out with `exclude`, or convert it under `columns`",
        )

    def _generated(self, column: ColumnDefinition) -> str:
        """The expression that the target computes the column with; "" if it is a plain one."""
        if not column.generated or column.of_period:
            return ""
        text = renamed(column.generated, self.names)
        if text is None:
            why = " needs a column that is left out"
        elif not is_legible(text):
            why = f" is shown as {text}, where ? may stand for another character"
        elif self.foreign and not is_portable(text, exact=True):
            why = " is the source's own"
        else:
            return text
        self.notes.append(
            f"{column.name} is a plain column and gets the values of the source: its expression"
            + why
        )
        return ""

    def _default(self, column: ColumnDefinition) -> str:
        default = column.default
        if default.upper() in ("", "NULL"):
            return "NULL" if default and column.nullable else ""
        why = ""
        if takes_numbers(column):
            why = f"takes numbers of a sequence, and rows come with theirs: {default}"
        elif self.is_unsure(column):
            why = f"is shown as {default}, where ? may stand for another character"
        if why:
            self.notes.append(f"{column.name} has no default: the source's {why}")
            return ""
        if _CLOCK.fullmatch(default) and column.base_type in ("timestamp", "datetime"):
            return _clock(column)
        if _is_literal(default):
            aside = column.base_type in LARGE and not self.there.mariadb
            return f"({default})" if aside else default
        text = renamed(default, self.names)
        if text is None or (self.foreign and not is_portable(text, exact=False)):
            self.notes.append(f"{column.name} has no default: the source's is {default}")
            return ""
        return text if text.startswith("(") else f"({text})"

    def _invisible(self, column: ColumnDefinition, filled: object) -> list[str]:
        if not column.invisible:
            return []
        if column.nullable or filled:
            return ["INVISIBLE"]
        self.notes.append(f"{column.name} is visible, since it takes no NULL and has no default")
        return []

    def _check(self, column: ColumnDefinition, name: str) -> list[str]:
        if column.base_type == "json" and self.there.mariadb and not self.here.mariadb:
            return [f"CHECK (json_valid({quote(name)}))"]
        if not column.check:
            return []
        text = renamed(column.check, self.names)
        if text is not None and (not self.foreign or is_portable(text, exact=False)):
            return [f"CHECK ({text})"]
        self.notes.append(f"the CHECK of {column.name} is left out: {column.check}")
        return []


def _clock(column: ColumnDefinition) -> str:
    """The clock with the fraction that the column has, which MySQL insists on."""
    found = _FRACTION.search(column.type)
    return f"CURRENT_TIMESTAMP({found.group(1)})" if found else "CURRENT_TIMESTAMP"


def _is_literal(text: str) -> bool:
    tokens = tokenize(text)
    if any(t.kind is TokenKind.NAME for t in tokens):
        return False
    if any(t.kind is TokenKind.TEXT for t in tokens):
        return len(tokens) <= 2  # as in b'0' and _latin1'x'
    return all(t.word[0].isdigit() or t.word in "+-." for t in tokens)
