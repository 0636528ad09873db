"""Schema changes in the middle of a load that put rows elsewhere: other keys, other names."""

import threading

import pytest

from setl import failpoints
from setl.errors import CollisionError
from setl.run.table_loads import loading as table_loading
from tests.integration.pipelines import execute, fresh_name, mysql, rows
from tests.integration.table_loads.test_table_load import (
    loading,
    small_steps,  # noqa: F401 - a fixture
    wait_until_loaded,
)
from tests.waiting import eventually

ROWS = {"a": 60, "t": 900, "z": 60}
PLAIN = "id INT PRIMARY KEY, v INT NULL, w INT NULL"
KEYED = "id INT PRIMARY KEY, v INT NOT NULL, w INT NULL"
TEXT = "id VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT, w INT"
NUMBERS = "{i}, {i} - 100000, {n} + {i}"
LETTERS = "CONCAT(ELT(1 + {i} % 2, 'a', 'B'), {i}), {i}, {n}"
CASES = {
    "another key": (KEYED, NUMBERS, "ALTER TABLE {db}.t DROP PRIMARY KEY, ADD PRIMARY KEY (v)"),
    "another collation": (
        TEXT,
        LETTERS,
        "ALTER TABLE {db}.t MODIFY id VARCHAR(20) COLLATE utf8mb4_bin",
    ),
    "names of columns change places": (
        PLAIN,
        NUMBERS,
        "ALTER TABLE {db}.t CHANGE COLUMN v w INT NULL, CHANGE COLUMN w v INT NULL",
    ),
    "another name": (PLAIN, NUMBERS, "RENAME TABLE {db}.z TO {db}.b"),
    "another name under way": (PLAIN, NUMBERS, "RENAME TABLE {db}.t TO {db}.b"),
}
SWAP = "RENAME TABLE {db}.a TO {db}.x, {db}.z TO {db}.a, {db}.x TO {db}.z"


@pytest.fixture
def changed(servers, position, small_steps, monkeypatch):  # noqa: F811
    """Loads tables that are changed in the middle; gives the schema and the run."""
    a, b = servers
    base = fresh_name("mid")

    def load(columns, values, statement, ddl, *, everywhere=True):
        for server in servers:
            execute(server, f"CREATE DATABASE {base} CHARACTER SET utf8mb4")
            for table in ROWS:
                execute(server, f"CREATE TABLE {base}.{table} ({columns})")
        for n, (table, count) in enumerate(ROWS.items()):
            made = ", ".join(f"({values.format(i=i, n=n)})" for i in range(count))
            execute(a, f"INSERT INTO {base}.{table} VALUES {made}")
        struck = []

        def reached(point, passed=failpoints.reached):
            if point == "tables.before_job":
                assert known.wait(60)  # the run may be here before this thread knows it
            reported = runs[0].figures.table_load if point == "tables.before_job" else None
            if reported and not struck and reported.table == f"{base}.t" and reported.rows > 300:
                struck.append(reported.rows)
                execute(a, *statement.format(db=base).split(";"))
                if ddl == "ignore" and everywhere:
                    execute(b, *statement.format(db=base).split(";"))
            passed(point)

        runs, known = [], threading.Event()
        monkeypatch.setattr(table_loading.failpoints, "reached", reached)
        runs.append(position.lead(loading(a, mysql(b), [{"from": f"{base}.*"}], ddl=ddl)))
        known.set()
        eventually(lambda: struck, 120)
        return base, runs[0]

    yield load
    for server in servers:
        execute(server, f"DROP DATABASE IF EXISTS {base}")


def are_equal(servers, base):
    a, b = servers
    tables = execute(a, f"SHOW TABLES IN {base}")
    assert execute(b, f"SHOW TABLES IN {base}") == tables, "a new name comes with the stream"
    for (table,) in tables:
        assert rows(b, f"{base}.{table}") == rows(a, f"{base}.{table}"), table
    return True


@pytest.mark.parametrize("ddl", ["pass", "ignore"])
@pytest.mark.parametrize("case", CASES)
def test_every_row_arrives(servers, changed, case, ddl):
    base, running = changed(*CASES[case], ddl)
    wait_until_loaded(running)
    eventually(lambda: are_equal(servers, base), 60, interval=0.3)


def test_names_that_change_positions_are_reported(servers, changed):
    base, running = changed(PLAIN, NUMBERS, SWAP, "pass")
    eventually(lambda: running.figures.table_load.state == "failed", 60)
    assert are_equal(servers, base)
    assert running.thread.is_alive()


DROPPED = "ALTER TABLE {db}.t DROP KEY own; UPDATE {db}.t SET v = -100000 WHERE id = 890"
"""Then rows 0 and 890 have one value."""


def test_a_unique_key_is_dropped(servers, changed):
    base, running = changed(f"{PLAIN}, UNIQUE KEY own (v)", NUMBERS, DROPPED, "pass")
    wait_until_loaded(running)
    eventually(lambda: are_equal(servers, base), 60, interval=0.3)


def test_a_unique_key_that_only_the_target_stores_stops_the_load(servers, changed):
    columns = f"{PLAIN}, UNIQUE KEY own (v)"
    _, running = changed(columns, NUMBERS, DROPPED, "ignore", everywhere=False)
    assert isinstance(running.ends(), CollisionError)
