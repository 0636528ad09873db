"""Who is connected to a server, and what each connection does."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pymysql.connections import Connection
from pymysql.cursors import Cursor


class Process(NamedTuple):
    """A connection.

    Attributes:
        ident: its id.
        user: its account's name.
        command: what it does, such as ``Query`` or ``Sleep``.
        seconds: for how long.
        state: what the server says of it.
        statement: the begin of the statement that it runs, "" for none.
    """

    ident: int
    user: str
    command: str
    seconds: float
    state: str
    statement: str


def processes(connection: Connection[Any]) -> list[Process]:
    """All connections that the account may see. pymysql's errors pass through.

    Any account may ask this, and a MySQL answers it whatever anybody runs, as it does not with the
    tables of `information_schema`. But statements are cut after 100 bytes, even within a letter
    (seen with MariaDB 10.11), and so cannot be read as text like other answers.
    """
    with undecoded(connection), connection.cursor(Cursor) as cursor:
        cursor.execute("SHOW PROCESSLIST")
        rows = cursor.fetchall()
    return [
        Process(
            int(ident),
            _text(user),
            _text(command),
            float(seconds or 0),
            _text(state),
            _text(statement),
        )
        for ident, user, _, _, command, seconds, state, statement, *_ in rows
    ]


@contextmanager
def undecoded(connection: Connection[Any]) -> Generator[None]:
    """Have the connection leave text as bytes for the time of a block."""
    before, connection.use_unicode = connection.use_unicode, False
    try:
        yield
    finally:
        connection.use_unicode = before


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
