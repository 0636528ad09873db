"""Registers connections that write for a leadership, so that a later one can end them.

Every connection that locks the row of a pipeline in ``retl.setl_fence`` is recorded in
``retl.setl_writer`` first. A new leader that finds the row locked for too long kills the recorded
connections of older epochs (I2). A connection id alone is no proof: ids start again when the
server restarts, and the record of a dead writer may name what is now somebody else's connection.
So a writer also holds a user lock, whose name nobody else takes and which ends with its
connection; who holds the lock is who was recorded.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import pymysql
from pymysql.connections import Connection

from setl.model.leadership import Leadership
from setl.systems.mysql.process_list import processes

_NO_SUCH_THREAD = 1094
_COMMITS = frozenset(
    {
        "waiting for handler commit",  # MySQL
        "commit",  # MariaDB, as the two below
        "waiting for someone to free space",
        "waiting for prior transaction to commit",
    }
)


def lock_name(pipeline_key: str, connection_id: int) -> str:
    """Name of the user lock of one writer; at most 64 characters, as MySQL demands."""
    pipeline = blake2b(pipeline_key.encode(), digest_size=12).hexdigest()
    return f"setl_writer.{pipeline}.{connection_id}"


def connection_id(connection: Connection[Any]) -> int:
    """The server's id of a connection, as KILL and IS_USED_LOCK know it."""
    return _value(connection, "SELECT CONNECTION_ID()")


def claim(connection: Connection[Any], key: str) -> int:
    """Have a connection proved to be whose it is, as long as it lives; returns its id."""
    own = connection_id(connection)
    with connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 0)", (lock_name(key, own),))
    return own


def register(connection: Connection[Any], leadership: Leadership) -> int:
    """Record a connection as a writer of a leadership; returns its id.

    To be called outside a transaction, before the connection locks the pipeline's fence.
    Registering again, for another epoch or pipeline, replaces the record. pymysql's errors
    pass through.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT RELEASE_ALL_LOCKS()")
        # First: from the moment the record can be read it must be provable.
        own = claim(connection, leadership.key)
        connection.begin()
        # Rows under this id that are not of this connection are from before a restart. Looked for
        # first: a DELETE that finds none locks the gap where others are about to insert theirs.
        cursor.execute("SELECT pipeline FROM retl.setl_writer WHERE conn_id = %s", (own,))
        for (pipeline,) in cursor.fetchall():
            forget_writer(connection, pipeline, own)
        cursor.execute(
            "INSERT INTO retl.setl_writer (conn_id, pipeline, epoch, nid) VALUES (%s, %s, %s, %s)",
            (own, leadership.key, leadership.epoch, leadership.nid),
        )
        connection.commit()
    return own


def is_alive(connection: Connection[Any], pipeline_key: str, writer_id: int) -> bool:
    """Whether the connection that was recorded under this id still exists."""
    holder = _value(connection, "SELECT IS_USED_LOCK(%s)", lock_name(pipeline_key, writer_id))
    return holder == writer_id


def is_commit(state: str) -> bool:
    """Whether a thread in this state writes a commit. If it takes long, the server has no room."""
    return state.lower() in _COMMITS


def commits(connection: Connection[Any], writer_id: int) -> bool:
    """Whether a connection is writing a commit."""
    states = {process.ident: process.state for process in processes(connection)}
    return is_commit(states.get(writer_id, ""))


def end_writer(connection: Connection[Any], pipeline_key: str, writer_id: int) -> bool:
    """Kill a recorded writer if it still is the one recorded; returns whether it was.

    Not if it commits: that cannot be undone any more, and ends when the server can write it. A
    MySQL that waits for room on its disk and finds the waiting connection killed ends itself
    (`binlog_error_action`); a MariaDB leaves half an event in its binlog, which no replica passes.

    Its transaction is rolled back by the server, at once or, if it is large, in a while. Were
    the server to restart between the look at the lock and the kill, this connection would be
    gone as well, so no stranger can be hit. pymysql's errors pass through.
    """
    if not is_alive(connection, pipeline_key, writer_id) or commits(connection, writer_id):
        return False
    with connection.cursor() as cursor:
        try:
            cursor.execute("KILL CONNECTION %s", (writer_id,))
        except pymysql.MySQLError as error:
            if error.args[0] != _NO_SUCH_THREAD:
                raise
            return False
    return True


def forget_writer(connection: Connection[Any], pipeline_key: str, writer_id: int) -> None:
    """Remove the record of a writer that is gone."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM retl.setl_writer WHERE conn_id = %s AND pipeline = %s",
            (writer_id, pipeline_key),
        )


def _value(connection: Connection[Any], sql: str, *args: object) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, args or None)
        row = cursor.fetchone()
    return row[0] if row else None
