"""Competitors in loads of whole tables: what people dump a database with and load it again.

They see the tables at one place and apply no change, they need nobody else to write to the target,
and they begin anew when they fail. All write the target's binlog, as setl does.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

from setl_embedded import MariaDb
from tests.bench.competitor import Meter, Place
from tests.bench.report import Taken
from tests.bench.servers import Target
from tests.bench.workloads import SCHEMA, Workload

_THREADS = "2"
_CHUNKS = 8  # of a table, so that all threads have work


class _Tools:
    """Programs that are started one after another, or at once."""

    source = "binlog"
    target_options = ()
    name = ""
    _programs: Sequence[str] = ()

    def why_not(self, target: str, workload: Workload) -> str:
        """See `Competitor.why_not`."""
        if target != "mysql":
            return "only between databases"
        return "" if all(map(shutil.which, self._programs)) else "not installed"

    def measure(self, place: Place, target: Target) -> Taken:
        """See `Competitor.measure`."""
        meter = Meter(None, target, place.source.pid)
        folder = Path(mkdtemp(prefix="dump-", dir=place.folder))
        with meter.memory:
            began = time.perf_counter()
            self._run(place, target.mysql, folder)
            seconds = time.perf_counter() - began
        shutil.rmtree(folder)
        return meter.taken(seconds)

    def _run(self, place: Place, target: MariaDb, folder: Path) -> None:
        raise NotImplementedError


class MyDumper(_Tools):
    """mydumper, then myloader, two threads each."""

    name = "mydumper"
    _programs = ("mydumper", "myloader")

    def _run(self, place: Place, target: MariaDb, folder: Path) -> None:
        rows = max(1, place.written.workload.base // _CHUNKS)
        _finish(
            [["mydumper", *_server(place.source), "-B", SCHEMA, "-o", str(folder / "dump"),
              "-t", _THREADS, "-r", str(rows), "--no-schemas"]],
            place.limit,
        )  # fmt: skip
        _finish(
            [["myloader", *_server(target), "-B", SCHEMA, "-d", str(folder / "dump"),
              "-t", _THREADS, "--enable-binlog"]],
            place.limit,
        )  # fmt: skip


class MariaDbDump(_Tools):
    """mariadb-dump into mariadb, through a pipe."""

    name = "mariadb-dump"
    _programs = ("mariadb-dump", "mariadb")

    def _run(self, place: Place, target: MariaDb, folder: Path) -> None:
        _finish(
            [["mariadb-dump", *_server(place.source), "--single-transaction", "--quick",
              "--no-create-info", "--skip-triggers", SCHEMA],
             ["mariadb", *_server(target), SCHEMA]],
            place.limit,
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
