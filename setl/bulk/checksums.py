"""The ports to tables whose server computes checksums of their rows.

Two servers agree on the checksum of a range if both have the same rows in it, each column in the
same form. What they have to agree on, `setl.bulk.comparison_plan` decides.

Only one direction has to be sure: rows that differ must not have one checksum. If equal rows have
two, the rows are read and turn out to be equal, which costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from setl.bulk.chunks import WHOLE_TABLE, Chunk
from setl.bulk.target_reader import TargetReader
from setl.model.change import Row
from setl.model.schema import Column, RowSchema


class Normal(Enum):
    """How a value is written before it is hashed."""

    NUMBER = "number"  # an integer, as digits
    DECIMAL = "decimal"  # `digits` in all, `scale` of them after the point
    FLOATING = "floating"  # with all the digits that tell it from its neighbours
    TEXT = "text"  # its bytes in UTF-8
    BYTES = "bytes"
    DATE = "date"
    MOMENT = "moment"  # date and time in UTC, with `scale` digits of a second's fraction
    CLOCK = "clock"  # a time, with `scale` digits of a second's fraction


class Form(NamedTuple):
    """The form in which both servers write the values of a column."""

    normal: Normal
    digits: int = 0
    scale: int = 0


class Formed(NamedTuple):
    """A column of one side, with the form it has in common with the other side's."""

    column: Column
    form: Form


class Checksum(NamedTuple):
    """What a server says of a range of rows; equal rows in any order have an equal one.

    Attributes:
        rows: how many there are.
        bits: of all rows' hashes together.
    """

    rows: int
    bits: tuple[int, ...]


@runtime_checkable
class ChecksummedTable(Protocol):
    """A table whose server computes checksums. Picklable, and used by the driver."""

    @property
    def schema(self) -> RowSchema:
        """The table as its server describes it."""
        ...

    def text_order(self) -> str:
        """By whose rules text is sorted: servers of one name sort a collation alike.

        Raises:
            SetlError: the server cannot be asked.
        """
        ...

    def chunks(
        self, columns: Sequence[Column], rows: int, within: Chunk = WHOLE_TABLE
    ) -> Sequence[Chunk]:
        """Chunks of about so many rows, fewer if they are long; together they are `within`.

        Args:
            columns: first columns of the key, by which to cut.
            rows: how many rows a chunk is to have.
            within: what to cut.

        Raises:
            SetlError: the server cannot be asked.
        """
        ...

    def next_chunk(self, columns: Sequence[Column], after: Row | None, rows: int) -> Chunk:
        """The chunk of so many rows behind a key; open above if there are fewer.

        Raises:
            SetlError: the server cannot be asked.
        """
        ...

    def part(self, columns: Sequence[Column], chunk: Chunk) -> Any:
        """What the table's reader takes to read a chunk."""
        ...

    def checksums(
        self, formed: Sequence[Formed], cut: Sequence[Column]
    ) -> AbstractContextManager[Callable[[Chunk], Checksum]]:
        """Opens a connection that computes checksums of chunks, one after another.

        Args:
            formed: the columns that count; those that identify a row are among them.
            cut: the columns that the chunks' limits are of.

        Raises on entering and by what it gives:
            SetlError: the server cannot be asked.
        """
        ...


@runtime_checkable
class ChecksummedTarget(TargetReader, Protocol):
    """A target that is such a table."""

    @property
    def reader(self) -> ChecksummedTable:
        """The table."""
        ...
