"""The rows of a range of a table's key, as a load takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from setl import failpoints
from setl.bulk.source_reader import SourceReader
from setl.model.change import DecodedRows, Op
from setl.model.schema import RowSchema


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
