"""A channel on a Spark cluster of two workers, to which setl and the user's code are sent."""

import os
import subprocess
import textwrap
from contextlib import closing

import pytest
import yaml

from setl_drills.nodes import Cluster
from setl_embedded.ports import free_port
from tests.integration import wires
from tests.integration.pipelines import execute, fresh_name, mysql, rows
from tests.integration.spark_cluster import (
    descendants,
    executors_of,
    holder_of_port,
    listening_addresses,
    node_options,
    parents,
    python_without_setl,
    spark_cluster,
)
from tests.integration.two_nodes import command, is_warm
from tests.waiting import INNODB_RENEWED, eventually

CODE = "/files/scale_out_rules.py"

pytestmark = pytest.mark.timeout(900)  # three JVMs start, and a silent one is waited for

# Whoever comes first with such a row waits, as it would in a process that is frozen.
RULES = """
    import os
    import time
    from pathlib import Path

    import setl

    def rule(change):
        # setl came with the session, into the executor's folder; so did this file.
        assert Path(setl.__file__).resolve().parents[2] == Path.cwd(), setl.__file__
        assert Path(__file__).parent == Path.cwd(), __file__
        name = change.row.as_text("v")
        if name == "sign":
            return change.mapped(lambda row: {"v": "signed in " + Path.cwd().parts[-3]})
        if name.startswith("wait "):
            place = Path(name.removeprefix("wait "))
            try:
                (place / "pid").open("x").write(str(os.getpid()))
            except FileExistsError:
                return change
            deadline = time.monotonic() + 280
            while not (place / "go on").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        return change
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return python_without_setl(tmp_path_factory.mktemp("python") / "environment")


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    with spark_cluster(tmp_path_factory.mktemp("spark")) as (master, workers):
        yield master, workers


@pytest.fixture(scope="module")
def cluster(request, workers, python, zookeeper, servers, tmp_path_factory):
    """A node whose loads fail when a task is lost; one for whose tasks Spark has more attempts."""
    a, b = servers
    master, _ = workers
    folder = tmp_path_factory.mktemp("nodes")
    code = folder / "scale_out_rules.py"
    code.write_text(textwrap.dedent(RULES))
    environment = {
        "SITE_A_PASSWORD": a.password, "SITE_B_PASSWORD": b.password,
        "SETL_ROOT": f"/{fresh_name()}",
        "SETL_PY_FILES": str(code), "PYSPARK_PYTHON": str(python),
    }  # fmt: skip
    cluster = Cluster(folder, zookeeper.hosts, environment)
    options = node_options(**{"spark.task.maxFailures": request.param})
    try:
        cluster.start_node("n1", free_port(), master.url, options=options)
        eventually(lambda: is_warm(cluster, "n1"), 280)
        yield cluster
    finally:
        cluster.stop()


# What Spark does about a lost task says nothing where none is. A killed worker is lost where its
# load fails at once, as nodes have it; one that comes back where Spark has begun its task again.
FAILS, REPEATS = (
    pytest.mark.parametrize("cluster", [failures], ids=[name], indirect=True)
    for failures, name in (("1", "fails"), ("4", "repeats"))
)


class Channel:
    """A channel of one table that is applied and started."""

    def __init__(self, cluster, servers, workers, **options):
        self.cluster, self.servers, self.workers = cluster, servers, workers
        self.a, self.b = servers
        self.name, self.db = fresh_name("wide"), fresh_name("shop")
        self.table = f"{self.db}.t"
        for server in servers:
            execute(
                server,
                f"CREATE DATABASE {self.db}",
                f"CREATE TABLE {self.table} (id BIGINT PRIMARY KEY, v VARCHAR(200), n INT)",
            )
        source = {**mysql(self.a), "password": "${SITE_A_PASSWORD}"}
        target = {**mysql(self.b), "password": "${SITE_B_PASSWORD}"}
        tables = [{"from": self.table, "processor": "scale_out_rules:rule"}]
        pipeline = {"name": "p", "source": source, "target": target, "tables": tables, **options}
        file = cluster.folder / f"{self.name}.yaml"
        file.write_text(yaml.safe_dump({"channel": self.name, "pipelines": [pipeline]}))
        command(cluster, "apply", str(file))
        command(cluster, "start", self.name)

    def insert(self, first, count):
        with self.a.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for start in range(first, first + count, 1000):
                cursor.executemany(
                    f"INSERT INTO {self.table} VALUES (%s, %s, %s)",
                    [(i, f"row {i}", i % 7) for i in range(start, start + 1000)],
                )
                connection.commit()

    def figures(self):
        return eventually(self._reported, 60)

    def _reported(self):
        """What the node says of the pipeline; it may be held up for longer than it is asked."""
        status = self.cluster.status("n1", timeout=5) or {"pipelines": []}
        found = [p for p in status["pipelines"] if p["channel"] == self.name]
        return found[0] if found else None

    def applied(self, count):
        def reached():
            figures = self.figures()["figures"]
            if figures["state"] == "failed":
                raise RuntimeError(figures["error"])
            assert figures["rows_total"] >= count, figures
            return figures

        # Not one more: what was loaded again does not count again.
        assert eventually(reached, 200)["rows_total"] == count

    def equal(self):
        return rows(self.a, self.table) == rows(self.b, self.table)

    def writers(self):
        """Whose connections have written: the worker's number of each."""
        found = set()
        for (host,) in execute(
            self.b,
            "SELECT p.host FROM retl.setl_writer w JOIN information_schema.processlist p"
            f" ON p.id = w.conn_id WHERE w.pipeline = '{self.name}/p'",
        ):
            pid = holder_of_port(int(host.rpartition(":")[2]), self.b.port)
            found |= {n for n, w in enumerate(self.workers) if pid and w.pid in parents(pid)}
        return found

    def close(self):
        command(self.cluster, "stop", self.name, check=False)
        for server in self.servers:
            execute(server, f"DROP DATABASE {self.db}")


