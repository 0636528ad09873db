"""The server's own replica, apply only: the relay log is fetched before the time begins.

It applies with one thread or with several. MariaDB's comes with one and writes no binlog of what it
applies, while the targets of all others do; MySQL's comes with four and writes one. So both are
measured with one thread, with one that logs, and with four that log.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from pymysql.connections import Connection

from tests.bench.competitor import Meter, Place
from tests.bench.report import LOGGING, PARALLEL, Taken
from tests.bench.servers import Target
from tests.bench.watching import wait_for
from tests.bench.workloads import Position, Workload

_THREADS = 4


class _Words(NamedTuple):
    """How a family names what both have.

    Attributes:
        source: the other server, in the names of options and columns.
        replica: the replica, in statements.
        change: begins the statement that names the source.
        further: ends it.
        threads: option for the number of threads that apply.
    """

    source: str
    replica: str
    change: str
    further: str
    threads: str


_MARIADB = _Words(
    "Master", "SLAVE", "CHANGE MASTER TO", "MASTER_USE_GTID=no", "--slave-parallel-threads"
)
_MYSQL = _Words(
    "Source", "REPLICA", "CHANGE REPLICATION SOURCE TO", "GET_SOURCE_PUBLIC_KEY=1",
    "--replica-parallel-workers",
)  # fmt: skip


class Replica:
    """See the module; the target itself is the replica."""

    source = "binlog"

    def __init__(
        self, *, family: str = "mariadb", logs: bool = False, parallel: bool = False
    ) -> None:
        """One thread or four, which log what they apply or not; four always do."""
        logs = logs or parallel
        self.name = PARALLEL if parallel else LOGGING if logs else "replica"
        self._words = _MYSQL if family == "mysql" else _MARIADB
        self.target_options = (
            f"--{'' if logs else 'skip-'}log-{self._words.replica.lower()}-updates",
            f"{self._words.threads}={_THREADS if parallel else 1}",
        )

    def why_not(self, target: str, workload: Workload) -> str:
        """See `Competitor.why_not`."""
        return "" if target == "mysql" else "only into a database"

    def measure(self, place: Place, target: Target) -> Taken:
        """See `Competitor.measure`."""
        replica = self._words.replica
        with target.mysql.connect() as connection, connection.cursor() as cursor:
            try:
                return _applied(connection, place, target, self._words)
            finally:
                cursor.execute(f"STOP {replica}")
                cursor.execute(f"RESET {replica} ALL")


def _applied(connection: Connection[Any], place: Place, target: Target, words: _Words) -> Taken:
    written, source, prefix = place.written, place.source, words.source.upper()
    options = ("HOST", "PORT", "USER", "PASSWORD", "LOG_FILE", "LOG_POS")
    named = ", ".join(f"{prefix}_{option}=%s" for option in options)
    with connection.cursor() as cursor:
        cursor.execute(
            f"{words.change} {named}, {words.further}",
            (source.host, source.port, source.user, source.password, *written.start),
        )
        cursor.execute(f"START {words.replica} IO_THREAD")
        wait_for(
            lambda: _fetched(connection, written.end, words),
            place.limit,
            "the replica has not fetched everything",
        )
        meter = Meter(None, target, source.pid)
        with meter.memory:
            began = time.perf_counter()
            cursor.execute(f"START {words.replica} SQL_THREAD")
            cursor.execute(f"SELECT {prefix}_POS_WAIT(%s, %s, %s)", (*written.end, place.limit))
            (events,) = cursor.fetchone() or (None,)
            seconds = time.perf_counter() - began
        taken = meter.taken(seconds)
    # NULL: the thread is not running; -1: the time is up.
    if events is None or events < 0:
        raise RuntimeError(f"the replica stopped: {_status(connection, words)}")
    return taken


def _fetched(connection: Connection[Any], end: Position, words: _Words) -> bool:
    status = _status(connection, words)
    file, offset = f"{words.source}_Log_File", f"Read_{words.source}_Log_Pos"
    return Position(status[file], status[offset]) >= end


def _status(connection: Connection[Any], words: _Words) -> dict[str, Any]:
    """Where it stands.

    Raises:
        RuntimeError: it cannot read.
    """
    source = words.source
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {words.replica} STATUS")
        names = [column[0] for column in cursor.description or ()]
        status = dict(zip(names, cursor.fetchone() or (), strict=True))
    if status["Last_IO_Error"]:
        raise RuntimeError(f"the replica cannot read: {status['Last_IO_Error']}")
    return {
        name: status[name]
        for name in (f"{source}_Log_File", f"Read_{source}_Log_Pos", f"Exec_{source}_Log_Pos",
                     "Last_SQL_Error")
    }  # fmt: skip


def replicas(family: str) -> list[Replica]:
    """Every way in which a family's replica takes part."""
    return [
        Replica(family=family),
        Replica(family=family, logs=True),
        Replica(family=family, parallel=True),
    ]
