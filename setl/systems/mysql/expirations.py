"""What expires at a MySQL or MariaDB server: its certificate, and the password of the account."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl.systems.expiry import Expiration
from setl.systems.mysql.connection import (
    MysqlEndpoint,
    connect,
    error_number,
    is_mariadb,
    translating,
)

_REFUSED = frozenset((1044, 1045, 1142, 1143, 1109, 1146, 1054))
_INTERVAL = re.compile(r"PASSWORD EXPIRE INTERVAL (\d+) DAY")
_DAY = 86_400

# Readable with SELECT on these columns of mysql.user, which hold no secret.
_CHANGED = (
    "SELECT UNIX_TIMESTAMP(password_last_changed), password_lifetime,"
    " @@GLOBAL.default_password_lifetime FROM mysql.user"
    " WHERE CONCAT(user, '@', host) = CURRENT_USER()"
)
# MariaDB 11.5 and later tell each account its own.
_OF_MARIADB = (
    "SELECT UNIX_TIMESTAMP(PASSWORD_EXPIRATION_TIME) FROM information_schema.USERS"
    " WHERE REPLACE(USER, '''', '') = CURRENT_USER()"
)


def expirations(endpoint: MysqlEndpoint) -> Sequence[Expiration]:
    """What expires there, as far as the account may know.

    Raises:
        SetlError: the server does not answer, or refuses the account.
    """
    connection = connect(endpoint)
    try:
        with translating(endpoint):
            found = (_certificate(connection, endpoint), _password(connection, endpoint))
            return [each for each in found if each is not None]
    finally:
        connection.close()


def _certificate(connection: Connection[Any], endpoint: MysqlEndpoint) -> Expiration | None:
    """That of this connection; without TLS nobody looks at one."""
    since, until = (
        _time(_row(connection, f"SHOW SESSION STATUS LIKE 'Ssl_server_not_{side}'"))
        for side in ("before", "after")
    )
    return None if until is None else Expiration("certificate", str(endpoint), until, since)


def _time(row: tuple[Any, ...] | None) -> float | None:
    try:
        return float(ssl.cert_time_to_seconds(str(row[1]))) if row and row[1] else None
    except ValueError:
        return None


def _password(connection: Connection[Any], endpoint: MysqlEndpoint) -> Expiration | None:
    """That of the account; None where it never expires, or the account may not know."""
    try:
        if is_mariadb(connection):
            row = _row(connection, _OF_MARIADB)
            found = (None, float(row[0])) if row and row[0] else None
        else:
            found = _of_mysql(connection)
    except pymysql.MySQLError as error:
        if error_number(error) not in _REFUSED:
            raise
        return None
    if found is None:
        return None
    since, until = found
    return Expiration("password", f"{endpoint.user} at {endpoint}", until, since)


def _of_mysql(connection: Connection[Any]) -> tuple[float, float] | None:
    """Since when the password is good, and until when."""
    # Each account may see how it was made itself, and needs no rights for it.
    row = _row(connection, "SHOW CREATE USER CURRENT_USER()")
    made = str(row[0]) if row else ""
    if "PASSWORD EXPIRE NEVER" in made:
        return None
    row = _row(connection, _CHANGED)
    if not row or row[0] is None:
        return None
    interval = _INTERVAL.search(made)
    days = int(interval.group(1)) if interval else int(row[1] if row[1] is not None else row[2])
    since = float(row[0])
    return (since, since + days * _DAY) if days else None


def _row(connection: Connection[Any], statement: str) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()
