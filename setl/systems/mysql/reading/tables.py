"""The tables of a server, to be read as a whole."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.bulk.source_reader import TableSize
from setl.model.change import Row
from setl.model.nesting import Documents
from setl.model.schema import Column
from setl.systems.mysql.catalog import list_tables, read_table
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating
from setl.systems.mysql.reading.document_lookup import MysqlDocuments
from setl.systems.mysql.reading.table_reader import TableReader
from setl.systems.mysql.values.conditions import Condition
from setl.transform.documents import DocumentSource

_NOW = "SELECT UNIX_TIMESTAMP(SYSDATE(6))"
_BUSY = "SHOW GLOBAL STATUS LIKE 'Threads_running'"
_SIZES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES"
    " WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
)


class MysqlTables:
    """The `setl.bulk.source_reader.SourceTables` of a server, over one connection."""

    def __init__(
        self, endpoint: MysqlEndpoint, connection: Connection[Any], *, logged: bool
    ) -> None:
        """Nothing is asked yet."""
        self._endpoint = endpoint
        self._connection = connection
        self._logged = logged

    def names(self) -> Sequence[tuple[str, str]]:
        """See `SourceTables.names`."""
        return list_tables(self._connection)

    def now(self) -> float:
        """See `SourceTables.now`."""
        return next((float(row[0]) for row in self._asked(_NOW)), 0.0)

    def sizes(self) -> Mapping[tuple[str, str], TableSize]:
        """See `SourceTables.sizes`."""
        return {
            (str(schema), str(table)): TableSize(int(rows or 0), int(size or 0))
            for schema, table, rows, size in self._asked(_SIZES)
        }

    def busy(self) -> int:
        """See `SourceTables.busy`."""
        return next((int(value) for _, value in self._asked(_BUSY)), 0)

    def _asked(self, sql: str) -> Sequence[tuple[Any, ...]]:
        with translating(self._endpoint), self._connection.cursor(Cursor) as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def readers(self, wanted: Sequence[tuple[str, str]], /) -> Sequence[TableReader | None]:
        """See `SourceTables.readers`."""
        described = [read_table(self._connection, *name, logged=self._logged) for name in wanted]
        return [
            None if table is None else TableReader(self._endpoint, table) for table in described
        ]

    def documents(self, documents: Documents) -> DocumentReader:
        """See `SourceTables.documents`."""
        lookup = MysqlDocuments(self._endpoint)
        return DocumentReader(self._endpoint, lookup.schema_now(documents), documents, lookup)


@contextmanager
def opened_tables(endpoint: MysqlEndpoint, *, logged: bool) -> Generator[MysqlTables]:
    """The tables of a server, as long as the context lasts.

    Args:
        endpoint: the server.
        logged: see `setl.systems.port.SourceSystem.tables`.

    Raises:
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    with closing(connect(endpoint)) as connection:
        yield MysqlTables(endpoint, connection, logged=logged)


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
            yield [pick(row)[:-1] for row in self.source.read(self.documents, keys, self.schema)]
