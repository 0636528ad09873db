"""Measures setl: a node that stands by, a channel that is started, its position."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


class Node:
    """A node that stands by for one channel, which is stopped until `start`."""

    def __init__(self, pid: int, http: str, arbiter: ZooKeeperArbiter, channel: str) -> None:
        self.pid = pid
        self._http = http
        self._arbiter = arbiter
        self._channel = channel

    def start(self) -> None:
        """Start the channel as `setl start` does it, without the second a command takes."""
        change_state(self._arbiter, self._channel, ChannelState.START)

    def figures(self) -> list[dict[str, Any]]:
        """What each pipeline of the channel says about itself; none while it cannot be asked.

        Raises:
            RuntimeError: one of them has failed.
        """
        lines = (_status(self._http) or {}).get("pipelines", ())
        found = [line["figures"] for line in lines if line["channel"] == self._channel]
        for figures in found:
            if figures["state"] == "failed":
                raise RuntimeError(f"the pipeline failed: {figures['error']}")
        return found


@contextmanager
def standby(folder: Path, channel: dict[str, Any], *, master: str) -> Iterator[Node]:
    """A node that is warm.

    Args:
        folder: where logs go.
        channel: the only channel that it knows of.
        master: Spark master of the node.

    Raises:
        RuntimeError: it does not become warm, or the channel is refused.
    """
    # A ZooKeeper that knows of no earlier run: it would still hold its state and position.
    folder = Path(mkdtemp(prefix="setl-", dir=folder))
    with ZooKeeper(folder / "zookeeper") as zookeeper:
        yield from _standby(folder, zookeeper.hosts, channel, master)


def _standby(folder: Path, hosts: str, channel: dict[str, Any], master: str) -> Iterator[Node]:
    file = folder / "bench.yaml"
    file.write_text(yaml.safe_dump(channel))
    setl = str(Path(sys.executable).with_name("setl"))
    applied = subprocess.run(
        [setl, "apply", str(file), "--zookeeper", hosts],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if applied.returncode != 0:
        raise RuntimeError(f"setl apply: {applied.stdout}{applied.stderr}")
    port = free_port()
    node = spawn(
        "setl",
        [setl, "node", "--id", "n1", "--zookeeper", hosts, "--master", master,
         "--http", f"{HOST}:{port}"],
        log=folder / "node.log", cwd=folder,
    )  # fmt: skip
    arbiter = ZooKeeperArbiter(hosts)
    try:
        http = f"http://{HOST}:{port}"
        wait_for(lambda: (_status(http) or {}).get("warm"), _WARM_SECONDS, "the node is not warm")
        arbiter.start()
        yield Node(node.pid, http, arbiter, channel["channel"])
    finally:
        arbiter.close()
        node.stop(timeout=30)


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
    # Commands and node take passwords from their environment, which they have from here.
    os.environ[_PASSWORDS["source"]] = source.password
    if target.mariadb is not None:
        os.environ[_PASSWORDS["target"]] = target.mariadb.password
    channel = _channel(source, written, target)
    with standby(folder, channel, master=master) as node:
        began, cpu = time.perf_counter(), cpu_seconds(node.pid)
        node.start()
        wait_for(lambda: _done(node, written), limit, "not everything was applied")
        return Taken(time.perf_counter() - began, cpu_seconds(node.pid) - cpu)


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


def _done(node: Node, written: Written) -> bool:
    return any(
        figures["rows_applied"] >= written.workload.changes
        and _position(figures["position"]) >= (_number(written.end.file), written.end.offset)
        for figures in node.figures()
    )


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


def wait_for(condition: Callable[[], Any], limit: float, otherwise: str) -> None:
    """Wait until something is so.

    Raises:
        RuntimeError: it is not, after so many seconds; says what is the matter `otherwise`.
    """
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{otherwise} after {limit:.0f} s; see the node's log")
        time.sleep(_POLL_SECONDS)
