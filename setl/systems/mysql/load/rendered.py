"""Writes rows that the source's server has written as text (`setl.systems.mysql.row_text`).

Nobody looks at their values, so it has to be sure beforehand that the target keeps them: each
column has the same type at both ends, to the length, the digits, the labels and the character set.
Then whatever the one held the other holds, and the server refuses what is left (NULL where there is
none, a number out of range). And only the key that identifies a row can collide, compared alike at
both ends (`Strategy.UPSERT`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, cast

import pymysql
from pymysql.connections import Connection

from setl.errors import TransientError
from setl.model.change import TargetChanges
from setl.systems.mysql.connection import translate
from setl.systems.mysql.load.statements import Limits, RowStatement, Strategy, TableWrites


def filled_by(plan: TableWrites, change: TargetChanges) -> Sequence[int]:
    """Indexes of the columns in `change` that the statement fills, in its order."""
    picks = plan.inserts.picks
    return range(len(change.columns)) if picks is None else picks


def takes_as_is(plan: TableWrites, change: TargetChanges) -> bool:
    """Whether the table keeps every value that columns of the source can hold."""
    inserts = plan.inserts
    if plan.strategy is not Strategy.UPSERT or plan.alone or change.partial:
        return False
    if inserts.never_null or inserts.watched or inserts.counts is not None:
        return False
    given = [change.columns[i] for i in filled_by(plan, change)]
    return all(
        column.capacity is not None and column.capacity == stored.capacity
        for column, stored in zip(given, inserts.columns, strict=True)
    )


def write_rendered(
    connection: Connection[Any],
    statement: RowStatement,
    rows: Iterator[list[bytes]],
    limits: Limits,
) -> int:
    """Run the statement for all rows, in the caller's transaction; returns how many they are.

    Raises:
        pymysql.MySQLError: an error that may pass.
        SetlError: any other; it is not known which row is at fault. Or what `rows` raises.
    """
    head, tail = statement.head.encode(), statement.tail.encode()
    most = min(limits.size, limits.packet - len(head) - len(tail) - 1)
    count, size = 0, 0
    held: list[bytes] = []
    with closing(cast("Any", rows)):
        for some in rows:
            count += len(some)
            for row in some:
                size += len(row) + 1
                if size > most and held:
                    _run(connection, head + b",".join(held) + tail, limits)
                    held, size = [], len(row) + 1
                held.append(row)
        if held:
            _run(connection, head + b",".join(held) + tail, limits)
    return count


def _run(connection: Connection[Any], text: bytes, limits: Limits) -> None:
    try:
        # Not through a cursor, which takes text only.
        with limits.timings.one():
            cast("Any", connection).query(text)
    except pymysql.MySQLError as error:
        failure = translate(error)
        if isinstance(failure, TransientError):
            raise
        raise failure from error
