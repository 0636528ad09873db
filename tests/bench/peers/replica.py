"""A server's own replica; the target itself is it.

It applies only: the relay log is fetched before the time begins. It applies with one thread or with
several. MariaDB's comes with one and writes no binlog of what it applies, while the targets of all
others do; MySQL's comes with four and writes one. So both are measured with one thread, with one
that logs, and with four that log.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from setl_drills.waiting import wait_for
from tests.bench.metering import Meter, Taken
from tests.bench.servers import Target
from tests.bench.turns import Peer, StartPoint
from tests.bench.workloads import Position, Workload

_THREADS = 4


class _Words(NamedTuple):
    """How a family names what both have: in options and columns, and in statements."""

    source: str
    replica: str
    change: str
    further: str
    threads: str


_WORDS = {
    "mariadb": _Words("Master", "SLAVE", "CHANGE MASTER TO", "MASTER_USE_GTID=no",
                      "--slave-parallel-threads"),
    "mysql": _Words("Source", "REPLICA", "CHANGE REPLICATION SOURCE TO", "GET_SOURCE_PUBLIC_KEY=1",
                    "--replica-parallel-workers"),
}  # fmt: skip


class Replica(Peer):
    """See the module; four threads always log what they apply."""

    def __init__(self, family: str = "mariadb", *, logs: bool = False, parallel: bool = False):
        self._words = words = _WORDS[family]
        self.name = "replica-4-threads" if parallel else "replica-logging" if logs else "replica"
        self.target_options = (
            f"--{'' if logs or parallel else 'skip-'}log-{words.replica.lower()}-updates",
            f"{words.threads}={_THREADS if parallel else 1}",
        )

    def why_not(self, target: str, workload: Workload) -> str:
        return "" if target == "mysql" and not workload.is_loaded else "changes of databases only"

    def measure(self, start: StartPoint, target: Target) -> Taken:
        replica = self._words.replica
        with target.mysql.connect() as connection, connection.cursor() as cursor:
            try:
                return self._apply(cursor, start, target)
            finally:
                cursor.execute(f"STOP {replica}")
                cursor.execute(f"RESET {replica} ALL")

    def _apply(self, cursor: Any, start: StartPoint, target: Target) -> Taken:
        words, source, end = self._words, start.source, start.written.end
        prefix = words.source.upper()
        options = ("HOST", "PORT", "USER", "PASSWORD", "LOG_FILE", "LOG_POS")
        named = ", ".join(f"{prefix}_{option}=%s" for option in options)
        cursor.execute(
            f"{words.change} {named}, {words.further}",
            (source.host, source.port, source.user, source.password, *start.written.start),
        )
        cursor.execute(f"START {words.replica} IO_THREAD")

        def fetched() -> bool:
            status = self._status(cursor)
            if status["Last_IO_Error"]:
                raise RuntimeError(f"the replica cannot read: {status['Last_IO_Error']}")
            names = f"{words.source}_Log_File", f"Read_{words.source}_Log_Pos"
            return Position(*(status[name] for name in names)) >= end

        wait_for("the replica to fetch everything", fetched, start.limit)
        with Meter(target=target.pid, source=source.pid) as meter:
            began = time.perf_counter()
            cursor.execute(f"START {words.replica} SQL_THREAD")
            cursor.execute(f"SELECT {prefix}_POS_WAIT(%s, %s, %s)", (*end, start.limit))
            (events,) = cursor.fetchone()
            taken = meter.taken(time.perf_counter() - began)
        # NULL: the thread is not running; -1: the time is up.
        if events is None or events < 0:
            status = self._status(cursor)
            position = status[f"Exec_{words.source}_Log_Pos"]
            raise RuntimeError(f"the replica stopped: {position}: {status['Last_SQL_Error']}")
        return taken

    def _status(self, cursor: Any) -> dict[str, Any]:
        cursor.execute(f"SHOW {self._words.replica} STATUS")
        names = [column[0] for column in cursor.description or ()]
        return dict(zip(names, cursor.fetchone() or (), strict=True))
