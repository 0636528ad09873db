"""Tables that hold rows before the channel starts are loaded, whatever is written meanwhile."""

import random
import threading
from contextlib import contextmanager

import pytest

from setl.channel.reading import parse_channel
from setl.errors import CollisionError, ConfigurationError
from setl.run.table_loads import loading as table_loading
from tests.deadlocks import repeated
from tests.held_points import held
from tests.integration.pipelines import (
    ORDERS,
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    new_database,
    rows,
)
from tests.integration.search.test_pipeline_search import Index
from tests.waiting import eventually

# Of a writer between transactions: some dozen come in each step of a load. More of them show no
# more, and take the time of a core from the load, which then lasts longer.
_PAUSE = 0.01


@pytest.fixture
def small_steps(monkeypatch):
    """Steps of some hundred rows, so that a small table takes many."""
    monkeypatch.setattr(table_loading, "_MOST_ROWS", 200)
    monkeypatch.setattr(table_loading, "_LEAST_ROWS", 50)


def loading(source, target, tables, name=None, **options):
    """A channel that begins with the rows that are there."""
    pipeline = {
        "name": "p",
        "source": {**mysql(source), "start": {"load": True}, "heartbeat": 0.2},
        "target": target,
        "tables": tables,
        **options,
    }
    return parse_channel({"channel": name or fresh_name("load"), "pipelines": [pipeline]})


def is_loaded(running):
    if not running.thread.is_alive():
        raise RuntimeError(f"the run ended: {running.error}")
    reported = running.figures.table_load
    assert reported is not None
    assert reported.state == "done", (reported, running.figures.error)
    return True


def wait_until_loaded(running, timeout=90):
    eventually(lambda: is_loaded(running), timeout, message="the tables are loaded")
    return running.figures.table_load


def in_step(a, b, running, db, table="orders"):
    """Wait until a last row has passed, then compare."""
    execute(a, f"CREATE TABLE IF NOT EXISTS {db}.last_row (id INT PRIMARY KEY)")
    eventually(
        lambda: rows(b, f"{db}.{table}") == rows(a, f"{db}.{table}"),
        60,
        interval=0.3,
        message=f"{table} is equal",
    )
    assert running.thread.is_alive(), running.error


class Writer(threading.Thread):
    """Changes rows of a table all the time: keys, unique values that change places, all else."""

    def __init__(self, server, table, highest, seed=1):
        super().__init__(daemon=True)
        self.server, self.table, self.highest = server, table, highest
        self.draw = random.Random(seed)
        self.stopping = threading.Event()
        self.written = 0
        self.error = None

    def run(self):
        try:
            with self.server.connect(autocommit=False) as connection:
                while not self.stopping.wait(_PAUSE):
                    repeated(connection, self.transaction)
                    self.written += 1
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            self.error = error

    def transaction(self, cursor):
        for _ in range(self.draw.randrange(1, 6)):
            self.change(cursor)

    def change(self, cursor):
        draw, table = self.draw, self.table
        one, other = draw.randrange(self.highest), draw.randrange(self.highest)
        kind = draw.randrange(5)
        if kind == 0:
            cursor.execute(f"UPDATE {table} SET name = %s WHERE id = %s", (f"n{other}", one))
        elif kind == 1:
            cursor.execute(f"DELETE FROM {table} WHERE id = %s", (one,))
        elif kind == 2:
            cursor.execute(
                f"INSERT IGNORE INTO {table} (id, email, name) VALUES (%s, %s, 'new')",
                (one, f"e{other}"),
            )
        elif kind == 3:
            cursor.execute(f"UPDATE IGNORE {table} SET id = %s WHERE id = %s", (other, one))
        else:  # two rows change their unique values
            cursor.execute(f"SELECT id, email FROM {table} WHERE id IN (%s, %s)", (one, other))
            found = cursor.fetchall()
            if len(found) == 2:
                (a, mail_a), (b, mail_b) = found
                cursor.execute(f"UPDATE {table} SET email = NULL WHERE id = %s", (a,))
                cursor.execute(f"UPDATE {table} SET email = %s WHERE id = %s", (mail_a, b))
                cursor.execute(f"UPDATE {table} SET email = %s WHERE id = %s", (mail_b, a))


@contextmanager
def written(server, table, highest):
    writer = Writer(server, table, highest)
    writer.start()
    try:
        yield writer
    finally:
        writer.stopping.set()
        writer.join(30)
    assert writer.error is None, writer.error
    assert writer.written > 10


