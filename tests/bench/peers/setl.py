"""setl: a node that stands by, a channel that is started, its checkpoint.

The time begins with the start of the channel, so that it includes what a take-over costs, and
ends when the checkpoint says that every change is applied. Of a load of whole tables it begins with
the leader's load. The node is warm and has come to rest, as one has that stands by; its JVM has
compiled next to nothing, as one that has just taken over.

The checkpoint is read where it is stored, in the target or in ZooKeeper: asking the node for its
status many times a second would cost it time that is being measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import yaml

from arbiter.requests import change_state
from arbiter.values import ChannelState, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl_drills.nodes import Cluster
from setl_drills.waiting import wait_for
from setl_embedded import DatabaseServer, ZooKeeper
from setl_embedded.ports import free_port
from tests.bench.metering import Meter, Taken
from tests.bench.servers import Target, mysql_settings
from tests.bench.turns import Peer, StartPoint
from tests.bench.workloads import SCHEMA

_CHANNEL, _NODE = "bench", "n1"
_WARM_SECONDS = 600.0  # on a machine that is busy with other things
_LOOK_SECONDS = 0.02
_STATUS_SECONDS = 2.0
# A node says that it is warm, and imports the systems of its channels in a thread after that.
_REST_SECONDS = 20.0
_REST_LOOK_SECONDS = 0.5
_REST_CPU_SECONDS = 0.03  # in that time, of all its processes
_MADE = {"note": "concat(note, '')", "quantity": "quantity + 0"}
_NAMED = 10  # more tables than these are mapped by a wildcard

_Read = Callable[[], dict[str, Any]]


class Node:
    """A node that stands by for one channel, which is stopped until `start`."""

    def __init__(self, cluster: Cluster, arbiter: ZooKeeperArbiter, read: _Read) -> None:
        self.pid = cluster.nodes[_NODE].pid
        self.checkpoint = read  # empty while there is none
        self._cluster = cluster
        self._arbiter = arbiter
        self._asked = time.monotonic()

    def start(self) -> None:
        """Start the channel as `setl start` does it, without the second that a command takes."""
        change_state(self._arbiter, _CHANNEL, ChannelState.START)

    def figures(self) -> dict[str, Any]:
        """What the pipeline says about itself; RuntimeError if it has failed."""
        lines = (self._cluster.status(_NODE) or {}).get("pipelines", ())
        figures: dict[str, Any] = next((line["figures"] for line in lines), {})
        if figures.get("state") == "failed":
            raise RuntimeError(f"the pipeline failed: {figures['error']}")
        return figures

    def has(self, rows: int, *, loaded: bool = False) -> bool:
        """Whether the checkpoint says that so many rows are applied, or loaded."""
        if time.monotonic() - self._asked > _STATUS_SECONDS:
            self.figures()
            self._asked = time.monotonic()
        checkpoint = self.checkpoint()
        return int((checkpoint.get("load") or {} if loaded else checkpoint).get("rows", 0)) >= rows


class Setl(Peer):
    """setl, from a binlog or from Kafka, with settings of the pipeline such as `batch_rows`.

    With `expressions` Spark SQL makes two columns, which it leaves as they are.
    """

    def __init__(
        self, master: str = "local[2]", *, kafka: bool = False, expressions: bool = False,
        **settings: Any,
    ) -> None:  # fmt: skip
        self.name = "setl-kafka" if kafka else "setl"
        self._master = master
        self._kafka = kafka
        self._expressions = expressions
        self._settings = settings

    def measure(self, start: StartPoint, target: Target) -> Taken:
        loads, size = start.workload.is_loaded, start.workload.size
        read_from = start.topic.pid if self._kafka else start.source.pid
        with self.standing_by(start, target, load=loads) as node:
            with Meter(node.pid, target=target.pid, source=read_from) as meter:
                began, at = time.perf_counter(), time.time()
                node.start()
                wait_for(
                    "everything to be applied", lambda: node.has(size, loaded=loads), start.limit,
                    interval=_LOOK_SECONDS,
                )  # fmt: skip
                seconds = time.perf_counter() - began
                if loads:
                    seconds = time.time() - node.checkpoint()["load"]["begun"]
            taken = meter.taken(seconds)
            first = None if loads else node.figures()["first_applied_at"] - at
            return Taken(seconds, first, taken.cpu, taken.memory)

    @contextmanager
    def standing_by(
        self, start: StartPoint, target: Target, *, load: bool = False, tables: tuple[str, ...] = ()
    ) -> Iterator[Node]:
        """A warm node whose channel begins with the workload, or with a load of the tables."""
        folder = Path(mkdtemp(prefix="setl-", dir=start.folder))
        file = folder / "bench.yaml"
        pipeline = self._pipeline(start, target, load, tables or start.workload.tables)
        file.write_text(yaml.safe_dump({"channel": _CHANNEL, "pipelines": [pipeline]}))
        passwords = {"SOURCE_PASSWORD": start.source.password}
        if target.database is not None:
            passwords["TARGET_PASSWORD"] = target.database.password
        with ExitStack() as stack:
            # It knows of no earlier run: it would still hold its state and position.
            zookeeper = stack.enter_context(ZooKeeper(folder / "zookeeper"))
            cluster = Cluster(folder, zookeeper.hosts, passwords)
            cluster.run("apply", str(file))
            stack.callback(cluster.stop)
            cluster.start_node(_NODE, free_port(), self._master)
            wait_for("the node to be warm", lambda: (cluster.status(_NODE) or {}).get("warm"),
                     _WARM_SECONDS)  # fmt: skip
            arbiter = ZooKeeperArbiter(zookeeper.hosts)
            arbiter.start()
            stack.callback(arbiter.close)
            node = Node(cluster, arbiter, _checkpoint(target, arbiter, start.workload.name, stack))
            _wait_for_rest(node.pid)
            yield node

    def _pipeline(
        self, start: StartPoint, target: Target, load: bool, tables: tuple[str, ...]
    ) -> dict[str, Any]:
        source = _server(start.source, "SOURCE")
        source["start"] = {"load": True} if load else start.written.start._asdict()
        if self._kafka:
            source = {"type": "kafka", "brokers": [start.topic.brokers], "topic": start.topic.name,
                      "start": "earliest"}  # fmt: skip
        names = tables if len(tables) < _NAMED else (f"{start.workload.name}_*",)
        columns = {"columns": _MADE} if self._expressions else {}
        return {
            "name": start.workload.name,
            "source": source,
            "target": _server(target.database, "TARGET")
            if target.database
            else {"type": "elasticsearch", "hosts": [target.url]},
            "tables": [{"from": f"{SCHEMA}.{name}", **columns} for name in names],
            **self._settings,
        }


def _server(server: DatabaseServer, role: str) -> dict[str, Any]:
    return {"type": "mysql", **mysql_settings(server), "password": f"${{{role}_PASSWORD}}"}


def _checkpoint(target: Target, arbiter: ZooKeeperArbiter, name: str, stack: ExitStack) -> _Read:
    """What reads the checkpoint of a pipeline."""
    if target.database is None:

        def in_zookeeper() -> dict[str, Any]:
            stored = arbiter.positions.read(PipelineId(_CHANNEL, name))
            return stored[0]["checkpoint"] if stored else {}

        return in_zookeeper
    cursor = stack.enter_context(target.database.connect()).cursor()

    def in_target() -> dict[str, Any]:
        cursor.execute("SELECT checkpoint FROM retl.setl_checkpoint WHERE pipeline = %s",
                       (f"{_CHANNEL}/{name}",))  # fmt: skip
        row = cursor.fetchone()
        return json.loads(row[0]) if row else {}

    return in_target


def _wait_for_rest(pid: int) -> None:
    """Until a node and what it has started do next to nothing; in vain if they always do more."""
    deadline = time.monotonic() + _REST_SECONDS
    resting = False
    while not resting and time.monotonic() < deadline:
        meter = Meter(pid)
        time.sleep(_REST_LOOK_SECONDS)
        resting = sum(meter.taken(0.0).cpu.values()) <= _REST_CPU_SECONDS
