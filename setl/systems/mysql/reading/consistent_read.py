"""Makes sure that rows are read as they are after everything before a position of the binlog.

A server writes a transaction into its binlog before its tables show it. As a rule that takes less
than a millisecond; with semi-synchronous replication (AFTER_SYNC) it takes until a replica has
answered, or for ten seconds if none does. Meanwhile the stream has brought the transaction to the
target already, and a plain read at the source would bring the rows back that were there before it:
lost for good, since nothing comes again.

- MariaDB tells to which position of the binlog a consistent snapshot belongs
  (https://mariadb.com/kb/en/enhancements-for-start-transaction-with-consistent-snapshot/). Another
  one is taken until that is far enough. When the server begins a new file, it tells the head of
  that file at once, though transactions of the file before may not be shown yet. So the head of
  a file says nothing; it has to have a transaction.
- MySQL tells when GTIDs are in its tables: `WAIT_FOR_EXECUTED_GTID_SET`.
- Otherwise (no GTIDs, a position inside a transaction, a position in a topic, a binlog file that
stays
  without transactions) rows are read under shared locks. What is being committed has its rows
  locked, so such a read waits for it. Writers of these rows wait until they are read.

GTIDs mean the same on any server; a position in a file does not.

The rows of an XA transaction stand in the binlog from its PREPARE on, and the tables show them from
its COMMIT on, which may be hours later. While there is one that is prepared, rows are read under
shared locks, too. MySQL tells of them to accounts with XA_RECOVER_ADMIN only. Without it, rows are
read under locks if any was prepared since the server started. What was prepared before that start
is not seen then.
"""

from __future__ import annotations

from typing import Any, Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor
from pymysql.err import MySQLError

from setl.errors import TransientError
from setl.model.position import BinlogPosition, Position
from setl.systems.mysql.connection import is_mariadb
from setl.systems.mysql.shared_lock import shared_lock
from setl.waiting import polling

_LIMIT: Final = 60.0
_SLICE: Final = 5  # seconds of one wait for GTIDs, so that a connection that is lost shows
_PAUSE: Final = 0.02
_NEW_FILE: Final = 0.2  # seconds to wait for a transaction in a new binlog file
# Most bytes of the events at the head of a file (format, encryption, checkpoint), without the
# list of GTIDs.
_HEAD: Final = 1024


def read_all_before(
    connection: Connection[Any], position: Position | None, *, inside: bool = False
) -> str:
    """Get a session ready for one SELECT that sees everything before a position.

    Args:
        connection: to the server of the tables; in no transaction.
        position: of the stream; None if it does not matter what is seen.
        inside: whether the position is inside a transaction.

    Returns:
        What the SELECT has to end with, "" for nothing.

    Raises:
        TransientError: the server's tables do not come that far.
        pymysql.MySQLError: an error of the server.
    """
    if position is None:
        return ""
    with connection.cursor(Cursor) as cursor:
        if isinstance(position, BinlogPosition):
            if is_mariadb(connection):
                refuse_another(cursor, position, mariadb=True)
                if not _are_prepared(cursor) and _in_snapshot(cursor, position):
                    if not _are_prepared(cursor):
                        return ""
                    cursor.execute("ROLLBACK")
            elif (
                position.gtid
                and not inside
                and _has_executed(cursor, position)
                and not _are_prepared(cursor)  # what is committed from here on, the SELECT shows
            ):
                return ""
            else:
                refuse_another(cursor, position, mariadb=False)
        # Locks rows, and hardly any gaps between them.
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    return f" {shared_lock(connection)}"


def begin_consistent_read(
    connection: Connection[Any], position: Position | None, *, inside: bool
) -> str:
    """Begin a transaction of several SELECTs that see everything before a position.

    All of them see the same moment, or lock what they see.

    Returns:
        What each has to end with, "" for nothing.

    Raises:
        TransientError, pymysql.MySQLError: as `read_all_before`.
    """
    ending = read_all_before(connection, position, inside=inside)
    with connection.cursor(Cursor) as cursor:
        if ending:
            cursor.execute("START TRANSACTION")
        elif position is None or not is_mariadb(connection):  # else it has begun, with a snapshot
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    return ending