def fill(server, table, count):
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {table} (id, email, name, amount, payload, at, kind)"
            " VALUES (%s, %s, %s, %s, %s, '2026-01-02 03:04:05.000006', '二手')",
            [(i, f"e{i}", f"näme {i}", f"{i}.5", bytes([i % 256, 0])) for i in range(count)],
        )


def test_rows_that_were_there_arrive_while_all_is_changed(servers, db, position, small_steps):
    a, b = servers
    fill(a, f"{db}.orders", 1500)
    with written(a, f"{db}.orders", 1750):
        running = position.lead(loading(a, mysql(b), [{"from": f"{db}.orders"}]))
        reported = wait_until_loaded(running)
    assert reported.rows > 500
    in_step(a, b, running, db)
    assert running.figures.rows_total > 0


KEYS = {
    "whole": "id BIGINT UNSIGNED PRIMARY KEY",
    "signed": "id INT PRIMARY KEY",
    "text": "id VARCHAR(40) COLLATE utf8mb4_general_ci PRIMARY KEY",
    "bytes": "id BINARY(16) PRIMARY KEY",
    "exact": "id DECIMAL(20,4) PRIMARY KEY",
    "time": "id DATETIME(6) PRIMARY KEY",
    "label": "id ENUM('c','b','a','0') PRIMARY KEY",
    "latin": "id VARCHAR(40) CHARACTER SET latin1 PRIMARY KEY",
}
VALUES = {
    "whole": "18446744073709551615 - {i} * 1000000000000",
    "signed": "{i} - 500",
    "text": "CONCAT('Ä', {i} DIV 3, ELT(1 + {i} % 3, 'x', 'y', '😀'))",
    "bytes": "UNHEX(LEFT(SHA2('{i}', 256), 32))",
    "exact": "{i} / 7 - 30",
    "time": "TIMESTAMP('2026-01-01') + INTERVAL {i} * 777777 MICROSECOND",
    "label": "1 + {i}",
    "latin": "CONCAT('é', {i})",
}


def test_every_kind_of_key(servers, position, small_steps):
    a, b = servers
    count = {"label": 4}
    made = [
        *(f"CREATE TABLE {{db}}.k_{table} ({key}, v INT)" for table, key in KEYS.items()),
        "CREATE TABLE {db}.k_two (a INT, b VARCHAR(20), v INT, PRIMARY KEY (b, a))",
        "CREATE TABLE {db}.k_none (a INT NOT NULL, v INT)",
        "CREATE TABLE {db}.k_empty (a INT PRIMARY KEY)",
    ]
    with new_database(servers, "keys", *made, options="CHARACTER SET utf8mb4") as name:
        values = {
            **VALUES,
            "two": "{i}, IF({i} % 2, 'same', {i} DIV 50)",
            "none": "{i}",
        }
        for table, value in values.items():
            made = (f"({value.format(i=i)}, {i})" for i in range(count.get(table, 600)))
            execute(a, f"INSERT INTO {name}.k_{table} VALUES {', '.join(made)}")
        tables = [{"from": f"{name}.k_none", "key": ["a"]}, {"from": f"{name}.*"}]
        running = position.lead(loading(a, mysql(b), tables))
        reported = wait_until_loaded(running)
        for table in (*KEYS, "two", "none", "empty"):
            here, there = (rows(s, f"{name}.k_{table}") for s in servers)
            assert sorted(map(str, here)) == sorted(map(str, there)), table
        assert reported.rows == 600 * (len(KEYS) - 1) + 4 + 1200


@pytest.mark.family("mariadb", why="Spark maps rows that are the same by then")
def test_mappings_apply_to_loaded_rows(servers, db, position, small_steps):
    a, b = servers
    fill(a, f"{db}.orders", 1000)
    execute(b, f"CREATE TABLE {db}.report (id BIGINT PRIMARY KEY, who TEXT, total DECIMAL(30,6))")
    mapping = {
        "from": f"{db}.orders",
        "to": f"{db}.report",
        "include": ["id"],
        "columns": {"who": "upper(name)", "total": "amount * 2"},
        "where": "id % 2 = 0",
    }
    tables = [mapping, {"from": f"{db}.orders", "exclude": ["payload"]}]
    running = position.lead(loading(a, mysql(b), tables))
    wait_until_loaded(running)
    report = rows(b, f"{db}.report")
    assert [(i, who, float(total)) for i, who, total in report] == [
        (i, f"NÄME {i}", 2 * i + 1.0) for i in range(0, 1000, 2)
    ]
    plain = execute(b, f"SELECT COUNT(*), COUNT(payload), COUNT(email) FROM {db}.orders")
    assert plain == ((1000, 0, 1000),)


