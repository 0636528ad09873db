"""Who brings the tables into the target: the demo's consumer, and setl in several settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from setl_embedded import MariaDb
from tests.bench.demo_consumer import Settings
from tests.bench.many_tables_workload import GROUP, HOT, SCHEMA
from tests.bench.servers import mysql_settings
from tests.bench.setl_node import Node, standby
from tests.bench.waiting import wait_for

_ROOT = Path(__file__).parents[2]
_PASSWORD = "BENCH_TARGET_PASSWORD"


@dataclass(frozen=True)
class Place:
    """What contenders work on.

    Attributes:
        folder: for logs.
        brokers: Kafka's address.
        target: where the tables are.
    """

    folder: Path
    brokers: str
    target: MariaDb


class Running(Protocol):
    """A contender that is ready."""

    def start(self) -> float:
        """Begin; returns when that was, by `time.monotonic`, once it takes records."""
        ...

    def wait(self, limit: float) -> None:
        """Wait until it has applied everything.

        Raises:
            RuntimeError: it failed, or has not done so after so many seconds.
        """
        ...


@dataclass(frozen=True)
class Contender:
    """The demo's consumer, or setl with settings.

    Attributes:
        name: for people; "demo" is the demo's consumer.
        master: Spark master of setl.
        group: whether setl is told that orders, items and payments are a table group.
        apart: whether the hot table has a pipeline of its own.
        backlog_only: whether it does not take part in paced cases.
    """

    name: str
    master: str = "local[2]"
    group: bool = True
    apart: bool = False
    backlog_only: bool = False

    @contextmanager
    def ready(self, place: Place, topic: str, changes: int) -> Iterator[Running]:
        """It, connected and warm, but not begun.

        Raises:
            RuntimeError: it does not come that far.
        """
        if self.name == "demo":
            with _demo(place, topic, changes) as demo:
                yield demo
            return
        os.environ[_PASSWORD] = place.target.password
        channel = self._channel(place, topic)
        with standby(place.folder, channel, master=self.master) as node:
            yield _Setl(node, len(channel["pipelines"]), changes)

    def _channel(self, place: Place, topic: str) -> dict[str, Any]:
        grouped = {"group": "orders"} if self.group else {}
        rest = [
            *({"from": f"{SCHEMA}.{table}", **grouped} for table in GROUP),
            {"from": f"{SCHEMA}.cold_*"},
        ]
        hot = [{"from": f"{SCHEMA}.{HOT}"}]
        target = {
            **mysql_settings(place.target), "type": "mysql", "password": f"${{{_PASSWORD}}}",
        }  # fmt: skip
        source = {"type": "dts", "brokers": [place.brokers], "topic": topic, "start": "earliest"}
        pipelines = {"rest": rest, "hot": hot} if self.apart else {"all": [*rest, *hot]}
        return {
            # The target remembers how far the channels of earlier runs have come.
            "channel": f"many-{uuid4().hex[:8]}",
            "pipelines": [
                {"name": name, "source": source, "target": target, "tables": mappings}
                for name, mappings in pipelines.items()
            ],
        }


CONTENDERS = (
    Contender("demo"),
    Contender("setl"),
    Contender("setl, hot table apart", apart=True),
    # A task that waits for its target holds a place of Spark's, of which nobody else has use then.
    Contender("setl, hot table apart, four tasks", master="local[4]", apart=True),
    Contender("setl, one task", master="local[1]", backlog_only=True),
    Contender("setl, no group", group=False, backlog_only=True),
)


class _Setl:
    def __init__(self, node: Node, pipelines: int, changes: int) -> None:
        self._node = node
        self._pipelines = pipelines
        self._changes = changes

    def start(self) -> float:
        began = time.monotonic()
        self._node.start()
        wait_for(self._takes_records, 180, "not all pipelines run")
        return began

    def _takes_records(self) -> bool:
        states = [figures["state"] for figures in self._node.figures()]
        return states.count("running") == self._pipelines

    def wait(self, limit: float) -> None:
        wait_for(self._done, limit, "not everything was applied")

    def _done(self) -> bool:
        return sum(figures["rows_applied"] for figures in self._node.figures()) >= self._changes


@contextmanager
def _demo(place: Place, topic: str, changes: int) -> Iterator[_Demo]:
    target = mysql_settings(place.target)
    settings = Settings(place.brokers, topic, f"demo-{topic}", target, changes)
    log = place.folder / f"demo-{uuid4().hex[:8]}.log"
    with log.open("w") as errors, subprocess.Popen(
        [sys.executable, "-m", "tests.bench.demo_consumer"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=_ROOT, text=True,
    ) as process:  # fmt: skip
        try:
            demo = _Demo(process, log)
            demo.connect(settings)
            yield demo
        finally:
            process.kill()


class _Demo:
    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def connect(self, settings: Settings) -> None:
        self._say(json.dumps(asdict(settings)))
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise self._failed()

    def start(self) -> float:
        began = time.monotonic()
        self._say("go")
        return began

    def wait(self, limit: float) -> None:
        try:
            status = self._process.wait(limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"not everything was applied after {limit:.0f} s") from None
        if status != 0:
            raise self._failed()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _failed(self) -> RuntimeError:
        self._process.wait(30)
        return RuntimeError(f"the demo's consumer failed: {self._log.read_text()[-2000:]}")