@pytest.fixture
def channel(cluster, servers, workers):
    for worker in workers[1]:
        worker.start()
    eventually(lambda: all(executors_of(worker) for worker in workers[1]), 120)
    channel = Channel(cluster, servers, workers[1], batch_rows=4000, rows_per_task=1000)
    yield channel
    channel.close()


def test_the_workers_have_no_setl_of_their_own(python, tmp_path):
    done = subprocess.run(
        [python, "-c", "import pymysql, pyarrow, pyspark; import setl"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    assert "No module named 'setl'" in done.stderr


@FAILS
def test_tasks_on_both_workers_apply_what_the_source_has(channel):
    # One of them may have come to the application later, and so to none of the first tasks.
    count = 0
    while channel.writers() != {0, 1} and count < 100_000:
        channel.insert(count, 20_000)
        count += 20_000
        channel.applied(count)
    assert channel.writers() == {0, 1}
    assert channel.equal()
    # What the processor makes of a row, in an executor's folder.
    execute(channel.a, f"UPDATE {channel.table} SET v = 'sign' WHERE id = 1")
    channel.applied(count + 1)
    found = execute(channel.b, f"SELECT v FROM {channel.table} WHERE id = 1")
    assert found == (("signed in work",),)


@FAILS
def test_what_a_stranger_gets_at_the_ports_of_the_cluster(channel, workers):
    """Without the secret nobody is let in; Spark serves files of code all the same."""
    master, of_it = workers
    node = channel.cluster.nodes["n1"]
    # Those of the cluster's pages, and the node's HTTP.
    pages = {server._web_port for server in (master, *of_it)}
    pages.add(int(channel.cluster.http["n1"].rpartition(":")[2]))
    turned_away, serving = [], []
    for root in (node, master, *of_it):
        for pid, said in {root.pid: type(root).__name__, **descendants(root.pid)}.items():
            for address, port in listening_addresses({pid}):
                if port in pages:
                    continue
                if "pyspark.worker" in said:
                    assert wires.worker_refuses(port)
                elif pid == node.pid:
                    assert wires.accumulators_answer(port) == b""
                elif "java" in said and (obeys := wires.gateway_obeys(port, address)) is not None:
                    assert obeys is False
                else:
                    assert wires.NO_HANDSHAKE in wires.spark_request(port, address), (said, port)
                    turned_away.append(said)
                    if b"import os" in wires.spark_stream(CODE, port, address):
                        serving.append(said)
    kinds = ["SparkSubmit", "CoarseGrainedExecutorBackend", "SparkMaster", "SparkWorker"]
    assert all(any(kind in said for said in turned_away) for kind in kinds), turned_away
    # Spark's own gap, which docs/pages/security.md names. If it is closed, it should say so.
    assert ["SparkSubmit" in said for said in serving] == [True]


@FAILS
def test_a_worker_that_is_killed_in_the_middle_of_a_batch(channel):
    channel.insert(0, 4000)
    channel.applied(4000)
    epoch = channel.figures()["epoch"]
    with closing(channel.b.connect(autocommit=False)) as holder, holder.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {channel.table} WHERE id IN (7, 8, 9, 10) FOR UPDATE")
        execute(channel.a, f"UPDATE {channel.table} SET n = n + 1")
        worker = eventually(lambda: _waiting(channel), 60, interval=INNODB_RENEWED)
        worker.kill()  # and its executor, which is in the same process group
    channel.applied(8000)
    assert channel.equal()
    assert channel.figures()["epoch"] > epoch
    assert channel.writers() == {channel.workers.index(w) for w in channel.workers if w != worker}


def _waiting(channel):
    """The worker below which a task waits for a row of the table, None if none is seen."""
    found = execute(
        channel.b,
        "SELECT p.host FROM information_schema.innodb_trx t JOIN information_schema.processlist p"
        " ON p.id = t.trx_mysql_thread_id JOIN retl.setl_writer w ON w.conn_id = p.id"
        f" WHERE t.trx_state = 'LOCK WAIT' AND w.pipeline = '{channel.name}/p'",
    )
    for (host,) in found:
        # Its wait, and its process, may have ended since.
        pid = holder_of_port(int(host.rpartition(":")[2]), channel.b.port)
        for worker in channel.workers:
            if pid and worker.pid in parents(pid):
                return worker
    return None


@REPEATS
def test_a_worker_that_was_only_frozen_writes_nothing_late(channel, tmp_path):
    channel.insert(0, 1000)
    channel.applied(1000)
    epoch = channel.figures()["epoch"]
    # A task that is past everything but its transaction.
    execute(channel.a, f"UPDATE {channel.table} SET v = 'wait {tmp_path}' WHERE id = 1")
    eventually((tmp_path / "pid").exists, 60)
    pid = int(eventually((tmp_path / "pid").read_text, 10))
    (worker,) = [w for w in channel.workers if w.pid in parents(pid)]
    worker.pause()  # and its executor; nobody there can be told to end
    try:
        channel.applied(1001)
        assert channel.figures()["epoch"] > epoch
        execute(channel.a, f"UPDATE {channel.table} SET v = 'later' WHERE id = 1")
        channel.applied(1002)
        assert channel.equal()
        (tmp_path / "go on").touch()
        # It comes to the target, on behalf of the old leadership, and is done there.
        eventually(lambda: _has_been(channel, pid), 60)
        assert channel.equal()
        assert execute(channel.b, f"SELECT v FROM {channel.table} WHERE id = 1") == (("later",),)
    finally:
        worker.resume()
    channel.insert(1000, 1000)
    channel.applied(2002)
    assert channel.equal()


def _has_been(channel, pid):
    """Whether a process was at the target just now, and has asked for nothing for a second."""
    found = execute(
        channel.b,
        "SELECT host FROM information_schema.processlist"
        " WHERE command = 'Sleep' AND time BETWEEN 1 AND 20",
    )
    ports = [int(host.rpartition(":")[2]) for (host,) in found if host]
    return pid in {holder_of_port(port, channel.b.port) for port in ports}
