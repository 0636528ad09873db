"""Reads a whole table as of one exact position of the binlog.

Rows without a key can be loaded alongside the stream only if it is known which changes they have
already: one that is applied twice is there twice. A server does not say so of a snapshot (MariaDB
does, see `setl.systems.mysql.reading.consistent_read`, but not reliably at the head of a file, nor
of XA transactions). So the table is locked for a moment, by a second session:

1. LOCK TABLES … READ. It waits for the transactions that have written the table, also for prepared
   ones, and holds new ones back. When it is there, all changes of the table that the binlog has are
   in the table, and no other one is on its way.
2. The first session begins its snapshot, and asks where the binlog ends. That is the position:
   whatever the binlog has of the table is before it, and what comes will be behind it.
3. It begins to read, so that nobody can alter the table any more, and the lock is released. A table
   whose engine has no transactions is read under the lock: its rows have no snapshot.

Sources: https://dev.mysql.com/doc/refman/8.4/en/lock-tables.html ("Interaction of Table Locking and
Transactions"), https://mariadb.com/kb/en/lock-tables/. MariaDB releases the metadata lock of a
prepared transaction with its connection. InnoDB's lock of the table stays, and LOCK TABLES waits
for it where autocommit is off (innodb_table_locks).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor, SSCursor
from pymysql.err import MySQLError

from setl.bulk.source_reader import Snapshot
from setl.errors import ConfigurationError, TransientError
from setl.model.change import Row
from setl.model.position import BinlogPosition, binlog_file_number
from setl.model.schema import Column, RowSchema
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import error_number, is_mariadb
from setl.systems.mysql.identifiers import identifier, qualified, quote
from setl.systems.mysql.reading.consistent_read import refuse_another
from setl.systems.mysql.server_kind import ServerKind
from setl.systems.mysql.values.row_values import RAW_VALUES, decoded, decoders, select_list
from setl.waiting import polling

LOCK_SECONDS: Final = 2
"""How long LOCK TABLES waits at a time. Writers of the table wait with it."""

_LIMIT: Final = 60.0  # seconds for which it is tried again
_PAUSE: Final = 1.0  # between two attempts, so that writers get on
_FETCH_ROWS: Final = 2_000
_PATIENCE: Final = 4 * 3600  # seconds that a target may take to remove what it has of the table
_WAITED: Final = 1205
_DENIED: Final = frozenset({1044, 1142, 1227})
_TRANSACTIONS: Final = (
    "SELECT e.TRANSACTIONS FROM information_schema.TABLES t"
    " JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE"
    " WHERE t.TABLE_SCHEMA = %s AND t.TABLE_NAME = %s"
)


@contextmanager
def opened_snapshot(
    connect: Callable[..., Connection[Any]],
    schema: RowSchema,
    columns: Sequence[Column],
    other_position: BinlogPosition,
) -> Generator[Snapshot]:
    """All rows of a table as of a position, see `SnapshotReader.snapshot`.

    Args:
        connect: opens a connection to the server of the table, with the options of
            `setl.systems.mysql.connection.connect`.
        schema: the table as the reader knows it.
        columns: those to read.
        other_position: the position that the rows must not be before.

    Raises:
        SetlError: as `SnapshotReader.snapshot`.
        pymysql.MySQLError: any other error of the server.
    """
    waits = {"lock_wait": LOCK_SECONDS, "table_wait": LOCK_SECONDS}
    with (
        closing(connect(cursorclass=SSCursor, conv=RAW_VALUES, **waits)) as reading,
        closing(connect(autocommit=False, **waits)) as locking,
        reading.cursor() as rows,
        locking.cursor(Cursor) as cursor,
    ):
        refuse_another(cursor, other_position, mariadb=is_mariadb(locking))
        _lock(cursor, schema)
        if read_table(locking, schema.schema, schema.table) != schema:
            raise TransientError("the table was altered when it was to be read", table=schema.name)
        rows.execute(f"SET SESSION net_write_timeout={_PATIENCE}")
        rows.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        rows.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        position, files = _end_of_binlog(cursor, other_position)
        table = f"{identifier(schema.schema)}.{identifier(schema.table)}"
        rows.execute(f"SELECT {select_list(columns)} FROM {table}", ())
        if _has_transactions(cursor, schema):
            cursor.execute("UNLOCK TABLES")
        yield Snapshot(position, files, _fetched(rows, columns))


def _fetched(cursor: SSCursor, columns: Sequence[Column]) -> Iterator[list[Row]]:
    decode = decoders(columns)
    while raw := cursor.fetchmany(_FETCH_ROWS):
        yield [decoded(decode, row) for row in raw]


def _lock(cursor: Cursor, schema: RowSchema) -> None:
    """Lock a table as the module's text says, indefinitely to be free at some time."""
    for left in polling(_LIMIT, _PAUSE):
        try:
            cursor.execute(f"LOCK TABLES {qualified(schema.schema, schema.table)} READ")
        except MySQLError as error:
            number = error_number(error)
            if number in _DENIED:
                raise ConfigurationError(
                    "a table without a key is locked for a moment when it is loaded, and the"
                    " account may not do that",
                    hint=f"GRANT LOCK TABLES ON {quote(schema.schema)}.* TO the source's account",
                    table=schema.name,
                ) from error
            if number != _WAITED:
                raise
            if not left:
                raise TransientError(
                    "a table without a key is locked for a moment when it is loaded, and for"
                    f" {_LIMIT:g} s a transaction that has written it does not end",
                    hint="End that transaction; XA RECOVER shows those that are prepared",
                    table=schema.name,
                ) from error
        else:
            return


def _has_transactions(cursor: Cursor, schema: RowSchema) -> bool:
    """Whether the table's engine has, so that a snapshot holds."""
    cursor.execute(_TRANSACTIONS, (schema.schema, schema.table))
    row = cursor.fetchone()
    return row is not None and row[0] == "YES"


def _end_of_binlog(
    cursor: Cursor, position: BinlogPosition
) -> tuple[BinlogPosition, list[tuple[int, int]]]:
    """Where the binlog ends, and the files from a position on that end before that."""
    cursor.execute("SELECT VERSION()")
    version = cursor.fetchone()
    cursor.execute(ServerKind.of(str(version[0]) if version else "").binlog_status)
    status = cursor.fetchone()
    if status is None:
        raise ConfigurationError(
            "the source writes no binlog",
            hint="Start the server with --log-bin and --binlog-format=ROW",
        )
    end = BinlogPosition(str(status[0]), int(status[1]), origin=position.origin)
    if (
        end.file.rpartition(".")[0] != position.file.rpartition(".")[0]
        or end.order < position.order
    ):
        raise TransientError(
            f"the source's binlog ends at {end}, and the stream was read up to {position}"
        )
    first, last = binlog_file_number(position.file), binlog_file_number(end.file)
    if first == last:
        return end, []
    cursor.execute("SHOW BINARY LOGS")
    files = [(binlog_file_number(str(row[0])), int(row[1])) for row in cursor.fetchall()]
    return end, [(number, size) for number, size in files if first <= number < last]
