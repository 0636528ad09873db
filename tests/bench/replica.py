"""MariaDB's own replica, apply only: the relay log is fetched before the time begins.

It applies with one thread, as MariaDB comes. As MariaDB comes, it also writes no binlog of what it
applies, while the targets of all others do; so it takes part in both ways.
"""

from __future__ import annotations

import time
from typing import Any

from pymysql.connections import Connection

from tests.bench.competitor import Meter, Place
from tests.bench.report import LOGGING, Taken
from tests.bench.servers import Target
from tests.bench.watching import wait_for
from tests.bench.workloads import Position, Workload


class Replica:
    """See the module; the target itself is the replica."""

    source = "binlog"

    def __init__(self, *, logs: bool = False) -> None:
        """One that logs what it applies, or not."""
        self.name = LOGGING if logs else "replica"
        self.target_options = ("--log-slave-updates",) if logs else ()

    def why_not(self, target: str, workload: Workload) -> str:
        """See `Competitor.why_not`."""
        return "" if target == "mysql" else "only into MariaDB"

    def measure(self, place: Place, target: Target) -> Taken:
        """See `Competitor.measure`."""
        with target.mysql.connect() as connection, connection.cursor() as cursor:
            try:
                return _applied(connection, place, target)
            finally:
                cursor.execute("STOP SLAVE")
                cursor.execute("RESET SLAVE ALL")


def _applied(connection: Connection[Any], place: Place, target: Target) -> Taken:
    written, source = place.written, place.source
    with connection.cursor() as cursor:
        cursor.execute(
            "CHANGE MASTER TO MASTER_HOST=%s, MASTER_PORT=%s, MASTER_USER=%s, MASTER_PASSWORD=%s,"
            " MASTER_LOG_FILE=%s, MASTER_LOG_POS=%s, MASTER_USE_GTID=no",
            (source.host, source.port, source.user, source.password, *written.start),
        )
        cursor.execute("START SLAVE IO_THREAD")
        wait_for(
            lambda: _fetched(connection, written.end),
            place.limit,
            "the replica has not fetched everything",
        )
        meter = Meter(None, target, source.pid)
        with meter.memory:
            began = time.perf_counter()
            cursor.execute("START SLAVE SQL_THREAD")
            cursor.execute("SELECT MASTER_POS_WAIT(%s, %s, %s)", (*written.end, place.limit))
            (events,) = cursor.fetchone() or (None,)
            seconds = time.perf_counter() - began
        taken = meter.taken(seconds)
    # NULL: the thread is not running; -1: the time is up.
    if events is None or events < 0:
        raise RuntimeError(f"the replica stopped: {_status(connection)}")
    return taken


def _fetched(connection: Connection[Any], end: Position) -> bool:
    status = _status(connection)
    return Position(status["Master_Log_File"], status["Read_Master_Log_Pos"]) >= end


def _status(connection: Connection[Any]) -> dict[str, Any]:
    """Where it stands.

    Raises:
        RuntimeError: it cannot read.
    """
    with connection.cursor() as cursor:
        cursor.execute("SHOW SLAVE STATUS")
        names = [column[0] for column in cursor.description or ()]
        status = dict(zip(names, cursor.fetchone() or (), strict=True))
    if status["Last_IO_Error"]:
        raise RuntimeError(f"the replica cannot read: {status['Last_IO_Error']}")
    return {
        name: status[name]
        for name in ("Master_Log_File", "Read_Master_Log_Pos", "Exec_Master_Log_Pos",
                     "Last_SQL_Error")
    }  # fmt: skip
