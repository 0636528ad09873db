"""The columns of a table, from the stream or from a server."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Final


class Kind(Enum):
    """How values of a column are written down in a row (see `setl.model.change.Value`)."""

    INTEGER = "integer"  # int, of any size
    DECIMAL = "decimal"  # str, as MySQL prints it
    FLOAT = "float"  # float
    TEXT = "text"  # str
    ENUM = "enum"  # str, the label; see `setl.model.labels`
    SET = "set"  # str, labels joined by commas; see `setl.model.labels`
    JSON = "json"  # str
    DATE = "date"  # str YYYY-MM-DD, zero dates included
    TIME = "time"  # str [-]hh:mm:ss.ffffff, beyond a day too
    DATETIME = "datetime"  # str YYYY-MM-DD hh:mm:ss.ffffff
    TIMESTAMP = "timestamp"  # str in UTC, written like DATETIME
    YEAR = "year"  # int
    BIT = "bit"  # int
    BINARY = "binary"  # bytes
    GEOMETRY = "geometry"  # bytes: 4 bytes SRID, then WKB
    ROWS = "rows"  # rows of another table with the columns `Column.fields`; only in documents


COLUMN_KINDS: Final = tuple(kind for kind in Kind if kind is not Kind.ROWS)
"""What a column of a table can be."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a column of a table holds, as its server describes it.

    Attributes:
        type: the server's name of its type in lower case, such as ``varchar``.
        length: characters or bytes of text and binary types; 2 of a YEAR(2); else 0.
        scale: digits after the point, or of a second's fraction; None for any number.
        labels: of ENUM and SET, else empty.
        nullable: whether it takes NULL.
        fills_null: whether the server puts a value of its own where NULL is written.
        charset: of text types, else "".
        alike: whether the column's collation takes some of the labels for one; where these are not
            known, whether it may, since it distinguishes no characters that servers do not show.
        doubled: whether it is text in a character set that has two encodings of some characters.
        digits: before and behind the point of a FLOAT(M,D), else 0.
    """

    type: str
    length: int = 0
    scale: int | None = None
    labels: tuple[str, ...] = ()
    nullable: bool = True
    fills_null: bool = False
    charset: str = ""
    alike: bool = False
    doubled: bool = False
    digits: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: as the server spells it.
        kind: how its values are written in rows.
        precision: digits of a DECIMAL, else 0.
        scale: digits after the point of a DECIMAL, else 0.
        unsigned: whether an INTEGER has no sign.
        binary_order: whether text compares byte by byte; only then are two spellings of a key
            surely two keys.
        generated: whether the server computes it, so that it cannot be written.
        capacity: what it holds; only known when a server was asked.
        collation: number of a text's collation, the same on all servers; 0 if it is not known.
        fields: of ROWS, the columns of these rows; else empty.
        width: bytes of each value of a FLOAT, DOUBLE or BINARY; -1 of binary strings of any length;
            0 of other types, and if it is not known.
        materialized: of a generated column, where the server keeps its value: ``stored`` in the
            row, ``indexed`` in an index only, "" nowhere, so that each reader computes it. Only
            known when a server was asked.
    """

    name: str
    kind: Kind
    precision: int = 0
    scale: int = 0
    unsigned: bool = False
    binary_order: bool = False
    generated: bool = False
    capacity: Capacity | None = field(default=None, compare=False)
    fields: tuple[Column, ...] = ()
    collation: int = field(default=0, compare=False)
    width: int = field(default=0, compare=False)
    materialized: str = field(default="", compare=False)


@dataclass(frozen=True)
class RowSchema:
    """The columns of the rows of one table, in the order of the values.

    Attributes:
        schema: the database.
        table: the table.
        columns: its columns.
        key: indexes of the primary key's columns in key order; empty if there is none. A unique
            key without nullable columns counts as primary where there is no other, as the
            servers and their binlogs have it.
        unique: indexes of each further unique key; only known when a server was asked.
        odd_keys: whether a unique key has parts that are not whole columns: prefixes or
            expressions.
        begun: indexes of columns of which `key` has the beginning only; only known when a server
            was asked.
        overlapless: whether a unique key lets no two rows stand whose periods overlap, which only
            MariaDB has; only known when a server was asked.
        unlogged: names of columns that the table has, and of which the rows say nothing, not even
            that they stay as they are; see `setl.codec.binlog.rows.unlogged_columns`.
    """

    schema: str
    table: str
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
    unique: tuple[tuple[int, ...], ...] = field(default=())
    odd_keys: bool = field(default=False, compare=False)
    begun: frozenset[int] = field(default=frozenset(), compare=False)
    unlogged: tuple[str, ...] = ()
    overlapless: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """``schema.table``, for messages."""
        return f"{self.schema}.{self.table}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(c.name for c in self.columns)

    @cached_property
    def index(self) -> dict[str, int]:
        """Column name → its index in a row."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def folded(self) -> dict[str, int]:
        """Column name in lower case → its index in a row; -1 where columns differ by case only.

        MySQL has no two such columns, other sources of DTS do.
        """
        indexes: dict[str, int] = {}
        for i, name in enumerate(self.names):
            lowered = name.lower()
            indexes[lowered] = -1 if lowered in indexes else i
        return indexes
