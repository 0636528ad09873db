"""What operators ask to be loaded, of whole tables or of some rows, while a pipeline runs."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pymysql
import pytest

from arbiter.values import PipelineId
from setl.channel.reading import parse_channel
from setl.model.load_request import LoadRequest, RequestState
from setl.run.table_loads.requests import StoredLoadRequests
from tests.checking import check_channel
from tests.integration.kafka.test_relay import Topic, insert, relay
from tests.integration.pipelines import execute, fresh_name, mysql, one_way, rows, two_way
from tests.integration.table_loads.test_table_load import (
    fill,
    in_step,
    loading,
    small_steps,  # noqa: F401 - a fixture
    wait_until_loaded,
    written,
)
from tests.mysql_servers import is_mariadb
from tests.waiting import eventually


class Asking:
    """Asks the leader of a pipeline for loads."""

    def __init__(self, position, file, pipeline="p", **settings):
        if settings:
            changed = file.pipelines[0].model_copy(update=settings)
            file = file.model_copy(update={"pipelines": [changed]})
        self.position, self.file, self.pipeline = position, file, pipeline
        self.running = position.lead(file, pipeline)
        self.requests = StoredLoadRequests(position.arbiter, PipelineId(file.channel, pipeline))

    def ask(self, **what):
        request = self.requests.add(LoadRequest(**what))
        self.running.run.look_at_loads()
        return request.id

    def change(self, ident, state):
        self.requests.change_state(ident, state)
        self.running.run.look_at_loads()

    def of(self, ident):
        return next(r for r in self.requests.all() if r.id == ident)

    def ended(self, ident, timeout=180):
        def has_ended():
            assert self.running.thread.is_alive(), self.running.error
            assert self.of(ident).ended, (self.running.figures.table_load, self.running.error)
            return True

        eventually(has_ended, timeout, message="the load has ended")
        return self.of(ident)


@pytest.fixture
def asking(servers, db, position):
    """A pipeline that runs from the end of the stream on; heartbeats move its checkpoint."""
    return Asking(position, from_now_on(servers, db))


def from_now_on(servers, db):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}])
    source = file.pipelines[0].source.model_copy(update={"heartbeat": 0.2})
    pipeline = file.pipelines[0].model_copy(update={"source": source})
    return file.model_copy(update={"pipelines": [pipeline]})


def test_rows_that_somebody_damaged_are_sent_again(servers, db, asking):
    a, b = servers
    fill(a, f"{db}.orders", 1000)
    asking.running.applied(1000)
    execute(
        b,
        f"UPDATE {db}.orders SET name = 'wrong', email = NULL WHERE id BETWEEN 100 AND 119",
        f"DELETE FROM {db}.orders WHERE id BETWEEN 110 AND 129",
        f"INSERT INTO {db}.orders (id, name) VALUES (5000, 'extra'), (5001, 'extra')",
    )
    by_where = asking.ask(
        tables=(f"{db}.orders",), where="id BETWEEN 100 AND 129 AND name LIKE 'n%'", reason="resend"
    )
    assert asking.ended(by_where).rows == 30
    assert rows(b, f"{db}.orders") == (
        *rows(a, f"{db}.orders"),
        *((i, None, "extra", *[None] * 7) for i in (5000, 5001)),
    )
    by_keys = asking.ask(
        tables=(f"{db}.orders",), key=("id",), keys=(("5000",), (7,), (5001,)), reason="resend"
    )
    assert asking.ended(by_keys).state is RequestState.DONE
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")


@pytest.mark.parametrize("before", [(), ("FLUSH BINARY LOGS",)], ids=["same file", "new file"])
def test_a_load_ends_where_nothing_is_written(servers, db, position, before):
    """Neither by users nor by heartbeats: the end of the binlog has no transaction behind it."""
    a, b = servers
    fill(a, f"{db}.orders", 100)
    asking = Asking(position, one_way(a, mysql(b), [{"from": f"{db}.*"}]))
    if before:
        execute(a, *before)
    assert asking.ended(asking.ask(tables=(f"{db}.orders",))).rows == 100
    assert rows(a, f"{db}.orders") == rows(b, f"{db}.orders")


KEYS = {
    "text": ("VARCHAR(40) COLLATE utf8mb4_general_ci", ["Äpfel", "a'b", "%", "x,y", " lead"]),
    "latin": ("VARCHAR(40) CHARACTER SET latin1", ["é", "%s", '"']),
    "bytes": ("VARBINARY(16)", [b"\x00\xff", b"", b"a%"]),
    "exact": ("DECIMAL(20,4)", ["1.5000", "-0.0001"]),
    "time": ("DATETIME(6)", ["2026-01-02 03:04:05.000006"]),
    "bits": ("BIT(12)", [5, 4095]),
    "label": ("ENUM('c','b','a')", ["a", "c"]),
}


def put(server, table, values):
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s)", values)


def test_keys_of_every_kind(servers, db, asking):
    a, b = servers
    for name, (kind, keys) in KEYS.items():
        for server in servers:
            execute(server, f"CREATE TABLE {db}.k_{name} (id {kind}, n INT, v INT,"
                            f" PRIMARY KEY (id, n)) CHARACTER SET utf8mb4")  # fmt: skip
        put(a, f"{db}.k_{name}", [(key, n, n) for key in keys for n in (1, 2)])
    # The stream has brought these rows before any row is damaged: an INSERT of
    # the test would meet one that the stream brought in that moment.
    asking.running.applied(2 * sum(len(keys) for _, keys in KEYS.values()))
    for name, (_, keys) in KEYS.items():
        execute(b, f"UPDATE {db}.k_{name} SET v = -v")
        put(b, f"{db}.k_{name}", [(key, 3, -3) for key in keys])
    asked = [
        asking.ask(
            tables=(f"{db}.k_{name}",),
            key=("id", "n"),
            keys=tuple((key, n) for key in keys for n in (1, 2, 3)),
        )
        for name, (_, keys) in KEYS.items()
    ]
    for ident in asked:
        assert asking.ended(ident).state is RequestState.DONE
    for name in KEYS:
        assert rows(b, f"{db}.k_{name}", "1, 2") == rows(a, f"{db}.k_{name}", "1, 2"), name


def test_a_request_that_fails_does_not_stop_the_stream(servers, db, asking):
    a, _ = servers
    for what, why in (
        ({"tables": (f"{db}.none",)}, "does not map"),
        ({"tables": (f"{db}.orders",), "where": "nonsense = 1"}, "nonsense"),
        ({"tables": (f"{db}.orders",), "where": "1) OR (1"}, "closes a bracket"),
        ({"tables": (f"{db}.orders",), "key": ("id",), "keys": (("x",),)}, "no value"),
    ):
        failed = asking.ended(asking.ask(**what))
        assert (failed.state, why in failed.answer) == (RequestState.FAILED, True), failed.answer
    fill(a, f"{db}.orders", 1)
    asking.running.applied(1)


def test_into_empty_tables_only(servers, db, asking):
    a, b = servers
    execute(b, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'there')")
    failed = asking.ended(asking.ask(tables=(f"{db}.orders",), into_empty=True))
    assert f"rows already in {db}.orders" in failed.answer
    execute(b, f"DELETE FROM {db}.orders")
    done = asking.ended(asking.ask(tables=(f"{db}.orders",), into_empty=True))
    assert done.state is RequestState.DONE
    assert rows(a, f"{db}.orders") == rows(b, f"{db}.orders")


def test_what_is_sent_again_does_not_come_back(servers, db, position):
    a, b = servers
    fill(a, f"{db}.orders", 100)
    fill(b, f"{db}.orders", 100)
    file = two_way(a, b, [{"from": f"{db}.orders"}])
    back = position.lead(file, "ba")
    there = Asking(position, file, "ab")
    execute(b, "SET sql_log_bin = 0", f"UPDATE {db}.orders SET name = 'wrong' WHERE id < 50")
    # Without a heartbeat the stream has to move for the load to be over.
    ident = there.ask(tables=(f"{db}.orders",), where="id < 60")
    eventually(lambda: rows(a, f"{db}.orders") == rows(b, f"{db}.orders"), 60)
    execute(a, f"UPDATE {db}.orders SET name = 'later' WHERE id = 99")
    there.ended(ident)
    execute(b, f"UPDATE {db}.orders SET name = 'of b' WHERE id = 5")
    eventually(lambda: execute(a, f"SELECT name FROM {db}.orders WHERE id = 5") == (("of b",),), 60)
    eventually(lambda: back.figures.rows_applied == 1)
    # The row that moved the stream may still be on its way: the checkpoint of `back` moves it too.
    eventually(lambda: rows(a, f"{db}.orders") == rows(b, f"{db}.orders"), 60)
    assert back.figures.rows_applied == 1


def test_one_table_of_a_file_asks_to_be_loaded(servers, db, position):
    a, b = servers
    for server in servers:
        execute(server, f"CREATE TABLE {db}.more (id INT PRIMARY KEY, v INT)")
    fill(a, f"{db}.orders", 50)
    execute(a, f"INSERT INTO {db}.more VALUES (1, 1)")
    file = loading(a, mysql(b), [{"from": f"{db}.orders"}, {"from": f"{db}.more", "load": True}])
    source = file.pipelines[0].source.model_copy(update={"start": "latest"})
    pipeline = file.pipelines[0].model_copy(update={"source": source})
    running = position.lead(file.model_copy(update={"pipelines": [pipeline]}))
    wait_until_loaded(running)
    assert rows(b, f"{db}.more") == ((1, 1),)
    assert rows(b, f"{db}.orders") == ()


@pytest.mark.family("mysql", why="loads and relays have tests of their own on both")
def test_a_subscription_begins_with_the_rows_of_its_database(
    servers,
    db,
    kafka,
    position,
    small_steps,  # noqa: F811
):
    a, b = servers
    fill(a, f"{db}.orders", 1500)
    topic = Topic(kafka)
    table = f"{db}.orders"
    position.lead(relay(a, topic, table, heartbeat=0.2), "r").runs()
    insert(a, db, 5000, 1)
    source = {**topic.source(), "start": {"load": True}, "database": database(a)}
    file = parse_channel(
        {
            "channel": fresh_name("dts"),
            "pipelines": [
                {"name": "p", "source": source, "target": mysql(b), "tables": [{"from": table}]}
            ],
        }
    )
    with written(a, table, 2000):
        running = position.lead(file)
        wait_until_loaded(running)
    in_step(a, b, running, db)


def database(server):
    return {key: value for key, value in mysql(server).items() if key != "type"}


def test_check_says_what_a_first_start_loads_and_leaves_alone(servers, db):
    a, b = servers
    for server in servers:
        execute(server, f"CREATE TABLE {db}.more (id INT PRIMARY KEY, v INT)")
    fill(a, f"{db}.orders", 50)
    execute(a, f"INSERT INTO {db}.more VALUES (1, 1)", f"ANALYZE TABLE {db}.orders, {db}.more")

    def said(tables, **source):
        file = loading(a, mysql(b), tables)
        start = file.pipelines[0].source.model_copy(update=source)
        pipeline = file.pipelines[0].model_copy(update={"source": start})
        found = check_channel(file.model_copy(update={"pipelines": [pipeline]}))
        return [finding.what for finding in found if "first start" in finding.what]

    both = [{"from": f"{db}.orders"}, {"from": f"{db}.more", "load": True}]
    (loads,) = said(both)
    assert "loads about 51 rows of 2 tables" in loads
    loads, leaves = said(both, start="latest")
    assert "loads about 1 row of 1 table" in loads
    assert "leaves the rows alone that are there now, about 50 rows of 1 table" in leaves
    (leaves,) = said(both[:1], start="latest")
    assert "leaves the rows alone" in leaves
    assert said(both[:1], start="earliest") == []


def test_the_free_gate_sends_rows_again(servers, db, asking, caplog):
    a, b = servers
    for server in servers:
        execute(server, f"CREATE TABLE {db}.parts (id INT, side VARCHAR(9), v INT,"
                        " PRIMARY KEY (id, side))")  # fmt: skip
    fill(a, f"{db}.orders", 10)
    execute(a, f"INSERT INTO {db}.parts VALUES (1, 'left', 1), (1, 'right', 2)")
    asking.running.applied(12)
    execute(
        b,
        f"UPDATE {db}.orders SET name = 'wrong' WHERE id IN (3, 4)",
        f"INSERT INTO {db}.orders (id, name) VALUES (77, 'extra')",
        f"UPDATE {db}.parts SET v = 0",
    )

    def gate(table, key, kind="U"):
        execute(
            a,
            "INSERT INTO retl.retl_buffer (TABLE_ID, FULL_NAME, TYPE, PK_DATA)"
            f" VALUES (0, '{table}', '{kind}', {key})",
        )

    for table, key in ((f"{db}.none", "1"), ("nothing", "1"), (f"{db}.orders", "'x'")):
        gate(table, key)
    gate(f"{db}.parts", "'1'")  # a value is missing
    gate(f"{db}.orders", "'3'")
    gate(f"{db}.orders", "'77'", "D")
    gate(f"{db}.parts", "CONCAT('1', CHAR(1), 'left')")
    execute(a, f"UPDATE {db}.orders SET name = 'later' WHERE id = 5")
    expected = ((3, rows(a, f"{db}.orders", "1")[3][2]), (4, "wrong"), (5, "later"))
    named = f"SELECT id, name FROM {db}.orders WHERE id IN (3, 4, 5, 77) ORDER BY id"
    eventually(lambda: execute(b, named) == expected, 60)
    parts = f"SELECT v FROM {db}.parts ORDER BY side"
    eventually(lambda: execute(b, parts) == ((1,), (0,)), 60)
    eventually(lambda: not asking.requests.unanswered(), 60)

    def told():
        said = " ".join(str(getattr(record, "setl", "")) for record in caplog.records)
        assert "no schema.table" in said
        assert "'x' is no value of the column id" in said
        assert "a key has 2 columns, and 1 values are given" in said
        return True

    eventually(told, 60)
    assert asking.running.thread.is_alive()


def test_the_free_gate_goes_through_the_mapping(servers, db, position):
    """Columns, expressions, conditions, groups and joined tables, in the stream's order."""
    a, b = servers
    for name in ("part_1", "part_2"):
        execute(a, f"CREATE TABLE {db}.{name} (id INT, side VARCHAR(9), v INT,"
                   " PRIMARY KEY (id, side))")  # fmt: skip
    execute(
        b,
        f"CREATE TABLE {db}.parts (id INT, side VARCHAR(9), v INT, PRIMARY KEY (id, side))",
        f"CREATE TABLE {db}.report (id BIGINT PRIMARY KEY, who TEXT, total DECIMAL(30,6))",
    )
    report = {
        "from": f"{db}.orders",
        "to": f"{db}.report",
        "include": ["id"],
        "columns": {"who": "upper(name)", "total": "amount * 2"},
        "where": "amount > 1",
        "group": "sales",
    }
    parts = {"from": f"{db}.part_*", "to": f"{db}.parts", "group": "sales"}
    file = one_way(a, mysql(b), [report, parts])
    running = position.lead(file)
    execute(
        a,
        f"INSERT INTO {db}.orders (id, name, amount) VALUES (1, 'ann', 2), (2, 'bob', 3)",
        f"INSERT INTO {db}.part_1 VALUES (1, 'left', 1)",
        f"INSERT INTO {db}.part_2 VALUES (2, 'right', 2)",
    )
    running.applied(4)
    execute(
        b,
        f"UPDATE {db}.report SET who = 'wrong'",
        f"INSERT INTO {db}.report VALUES (3, 'extra', 1)",
        f"DELETE FROM {db}.parts",
    )
    gate = "INSERT INTO retl.retl_buffer (TABLE_ID, FULL_NAME, TYPE, PK_DATA) VALUES"
    execute(
        a,
        f"{gate} (17, '{db}.orders', 'I', '1')",  # a number of Otter's says nothing
        f"{gate} (0, '{db}.orders', 'U', '2')",
        f"{gate} (0, '{db}.orders', 'D', '3')",
        f"{gate} (0, '{db}.part_1', 'D', CONCAT('1', CHAR(1), 'left'))",  # it is there
        f"{gate} (0, '{db}.part_2', 'U', CONCAT('2', CHAR(1), 'right'))",
        # Behind it in the stream, and so it is what stays.
        f"UPDATE {db}.orders SET amount = 0 WHERE id = 2",
        f"UPDATE {db}.part_2 SET v = 9",
    )

    def arrived():
        assert running.thread.is_alive(), running.error
        there = [(i, who, float(total)) for i, who, total in rows(b, f"{db}.report")]
        assert there == [(1, "ANN", 4.0)]
        assert rows(b, f"{db}.parts") == ((1, "left", 1), (2, "right", 9))
        return True

    eventually(arrived, 60)


