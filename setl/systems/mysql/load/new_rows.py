"""Writes rows that the target most likely lacks with LOAD DATA LOCAL (`forms.takes_data`).

The server counts what it does not take as INSERT would, and the rows that it skips because their
keys are there. If anything is counted, the transaction is given up and begun again with INSERT,
which updates such rows, refuses what does not fit and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pymysql

from setl.codec.columns.column_rows import ColumnRows
from setl.errors import DataError, TransientError
from setl.model.change import Row
from setl.systems.mysql.connection import translate
from setl.systems.mysql.load.columns.fit import rows_at_once
from setl.systems.mysql.load.columns.literals import rendered_columns
from setl.systems.mysql.load.local_data import SIZE, LocalData
from setl.systems.mysql.load.row_statement import Limits, RowStatement, size_about

_LETTER: Final = 4  # bytes at most


class NotSentError(DataError):
    """Not all rows were taken as they are; what was written has to be rolled back."""


def send_new_rows(
    data: LocalData, statement: RowStatement, rows: Sequence[Row], limits: Limits
) -> None:
    """Write all rows, in the caller's transaction.

    Args:
        data: the way to the table; it is not to be tried again for a while if it is of no use.
        statement: what would insert the rows.
        rows: the rows.
        limits: of the statement.

    Raises:
        NotSentError: the rows have to be written in another way.
        pymysql.MySQLError: an error that may pass.
    """
    step = max(1, SIZE // size_about(rows))
    try:
        if isinstance(rows, ColumnRows):
            _send_columns(data, statement, rows, limits)
            return
        for start in range(0, len(rows), step):
            _send(data, statement, rows[start : start + step], limits)
    except NotSentError:
        data.give_up()
        raise


def _send_columns(
    data: LocalData, statement: RowStatement, rows: ColumnRows, limits: Limits
) -> None:
    fit, step = statement.fit(), rows_at_once(rows)
    for start in range(0, len(rows), step):
        part = rows.part(start, start + step)
        made = rendered_columns(fit, part, b"\n")
        if made is None:
            _send(data, statement, list(part), limits)
            continue
        if made.longest > limits.packet:
            raise NotSentError("a row is too long")
        _send_text(data, made.data, len(part), limits)


def _send(data: LocalData, statement: RowStatement, rows: Sequence[Row], limits: Limits) -> None:
    try:
        texts, _ = statement.rendered(rows)
        encoded = "\n".join([*texts, ""]).encode()
    except (DataError, UnicodeEncodeError) as error:
        # Which row is at fault is found when they are inserted.
        raise NotSentError("a row cannot be written as it is") from error
    if max(map(len, texts)) * _LETTER > limits.packet:
        raise NotSentError("a row is too long")
    _send_text(data, encoded, len(rows), limits)


def _send_text(data: LocalData, text: bytes | memoryview, count: int, limits: Limits) -> None:
    try:
        with limits.timings.one():
            clean = data.send(text, count)
    except pymysql.MySQLError as error:
        failure = translate(error)
        if isinstance(failure, TransientError):
            raise
        raise NotSentError(failure.message) from error
    if not clean:
        raise NotSentError("the server did not take all rows as they are")
