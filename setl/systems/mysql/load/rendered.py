"""Writes rows that the source's server has written as text (`forms.takes_as_is`).

Nobody looks at their values, so the server has to refuse what is left: NULL where there is none, a
number out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar, cast

import pymysql
from pymysql.connections import Connection

from setl.errors import TransientError
from setl.systems.mysql.connection import translate
from setl.systems.mysql.load.local_data import SIZE, LocalData
from setl.systems.mysql.load.row_statement import Limits, RowStatement

_Given = TypeVar("_Given")
_Got = TypeVar("_Got")


def write_rendered(
    connection: Connection[Any],
    statement: RowStatement,
    rows: Iterator[list[bytes]],
    limits: Limits,
    data: LocalData | None = None,
) -> int:
    """Write all rows, in the caller's transaction.

    Args:
        connection: over which.
        statement: what inserts them.
        rows: the rows, some at a time.
        limits: of the statement.
        data: tried first; from the first time that it does not take rows, the statement is used.

    Returns:
        How many rows they are.

    Raises:
        pymysql.MySQLError: an error that may pass.
        SetlError: any other; it is not known which row is at fault. Or what `rows` raises.
    """
    count = 0
    with closing(cast("Any", rows)):
        gathered = _gathered(rows, SIZE if data else limits.size)
        for some in gathered:
            count += len(some)
            if data is not None and not _translated(data.write, some, limits):
                data = None
            if data is None:
                _insert(connection, statement, some, limits)
    return count


def _gathered(rows: Iterator[list[bytes]], size: int) -> Iterator[list[bytes]]:
    """The same rows, about so many bytes at a time."""
    held: list[bytes] = []
    sum_of = 0
    for some in rows:
        held += some
        sum_of += sum(map(len, some))
        if sum_of >= size:
            yield held
            held, sum_of = [], 0
    if held:
        yield held


def _insert(
    connection: Connection[Any], statement: RowStatement, rows: Sequence[bytes], limits: Limits
) -> None:
    head, tail = statement.head.encode(), statement.tail.encode()
    most = min(limits.size, limits.packet - len(head) - len(tail) - 1)
    # Not through a cursor, which takes text only.
    run: Callable[[bytes], Any] = cast("Any", connection).query
    start = size = 0
    for i, row in enumerate(rows):
        size += len(row) + 1
        if size > most and i > start:
            _translated(run, head + b",".join(rows[start:i]) + tail, limits)
            start, size = i, len(row) + 1
    _translated(run, head + b",".join(rows[start:]) + tail, limits)


def _translated(run: Callable[[_Given], _Got], given: _Given, limits: Limits) -> _Got:
    """Run it; an error that does not pass is setl's own."""
    try:
        with limits.timings.one():
            return run(given)
    except pymysql.MySQLError as error:
        failure = translate(error)
        if isinstance(failure, TransientError):
            raise
        raise failure from error
