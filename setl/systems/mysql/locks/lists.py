"""The queries for connections, transactions and lock waits on MySQL and MariaDB.

Sources of the columns: MariaDB's information_schema.INNODB_TRX, INNODB_LOCK_WAITS and INNODB_LOCKS
(https://mariadb.com/kb/en/information-schema-innodb_lock_waits-table/), and for MySQL 8
performance_schema.data_lock_waits and data_locks
(https://dev.mysql.com/doc/refman/8.4/en/performance-schema-data-lock-waits-table.html).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pymysql
from pymysql.connections import Connection

UNREADABLE = 3854
"""MySQL's information_schema holds statements as utf8mb3. While any session runs one with a
character beyond that, such as an emoji, every query of processlist and innodb_trx fails with this
number, whatever columns it asks for (seen with 9.7.4)."""

_WAITS_MARIADB = """
SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id,
       TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()),
       TIMESTAMPDIFF(SECOND, b.trx_started, NOW()), l.lock_table
  FROM information_schema.innodb_lock_waits w
  JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_trx_id
  JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id
  LEFT JOIN information_schema.innodb_locks l ON l.lock_id = w.requested_lock_id
 WHERE r.trx_mysql_thread_id IN ({ids}) ORDER BY 4 DESC LIMIT 20"""

_WAITS_MYSQL = """
SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id,
       TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()),
       TIMESTAMPDIFF(SECOND, b.trx_started, NOW()),
       CONCAT(l.object_schema, '.', l.object_name)
  FROM performance_schema.data_lock_waits w
  JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_engine_transaction_id
  JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_engine_transaction_id
  LEFT JOIN performance_schema.data_locks l ON l.engine_lock_id = w.requesting_engine_lock_id
 WHERE r.trx_mysql_thread_id IN ({ids}) ORDER BY 4 DESC LIMIT 20"""

# For how long a statement has run, or a connection has been idle, in place of how long a lock
# has been waited for, or a transaction has been open.
WAITS_PERFORMANCE_SCHEMA = """
SELECT r.processlist_id, b.processlist_id, r.processlist_time, b.processlist_time,
       CONCAT(l.object_schema, '.', l.object_name)
  FROM performance_schema.data_lock_waits w
  JOIN performance_schema.threads r ON r.thread_id = w.requesting_thread_id
  JOIN performance_schema.threads b ON b.thread_id = w.blocking_thread_id
  LEFT JOIN performance_schema.data_locks l ON l.engine_lock_id = w.requesting_engine_lock_id
 WHERE r.processlist_id IN ({ids}) ORDER BY 4 DESC LIMIT 20"""


_PERFORMANCE_SCHEMA_OFF = (
    "row locks cannot be seen, since the target runs with performance_schema=OFF"
)


class LockLists(NamedTuple):
    """What to ask a server.

    Attributes:
        processes: the table that lists connections.
        waits: query of lock waits, with a place for the ids of those who wait, ``{ids}``.
        blind: why the server lists no lock waits, "" if it does.
    """

    processes: str
    waits: str
    blind: str = ""


def lists_of(connection: Connection[Any]) -> LockLists:
    """The lists of the server of a connection; of processes, one that can be read at any time."""
    (version,) = rows_of(connection, "SELECT VERSION()")[0]
    if "mariadb" in str(version).lower():
        return LockLists("information_schema.processlist", _WAITS_MARIADB)
    if not int(rows_of(connection, "SELECT @@performance_schema")[0][0]):
        return LockLists("information_schema.processlist", _WAITS_MYSQL, _PERFORMANCE_SCHEMA_OFF)
    with suppress(pymysql.MySQLError):  # older than 8.0.22
        if rows_of(connection, "SELECT 1 FROM performance_schema.processlist LIMIT 1"):
            return LockLists("performance_schema.processlist", _WAITS_MYSQL)
    # The other is empty where MySQL is told so.
    return LockLists("information_schema.processlist", _WAITS_MYSQL)


def rows_of(connection: Connection[Any], sql: str, args: Sequence[object] = ()) -> list[Any]:
    """The rows of a query; pymysql's errors pass through."""
    with connection.cursor() as cursor:
        cursor.execute(sql, tuple(args) or None)
        return list(cursor.fetchall())
