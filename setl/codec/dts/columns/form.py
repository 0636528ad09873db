"""How the values of one table lie in its records' images, as far as it is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from setl.codec.columns.images import RowImages
from setl.codec.columns.values import rows_of
from setl.codec.columns.window import Positions
from setl.codec.dts.columns.values import DtsColumns
from setl.codec.dts.image import KnownColumn
from setl.codec.dts.table_identity import TableIdentity
from setl.model.change import Row
from setl.model.schema import RowSchema


@dataclass(frozen=True, slots=True)
class DtsForm:
    """A `setl.codec.columns.images.RowForm`: values lie as those did that have been read.

    Attributes:
        identity: what the records say of the table.
        schema: its columns.
        listed: how an image begins.
        columns: how the values of each column lie.
    """

    identity: TableIdentity
    schema: RowSchema
    listed: bytes
    columns: tuple[KnownColumn, ...]

    def values(self, images: RowImages, starts: Positions) -> DtsColumns:
        """See `RowForm.values`."""
        return DtsColumns(self.columns, self.listed, images, starts)

    def rows(self, images: RowImages, starts: Positions) -> Iterable[Row]:
        """See `RowForm.rows`."""
        return rows_of(self.values(images, starts), range(len(self.columns)))
