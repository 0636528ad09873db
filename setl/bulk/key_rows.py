"""The rows of some keys of a table as they are now, as a load takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from setl import failpoints
from setl.bulk.source_reader import SourceReader
from setl.model.change import ABSENT, DecodedRows, Op, Row
from setl.model.schema import Column, RowSchema


@dataclass(frozen=True, slots=True)
class KeyRows:
    """A `setl.transform.work.TableRows`: rows that are there as inserts, keys without as deletes.

    A key that its server finds in another spelling (``A`` for ``a``, 1.5 for 1.50) is deleted as
    it was given, and inserted as it was found. That is right, because all deletes come before the
    inserts.

    A key may have more columns than it takes to find a row, such as the one that routes a document.
    If the row has other values in these, it is deleted as it was given, and inserted as it is.

    Attributes:
        reader: reads the table.
        key: columns that identify a row.
        keys: their values.
        deletes: whether keys without a row are reported as deletes.
        found_by: those of the key's columns by which rows are found; () for all.
    """

    reader: SourceReader
    key: tuple[Column, ...]
    keys: tuple[Row, ...]
    deletes: bool = True
    found_by: tuple[Column, ...] = ()

    @property
    def schema(self) -> RowSchema:
        """See `TableRows.schema`."""
        return self.reader.schema

    def read(self) -> Iterator[DecodedRows]:
        """See `TableRows.read`; a delete has values in the key's columns only."""
        schema = self.reader.schema
        indexes = [schema.index[column.name] for column in self.key]
        there = [rows for rows in self._found() if rows]
        if self.deletes:
            found = {tuple(row[index] for index in indexes) for rows in there for row in rows}
            images = [_image(len(schema.columns), indexes, k) for k in self.keys if k not in found]
            if images:
                yield DecodedRows(schema, Op.DELETE, [(image, None) for image in images])
        for rows in there:
            yield DecodedRows(schema, Op.INSERT, [(None, row) for row in rows])

    def _found(self) -> Iterator[Sequence[Row]]:
        """The rows that are there."""
        by, keys = self.key, list(self.keys)
        if self.found_by:
            by = self.found_by
            of_key = [self.key.index(column) for column in by]
            keys = list(dict.fromkeys(tuple(key[i] for i in of_key) for key in keys))
        for part in self.reader.parts_of_keys(by, keys):
            for rows in self.reader.read(self.schema.columns, part):
                failpoints.reached("tables.read")
                yield rows


def _image(width: int, indexes: Sequence[int], key: Row) -> Row:
    values = dict(zip(indexes, key, strict=True))
    return tuple(values.get(index, ABSENT) for index in range(width))