def test_a_column_that_is_added_meanwhile(servers, db, position, small_steps):
    a, b = servers
    fill(a, f"{db}.orders", 1000)
    file = loading(a, mysql(b), [{"from": f"{db}.orders"}], ddl="pass")
    with written(a, f"{db}.orders", 1250):
        with held("tables.after_job") as there:  # the first step of many
            running = position.lead(file)
            assert there.wait(60)
            execute(a, f"ALTER TABLE {db}.orders ADD COLUMN more INT NOT NULL DEFAULT 7")
        wait_until_loaded(running)
    in_step(a, b, running, db)


def test_a_unique_key_that_the_source_lacks_stops_the_load(servers, db, position):
    a, b = servers
    execute(a, f"ALTER TABLE {db}.orders DROP KEY email")
    execute(a, f"INSERT INTO {db}.orders (id, email) VALUES (1, 'same'), (2, 'same')")
    running = position.lead(loading(a, mysql(b), [{"from": f"{db}.orders"}]))
    assert isinstance(running.ends(), CollisionError)


def test_a_column_that_nobody_passes_on_stops_the_load(servers, db, position, small_steps):
    a, b = servers
    fill(a, f"{db}.orders", 1000)
    with held("tables.after_job") as there:  # the first step of many
        running = position.lead(loading(a, mysql(b), [{"from": f"{db}.orders"}]))
        assert there.wait(60)
        execute(a, f"ALTER TABLE {db}.orders ADD COLUMN more INT NOT NULL DEFAULT 7")
    error = running.ends()
    assert isinstance(error, ConfigurationError)
    assert "lacks the columns more" in error.message
    assert error.hint
    # The hint.
    execute(b, f"ALTER TABLE {db}.orders ADD COLUMN more INT NOT NULL DEFAULT 7")
    running = position.lead(loading(a, mysql(b), [{"from": f"{db}.orders"}]))
    wait_until_loaded(running)
    in_step(a, b, running, db)


def test_tables_that_come_together_take_no_row_from_each_other(servers, db, position):
    a, b = servers
    for name, server in (("one", a), ("two", a), ("all", b)):
        execute(server, f"CREATE TABLE {db}.{name} (id INT PRIMARY KEY, email VARCHAR(9) UNIQUE)")
    execute(
        a, f"INSERT INTO {db}.one VALUES (1, 'same')", f"INSERT INTO {db}.two VALUES (2, 'same')"
    )
    tables = [{"from": f"{db}.one", "to": f"{db}.all"}, {"from": f"{db}.two", "to": f"{db}.all"}]
    running = position.lead(loading(a, mysql(b), tables))
    assert isinstance(running.ends(), CollisionError)
    assert len(rows(b, f"{db}.all")) == 1


@pytest.mark.family("mariadb", why="how many tables a load has is setl's own")
def test_a_hundred_small_tables(servers, position):
    a, b = servers
    made = [f"CREATE TABLE {{db}}.t{i} (id INT PRIMARY KEY, v INT)" for i in range(100)]
    with new_database(servers, "many", *made) as name:
        for i in range(100):
            execute(
                a, f"INSERT INTO {name}.t{i} SELECT seq, {i} FROM (SELECT 1 seq UNION SELECT 2) s"
            )
        running = position.lead(loading(a, mysql(b), [{"from": f"{name}.*"}]))
        reported = wait_until_loaded(running)
        assert reported.rows == 200
        assert running.figures.loads <= 20
        for i in range(100):
            assert rows(b, f"{name}.t{i}") == ((1, i), (2, i))


@pytest.mark.family("mariadb", why="Elasticsearch as the target; rows are the same by then")
def test_documents_are_loaded(site_a, position, elasticsearch, small_steps):
    index = Index(elasticsearch, fresh_name("idx"))
    install_system_tables(site_a)
    with new_database([site_a], "docs", ORDERS) as name:
        fill(site_a, f"{name}.orders", 600)
        target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
        table = {"from": f"{name}.orders", "to": index.name, "include": ["id", "name"]}
        with written(site_a, f"{name}.orders", 720):
            running = position.lead(loading(site_a, target, [table]))
            wait_until_loaded(running)

        def same():
            docs = {int(id_): found["name"] for id_, found in index.documents().items()}
            there = dict(execute(site_a, f"SELECT id, name FROM {name}.orders"))
            assert docs == there
            return True

        eventually(same, 60, interval=0.3)