def refuse_another(cursor: Cursor, position: BinlogPosition, *, mariadb: bool) -> None:
    """A position in a file says nothing of another server, to which a name may lead by now.

    Raises:
        TransientError: another one answers.
        pymysql.MySQLError: an error of the server.
    """
    if position.origin is None:
        return
    cursor.execute("SELECT @@GLOBAL.server_id" if mariadb else "SELECT @@server_uuid")
    row = cursor.fetchone()
    if row is not None and _text(row[0]) != position.origin.server:
        raise TransientError(
            "another server answers than the one whose stream is read",
            hint="Behind one name there may be several servers of MySQL with GTIDs only",
        )


def _are_prepared(cursor: Cursor) -> bool:
    """Whether XA transactions may wait for their COMMIT."""
    prepared = any_prepared(cursor)
    if prepared is None:
        return uses_xa(cursor)
    return prepared


def any_prepared(cursor: Cursor) -> bool | None:
    """Whether there are prepared XA transactions; None if the account is not told.

    Raises:
        pymysql.MySQLError: an error of the server.
    """
    try:
        cursor.execute("XA RECOVER")
    except MySQLError as error:
        if error.args and error.args[0] in _NOT_SHOWN:
            return None
        raise
    return cursor.fetchone() is not None


def uses_xa(cursor: Cursor) -> bool:
    """Whether a transaction was prepared since the server started. Raises as above."""
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'")
    row = cursor.fetchone()
    return row is not None and int(row[1]) > 0


def _in_snapshot(cursor: Cursor, position: BinlogPosition) -> bool:
    """Begin a transaction that sees everything before a position; False if nobody can tell."""
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    first: BinlogPosition | None = None
    for left in polling(_LIMIT, _PAUSE):
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        shown = _snapshot_position(cursor)
        if shown is None or shown.file.rpartition(".")[0] != position.file.rpartition(".")[0]:
            cursor.execute("ROLLBACK")
            return False
        first = first or shown
        far_enough = shown.order >= position.order
        if far_enough and (_moved(first, shown) or _has_transactions(cursor, shown)):
            return True
        cursor.execute("ROLLBACK")
        if far_enough and _LIMIT - left >= _NEW_FILE:
            return False
    raise _too_late(position)


def _snapshot_position(cursor: Cursor) -> BinlogPosition | None:
    """To which position the snapshot of this transaction belongs.

    None if the server has no binlog.
    """
    cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
    variables = {_text(name).lower(): _text(value) for name, value in cursor.fetchall()}
    file, offset = (
        variables.get("binlog_snapshot_file", ""),
        variables.get("binlog_snapshot_position"),
    )
    return BinlogPosition(file, int(offset)) if offset else None


def _moved(first: BinlogPosition, shown: BinlogPosition) -> bool:
    """Whether a transaction of the file that is shown was committed since the first look."""
    return first.file == shown.file and first.offset != shown.offset


def _has_transactions(cursor: Cursor, shown: BinlogPosition) -> bool:
    """Whether a position is behind a transaction of its file for sure.

    The list of GTIDs at the head has 16 bytes for each domain and server
    (https://mariadb.com/kb/en/gtid_list_event/); in text each has five characters or more.
    """
    cursor.execute("SELECT LENGTH(@@GLOBAL.gtid_binlog_state)")
    row = cursor.fetchone()
    state = 0 if row is None else int(row[0])
    return shown.offset > _HEAD + 4 * state


def _has_executed(cursor: Cursor, position: BinlogPosition) -> bool:
    """Wait until the tables show GTIDs; False if the server cannot tell."""
    for _ in polling(_LIMIT, 0.0):  # the server waits
        try:
            cursor.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)", (position.gtid, _SLICE))
        except MySQLError as error:
            if error.args and error.args[0] in _NO_GTIDS:
                return False
            raise
        row = cursor.fetchone()
        if row is not None and _text(row[0]) == "0":
            return True
    raise _too_late(position)


# MySQL's XAER_RMERR, for want of XA_RECOVER_ADMIN; access denied.
_NOT_SHOWN: Final = (1227, 1401)
# Malformed GTID set; GTIDs are switched off.
_NO_GTIDS: Final = (1772, 1778, 1779, 3111)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _too_late(position: BinlogPosition) -> TransientError:
    return TransientError(
        f"the tables of the source do not show for {_LIMIT:g} s what its binlog has before "
        f"{position}",
        hint="See whether commits hang there, such as for a semi-synchronous replica",
    )
