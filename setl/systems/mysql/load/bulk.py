"""Writes rows with one execution of a prepared statement, where the server can do that."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl.codec.columns.column_rows import ColumnRows
from setl.errors import DataError
from setl.model.change import Row
from setl.systems.mysql.connection import error_number
from setl.systems.mysql.load.bulk_connection import BulkError, bulk_of
from setl.systems.mysql.load.columns.fit import rows_at_once
from setl.systems.mysql.load.columns.parameters import PackedColumns, packed_columns
from setl.systems.mysql.load.forms import takes_parameters
from setl.systems.mysql.load.packed import Packed
from setl.systems.mysql.load.row_faults import ROW_FAULTS
from setl.systems.mysql.load.row_statement import Limits, RowStatement, size_about


def write_bulk(
    connection: Connection[Any], statement: RowStatement, rows: Sequence[Row], limits: Limits
) -> int:
    """Write rows from the first on, in the caller's transaction, as far as that can be done.

    What conflicts with it of a row is found again by who writes the rows that are left with
    literals: a value that fits nowhere, a row that the server refuses. So is a server that cannot
    do this. Any other error may have ended the transaction: nothing must be written behind it.

    Returns:
        How many are written.

    Raises:
        RowsLostError: the transaction has to be rolled back, and done in another way.
        pymysql.MySQLError: an error that is about no row.
    """
    bulk = bulk_of(connection)
    if bulk is None or not takes_parameters(statement, rows, limits):
        return 0
    text = statement.with_parameters
    written = 0
    try:
        for packed in _packed(statement, rows, limits):
            for start, stop in executions(packed.ends, limits):
                with limits.timings.one():
                    bulk.execute_bulk(text, packed.types, packed.between(start, stop), stop - start)
                written += stop - start
    except (BulkError, DataError):
        pass
    except pymysql.MySQLError as error:
        if error_number(error) not in ROW_FAULTS:
            raise
    return written


def _packed(
    statement: RowStatement, rows: Sequence[Row], limits: Limits
) -> Iterator[Packed | PackedColumns]:
    """All rows, some at a time.

    Packing much at once is slower: it does not fit into the processor's cache.

    Raises:
        DataError: as `RowStatement.packed`; the rows before were given.
    """
    most = min(limits.size, limits.packet)
    if isinstance(rows, ColumnRows):
        fit, step = statement.fit(), rows_at_once(rows)
        for start in range(0, len(rows), step):
            part = rows.part(start, start + step)
            found = packed_columns(fit, part)
            if found is not None:
                yield found
            else:
                yield from _packed(statement, list(part), limits)
        return
    step = max(1, most // size_about(rows))
    for start in range(0, len(rows), step):
        yield statement.packed(rows[start : start + step])


_BESIDE_ROWS: Final = 32_768  # bytes at most: a type for each of 4,096 columns, and a few more


def executions(ends: Sequence[int], limits: Limits) -> Iterator[tuple[int, int]]:
    """The rows of each execution: its first one, and the one behind its last.

    Args:
        ends: bytes up to the end of each row.
        limits: of an execution.

    Raises:
        DataError: a row is longer than what the server accepts; those before it were given.
    """
    accepted = limits.packet - _BESIDE_ROWS
    most = min(limits.size, accepted)
    start = size = 0
    while start < len(ends):
        if ends[start] - size > accepted:
            raise DataError("a row is too long")
        stop = max(start + 1, min(start + limits.rows, bisect_right(ends, size + most)))
        yield start, stop
        start, size = stop, int(ends[stop - 1])
