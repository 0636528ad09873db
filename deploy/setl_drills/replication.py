"""A site's replica, and the moment at which it takes the site's place.

Replication by GTID, by the server itself: the replica writes the same GTIDs to a binlog of its
own, whose files and offsets are its own too. See https://mariadb.com/kb/en/gtid/ and
https://dev.mysql.com/doc/refman/9.7/en/replication-gtids.html.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setl_drills.waiting import wait_for
from setl_embedded import DatabaseServer, MariaDb, MySql

MARIADB_OPTIONS = ("--log-slave-updates=ON",)
"""What a MariaDB server needs that may become a replica, or be replaced by one; MySQL has it."""
_LIMIT = 120.0


def replica_of(site: DatabaseServer, folder: Path) -> DatabaseServer:
    """Describe a server that may take a site's place: another server id, the same GTID domain."""
    name = f"{site.name}-replica"
    server_id = site.server_id + 100
    if isinstance(site, MariaDb):
        return MariaDb(
            folder / name,
            name,
            server_id,
            gtid_domain_id=site.gtid_domain_id,
            options=MARIADB_OPTIONS,
        )
    return MySql(folder / name, name, server_id)


def follow(replica: DatabaseServer, primary: DatabaseServer) -> None:
    """Have a server replicate everything from another one of the same product.

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
        if isinstance(replica, MySql):
            cursor.execute(
                f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{primary.host}',"
                f" SOURCE_PORT = {primary.port}, SOURCE_USER = '{primary.user}',"
                f" SOURCE_PASSWORD = '{password}', SOURCE_AUTO_POSITION = 1,"
                " SOURCE_CONNECT_RETRY = 1, GET_SOURCE_PUBLIC_KEY = 1"
            )
            cursor.execute("START REPLICA")
            return
        cursor.execute("SELECT @@gtid_current_pos")
        cursor.execute(f"SET GLOBAL gtid_slave_pos = '{cursor.fetchone()[0]}'")
        cursor.execute(
            f"CHANGE MASTER TO MASTER_HOST = '{primary.host}', MASTER_PORT = {primary.port},"
            f" MASTER_USER = '{primary.user}', MASTER_PASSWORD = '{password}',"
            " MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1"
        )
        cursor.execute("START SLAVE")


def wait_caught_up(replica: DatabaseServer, primary: DatabaseServer) -> None:
    """Wait until a replica has everything that its primary has now.

    Raises:
        DidNotHappenError: it does not get there; says why.
    """
    if isinstance(replica, MySql):
        wanted = _variable(primary, "GLOBAL.gtid_executed")
        wait = "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 0.2)"
    else:
        wanted = _variable(primary, "gtid_binlog_pos")
        wait = "SELECT MASTER_GTID_WAIT(%s, 0.2)"

    def there() -> bool:
        status = _status(replica)
        if status.get("Last_SQL_Errno") or status.get("Last_IO_Errno"):
            text = status.get("Last_SQL_Error") or status.get("Last_IO_Error")
            raise RuntimeError(f"{replica.name} does not replicate: {text}")
        with replica.connect(read_timeout=10) as connection, connection.cursor() as cursor:
            cursor.execute(wait, (wanted,))
            return cursor.fetchone()[0] == 0

    wait_for(f"{replica.name} to catch up with {primary.name}", there, _LIMIT)


def promote(replica: DatabaseServer) -> None:
    """Make a replica a server of its own."""
    word = "REPLICA" if isinstance(replica, MySql) else "SLAVE"
    with replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"STOP {word}")
        cursor.execute(f"RESET {word} ALL")


def _status(replica: DatabaseServer) -> dict[str, Any]:
    word = "REPLICA" if isinstance(replica, MySql) else "SLAVE"
    with replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW {word} STATUS")
        row = cursor.fetchone()
        names = [column[0] for column in cursor.description or ()]
    return dict(zip(names, row, strict=True)) if row else {}


def _variable(server: DatabaseServer, name: str) -> str:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT @@{name}")
        return str(cursor.fetchone()[0])


def _escaped(password: str) -> str:
    return password.replace("\\", "\\\\").replace("'", "\\'")
