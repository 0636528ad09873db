"""What a SELECT ends with that locks the rows that it reads for who would change them."""

from __future__ import annotations

from typing import Any, Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.systems.mysql.connection import is_mariadb
from setl.systems.mysql.server_kind import version_numbers

_OLDER: Final = "LOCK IN SHARE MODE"
_NEWER: Final = (8, 0, 1)


def shared_lock(connection: Connection[Any]) -> str:
    """The words of the server of a connection; pymysql's errors pass through.

    A MySQL from 8.0 on lets an account that may only read use the newer ones. MariaDB lacks them,
    and so does MySQL 5.7, whose tables are read where its changes come by way of Kafka.
    """
    if is_mariadb(connection):
        return _OLDER
    # What a greeting says may be a proxy's version.
    with connection.cursor(Cursor) as cursor:
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone() or ("",)
    text = version.decode() if isinstance(version, bytes) else str(version)
    return "FOR SHARE" if version_numbers(text) >= _NEWER else _OLDER
