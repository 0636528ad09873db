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
    it was given, and inserted as it was found. That is right, because all deletes of a load come
    before its inserts.

    Attributes:
        reader: reads the table.
        key: columns that identify a row.
        keys: their values.
        deletes: whether keys without a row are told as deletes.
    """

    reader: SourceReader
    key: tuple[Column, ...]
    keys: tuple[Row, ...]
    deletes: bool = True

    @property
    def schema(self) -> RowSchema:
        """See `TableRows.schema`."""
        return self.reader.schema

    def read(self) -> Iterator[DecodedRows]:
        """See `TableRows.read`; a delete has values in the key's columns only."""
        schema = self.reader.schema
        places = [schema.index[column.name] for column in self.key]
        found: set[Row] = set()
        for part in self.reader.parts_of_keys(self.key, self.keys):
            for rows in self.reader.read(schema.columns, part):
                found.update(tuple(row[place] for place in places) for row in rows)
                failpoints.reached("tables.read")
                yield DecodedRows(schema, Op.INSERT, [(None, row) for row in rows])
        gone = [key for key in self.keys if key not in found] if self.deletes else []
        if gone:
            images = [_image(len(schema.columns), places, key) for key in gone]
            yield DecodedRows(schema, Op.DELETE, [(image, None) for image in images])


def _image(width: int, places: Sequence[int], key: Row) -> Row:
    values = dict(zip(places, key, strict=True))
    return tuple(values.get(place, ABSENT) for place in range(width))
