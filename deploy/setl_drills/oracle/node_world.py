"""A source, its own replica, a target, and a real node with a channel between source and target.

Instead of the binlog, the channel may read a topic that a relay of setl fills with it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final, Self
from unittest.mock import patch

import pymysql
import yaml

from setl.channel.fields.kafka_formats import STANDALONE
from setl.cli.main import run
from setl.systems.mysql.sql_files import system_table_statements
from setl_drills.binlog import binlog_end
from setl_drills.nodes import Cluster
from setl_drills.oracle.replica import Replication
from setl_drills.tables import RELAY, topic_of, whole_topic
from setl_drills.waiting import wait_for
from setl_embedded import DatabaseServer, Kafka, MariaDb, MySql, ZooKeeper
from setl_embedded.ports import free_port

_CHANNEL: Final = "oracle"
_PIPELINE: Final = "st"
_NODE: Final = "n1"
_RELAYING: Final = "oracle-relay"
"""The channel of the relay, if changes go through a topic."""
_RELAY: Final = "r1"
_TOPIC: Final = "oracle"
_MARKS: Final = "oracle_marks"
_WARM_LIMIT = 240.0
_APPLY_LIMIT = 90.0
_OPTIONS: Final = ("--innodb-buffer-pool-size=96M", "--log-bin-trust-function-creators=1")
_ZONE: Final = "--default-time-zone=+08:00"
"""Of source and replica: a target that takes its own zone for the source's has another one."""


@dataclass(frozen=True, slots=True)
class Applied:
    """How far the pipeline has come.

    Attributes:
        state: ``applied``, ``failed``, ``hangs`` or ``ended``.
        error: what it says of itself, "" if it has applied everything.
    """

    state: str
    error: str = ""