@contextmanager
def commits_that_hang(server):
    """Commits are in the binlog at once, and in the tables when this is left."""
    with server.connect() as connection:
        mariadb = is_mariadb(connection)
    name = "rpl_semi_sync_master" if mariadb else "rpl_semi_sync_source"
    if not mariadb:
        with suppress(pymysql.MySQLError):  # it is there already
            execute(server, f"INSTALL PLUGIN {name} SONAME 'semisync_source.so'")
    settings = {"timeout": 600_000, "wait_point": "'AFTER_SYNC'", "enabled": 1}
    execute(server, *(f"SET GLOBAL {name}_{k} = {v}" for k, v in settings.items()))
    try:
        yield
    finally:
        execute(server, f"SET GLOBAL {name}_enabled = 0")


def one_waits(server):
    """Tells whether somebody asks the server again and again for the moment that shows all."""
    with server.connect() as connection:
        mariadb = is_mariadb(connection)
    if mariadb:
        begun = "SHOW GLOBAL STATUS LIKE 'Com_begin'"
        least = int(execute(server, begun)[0][1]) + 10
        return lambda: int(execute(server, begun)[0][1]) >= least
    return lambda: execute(server, WAITING_FOR_GTIDS) != ()


def test_rows_are_read_as_the_stream_has_brought_them(servers, db, asking):
    """A semi-synchronous source shows in its binlog first what its tables show later."""
    a, b = servers
    execute(a, "FLUSH BINARY LOGS")
    fill(a, f"{db}.orders", 100)
    asking.running.applied(100)
    with ThreadPoolExecutor(1) as pool:
        with commits_that_hang(a):
            change = f"UPDATE {db}.orders SET name = 'new' WHERE id = 7"
            committing = pool.submit(execute, a, change)
            eventually(lambda: execute(b, NAME.format(db=db)) == (("new",),), 60)
            ident = asking.ask(tables=(f"{db}.orders",), where="id < 10")
            waits, until = one_waits(a), time.monotonic() + SEEN_WITHIN
            # What does not wait has ended long before; sources/test_shown_rows.py looks at the wait
            # itself.
            eventually(
                lambda: waits() or asking.of(ident).ended or time.monotonic() > until,
                2 * SEEN_WITHIN,
            )
            assert not asking.of(ident).ended, "the load did not wait"
            assert not committing.done(), "the server did not wait for a replica"
            assert execute(a, NAME.format(db=db)) != (("new",),)
        committing.result(30)
    asking.ended(ident)
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")


