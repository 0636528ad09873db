"""Measures setl: a node that stands by, a channel that is started, its checkpoint.

The time begins with the start of the channel, so that it includes what a take-over costs, and
ends when the checkpoint says that every change is applied. The node is warm and has come to rest,
as one has that stands by; its JVM has compiled next to nothing, as one that has just taken over.

The checkpoint is read where it is kept, in the target or in ZooKeeper: asking the node for its
status many times a second would cost it time that is being measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click
import yaml

from arbiter.requests import change_state
from arbiter.values import ChannelState, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.node.cluster.answers import status_at
from setl_embedded import MariaDb, ZooKeeper
from setl_embedded.ports import HOST, free_port
from setl_embedded.process import spawn
from tests.bench.competition import Meter, StartPoint
from tests.bench.report import Taken
from tests.bench.servers import Target, mysql_settings
from tests.bench.watching import DRIVER, cpu_by_role, wait_for
from tests.bench.workloads import SCHEMA, Position, Workload

_WARM_SECONDS = 600.0  # on a machine that is busy with other things
# A node says that it is warm, and imports the systems of its channels in a thread after that.
_REST_SECONDS = 20.0
_REST_LOOK_SECONDS = 0.5
_REST_CPU_SECONDS = 0.03  # in that time, of all its processes


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
        lines = (status_at(self._http) or {}).get("pipelines", ())
        found = [line["figures"] for line in lines if line["channel"] == self._channel]
        for figures in found:
            if figures["state"] == "failed":
                raise RuntimeError(f"the pipeline failed: {figures['error']}")
        return found

    def stored_position(self, pipeline: str) -> dict[str, Any] | None:
        """What ZooKeeper keeps as the checkpoint of a pipeline, None if that is not there."""
        stored = self._arbiter.positions.read(PipelineId(self._channel, pipeline))
        return stored[0] if stored else None


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
        wait_for(lambda: (status_at(http) or {}).get("warm"), _WARM_SECONDS, "the node is not warm")
        arbiter.start()
        _wait_for_rest(node.pid)
        yield Node(node.pid, http, arbiter, channel["channel"])
    finally:
        arbiter.close()
        node.stop(timeout=30)


def _wait_for_rest(pid: int) -> None:
    """Until a node and what it has started do next to nothing; in vain if they always do more."""
    deadline, before = time.monotonic() + _REST_SECONDS, -1.0
    while time.monotonic() < deadline:
        spent = sum(cpu_by_role({DRIVER: pid}).values())
        if before >= 0 and spent - before <= _REST_CPU_SECONDS:
            return
        before = spent
        time.sleep(_REST_LOOK_SECONDS)


master_option = click.option(
    "--master", default="local[2]", show_default=True, help="Spark master of setl."
)

_CHANNEL = "bench"
_LOOK_SECONDS = 0.02
_STATUS_SECONDS = 2.0
_PASSWORDS = {"source": "BENCH_SOURCE_PASSWORD", "target": "BENCH_TARGET_PASSWORD"}
_MADE = {"note": "concat(note, '')", "quantity": "quantity + 0"}
_NAMED = 10  # more tables than these are mapped by a wildcard


@dataclass(frozen=True)
class Setl:
    """setl, with settings.

    Attributes:
        source: binlog or kafka.
        name: for tables.
        master: Spark master.
        settings: of the pipeline, such as `batch_rows`.
        expressions: whether Spark SQL makes a column, which it leaves as it is.
    """

    source: str = "binlog"
    name: str = "setl"
    master: str = "local[2]"
    settings: tuple[tuple[str, Any], ...] = ()
    expressions: bool = False

    @property
    def target_options(self) -> Sequence[str]:
        return ()

    def why_not(self, target: str, workload: Workload) -> str:
        return ""

    def measure(self, position: StartPoint, target: Target) -> Taken:
        workload = position.written.workload
        with self.standing_by(position, target, position.written.start) as node:
            read_from = position.source if self.source == "binlog" else position.kafka
            assert read_from is not None
            with rows_applied(node, target, workload.name) as applied:
                meter = Meter(node.pid, target, read_from.pid)
                watch = _Watch(node, applied, workload.changes)
                with meter.memory:
                    began, at = time.perf_counter(), time.time()
                    node.start()
                    wait_for(watch.done, position.limit, "not everything was applied",
                             every=_LOOK_SECONDS)  # fmt: skip
                    seconds = time.perf_counter() - began
                taken = meter.taken(seconds)
            return Taken(seconds, _first_applied(node) - at, taken.cpu, taken.memory)

    @contextmanager
    def standing_by(
        self, position: StartPoint, target: Target, start: Position | None
    ) -> Iterator[Node]:
        """A warm node whose channel reads the binlog from `start`, or the whole topic.

        With None it loads the tables first, and reads the binlog from where it ends then.
        """
        # Commands and node take passwords from their environment, which they have from here.
        os.environ[_PASSWORDS["source"]] = position.source.password
        if target.mariadb is not None:
            os.environ[_PASSWORDS["target"]] = target.mariadb.password
        channel = self._channel(position, target, start)
        with standby(position.folder, channel, master=self.master) as node:
            yield node

    def _channel(
        self, position: StartPoint, target: Target, start: Position | None
    ) -> dict[str, Any]:
        workload = position.written.workload
        names = workload.tables if len(workload.tables) < _NAMED else (f"{workload.name}_*",)
        if self.source == "binlog":
            source = {
                **_end(position.source, "source"),
                "start": start._asdict() if start else {"load": True},
            }
        else:
            source = {"type": "dts", "brokers": [position.brokers], "topic": position.topic,
                      "start": "earliest"}  # fmt: skip
        if target.elasticsearch is not None:
            end: dict[str, Any] = {"type": "elasticsearch", "hosts": [target.elasticsearch.url]}
        else:
            end = _end(target.mysql, "target")
        columns = {"columns": _MADE} if self.expressions else {}
        pipeline = {
            "name": workload.name,
            "source": source,
            "target": end,
            "tables": [{"from": f"{SCHEMA}.{name}", **columns} for name in names],
            **dict(self.settings),
        }
        return {"channel": _CHANNEL, "pipelines": [pipeline]}


def _end(server: MariaDb, role: str) -> dict[str, Any]:
    return {**mysql_settings(server), "type": "mysql", "password": f"${{{_PASSWORDS[role]}}}"}


class _Watch:
    """Looks at the checkpoint, and from time to time at whether the pipeline still runs."""

    def __init__(self, node: Node, applied: Callable[[], int], changes: int) -> None:
        self._node = node
        self._applied = applied
        self._changes = changes
        self._asked = time.monotonic()

    def done(self) -> bool:
        if time.monotonic() - self._asked > _STATUS_SECONDS:
            self._node.figures()  # raises if it has failed
            self._asked = time.monotonic()
        return self._applied() >= self._changes


@contextmanager
def rows_applied(node: Node, target: Target, pipeline: str) -> Iterator[Callable[[], int]]:
    """Tells how many row changes the checkpoint says are applied."""
    if target.mariadb is None:

        def asked_zookeeper() -> int:
            stored = node.stored_position(pipeline)
            return int(stored["checkpoint"]["rows"]) if stored else 0

        yield asked_zookeeper
        return
    with target.mysql.connect() as connection, connection.cursor() as cursor:

        def asked_target() -> int:
            cursor.execute("SELECT checkpoint FROM retl.setl_checkpoint WHERE pipeline = %s",
                           (f"{_CHANNEL}/{pipeline}",))  # fmt: skip
            row = cursor.fetchone()
            return int(json.loads(row[0])["rows"]) if row else 0

        yield asked_target


def _first_applied(node: Node) -> float:
    """When the first rows were applied, seconds since 1970."""
    (figures,) = node.figures()
    return float(figures["first_applied_at"])