class NodeWorld:
    """A context manager: the channel runs on entry, everything is gone on exit.

    Attributes:
        source: takes the statements.
        replica: follows the source by the server's own replication.
        target: what the channel writes to.
        mixed: whether source and target are of two families.
        through: the format of the records between source and target, "" for none: the binlog.
        folder: data and logs of everything.
    """

    def __init__(
        self,
        folder: Path,
        source: type[DatabaseServer],
        target: type[DatabaseServer],
        through: str = "",
        ddl: str = "pass",
    ) -> None:
        """Describe it; nothing is started.

        Args:
            folder: for data and logs.
            source: the family of source and replica, `MariaDb` or `MySql`.
            target: the family of the target.
            through: a format of topics, or "".
            ddl: see a pipeline's; with ``ignore``, setl creates tables as the source has them.
        """
        self.folder = folder
        self.mixed = source is not target
        self.through = through
        self._ddl = ddl
        self.source = _server(source, folder, "source", 741, _ZONE)
        self.replica = _server(source, folder, "replica", 742, _ZONE, "--skip-slave-start")
        self.target = _server(target, folder, "target", 743)
        self._zookeeper = ZooKeeper(folder / "zookeeper")
        self._kafka = Kafka(folder / "kafka") if through else None
        self._marks = 0
        self._loads = False
        self._names: list[str] = []
        self._exit = ExitStack()

    @property
    def mariadb(self) -> bool:
        """Whether the source is MariaDB."""
        return isinstance(self.source, MariaDb)

    def __enter__(self) -> Self:
        others = [self._zookeeper, *([self._kafka] if self._kafka else [])]
        servers = (self.source, self.replica, self.target, *others)
        with ExitStack() as starting:
            for server in servers:
                starting.callback(server.stop)
            with ThreadPoolExecutor(len(servers)) as pool:
                list(pool.map(lambda server: server.start(), servers))
            for server in (self.source, self.replica, self.target):
                execute(server, "SET SESSION sql_log_bin = 0", *system_table_statements())
                execute(
                    server,
                    "SET SESSION sql_log_bin = 0",
                    f"CREATE DATABASE {_MARKS}",
                    f"CREATE TABLE {_MARKS}.m (id INT PRIMARY KEY, n BIGINT)",
                )
            self._replication = Replication(self.replica, self.source)
            self.follow()
            secrets = {"ORACLE_S": self.source.password, "ORACLE_T": self.target.password}
            self._cluster = Cluster(self.folder, self._zookeeper.hosts, secrets)
            starting.callback(self._cluster.stop)
            self._environment = {**secrets, "SETL_ZOOKEEPER": self._zookeeper.hosts}
            self._start_processes()
            for channel in self._channels():
                name = channel["channel"]
                file = self.folder / f"{name}.yaml"
                file.write_text(yaml.safe_dump(channel))
                self.setl("apply", str(file), "--yes")
                self.setl("start", name)
                self._names.append(name)
            applied = self.wait_applied()
            if applied.state != "applied":
                raise RuntimeError(f"the channel does not begin: {applied}")
            self._exit = starting.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _start_processes(self) -> None:
        """Start the node and, to fill a topic, a relay, unless they run."""
        started = self._cluster.nodes
        if self._kafka and not (_RELAY in started and started[_RELAY].running):
            self._cluster.start_relay(_RELAY, free_port())
        if _NODE in started and started[_NODE].running:
            return
        process = self._cluster.start_node(
            _NODE, free_port(), options=("--spark-conf", "spark.driver.memory=1g")
        )

        def warm() -> bool:
            if not process.running:
                raise process.failure("ended instead of getting warm")
            status = self._cluster.status(_NODE)
            return bool(status and status["warm"])

        wait_for("the node to be warm", warm, _WARM_LIMIT, interval=0.2)

    def _channels(self) -> list[dict[str, Any]]:
        """The channels in the order of the changes; one, or a relay and its reader."""
        ends = {
            name: {
                "host": server.host,
                "port": server.port,
                "user": server.user,
                "password": f"${{ORACLE_{name.upper()}}}",
            }
            for name, server in (("s", self.source), ("t", self.target))
        }
        binlog, target = ({"type": "mysql", **ends[name]} for name in "st")
        tables = [{"from": "*.*"}]
        follows = {"target": target, "ddl": self._ddl, "create": True, "tables": tables}
        if not self._kafka:
            pipeline = {"name": _PIPELINE, "source": binlog, **follows}
            return [{"channel": _CHANNEL, "pipelines": [pipeline]}]
        brokers, form = self._kafka.brokers, STANDALONE.get(self.through)
        topic = {**topic_of(brokers, _TOPIC), "format": self.through}
        source = {**whole_topic(brokers, _TOPIC), "format": self.through, "database": ends["s"]}
        if form is not None:
            topic |= {**form.read_with, "schema_changes": True}
            source |= form.source_fields
        pipelines = {
            _RELAYING: {"name": RELAY, "source": binlog, "target": topic, "tables": tables},
            _CHANNEL: {"name": _PIPELINE, "source": source, **follows},
        }
        return [{"channel": name, "pipelines": [each]} for name, each in pipelines.items()]

    def setl(self, *arguments: str, check: bool = True) -> str:
        """Run a command in this process, which saves a second each time; returns what it says.

        Raises:
            RuntimeError: it failed, and `check` is set.
            ValueError: there is no such command, which would be refused in every history.
        """
        said = StringIO()
        with (
            patch.dict(os.environ, self._environment),
            redirect_stdout(said),
            redirect_stderr(said),
        ):
            status = run(arguments)
        if status and "Usage: setl" in said.getvalue():
            raise ValueError(said.getvalue())
        if status and check:
            raise RuntimeError(f"setl {' '.join(arguments)} ended with {status}: {said.getvalue()}")
        return said.getvalue()

    def follow(self) -> None:
        """Have the replica begin where the source is now."""
        self._replication.stop()
        self._replication.start("", binlog_end(self.source))

    def wait_replicated(self) -> str:
        """Wait for the replica; returns "" or the error that it has stopped with."""
        try:
            return self._replication.reach(binlog_end(self.source))
        except TimeoutError as error:
            return str(error)

    def wait_applied(self, limit: float = _APPLY_LIMIT) -> Applied:
        """Wait until the target has a mark that the source writes now, and loads have ended."""
        self._marks += 1
        execute(self.source, f"REPLACE INTO {_MARKS}.m VALUES (1, {self._marks})")
        began = asked = time.monotonic()
        while True:
            found = query(self.target, f"SELECT n FROM {_MARKS}.m WHERE id = 1")
            if found and found[0][0] >= self._marks and not self._is_loading():
                return Applied("applied")
            now = time.monotonic()
            if now - asked > 0.3:
                asked = now
                state, error = self._state()
                if state != "applied":
                    return Applied(state, error)
                if now - began > limit:
                    return Applied("hangs", f"nothing for {limit:.0f} s; {error}")
            time.sleep(0.02)

    def _state(self) -> tuple[str, str]:
        """``failed`` or ``ended`` and why; ``applied`` as long as all go on."""
        said = ""
        for nid in self._cluster.http:
            process = self._cluster.nodes[nid]
            if not process.running:
                return "ended", str(process.failure("ended by itself"))
            status = self._cluster.status(nid)
            for line in (status or {}).get("pipelines", ()):
                figures = line.get("figures") or {}
                if str(figures.get("state")).lower() in {"failed", "fail"}:
                    return "failed", str(figures.get("error"))
                said = str(figures.get("error") or figures.get("state"))
        return "applied", said

    def pause(self) -> None:
        """Apply nothing until `resume`."""
        for name in self._names:
            self.setl("pause", name)

    def resume(self) -> None:
        """Go on after `pause`."""
        for name in self._names:
            self.setl("start", name, "--no-wait")

    def _is_loading(self) -> bool:
        if not self._loads:
            return False
        listed = json.loads(
            self.setl("load", "list", f"{_CHANNEL}/{_PIPELINE}", "--output", "json")
        )
        self._loads = any(not load["ended"] for load in listed)
        return self._loads

    def load(self, table: str) -> None:
        """Begin to load a table again, alongside the stream."""
        self._loads = True
        self.setl("load", f"{_CHANNEL}/{_PIPELINE}", "--table", table, "--no-wait", "--yes")

    def roll_back_prepared(self) -> None:
        """End the XA transactions that a history has left behind, with their locks."""
        for _, length, _, name in query(self.source, "XA RECOVER"):
            text = name if isinstance(name, str) else name.decode()
            execute(self.source, f"XA ROLLBACK '{text[:length]}'")

    def make_schema(self, schema: str, options: str) -> None:
        """Create a database on source and target; the replica gets it from the source."""
        for server in (self.target, self.source):
            execute(server, f"CREATE DATABASE {schema} {options}")

    def drop_schema(self, schema: str) -> None:
        """Remove a database everywhere, in no binlog; what was in it has been applied."""
        for server in (self.source, self.replica, self.target):
            execute(
                server, "SET SESSION sql_log_bin = 0, foreign_key_checks = 0",
                f"DROP DATABASE IF EXISTS {schema}",
            )  # fmt: skip

    def give_up(self, schema: str) -> None:
        """What an operator does about a stop: drop the tables, and go on behind them."""
        self._start_processes()
        for name in self._names:
            self.setl("stop", name, check=False)
        self._replication.stop()
        self.drop_schema(schema)
        for channel in self._channels():
            name = channel["channel"]
            pipeline = f"{name}/{channel['pipelines'][0]['name']}"
            self.setl("position", "reset", pipeline, "--to", "latest", "--yes")
            self.setl("start", name, "--no-check", "--no-wait")
        self.follow()
        applied = self.wait_applied()
        if applied.state != "applied":
            raise RuntimeError(f"the pipeline does not go on after a reset: {applied}")


def _server(
    kind: type[DatabaseServer], folder: Path, name: str, number: int, *options: str
) -> DatabaseServer:
    if kind is MariaDb:
        return MariaDb(folder / name, name, number, options=(*_OPTIONS, *options))
    own = [option for option in options if "slave" not in option]
    return MySql(folder / name, name, number, options=(*_OPTIONS, *own))


def execute(server: DatabaseServer, *statements: str) -> None:
    """Run statements in one session."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def query(server: DatabaseServer, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a query; none if the server refuses it, as one that lacks the table does."""
    with server.connect() as connection, connection.cursor() as cursor:
        try:
            cursor.execute(statement)
        except pymysql.ProgrammingError:
            return []
        return list(cursor.fetchall())


Say = Callable[[str], None]
