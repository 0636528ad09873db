"""A schema as people have them is loaded into empty tables while it changes and leaders die."""

import random
import threading

import pytest

from setl import failpoints
from setl.channel.reading import parse_channel
from setl.errors import FatalError
from tests.deadlocks import repeated
from tests.integration.known_schemas import SHOP, SHOP_EXTRAS, SHOP_ROWS, changes_of_shop
from tests.integration.pipelines import execute, fresh_name, mysql
from tests.integration.table_loads.test_table_load import wait_until_loaded
from tests.waiting import eventually

LIMIT = 120


class Schema:
    """A database at both sites: filled here, empty there."""

    def __init__(self, servers):
        self.name = fresh_name("known")
        self.here, self.there = servers
        there = [f"CREATE TABLE {table} ({text})" for table, text in SHOP.items()]
        database = f"CREATE DATABASE {self.name} CHARACTER SET utf8mb4"
        execute(self.there, database, f"USE {self.name}", *there)
        numbers = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < {})"
        fill = [
            f"INSERT IGNORE INTO {table} ({', '.join(columns_of(text))})"
            f" SELECT {values.format(n='n')[1:-1]} FROM ({numbers.format(count)} SELECT n FROM t) x"
            for table, text in SHOP.items()
            if table in SHOP_ROWS
            for count, values in (SHOP_ROWS[table],)
        ]
        depth = "SET SESSION cte_max_recursion_depth = 100000"
        if "maria" in type(self.here).__name__.lower():
            depth = "SET SESSION max_recursive_iterations = 100000"
        execute(
            self.here, database, f"USE {self.name}", depth, "SET foreign_key_checks = 0",
            *there, *SHOP_EXTRAS, *fill,
        )  # fmt: skip

    def write(self, stopping, draw, reported):
        """Change rows until told to stop."""

        def change(cursor):
            for statement in changes_of_shop(draw, reported["transactions"]):
                cursor.execute(statement)

        try:
            with self.here.connect(autocommit=False, database=self.name) as connection:
                while not stopping.wait(0.02):
                    repeated(connection, change)
                    reported["transactions"] += 1
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            reported["error"] = error

    def differences(self):
        found = []
        for table in SHOP:
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
def schema(servers):
    made = Schema(servers)
    yield made
    made.drop()


class DeathError(FatalError):
    """What a leader ends with at a point at which it is to die."""


@pytest.fixture
def deaths(monkeypatch):
    """The points at which a leader still has to die: whoever passes one first ends there.

    A killed process, and what is left of its tasks, is the drill `load-dies`; here it is about
    what the next leader makes of the rows.
    """
    # A step passes them in this order: the first leader dies at one, the next one at the other.
    points = ["tables.after_job", "tables.loaded"]
    reached = failpoints.reached

    def die(point):
        if points and point == points[0]:
            raise DeathError(points.pop(0))
        reached(point)

    monkeypatch.setattr(failpoints, "reached", die)
    return points


@pytest.mark.timeout(600)
def test_a_known_schema_while_all_is_changed_and_two_leaders_die(servers, schema, position, deaths):
    a, b = servers
    pipeline = {
        "name": "p",
        "source": {**mysql(a), "start": {"load": True}, "heartbeat": 0.2},
        "target": mysql(b),
        "tables": [{"from": f"{schema.name}.*"}],
    }
    file = parse_channel({"channel": fresh_name("known"), "pipelines": [pipeline]})
    stopping, reported = threading.Event(), {"transactions": 0}
    writer = threading.Thread(target=schema.write, args=(stopping, random.Random(0), reported))
    writer.start()
    try:
        for point in list(deaths):
            assert str(position.lead(file).ends(LIMIT)) == str(DeathError(point))
        running = position.lead(file)
        wait_until_loaded(running, LIMIT)
        # Whatever comes after the load, too.
        enough = max(50, reported["transactions"] + 20)
        eventually(lambda: reported["transactions"] >= enough or "error" in reported, LIMIT)
    finally:
        stopping.set()
        writer.join(60)
    assert "error" not in reported, reported
    eventually(lambda: not schema.differences(), LIMIT, interval=0.5)
    assert running.thread.is_alive(), running.error
