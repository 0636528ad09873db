"""Rows of a table as a load takes them: a range of its key, or all of one without a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from setl import failpoints
from setl.bulk.source_reader import RenderingReader, SnapshotReader, SourceReader
from setl.errors import FatalError
from setl.model.change import DecodedRows, Op
from setl.model.schema import Column, RowSchema


@dataclass(frozen=True, slots=True)
class RangeRows:
    """A `setl.transform.work.TableRows`: reads its rows in the task that loads them.

    Attributes:
        reader: reads the table.
        part: which rows; see `KeyRange.part`.
    """

    reader: SourceReader
    part: Any

    @property
    def schema(self) -> RowSchema:
        """See `TableRows.schema`."""
        return self.reader.schema

    def read(self) -> Iterator[DecodedRows]:
        """See `TableRows.read`."""
        schema = self.reader.schema
        for rows in self.reader.read(schema.columns, self.part):
            failpoints.reached("tables.read")
            yield DecodedRows(schema, Op.INSERT, [(None, row) for row in rows])

    def rendered(self, form: str, columns: Sequence[Column]) -> Iterator[list[bytes]] | None:
        """The rows as the source's server writes them; None if it cannot, see `RenderingReader`."""
        reader = self.reader
        if not isinstance(reader, RenderingReader) or not reader.renders(form, columns):
            return None
        return _forwarded(reader.rendered(form, columns, self.part))


def _forwarded(rows: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    for some in rows:
        failpoints.reached("tables.read")
        yield some


@dataclass(frozen=True, slots=True)
class WholeRows:
    """A `setl.transform.work.TableRows` that is loaded as a whole, see `ReplacingSink`.

    Attributes:
        reader: reads the table.
    """

    reader: SnapshotReader

    @property
    def schema(self) -> RowSchema:
        """See `TableRows.schema`."""
        return self.reader.schema

    def read(self) -> Iterator[DecodedRows]:
        """Raise FatalError: rows without a key are not added to others."""
        raise FatalError("a table without a key is only loaded as a whole", table=self.reader.name)
