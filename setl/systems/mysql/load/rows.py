"""Run a statement for many rows, and find the faulty ones by bisection."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pymysql
from pymysql.connections import Connection

from setl.bisection import bisect_faults
from setl.codec.columns.column_rows import ColumnRows
from setl.errors import CollisionError, DataError, FatalError
from setl.model.change import Row
from setl.systems.mysql.connection import error_number, translate
from setl.systems.mysql.load.bulk import write_bulk
from setl.systems.mysql.load.columns.fit import rows_at_once
from setl.systems.mysql.load.row_faults import ROW_FAULTS
from setl.systems.mysql.load.row_statement import Limits, RowStatement
from setl.systems.mysql.load.statements import COLLIDES
from setl.systems.mysql.load.watch import column_of, lenient, run_watched

_CONFLICTING_ROWS = (
    "It holds one of the row's unique values under another key, and the source has not changed or"
    " deleted it. Compare the unique keys and collations of both tables (`setl check` does). If the"
    " pipeline has gone back in its stream, it may be a later row, which comes again: delete it"
)
_UNNAMED = "another row of the target conflicts with it"
_NOT_A_ROW = "This is about the table, not about a row: compare it with the source"

_DUPLICATES = frozenset({1022, 1062, 1169, 1557, 1586, 1859})
_OVERFLOW = 1690
_NO_DEFAULT = 1364
HALF_A_ROW = (
    "Have the source log whole rows (binlog_row_image=FULL; the session that wrote this one may"
    " have another), and copy the row to the target; `setl verify` finds what else is missing"
)

Refuse = Callable[[int, DataError], None]
"""Is told the number of a faulty row, from 0, and what is wrong with it; may raise."""


def write_or_raise(
    connection: Connection[Any], statement: RowStatement, rows: Sequence[Row], limits: Limits
) -> None:
    """As `write_rows`, but the first faulty row ends it, whichever that is; not looked for."""
    if statement.counts or statement.blanks_in(rows):
        write_rows(connection, statement, rows, limits, _raise)
        return
    with _explained(statement):
        done = write_bulk(connection, statement, rows, limits)
    for chunk in _chunks(rows, done, limits):
        for text, held in statement.divided(chunk, limits):
            _run(connection, statement, text, held, limits)


def _raise(_: int, error: DataError) -> None:
    raise error


class _NoDefaultError(FatalError):
    """A row lacks a column that has to be given for a new row."""


def write_rows(
    connection: Connection[Any],
    statement: RowStatement,
    rows: Sequence[Row],
    limits: Limits,
    refuse: Refuse,
) -> None:
    """Run a statement for all rows but the faulty ones.

    Runs in the caller's transaction. The server undoes a statement that fails, so what was
    written before it stays, and halves of it can be tried. An error that ends the transaction, or
    is about the table, is about no row: it is raised, and the caller starts again or gives up.

    Raises:
        pymysql.MySQLError: an error that may pass, or is about the server's settings.
        FatalError: any other error that is about no row.
        DataError: what `refuse` raises.
    """
    try:
        _write_rows(connection, statement, rows, limits, refuse)
    except _NoDefaultError:
        # The server asks for all values before it looks whether the row is there.
        _write_known(connection, statement, rows, limits, refuse)


def _write_known(
    connection: Connection[Any],
    statement: RowStatement,
    rows: Sequence[Row],
    limits: Limits,
    refuse: Refuse,
) -> None:
    """Write rows that lack columns, but those that the target does not have.

    What is there keeps its values in these columns, so a session that is not strict makes none up.
    """
    counts, unknown = statement.counts, set[int]()
    if counts is None:
        return
    keys = [tuple(row[i] for i in statement.key) for row in rows]

    def attempt(start: int, stop: int) -> bool:
        texts = list(counts.divided(keys[start:stop], limits))
        if len(texts) > 1:
            return False
        with connection.cursor() as cursor:
            cursor.execute(texts[0][0] + b" FOR UPDATE")
            [(found,)] = cursor.fetchall()
        if int(found) != stop - start:
            raise DataError(
                "the target lacks this row, and the record of its update does not say all columns",
                hint=HALF_A_ROW,
            )
        return True

    def refused(number: int, error: DataError) -> None:
        unknown.add(number)
        refuse(number, error.at(table=statement.table, key=statement.key_text(rows[number])))

    bisect_faults(len(keys), attempt, refused)
    known = [i for i in range(len(rows)) if i not in unknown]
    watched = replace(statement, watched=True, counts=None)
    with lenient(connection):
        _write(
            connection,
            watched,
            [rows[i] for i in known],
            limits,
            lambda n, error: refuse(known[n], error),
        )


def _write_rows(
    connection: Connection[Any],
    statement: RowStatement,
    rows: Sequence[Row],
    limits: Limits,
    refuse: Refuse,
) -> None:
    # Few tables have such a column, and looking for one in each row costs as much as packing it.
    blank = statement.blank_rows(rows)
    if not blank:
        _write(connection, statement, rows, limits, refuse)
        return
    plain = [i for i in range(len(rows)) if i not in blank]
    strict = [rows[i] for i in plain]
    _write(connection, statement, strict, limits, lambda n, error: refuse(plain[n], error))
    with lenient(connection):
        for i in sorted(blank):
            refuse_it = partial(_numbered_from, i, refuse)
            _write(connection, statement, rows[i : i + 1], limits, refuse_it)


def _write(
    connection: Connection[Any],
    statement: RowStatement,
    rows: Sequence[Row],
    limits: Limits,
    refuse: Refuse,
) -> None:
    with _explained(statement):
        done = write_bulk(connection, statement, rows, limits)
    start = done
    for chunk in _chunks(rows, done, limits):
        written = 0
        try:
            for text, held in statement.divided(chunk, limits):
                _run(connection, statement, text, held, limits)
                written += len(held)
        except DataError:
            # Not what is written already: without a unique key it would be there twice.
            refuse_after = partial(_numbered_from, start + written, refuse)
            _isolate(connection, statement, chunk[written:], limits, refuse_after)
        start += len(chunk)


def _chunks(rows: Sequence[Row], first: int, limits: Limits) -> Iterator[Sequence[Row]]:
    """The rows from one on, some at a time."""
    if isinstance(rows, ColumnRows):
        step = rows_at_once(rows)
        for start in range(first, len(rows), step):
            yield rows.part(start, start + step)
        return
    for start in range(first, len(rows), limits.rows):
        yield rows[start : start + limits.rows]


def _is_collision(error: pymysql.MySQLError) -> bool:
    number = error_number(error)
    return number in _DUPLICATES or (number == _OVERFLOW and COLLIDES in str(error))


def _numbered_from(first: int, refuse: Refuse, number: int, error: DataError) -> None:
    refuse(first + number, error)


def _isolate(
    connection: Connection[Any],
    statement: RowStatement,
    rows: Sequence[Row],
    limits: Limits,
    refuse: Refuse,
) -> None:
    def attempt(start: int, stop: int) -> bool:
        texts = list(statement.divided(rows[start:stop], limits))
        if len(texts) > 1:
            return False
        for text, held in texts:
            _run(connection, statement, text, held, limits)
        return True

    def refused(number: int, error: DataError) -> None:
        if error.message == _UNNAMED:
            error = _named(connection, statement, rows[number], error)
        refuse(number, error.at(table=statement.table, key=statement.key_text(rows[number])))

    bisect_faults(len(rows), attempt, refused)


def _named(
    connection: Connection[Any], statement: RowStatement, row: Row, error: DataError
) -> DataError:
    """The error with the unique key that stands against a row, and what is there already.

    The server tells neither where a sum has overflowed. It tells both of a plain INSERT, which
    comes to the same row: the statement before has locked it.
    """
    plain = replace(statement, tail="", counts=None)
    ask = cast("Any", connection).query
    try:
        text = plain.text([row])
        ask("SAVEPOINT `in the way`")
        ask(text)
    except DataError:
        return error
    except pymysql.MySQLError as problem:
        failure = translate(problem)
        if not isinstance(failure, DataError):
            raise
        if error_number(problem) not in _DUPLICATES:
            return error
        named = CollisionError(f"{_UNNAMED}: {failure.message}", hint=error.hint, **error.where)
        return named.coded(failure.code)
    ask("ROLLBACK TO SAVEPOINT `in the way`")
    return error


def _run(
    connection: Connection[Any],
    statement: RowStatement,
    text: bytes,
    rows: Sequence[Row],
    limits: Limits,
) -> None:
    blanks = statement.blanks_in(rows)
    with _explained(statement), limits.timings.one():
        if blanks or statement.watched:
            run_watched(connection, text, blanks=blanks, computed=statement.computed)
        else:
            # Not through a cursor, which takes text only and would encode it leniently.
            cast("Any", connection).query(text)


@contextmanager
def _explained(statement: RowStatement) -> Generator[None]:
    """Raise what a server's error means, unless it may pass or is about the server."""
    try:
        yield
    except pymysql.MySQLError as error:
        failure = translate(error)
        if not isinstance(failure, DataError):
            raise
        if _is_collision(error):
            detail = "" if error_number(error) == _OVERFLOW else f": {failure.message}"
            what = CollisionError(f"{_UNNAMED}{detail}", hint=_CONFLICTING_ROWS)
            raise what.coded(failure.code) from error
        if statement.counts is not None and (
            error_number(error) == _NO_DEFAULT
            or column_of(failure.message).lower() in statement.computed
        ):
            # A default that a session that is strict refuses counts for new rows only, too.
            lacking = _NoDefaultError(failure.message, table=statement.table)
            raise lacking.coded(failure.code) from error
        if error_number(error) in ROW_FAULTS:
            raise failure from error
        fatal = FatalError(failure.message, hint=_NOT_A_ROW, table=statement.table)
        raise fatal.coded(failure.code) from error
