"""Competitors that come with a server, or are made for it: its own replica, and its dump tools.

The replica applies only: the relay log is fetched before the time begins. It applies with one
thread or with several. MariaDB's comes with one and writes no binlog of what it applies, while the
targets of all others do; MySQL's comes with four and writes one. So both are measured with one
thread, with one that logs, and with four that log.

Dump tools load whole tables. They see the tables at one place and apply no change, they need
nobody else to write to the target, and they restart when they fail. All write the target's
binlog, as setl does.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from pymysql.connections import Connection

from setl_embedded import MariaDb
from tests.bench.competition import Meter, StartPoint
from tests.bench.report import LOGGING, PARALLEL, Taken
from tests.bench.servers import Target
from tests.bench.watching import wait_for
from tests.bench.workloads import SCHEMA, Position, Workload

_REPLICA_THREADS = 4


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
            f"{self._words.threads}={_REPLICA_THREADS if parallel else 1}",
        )

    def why_not(self, target: str, workload: Workload) -> str:
        return "" if target == "mysql" else "only into a database"

    def measure(self, position: StartPoint, target: Target) -> Taken:
        replica = self._words.replica
        with target.mysql.connect() as connection, connection.cursor() as cursor:
            try:
                return _applied(connection, position, target, self._words)
            finally:
                cursor.execute(f"STOP {replica}")
                cursor.execute(f"RESET {replica} ALL")


def _applied(
    connection: Connection[Any], position: StartPoint, target: Target, words: _Words
) -> Taken:
    written, source, prefix = position.written, position.source, words.source.upper()
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
            position.limit,
            "the replica has not fetched everything",
        )
        meter = Meter(None, target, source.pid)
        with meter.memory:
            began = time.perf_counter()
            cursor.execute(f"START {words.replica} SQL_THREAD")
            cursor.execute(f"SELECT {prefix}_POS_WAIT(%s, %s, %s)", (*written.end, position.limit))
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


_DUMP_THREADS = "2"
_CHUNKS = 8  # of a table, so that all threads have work


class _Tools:
    """Programs that are started one after another, or at once."""

    source = "binlog"
    target_options = ()
    name = ""
    _programs: Sequence[str] = ()

    def why_not(self, target: str, workload: Workload) -> str:
        if target != "mysql":
            return "only between databases"
        return "" if all(map(shutil.which, self._programs)) else "not installed"

    def measure(self, position: StartPoint, target: Target) -> Taken:
        meter = Meter(None, target, position.source.pid)
        folder = Path(mkdtemp(prefix="dump-", dir=position.folder))
        with meter.memory:
            began = time.perf_counter()
            self._run(position, target.mysql, folder)
            seconds = time.perf_counter() - began
        shutil.rmtree(folder)
        return meter.taken(seconds)

    def _run(self, position: StartPoint, target: MariaDb, folder: Path) -> None:
        raise NotImplementedError


class MyDumper(_Tools):
    """mydumper, then myloader, two threads each."""

    name = "mydumper"
    _programs = ("mydumper", "myloader")

    def _run(self, position: StartPoint, target: MariaDb, folder: Path) -> None:
        rows = max(1, position.written.workload.base // _CHUNKS)
        _finish(
            [["mydumper", *_server(position.source), "-B", SCHEMA, "-o", str(folder / "dump"),
              "-t", _DUMP_THREADS, "-r", str(rows), "--no-schemas"]],
            position.limit,
        )  # fmt: skip
        _finish(
            [["myloader", *_server(target), "-B", SCHEMA, "-d", str(folder / "dump"),
              "-t", _DUMP_THREADS, "--enable-binlog"]],
            position.limit,
        )  # fmt: skip


class MariaDbDump(_Tools):
    """mariadb-dump into mariadb, through a pipe."""

    name = "mariadb-dump"
    _programs = ("mariadb-dump", "mariadb")

    def _run(self, position: StartPoint, target: MariaDb, folder: Path) -> None:
        _finish(
            [["mariadb-dump", *_server(position.source), "--single-transaction", "--quick",
              "--no-create-info", "--skip-triggers", SCHEMA],
             ["mariadb", *_server(target), SCHEMA]],
            position.limit,
        )  # fmt: skip


def _server(server: MariaDb) -> list[str]:
    return [
        "-h",
        server.host,
        "-P",
        str(server.port),
        "-u",
        server.user,
        f"--password={server.password}",
    ]


def _finish(piped: Sequence[Sequence[str]], limit: float) -> None:
    """Run programs, each reading what the one before writes.

    Raises:
        RuntimeError: one of them fails, or hangs.
    """
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in piped:
            before = running[-1].stdout if running else subprocess.DEVNULL
            last = command is piped[-1]
            running.append(
                subprocess.Popen(
                    command,
                    stdin=before,
                    stdout=subprocess.DEVNULL if last else subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
        for command, process in zip(piped, running, strict=True):
            error = process.stderr.read() if process.stderr else b""
            if process.wait(limit) != 0:
                said = error.decode(errors="replace")[-2000:]
                raise RuntimeError(f"{command[0]} ended with {process.returncode}: {said}")
    except subprocess.TimeoutExpired as hangs:
        raise RuntimeError(f"{hangs.cmd[0]} hangs") from None
    finally:
        for process in running:
            process.kill()
            process.communicate()
