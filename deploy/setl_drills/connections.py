"""Connections and open transactions of a site, whatever its clients run.

MySQL's information_schema cannot be read while somebody runs a statement with a character beyond
utf8mb3, which the drills' writers do (error 3854).
"""

from __future__ import annotations

from typing import Final

import pymysql

from setl.systems.mysql.connection import error_number
from setl.systems.mysql.locks.lists import UNREADABLE
from setl_drills.waiting import wait_for
from setl_embedded import DatabaseServer

_SECONDS: Final = 30.0
_WORKING: Final = (
    "WHERE trx_mysql_thread_id NOT IN (SELECT id FROM information_schema.processlist"
    " WHERE command = 'Sleep' AND time >= 2)"
)


def connections(site: DatabaseServer) -> dict[int, str]:
    """Every connection, as id → command."""
    with site.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW PROCESSLIST")
        return {int(row[0]): str(row[4]) for row in cursor.fetchall()}


def open_transactions(site: DatabaseServer) -> set[int]:
    """The connections that have a transaction open in InnoDB.

    Raises:
        DidNotHappenError: the list cannot be read for half a minute.
    """
    return wait_for("the list of transactions", lambda: _open(site), _SECONDS)[0]


def working_transactions(site: DatabaseServer) -> set[int]:
    """Those of them that run a statement, or ran one within the last two seconds.

    The others wait for a client. If it is cut off, they do so until the server ends.

    Raises:
        DidNotHappenError: the list cannot be read for half a minute.
    """
    return wait_for("the list of transactions", lambda: _open(site, _WORKING), _SECONDS)[0]


def _open(site: DatabaseServer, which: str = "") -> tuple[set[int]] | None:
    try:
        with site.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT trx_mysql_thread_id FROM information_schema.innodb_trx {which}")
            return ({int(row[0]) for row in cursor.fetchall()},)
    except pymysql.MySQLError as error:
        if error_number(error) != UNREADABLE:
            raise
        return None
