"""Runs statements that may change a value silently, and undoes those that did."""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

from pymysql.connections import Connection

from setl.counting import count
from setl.errors import DataError
from setl.systems.mysql.load.row_faults import ROW_FAULTS

_TRUNCATED: Final = 1265  # what the server says of a label that it does not have, among others
_COLUMN: Final = re.compile(
    r" for column (?:'(.*)'|`.*`\.`.*`\.`(.*)`) at row \d+(?: \[\d+\])?$", re.DOTALL
)
_UNDO: Final = "setl_statement"
_LENIENT: Final = (
    "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'"
)


def run_watched(
    connection: Connection[Any],
    text: bytes,
    *,
    blanks: int = 0,
    computed: Collection[str] = (),
) -> None:
    """Run a statement inside a transaction; undo it if the server changed a value.

    Args:
        connection: its session.
        text: the statement.
        blanks: how many ENUM values of no label it writes, of which the server is to say so.
        computed: columns of the table that the statement has no values for, in lower case. What is
            noted of them, such as that a DECIMAL was rounded, is about no value that it has.

    Raises:
        pymysql.MySQLError: the server refuses the statement.
        DataError: it changed a value.
    """
    _query(connection, f"SAVEPOINT {_UNDO}".encode())
    with connection.cursor() as cursor:
        cursor.execute(text)
        # Of the answer to it; asking for it by SQL would cost each statement a round trip.
        counted = cursor.warning_count
    shown: Sequence[tuple[Any, ...]] = ()
    if counted:
        with connection.cursor() as cursor:
            cursor.execute("SHOW WARNINGS")
            shown = cursor.fetchall()
    faults = [note for note in shown if int(note[1]) in ROW_FAULTS]
    notes = [note for note in faults if column_of(note[2]).lower() not in computed]
    # The server shows no more than `max_error_count` of them, which may be none.
    logged_all = len(shown) >= counted
    labels = not blanks or all(int(note[1]) == _TRUNCATED for note in notes)
    # Of a row that is there already, a server may say the same twice.
    if logged_all and len({(number, text) for _, number, text in notes}) == blanks and labels:
        return
    _query(connection, f"ROLLBACK TO SAVEPOINT {_UNDO}".encode())
    if not (logged_all or notes):
        raise DataError(
            f"the target has {count(counted, 'note')} on what it made of values, and does not show"
            " them all",
            hint="SET GLOBAL max_error_count = 64 on the target",
        )
    reported = "; ".join(f"{text} [{number}]" for _, number, text in notes[:3])
    raise DataError(f"the target would change a value: {reported or 'an ENUM has another label'}")


def column_of(text: str) -> str:
    """The column that a note or an error is about, "" if it names none."""
    found = _COLUMN.search(text)
    return (found[1] or found[2]) if found else ""


@contextmanager
def lenient(connection: Connection[Any]) -> Generator[None]:
    """A session that is not strict, which alone takes ENUM's value for what is no label."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode")
        row = cursor.fetchone()
        cursor.execute(_LENIENT)
        try:
            yield
        finally:
            # After an error that ended the connection there is nothing to set back.
            if connection.open:
                cursor.execute("SET SESSION sql_mode = %s", (row[0] if row else "",))


def _query(connection: Connection[Any], text: bytes) -> None:
    # Not through a cursor, which takes text only and would encode it leniently.
    cast("Any", connection).query(text)
