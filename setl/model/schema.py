"""What the columns of a table are, as a codec found them in the stream or a server told."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property


class Kind(Enum):
    """How values of a column are written down in a row (see `setl.model.change.Value`)."""

    INTEGER = "integer"  # int, of any size
    DECIMAL = "decimal"  # str, as MySQL prints it
    FLOAT = "float"  # float
    TEXT = "text"  # str
    ENUM = "enum"  # str, the label
    SET = "set"  # str, labels joined by commas
    JSON = "json"  # str
    DATE = "date"  # str YYYY-MM-DD, zero dates included
    TIME = "time"  # str [-]hh:mm:ss.ffffff, beyond a day too
    DATETIME = "datetime"  # str YYYY-MM-DD hh:mm:ss.ffffff
    TIMESTAMP = "timestamp"  # str in UTC, written like DATETIME
    YEAR = "year"  # int
    BIT = "bit"  # int
    BINARY = "binary"  # bytes
    GEOMETRY = "geometry"  # bytes: 4 bytes SRID, then WKB


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
    """

    name: str
    kind: Kind
    precision: int = 0
    scale: int = 0
    unsigned: bool = False
    binary_order: bool = False
    generated: bool = False


@dataclass(frozen=True)
class RowSchema:
    """The columns of the rows of one table, in the order of the values.

    Attributes:
        schema: the database.
        table: the table.
        columns: its columns.
        key: indexes of the primary key's columns in key order; empty if there is none.
        unique: indexes of each further unique key; only known when a server was asked.
    """

    schema: str
    table: str
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
    unique: tuple[tuple[int, ...], ...] = field(default=())

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
        """Column name → its place in a row."""
        return {name: i for i, name in enumerate(self.names)}
