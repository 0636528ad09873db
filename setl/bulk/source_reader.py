"""The ports to the tables of a source that are read as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

from setl.model.change import Row
from setl.model.nesting import Documents
from setl.model.position import Position
from setl.model.schema import Column, RowSchema


class KeyRange(NamedTuple):
    """Rows that lie side by side in the order of a table's key.

    Attributes:
        part: picklable; what `SourceReader.read` reads.
        last: the key up to which it goes, of the columns by which the table is cut; None if it
            goes to the end of the table.
        rows: how many these were when they were counted; 0 if nobody did.
    """

    part: Any
    last: Row | None
    rows: int = 0


class TableSize(NamedTuple):
    """How large a table is, as its server estimates it.

    Attributes:
        rows: number of rows; may be wrong by half.
        bytes: of its rows.
    """

    rows: int
    bytes: int


class SourceReader(Protocol):
    """Reads one table. Picklable: tasks call `read`, the driver all else."""

    @property
    def schema(self) -> RowSchema:
        """The table as its server describes it."""
        ...

    @property
    def name(self) -> str:
        """``schema.table``, for messages."""
        ...

    def parts(self, rows_per_part: int) -> Sequence[Any]:
        """Picklable parts of about so many rows; together they hold each row once.

        Raises:
            SetlError: the server cannot be asked.
        """
        ...

    def ranges(self, after: Row | None, rows: int, count: int) -> Sequence[KeyRange]:
        """The next ranges of the key, of about so many rows each, in order.

        Rows that are written while these are read may be in any of them, or in none.

        Args:
            after: the key behind which to begin, a `KeyRange.last`; None for the first row.
            rows: how many rows a range is to have.
            count: how many ranges at most.

        Returns:
            At least one range; one alone, to the end, of a table that cannot be cut.

        Raises:
            SetlError: the server cannot be asked.
        """
        ...

    def only(self, condition: str) -> SourceReader:
        """The same for the rows for which a condition is true; ranges are cut as without it.

        Args:
            condition: SQL over the table's columns, as its server understands it.
        """
        ...

    def reading_at(self, position: Position, *, inside: bool) -> SourceReader:
        """The same, so that `read` sees everything before a position of the stream.

        What the stream has brought may not be in the tables yet when the source is asked.

        Args:
            position: the position.
            inside: whether it is inside a transaction, which is to be seen as a whole then.
        """
        ...

    def decided(self, pipeline: str) -> SourceReader:
        """The same without rows of which a pipeline that writes there still keeps something.

        Both sites write these rows, and what becomes of them is not decided yet. See
        `setl.systems.mysql.conflicts.agreement`.

        Args:
            pipeline: ``channel/pipeline``, the one whose target the table is.
        """
        ...

    def check(self) -> None:
        """Have the server look at the condition of `only`, without reading rows.

        Raises:
            ConfigurationError: it refuses the condition; says why.
            SetlError: the server cannot be asked.
        """
        ...

    def parts_of_keys(self, key: Sequence[Column], keys: Sequence[Row]) -> Sequence[Any]:
        """Parts that hold the rows with these values in the columns `key`."""
        ...

    def read(self, columns: Sequence[Column], part: Any) -> Iterator[list[Row]]:
        """The rows of a part, some thousand at a time, with the values of `columns`.

        One call sees the table as it is when the call begins.

        Raises:
            SetlError: the server cannot be asked.
        """
        ...


@runtime_checkable
class RenderingReader(SourceReader, Protocol):
    """A `SourceReader` whose server can write rows in the very form that some targets take."""

    def renders(self, form: str, columns: Sequence[Column]) -> bool:
        """Whether it can write these columns in a form, as all of their values are."""
        ...

    def rendered(self, form: str, columns: Sequence[Column], part: Any) -> Iterator[list[bytes]]:
        """The rows of a part as `read` would find them, each in the form; see `renders`.

        Raises:
            DataError: a row cannot be written so; `read` gives it.
            SetlError: the server cannot be asked.
        """
        ...


class Snapshot(NamedTuple):
    """A whole table as of one position of the stream.

    Attributes:
        position: the rows have every change of the table that the stream has before it, and none
            that it has after it.
        files: number and size of each file of the stream that ends before the position, from the
            one on that `SourceReader.reading_at` named; see `FileCount.past_all`.
        rows: the rows, some thousand at a time; valid as long as the context.
    """

    position: Position
    files: Sequence[tuple[int, int]]
    rows: Iterator[list[Row]]


@runtime_checkable
class SnapshotReader(SourceReader, Protocol):
    """A `SourceReader` that can tell of which position of the stream its rows are."""

    def snapshot(self, columns: Sequence[Column]) -> AbstractContextManager[Snapshot]:
        """Read the whole table as of one position, which is not before that of `reading_at`.

        Writers of the table wait until the position is known, for some milliseconds as a rule.
        Each call is a new snapshot.

        Raises:
            ConfigurationError: the account lacks a privilege.
            TransientError: transactions that write the table do not end, or the table was altered
                since the reader was made.
            SetlError: the server cannot be asked.
        """
        ...


class SourceTables(Protocol):
    """The tables of a source, as the account of its database sees them."""

    def now(self) -> float:
        """The server's clock, seconds since 1970. Raises SetlError."""
        ...

    def sizes(self) -> Mapping[tuple[str, str], TableSize]:
        """How large the tables are, by (schema, table); some may be missing. Raises SetlError."""
        ...

    def busy(self) -> int:
        """How many statements the server carries out now, this one included. Raises SetlError."""
        ...

    def names(self) -> Sequence[tuple[str, str]]:
        """(schema, table) of all tables but the server's own. Raises SetlError."""
        ...

    def readers(self, wanted: Sequence[tuple[str, str]], /) -> Sequence[SourceReader | None]:
        """What reads each of these tables, None for one that is not there. Raises SetlError."""
        ...

    def documents(self, documents: Documents) -> SourceReader:
        """What reads documents that are made of several tables' rows, as one table.

        Raises:
            ConfigurationError: a table lacks a column that the documents name.
            SetlError: the server cannot be asked.
        """
        ...
