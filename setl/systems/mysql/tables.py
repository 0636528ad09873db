"""The tables of a server, to be read as a whole."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.model.nesting import Documents
from setl.systems.mysql.catalog import list_tables, read_table
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating
from setl.systems.mysql.document_reader import DocumentReader
from setl.systems.mysql.documents import MysqlDocuments
from setl.systems.mysql.table_reader import TableReader


class MysqlTables:
    """The `setl.bulk.source_reader.SourceTables` of a server, over one connection."""

    def __init__(self, endpoint: MysqlEndpoint, connection: Connection[Any]) -> None:
        """Nothing is asked yet."""
        self._endpoint = endpoint
        self._connection = connection

    def names(self) -> Sequence[tuple[str, str]]:
        """See `SourceTables.names`."""
        return list_tables(self._connection)

    def now(self) -> float:
        """See `SourceTables.now`."""
        with translating(self._endpoint), self._connection.cursor(Cursor) as cursor:
            cursor.execute("SELECT UNIX_TIMESTAMP(SYSDATE(6))")
            row = cursor.fetchone()
        return float(row[0]) if row else 0.0

    def readers(self, wanted: Sequence[tuple[str, str]], /) -> Sequence[TableReader | None]:
        """See `SourceTables.readers`."""
        described = [read_table(self._connection, *name) for name in wanted]
        return [
            None if table is None else TableReader(self._endpoint, table) for table in described
        ]

    def documents(self, documents: Documents) -> DocumentReader:
        """See `SourceTables.documents`."""
        lookup = MysqlDocuments(self._endpoint)
        return DocumentReader(self._endpoint, lookup.schema(documents), documents, lookup)


@contextmanager
def opened_tables(endpoint: MysqlEndpoint) -> Generator[MysqlTables]:
    """The tables of a server, as long as the context lasts.

    Raises:
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    with closing(connect(endpoint)) as connection:
        yield MysqlTables(endpoint, connection)
