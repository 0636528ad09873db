"""Dump tools load whole tables.

They see the tables at one position and apply no change, they need nobody else to write to the
target, and they restart when they fail. All write the target's binlog, as setl does.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from setl_embedded import DatabaseServer
from tests.bench.metering import Meter, Taken
from tests.bench.servers import Target
from tests.bench.turns import Peer, StartPoint
from tests.bench.workloads import SCHEMA, Workload

_THREADS = "2"
_CHUNKS = 8  # of a table, so that all threads have work

_Command = Sequence[str]


class DumpTool(Peer):
    """Programs, one after another, or each reading what the one before writes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._programs = _STEPS[name][0]
        self._steps = _STEPS[name][1]

    def why_not(self, target: str, workload: Workload) -> str:
        if target != "mysql" or not workload.is_loaded:
            return "loads of databases only"
        return "" if all(map(shutil.which, self._programs)) else "not installed"

    def measure(self, start: StartPoint, target: Target) -> Taken:
        with (
            TemporaryDirectory(prefix="dump-", dir=start.folder) as folder,
            Meter(source=start.source.pid, target=target.pid) as meter,
        ):
            began = time.perf_counter()
            for piped in self._steps(start, target.mysql, Path(folder) / "dump"):
                _finish(piped, start.limit)
            return meter.taken(time.perf_counter() - began)


def _mydumper(start: StartPoint, target: DatabaseServer, folder: Path) -> list[list[_Command]]:
    rows = max(1, start.workload.base // _CHUNKS)
    return [
        [["mydumper", *_server(start.source), "-B", SCHEMA, "-o", str(folder), "-t", _THREADS,
          "-r", str(rows), "--no-schemas"]],
        [["myloader", *_server(target), "-B", SCHEMA, "-d", str(folder), "-t", _THREADS,
          "--enable-binlog"]],
    ]  # fmt: skip


def _mariadb_dump(start: StartPoint, target: DatabaseServer, _: Path) -> list[list[_Command]]:
    return [[
        ["mariadb-dump", *_server(start.source), "--single-transaction", "--quick",
         "--no-create-info", "--skip-triggers", SCHEMA],
        ["mariadb", *_server(target), SCHEMA],
    ]]  # fmt: skip


_STEPS = {
    "mydumper": (("mydumper", "myloader"), _mydumper),
    "mariadb-dump": (("mariadb-dump", "mariadb"), _mariadb_dump),
}


def _server(server: DatabaseServer) -> list[str]:
    return ["-h", server.host, "-P", str(server.port), "-u", server.user,
            f"--password={server.password}"]  # fmt: skip


def _finish(piped: Sequence[_Command], limit: float) -> None:
    """Run programs, each reading what the one before writes.

    Raises:
        RuntimeError: one of them fails, or hangs.
    """
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in piped:
            running.append(subprocess.Popen(
                command,
                stdin=running[-1].stdout if running else subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if command is piped[-1] else subprocess.PIPE,
                stderr=subprocess.PIPE,
            ))  # fmt: skip
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
