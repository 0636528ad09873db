"""A node whose Spark processes are killed: Python's are replaced, without the JVM it gives up."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from setl.node.cluster.answers import status_at
from setl_embedded.ports import free_port
from tests.integration.pipelines import execute, fresh_name, mysql
from tests.integration.spark_cluster import descendants, parents
from tests.waiting import eventually

SETL = str(Path(sys.executable).with_name("setl"))
SESSION_TIMEOUT = 40.0  # so long that a leadership given up cannot be mistaken for one that expired


class Node:
    """A node in a process of its own, and commands beside it."""

    def __init__(self, folder, zookeeper):
        self.folder = folder
        self.http = f"http://127.0.0.1:{free_port()}"
        self.log = folder / "node.log"
        environment = {"SETL_ZOOKEEPER": zookeeper.hosts, "SETL_ROOT": f"/{fresh_name()}"}
        self.environment = {**os.environ, **environment}
        command = [
            SETL, "node", "--id", "n1", "--master", "local[1]", "--http", self.http[7:],
            "--session-timeout", str(SESSION_TIMEOUT),
        ]  # fmt: skip
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command, env=self.environment, stdout=output, stderr=output, cwd=folder
            )

    def setl(self, *arguments):
        done = subprocess.run(
            [SETL, *arguments],
            env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=280,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def status(self):
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        return status_at(self.http, timeout=2) or {"warm": False, "pipelines": []}

    def epoch(self):
        """Of its one pipeline; None while a node that is held up does not answer in time."""
        lines = self.status()["pipelines"]
        return lines[0]["epoch"] if lines else None

    def children(self):
        """All processes below the node: pid → command line."""
        return descendants(self.process.pid)

    def jvm(self):
        (pid,) = [pid for pid, command in self.children().items() if "org.apache.spark" in command]
        return pid

    def python_workers(self):
        """The daemon that forks workers first, if it lives, then the workers."""
        found = {pid for pid, command in self.children().items() if "pyspark.worker" in command}
        # Not by their numbers, which begin anew once the highest was given.
        return sorted(found, key=lambda pid: len(found.intersection(parents(pid))))


@pytest.fixture
def node(tmp_path, zookeeper):
    node = Node(tmp_path, zookeeper)
    eventually(lambda: node.status()["warm"], 180)
    yield node
    if node.process.poll() is None:
        node.process.terminate()
        node.process.wait(60)


@pytest.fixture
def channel(node, servers):
    db, name = fresh_name("shop"), fresh_name("channel")
    for server in servers:
        execute(
            server,
            f"CREATE DATABASE {db}",
            f"CREATE TABLE {db}.t (id BIGINT PRIMARY KEY, v VARCHAR(40))",
        )
    file = node.folder / "channel.yaml"
    a, b = ({**mysql(server)} for server in servers)
    pipeline = {"name": "p", "source": a, "target": b, "tables": [{"from": f"{db}.t"}]}
    file.write_text(yaml.safe_dump({"channel": name, "pipelines": [pipeline]}))
    node.setl("apply", str(file))
    node.setl("start", name)
    yield name, db
    for server in servers:
        execute(server, f"DROP DATABASE {db}")


def arrives(servers, db, number):
    a, b = servers
    execute(a, f"INSERT INTO {db}.t VALUES ({number}, 'n')")
    eventually(lambda: execute(b, f"SELECT 1 FROM {db}.t WHERE id = {number}"), 90)


def test_a_node_loses_its_python_workers_then_their_daemon_then_the_jvm(node, servers, channel):
    _, db = channel
    arrives(servers, db, 1)

    # A worker in the middle of its transaction.
    slow = f"CREATE TRIGGER {db}.slow BEFORE INSERT ON {db}.t FOR EACH ROW"
    lock = f"DO GET_LOCK('{db}', 120); DO RELEASE_LOCK('{db}');"
    execute(servers[1], f"{slow} BEGIN IF NEW.id = 2 THEN {lock} END IF; END")
    with servers[1].connect() as holder, holder.cursor() as cursor:
        cursor.execute(f"DO GET_LOCK('{db}', 0)")
        execute(servers[0], f"INSERT INTO {db}.t VALUES (2, 'slow')")
        waits = "SELECT 1 FROM information_schema.processlist WHERE state = 'User lock'"
        eventually(lambda: execute(servers[1], waits), 60)
        epoch = eventually(node.epoch, 60)
        for pid in node.python_workers()[1:]:
            with suppress(ProcessLookupError):  # an idle one may end by itself
                os.kill(pid, signal.SIGKILL)
    # What its tasks have left behind can only be distinguished under another epoch.
    eventually(lambda: (node.epoch() or 0) > epoch, 60)
    assert "a Python worker of Spark ended in the middle of a task" in node.log.read_text()
    arrives(servers, db, 3)
    assert execute(servers[1], f"SELECT id FROM {db}.t ORDER BY id") == ((1,), (2,), (3,))

    # The daemon that starts workers, and then the last worker that it has started.
    daemon, *workers = node.python_workers()
    os.kill(daemon, signal.SIGKILL)
    arrives(servers, db, 4)
    for pid in workers:
        with suppress(ProcessLookupError):  # it was idle for too long, and has ended
            os.kill(pid, signal.SIGKILL)
    arrives(servers, db, 5)

    # The JVM, which hangs first.
    def engine_age():
        with urllib.request.urlopen(f"{node.http}/liveness", timeout=10) as answer:
            return json.load(answer)["engine_age"]

    os.kill(node.jvm(), signal.SIGSTOP)
    eventually(lambda: engine_age() > 4, 30)
    os.kill(node.jvm(), signal.SIGCONT)
    eventually(lambda: engine_age() < 4, 30)
    began = time.monotonic()
    os.kill(node.jvm(), signal.SIGKILL)
    assert node.process.wait(30) == 4
    took = time.monotonic() - began
    assert took < SESSION_TIMEOUT / 2, took
    log = node.log.read_text()
    lines = [line for line in log.splitlines() if "node cannot go on" in line]
    assert len(lines) == 1
    assert "ended by signal 9" in lines[0]
    assert "Error: the Spark session's JVM was ended by signal 9" in log
    (listed,) = json.loads(node.setl("list", "-o", "json"))
    assert listed["nodes"] == []
    assert [line["leader"] for line in listed["pipelines"]] == [""]


@pytest.mark.parametrize("moment", ["org.apache.spark.deploy.SparkSubmit", "pyspark.worker"])
def test_a_jvm_that_dies_while_the_node_starts_ends_it_with_a_sentence(tmp_path, zookeeper, moment):
    """The first before Python can talk to it, the second while workers are warmed."""
    node = Node(tmp_path, zookeeper)
    try:

        def has_come():
            if node.process.poll() is not None:
                pytest.fail(node.log.read_text())
            return any(moment in line for line in node.children().values())

        eventually(has_come, 180)
        # The first of them is or becomes the JVM; below it, what makes its command line passes.
        commands = [pid for pid, line in node.children().items() if "deploy.SparkSubmit" in line]
        (jvm,) = [pid for pid in commands if [*parents(pid)][1:2] == [node.process.pid]]
        os.kill(jvm, signal.SIGKILL)
        assert node.process.wait(120) == 4
    finally:
        if node.process.poll() is None:
            node.process.kill()
            node.process.wait(60)
    said = node.log.read_text()
    assert "Error: the Spark session's JVM" in said
    assert "Traceback" not in said
