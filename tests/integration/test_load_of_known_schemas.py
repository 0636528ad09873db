"""Schemas as people have them are loaded into empty tables while they change and leaders die."""

import random
import threading

import pytest
import yaml

from setl.failpoints import FOLDER
from setl_drills.nodes import Cluster
from setl_embedded.ports import free_port
from tests.deadlocks import repeated
from tests.integration.known_schemas import (
    COMPANY,
    COMPANY_EXTRAS,
    COMPANY_ROWS,
    SHOP,
    SHOP_EXTRAS,
    SHOP_ROWS,
    changes_of_company,
    changes_of_shop,
)
from tests.integration.pipelines import execute, fresh_name, mysql
from tests.integration.two_nodes import is_warm
from tests.waiting import eventually

LIMIT = 120  # nodes get warm slowly on a busy machine


class Schema:
    """A database at both sites: filled here, empty there."""

    def __init__(self, servers, tables, extras, rows, changes):
        self.name = fresh_name("known")
        self.tables, self.changes = tables, changes
        self.here, self.there = servers
        there = [f"CREATE TABLE {table} ({text})" for table, text in tables.items()]
        database = f"CREATE DATABASE {self.name} CHARACTER SET utf8mb4"
        execute(self.there, database, f"USE {self.name}", *there)
        numbers = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < {})"
        fill = [
            f"INSERT IGNORE INTO {table} ({', '.join(columns_of(text))})"
            f" SELECT {values.format(n='n')[1:-1]} FROM ({numbers.format(count)} SELECT n FROM t) x"
            for table, text in tables.items()
            if table in rows
            for count, values in (rows[table],)
        ]
        depth = "SET SESSION cte_max_recursion_depth = 100000"
        if "maria" in type(self.here).__name__.lower():
            depth = "SET SESSION max_recursive_iterations = 100000"
        execute(
            self.here, database, f"USE {self.name}", depth, "SET foreign_key_checks = 0",
            *there, *extras, *fill,
        )  # fmt: skip

    def write(self, stopping, draw, told):
        """Change rows until told to stop."""

        def change(cursor):
            for statement in self.changes(draw, told["transactions"]):
                cursor.execute(statement)

        try:
            with self.here.connect(autocommit=False, database=self.name) as connection:
                while not stopping.wait(0.01):
                    repeated(connection, change)
                    told["transactions"] += 1
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            told["error"] = error

    def differences(self):
        found = []
        for table in self.tables:
            question = f"SELECT * FROM {self.name}.{table} ORDER BY 1, 2"
            one, other = (sorted(map(str, execute(s, question))) for s in (self.here, self.there))
            if one != other:
                found.append((table, len(one), len(other)))
        return found

    def drop(self):
        for server in (self.here, self.there):
            execute(server, f"DROP DATABASE IF EXISTS {self.name}")


def columns_of(definition):
    """Names of the columns that are written: all but keys and what the server computes."""
    depth, parts = 0, [""]
    for char in definition:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    words = [(part.split()[0], part) for part in parts]
    keys = ("PRIMARY", "FOREIGN", "UNIQUE", "KEY", "FULLTEXT")
    return [name for name, part in words if name not in keys and " AS (" not in part]


@pytest.fixture
def schemas(servers):
    made = [
        Schema(servers, SHOP, SHOP_EXTRAS, SHOP_ROWS, changes_of_shop),
        Schema(servers, COMPANY, COMPANY_EXTRAS, COMPANY_ROWS, changes_of_company),
    ]
    yield made
    for schema in made:
        schema.drop()


@pytest.fixture
def nodes(servers, zookeeper_of_cluster, tmp_path):
    """Two nodes whose failpoints are in one folder: whoever passes an armed one first dies."""
    folder = tmp_path / "failpoints"
    folder.mkdir()
    secrets = {f"SETL_TEST_{x}": s.password for x, s in zip("AB", servers, strict=True)}
    cluster = Cluster(tmp_path, zookeeper_of_cluster.hosts, {**secrets, FOLDER: str(folder)})
    for nid in ("l1", "l2"):
        cluster.start_node(nid, free_port(), master="local[2]")
    eventually(lambda: all(is_warm(cluster, nid) for nid in cluster.nodes), LIMIT)
    yield cluster, folder
    cluster.stop()


@pytest.mark.timeout(600)
def test_known_schemas_while_all_is_changed_and_two_leaders_are_killed(servers, schemas, nodes):
    (cluster, folder), (a, b) = nodes, servers
    name = fresh_name("known")
    source = {**mysql(a), "password": "${SETL_TEST_A}", "start": {"load": True}}
    pipeline = {
        "name": "p",
        "source": {**source, "heartbeat": 0.5},
        "target": {**mysql(b), "password": "${SETL_TEST_B}"},
        "tables": [{"from": f"{schema.name}.*"} for schema in schemas],
    }
    file = cluster.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"channel": name, "pipelines": [pipeline]}))
    stopping, told = threading.Event(), [{"transactions": 0} for _ in schemas]
    writers = [
        threading.Thread(target=schema.write, args=(stopping, random.Random(number), each))
        for number, (schema, each) in enumerate(zip(schemas, told, strict=True))
    ]
    # A step passes them in this order: the first leader dies at one, the next one at the other.
    points = ("tables.after_job", "tables.loaded")
    for point in points:
        (folder / point).write_text("kill node")
    cluster.run("apply", str(file))
    starting = threading.Thread(target=cluster.run, args=("start", name), kwargs={"check": False})
    for thread in (*writers, starting):
        thread.start()
    try:
        eventually(lambda: has_ended(cluster, folder, points, b, name), 3 * LIMIT)
    finally:
        stopping.set()
        for thread in (*writers, starting):
            thread.join(60)
    assert [each for each in told if "error" in each or each["transactions"] < 50] == []
    for schema in schemas:
        eventually(lambda schema=schema: schema.differences() == [], 60, message=schema.name)
    cluster.run("stop", name)


def has_ended(cluster, folder, points, target, channel):
    """Whether the load has, after a death at each point; who is dead is started anew."""
    for nid, node in list(cluster.nodes.items()):
        if not node.running:
            cluster.start_node(nid, free_port(), master="local[2]")
    assert [point for point in points if not (folder / f"{point}.taken").exists()] == []
    assert state_of_load(target, channel) == "ended"
    return True


def state_of_load(server, name):
    query = "SELECT COALESCE(JSON_EXTRACT(checkpoint, '$.load.ended'), 0) > 0 FROM "
    found = execute(server, f"{query} retl.setl_checkpoint WHERE pipeline = '{name}/p'")
    return "ended" if found and found[0][0] else "under way"
