"""Measures setl: a node that stands by, a channel that is started, its position."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.error import URLError

import yaml

from arbiter.requests import change_state
from arbiter.values import ChannelState
from arbiter.zookeeper import ZooKeeperArbiter
from setl_embedded import MariaDb, ZooKeeper
from setl_embedded.ports import HOST, free_port
from setl_embedded.process import spawn
from tests.bench.cpu import cpu_seconds
from tests.bench.report import Taken
from tests.bench.servers import Target, mysql_settings
from tests.bench.workloads import SCHEMA, Position, Written

_CHANNEL = "bench"
_WARM_SECONDS = 180.0
_POLL_SECONDS = 0.02
_PASSWORDS = {"source": "BENCH_SOURCE_PASSWORD", "target": "BENCH_TARGET_PASSWORD"}


def measure(
    folder: Path, source: MariaDb, written: Written, target: Target, *, master: str, limit: float
) -> Taken:
    """What it takes from the start of the channel until everything written is applied.

    Args:
        folder: where logs go.
        source: the server whose binlog is read.
        written: what is read.
        target: where it goes.
        master: Spark master of the node.
        limit: seconds after which it counts as hanging.

    Raises:
        RuntimeError: it failed or did not end; says where the log is.
    """
    # A ZooKeeper that knows of no earlier run: it would still hold its state and position.
    folder = Path(mkdtemp(prefix="setl-", dir=folder))
    # Commands and node take passwords from their environment, which they have from here.
    os.environ[_PASSWORDS["source"]] = source.password
    if target.mariadb is not None:
        os.environ[_PASSWORDS["target"]] = target.mariadb.password
    channel = folder / "bench.yaml"
    channel.write_text(yaml.safe_dump(_channel(source, written, target)))
    setl = str(Path(sys.executable).with_name("setl"))
    with ZooKeeper(folder / "zookeeper") as zookeeper:
        applied = subprocess.run(
            [setl, "apply", str(channel), "--zookeeper", zookeeper.hosts],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if applied.returncode != 0:
            raise RuntimeError(f"setl apply: {applied.stdout}{applied.stderr}")
        port = free_port()
        node = spawn(
            "setl",
            [setl, "node", "--id", "n1", "--zookeeper", zookeeper.hosts, "--master", master,
             "--http", f"{HOST}:{port}"],
            log=folder / "node.log", cwd=folder,
        )  # fmt: skip
        try:
            return _run(node.pid, f"http://{HOST}:{port}", zookeeper.hosts, written, limit)
        finally:
            node.stop(timeout=30)


def _channel(source: MariaDb, written: Written, target: Target) -> dict[str, Any]:
    start = {"file": written.start.file, "offset": written.start.offset}
    if target.elasticsearch is not None:
        end: dict[str, Any] = {"type": "elasticsearch", "hosts": [target.elasticsearch.url]}
    else:
        end = _end(target.mysql, "target")
    return {
        "channel": _CHANNEL,
        "pipelines": [
            {
                "name": written.workload.name,
                "source": {**_end(source, "source"), "start": start},
                "target": end,
                "tables": [{"from": f"{SCHEMA}.{written.workload.table}"}],
            }
        ],
    }


def _end(server: MariaDb, role: str) -> dict[str, Any]:
    return {
        **mysql_settings(server),
        "type": "mysql",
        "password": f"${{{_PASSWORDS[role]}}}",
    }


def _run(pid: int, http: str, hosts: str, written: Written, limit: float) -> Taken:
    _wait(lambda: (_status(http) or {}).get("warm"), _WARM_SECONDS, "the node is not warm")
    arbiter = ZooKeeperArbiter(hosts)
    try:
        arbiter.start()
        # As `setl start` does it, without the second that a command takes to begin.
        began, cpu = time.perf_counter(), cpu_seconds(pid)
        change_state(arbiter, _CHANNEL, ChannelState.START)
        _wait(lambda: _done(http, written), limit, "not everything was applied")
        return Taken(time.perf_counter() - began, cpu_seconds(pid) - cpu)
    finally:
        arbiter.close()


def _done(http: str, written: Written) -> bool:
    for line in (_status(http) or {}).get("pipelines", ()):
        figures = line["figures"]
        if figures["state"] == "failed":
            raise RuntimeError(f"the pipeline failed: {figures['error']}")
        if figures["rows_applied"] >= written.workload.changes:
            return _position(figures["position"]) >= (_number(written.end.file), written.end.offset)
    return False


def _position(text: str) -> tuple[int, int]:
    file, _, offset = text.partition(" ")[0].rpartition(":")
    position = Position(file, int(offset)) if file else Position("x.0", 0)
    return _number(position.file), position.offset


def _number(file: str) -> int:
    return int(file.rpartition(".")[2])


def _status(http: str) -> dict[str, Any] | None:
    try:
        with urllib.request.urlopen(f"{http}/status", timeout=2) as answer:
            status: dict[str, Any] = json.load(answer)
            return status
    except (URLError, OSError, ValueError):
        return None


def _wait(condition: Callable[[], Any], limit: float, otherwise: str) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{otherwise} after {limit:.0f} s; see the node's log")
        time.sleep(_POLL_SECONDS)