def test_what_is_prepared_and_not_committed_yet_is_not_taken_back(servers, db, asking):
    """The stream has the rows of an XA transaction from its PREPARE on, the tables do not."""
    a, b = servers
    fill(a, f"{db}.orders", 10)
    asking.running.applied(10)
    with a.connect() as connection, connection.cursor() as cursor:
        cursor.execute("XA START 'one'")
        cursor.execute(f"UPDATE {db}.orders SET name = 'new' WHERE id = 7")
        cursor.execute("XA END 'one'")
        cursor.execute("XA PREPARE 'one'")
        eventually(lambda: execute(b, NAME.format(db=db)) == (("new",),), 60)
        ident = asking.ask(tables=(f"{db}.orders",), where="id < 9")
        with suppress(AssertionError):  # it waits, so there is nothing to see
            eventually(lambda: asking.of(ident).ended, 3)
        assert execute(b, NAME.format(db=db)) == (("new",),)
        cursor.execute("XA COMMIT 'one'")
    asking.ended(ident)
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")


NAME = "SELECT name FROM {db}.orders WHERE id = 7"
SEEN_WITHIN = 20.0
WAITING_FOR_GTIDS = (
    "SELECT 1 FROM performance_schema.processlist WHERE info LIKE 'SELECT WAIT_FOR_E%'"
)
"""Of MySQL."""
