"""All rows of a table without a key, which replace what the target has of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from setl.bulk.source_reader import SnapshotReader
from setl.errors import FatalError
from setl.model.change import DecodedRows
from setl.model.schema import RowSchema


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
