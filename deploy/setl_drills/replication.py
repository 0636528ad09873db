"""A site's replica, and the moment at which it takes the site's place.

MariaDB replication by GTID: the replica writes the same GTIDs to a binlog of its own, whose files
and offsets are its own too. See https://mariadb.com/kb/en/gtid/.
"""

from __future__ import annotations

from typing import Any

from setl_drills.waiting import wait_for
from setl_embedded import MariaDb

OPTIONS = ("--log-slave-updates=ON",)
"""What a server needs that may become a replica, or be replaced by one."""
_LIMIT = 120.0


def follow(replica: MariaDb, primary: MariaDb) -> None:
    """Have a server replicate everything from another one.

    Its data must be where the other one's binlog begins, or where it was promoted.
    """
    # Both keep the site's account, so that whoever connects to the site need not care which
    # server it is. Statements that are not replicated must not get a GTID either.
    password = _escaped(primary.password)
    with replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"ALTER USER '{replica.user}'@'%' IDENTIFIED BY '{password}'")
    replica.password = primary.password
    with replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@gtid_current_pos")
        cursor.execute(f"SET GLOBAL gtid_slave_pos = '{cursor.fetchone()[0]}'")
        cursor.execute(
            f"CHANGE MASTER TO MASTER_HOST = '{primary.host}', MASTER_PORT = {primary.port},"
            f" MASTER_USER = '{primary.user}', MASTER_PASSWORD = '{password}',"
            " MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1"
        )
        cursor.execute("START SLAVE")


def wait_caught_up(replica: MariaDb, primary: MariaDb) -> None:
    """Wait until a replica has everything that its primary has now.

    Raises:
        DidNotHappenError: it does not get there; says why.
    """
    wanted = _variable(primary, "gtid_binlog_pos")

    def there() -> bool:
        status = _status(replica)
        if status.get("Last_SQL_Errno") or status.get("Last_IO_Errno"):
            text = status.get("Last_SQL_Error") or status.get("Last_IO_Error")
            raise RuntimeError(f"{replica.name} does not replicate: {text}")
        with replica.connect(read_timeout=10) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT MASTER_GTID_WAIT(%s, 0.2)", (wanted,))
            return cursor.fetchone()[0] == 0

    wait_for(f"{replica.name} to catch up with {primary.name}", there, _LIMIT)


def promote(replica: MariaDb) -> None:
    """Make a replica a server of its own."""
    with replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute("STOP SLAVE")
        cursor.execute("RESET SLAVE ALL")


def _status(replica: MariaDb) -> dict[str, Any]:
    with replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SLAVE STATUS")
        row = cursor.fetchone()
        names = [column[0] for column in cursor.description or ()]
    return dict(zip(names, row, strict=True)) if row else {}


def _variable(server: MariaDb, name: str) -> str:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT @@{name}")
        return str(cursor.fetchone()[0])


def _escaped(password: str) -> str:
    return password.replace("\\", "\\\\").replace("'", "\\'")
