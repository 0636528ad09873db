"""A processor that is shipped to the workers of a Spark cluster."""

import textwrap

import yaml

from setl_drills.nodes import Cluster
from setl_embedded import SparkMaster, SparkWorker
from setl_embedded.ports import free_port
from tests.integration.pipelines import execute, fresh_name, mysql, rows
from tests.integration.two_nodes import command, is_warm
from tests.waiting import eventually

CODE = """
    import os
    from pathlib import Path

    def sign(change):
        # An executor runs in a folder of its own, which the file was sent to.
        assert Path(__file__).parent == Path.cwd(), os.getcwd()
        return change.mapped(lambda row: {"v": row.as_text("v") + " from " + Path.cwd().parts[-3]})
"""


def test_the_file_reaches_the_executors(zookeeper, servers, tmp_path):
    a, b = servers
    name, db, module = fresh_name("shipped"), fresh_name("shop"), fresh_name("rules")
    code = tmp_path / "code" / f"{module}.py"
    code.parent.mkdir()
    code.write_text(textwrap.dedent(CODE))
    for server in servers:
        execute(
            server, f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t (id INT PRIMARY KEY, v TEXT)"
        )
    source = {**mysql(a), "password": "${SETL_TEST_A}"}
    target = {**mysql(b), "password": "${SETL_TEST_B}"}
    tables = [{"from": f"{db}.t", "processor": f"{module}:sign"}]
    pipeline = {"name": "p", "source": source, "target": target, "tables": tables}
    file = tmp_path / "channel.yaml"
    file.write_text(yaml.safe_dump({"channel": name, "pipelines": [pipeline]}))
    environment = {"SETL_TEST_A": a.password, "SETL_TEST_B": b.password, "SETL_ROOT": f"/{name}"}
    (tmp_path / "nodes").mkdir()
    cluster = Cluster(tmp_path / "nodes", zookeeper.hosts, environment)
    with (
        SparkMaster(tmp_path / "master") as master,
        SparkWorker(tmp_path / "worker", master, memory="600m"),
    ):
        try:
            memory = ("--spark-conf", "spark.executor.memory=512m")
            variables = {"SETL_PY_FILES": str(code), "SETL_SPARK_SECRET": master.secret}
            cluster.start_node("n1", free_port(), master.url, variables, options=memory)
            eventually(lambda: is_warm(cluster, "n1"), 280)
            command(cluster, "apply", str(file))
            command(cluster, "start", name)
            execute(a, f"INSERT INTO {db}.t VALUES (1, 'one')")
            eventually(lambda: rows(b, f"{db}.t"), 120)
            assert rows(b, f"{db}.t") == ((1, "one from work"),)
            command(cluster, "stop", name)
        finally:
            cluster.stop()
            for server in servers:
                execute(server, f"DROP DATABASE {db}")
