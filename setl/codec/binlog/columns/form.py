"""How the images of one table lie in its row events, for whoever takes rows by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from setl.codec.binlog.columns.layout import RowLayout, row_layout
from setl.codec.binlog.columns.values import BinlogColumns, readers_of
from setl.codec.binlog.rows.images import read_image
from setl.codec.columns.images import RowImages
from setl.codec.columns.window import Positions
from setl.model.change import Row
from setl.model.schema import RowSchema

_MAX_FORMS: Final = 1024


@dataclass(frozen=True, slots=True, eq=False)
class BinlogForm:
    """A `setl.codec.columns.images.RowForm`.

    Attributes:
        layout: of the table's images.
    """

    layout: RowLayout

    @property
    def schema(self) -> RowSchema:
        """See `RowForm.schema`."""
        return self.layout.schema

    def values(self, images: RowImages, starts: Positions) -> BinlogColumns:
        """See `RowForm.values`."""
        return BinlogColumns(self.layout, images.window, starts)

    def rows(self, images: RowImages, starts: Positions) -> Iterable[Row]:
        """See `RowForm.rows`; one by one, which takes less time for a few."""
        readers = [reader.read for reader in readers_of(self.layout.context)]
        return (read_image(readers, images.data, at)[0] for at in starts.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BinlogForm) and self.layout.context == other.layout.context

    def __hash__(self) -> int:
        return hash(self.layout.context)

    def __reduce__(self) -> tuple[Callable[..., BinlogForm | None], tuple[Any, ...]]:
        return binlog_form, (self.layout.context,)


@lru_cache(_MAX_FORMS)
def binlog_form(context: tuple[bytes, ...]) -> BinlogForm | None:
    """The form of a table's images; None if its rows are read one by one. Raises as `row_layout`.

    Args:
        context: of the table's entries, see `Entry.context`.
    """
    layout = row_layout(context)
    return None if layout is None else BinlogForm(layout)
