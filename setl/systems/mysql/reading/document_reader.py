"""Reads documents that are made of several tables' rows, as a table that has a row for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from setl.model.change import Row
from setl.model.nesting import Documents
from setl.model.schema import Column
from setl.systems.mysql.reading.table_reader import TableReader
from setl.systems.mysql.values.conditions import Condition
from setl.transform.documents import DocumentSource


@dataclass(frozen=True, slots=True)
class DocumentReader(TableReader):
    """The documents of one mapping. Its `schema` is that of the documents.

    Attributes:
        documents: what they are made of.
        source: looks them up, as the pipeline does.
    """

    documents: Documents
    source: DocumentSource

    def read(self, columns: Sequence[Column], part: Condition) -> Iterator[list[Row]]:
        """See `TableReader.read`; documents are as they are when they are looked up."""
        positions = [self.schema.folded[name.lower()] for name in self.documents.key]
        key = [self.schema.columns[position] for position in positions]
        wanted = [self.schema.index[column.name] for column in columns]
        pick = itemgetter(*wanted, wanted[0])  # one more, so that it always gives a tuple
        for keys in TableReader.read(self, key, part):
            yield [pick(row)[:-1] for row in self.source.read(self.documents, keys)]
