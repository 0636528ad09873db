"""The lock that a connection holds while it may change tables on behalf of a pipeline.

DDL commits by itself, so the row lock of ``retl.setl_fence`` cannot be held over it. A user lock
can. It belongs to the connection, not to a transaction. A server gives it up only once the
connection's statement has ended, killed or not. So

* whoever changes tables takes the lock first, then compares the epoch, then runs its statement;
* a new leader raises the epoch first, then takes the lock and gives it back, and ends its holder if
  that takes too long.

Whichever comes first, no statement of an older leadership runs, or begins, once a new leader has
had the lock.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl.systems.mysql.stored import writers

_NO_SUCH_THREAD: Final = 1094


def take(connection: Connection[Any], pipeline_key: str, seconds: int) -> bool:
    """Take a pipeline's lock, waiting for it for up to `seconds`; says whether it was had.

    pymysql's errors pass through.
    """
    return _value(connection, "SELECT GET_LOCK(%s, %s)", _name(pipeline_key), seconds) == 1


def give_back(connection: Connection[Any], pipeline_key: str) -> None:
    """Give the lock back."""
    _value(connection, "SELECT RELEASE_LOCK(%s)", _name(pipeline_key))


def end_holder(connection: Connection[Any], pipeline_key: str) -> None:
    """Kill the connection that has the lock, if any does; its statement may take time to end.

    Not if it commits, see `writers.end_writer`.
    """
    holder = _value(connection, "SELECT IS_USED_LOCK(%s)", _name(pipeline_key))
    if holder is None or writers.commits(connection, int(holder)):
        return
    with connection.cursor() as cursor:
        try:
            cursor.execute("KILL CONNECTION %s", (int(holder),))
        except pymysql.MySQLError as error:
            if error.args[0] != _NO_SUCH_THREAD:
                raise


def _name(pipeline_key: str) -> str:
    """At most 64 characters, as MySQL demands."""
    return f"setl_ddl.{blake2b(pipeline_key.encode(), digest_size=12).hexdigest()}"


def _value(connection: Connection[Any], sql: str, *args: object) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, args)
        row = cursor.fetchone()
    return row[0] if row else None
