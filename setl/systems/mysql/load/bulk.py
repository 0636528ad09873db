"""Writes rows with one execution of a prepared statement, where the server can do that."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl.errors import DataError
from setl.model.change import Row
from setl.systems.mysql.connection import error_number
from setl.systems.mysql.load.bulk_connection import BulkError, bulk_of
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
    blank = statement.blanks_in(rows) > 0
    if bulk is None or blank or len(rows) < limits.bulk_rows or not statement.takes_parameters:
        return 0
    text = statement.with_parameters
    # Packing much at once is slower: it does not fit into the processor's cache.
    step = max(1, min(limits.size, limits.packet) // size_about(rows))
    written = 0
    try:
        for start in range(0, len(rows), step):
            packed = statement.packed(rows[start : start + step])
            for some in _executions(packed.rows, limits):
                with limits.timings.one():
                    bulk.execute_bulk(text, packed.types, some)
                written += len(some)
    except (BulkError, DataError):
        pass
    except pymysql.MySQLError as error:
        if error_number(error) not in ROW_FAULTS:
            raise
    return written


_BESIDE_ROWS: Final = 32_768  # bytes at most: a type for each of 4,096 columns, and a few more


def _executions(rows: Sequence[bytes], limits: Limits) -> Iterator[Sequence[bytes]]:
    """The rows of each execution.

    Raises:
        DataError: a row is longer than what the server accepts; those before it were given.
    """
    accepted = limits.packet - _BESIDE_ROWS
    most = min(limits.size, accepted)
    ends = list(accumulate(map(len, rows)))
    start = size = 0
    while start < len(rows):
        if ends[start] - size > accepted:
            raise DataError("a row is too long")
        stop = max(start + 1, min(start + limits.rows, bisect_right(ends, size + most)))
        yield rows[start:stop]
        start, size = stop, ends[stop - 1]
