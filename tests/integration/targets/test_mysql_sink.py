"""The MySQL sink against a real server: marks, errors, keys, values."""

import threading
from contextlib import closing
from dataclasses import replace

import pymysql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setl.errors import (
    ConfigurationError,
    DataError,
    FencedError,
    TargetWentBackError,
    TransientError,
)
from setl.load.worker import SinkCache, sink_for
from setl.model.change import ABSENT, TargetChanges
from setl.model.schema import Column, Kind
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.engines import tables_without_transactions
from setl.systems.mysql.sink.sink import MysqlSink, MysqlSinkSettings
from setl.systems.mysql.stored.marks import applied_through, mark_id
from tests.loading import (
    MARK,
    create_system_tables,
    endpoint_of,
    execute,
    fence_for,
    nonces,
    rows_of,
    sink_on,
    ticket_for,
    unique,
)
from tests.mysql_servers import binlog_status
from tests.waiting import INNODB_RENEWED, eventually

ID = Column("id", Kind.INTEGER)
NAME = Column("name", Kind.TEXT)
CODE = Column("code", Kind.TEXT)


class StartPoint:
    """A schema of its own, and a sink that writes there."""

    def __init__(self, server, *, new=False, **options):
        self.server = server
        self.new = new
        self.options = options
        self.schema = unique("load")
        self.ticket = ticket_for(self.schema)
        self.sink = sink_on(server, lock_wait=2, **options)
        create_system_tables(server)
        execute(
            server, f"CREATE DATABASE {self.schema} DEFAULT CHARACTER SET utf8mb4 "
            "COLLATE utf8mb4_general_ci"
        )  # fmt: skip
        fence_for(server, self.ticket).raise_to(1, "n1")

    def table(self, definition, name="t"):
        execute(self.server, f"CREATE TABLE {self.schema}.{name} ({definition})")

    def changes(self, columns, upserts=(), deletes=(), name="t", key=(0,)):
        return TargetChanges(
            (self.schema, name), columns, key, list(upserts), list(deletes), new=self.new
        )

    def write(self, columns, upserts=(), deletes=(), name="t", key=(0,)):
        return self.sink.apply(
            self.ticket, [self.changes(columns, upserts, deletes, name=name, key=key)]
        )

    def rows(self, what="*", name="t", order="1"):
        return rows_of(self.server, f"SELECT {what} FROM {self.schema}.{name} ORDER BY {order}")


WAYS = {
    "literals": {"bulk_rows": None},
    "bulk": {"bulk_rows": 1},
    "load-data": {"bulk_rows": 1, "new": True},
}
ONLY = {
    "literals": [],
    "bulk": [pytest.mark.family("mariadb", why="MySQL has nothing like it")],
    "load-data": [pytest.mark.family("mysql", why="MariaDB has bulk execution")],
}


@pytest.fixture(params=[pytest.param(way, marks=ONLY[way]) for way in WAYS])
def db(site_a, request):
    """Rows are sent in each way that the server offers; nothing else may differ."""
    [(before,)] = rows_of(site_a, "SELECT @@GLOBAL.local_infile")
    execute(site_a, "SET GLOBAL local_infile = 1")
    made = StartPoint(site_a, **WAYS[request.param])
    yield made
    made.sink.close()
    execute(site_a, f"SET GLOBAL local_infile = {before}")


# -- marks ---------------------------------------------------------------------------------


def rows_events(server, since):
    """Tables of the rows events of each transaction after a binlog position, in order."""
    first, position = since
    files = [name for name, *_ in rows_of(server, "SHOW BINARY LOGS") if name > first]
    parts = [f"'{first}' FROM {position}", *(f"'{name}'" for name in files)]  # a file may be full
    transactions = []
    events = [row for part in parts for row in rows_of(server, f"SHOW BINLOG EVENTS IN {part}")]
    for _, _, kind, _, _, info in events:
        if kind == "Gtid":
            transactions.append([])
        elif kind == "Table_map":
            transactions[-1].append(info.split("(", 1)[1].rstrip(")"))
    return transactions


def binlog_position(server):
    with server.connect() as connection:
        return binlog_status(connection)


def test_the_mark_is_the_first_row_event_of_every_transaction_also_when_applied_again(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(20)")
    db.write((ID, NAME), [(9, "x")])
    since = binlog_position(db.server)
    for _ in range(3):
        db.write((ID, NAME), [(1, "a"), (2, "b")], [(9,)])
    db.write((ID, NAME), [(1, "c")])
    mark, table = "retl.retl_mark", f"{db.schema}.t"
    transactions = rows_events(db.server, since)
    # Applied again, the rows are as they were and leave no event; the mark always does.
    assert [t[0] for t in transactions] == [mark] * 4
    assert set(transactions[0]) == {mark, table}
    assert transactions[1] == transactions[2] == [mark]
    assert transactions[3] == [mark, table]


def test_a_large_table_is_written_behind_the_others_and_each_transaction_is_marked(db):
    for name in ("hot", "cold", "other"):
        db.table("id INT PRIMARY KEY, name VARCHAR(20)", name)
    db.write((ID, NAME), [(9, "x")], name="cold")  # the connection is made known first
    since = binlog_position(db.server)
    large = db.changes((ID, NAME), [(i, "x") for i in range(2000)], name="hot")
    small = [db.changes((ID, NAME), [(1, "x")], name=name) for name in ("cold", "other")]
    db.sink.apply(db.ticket, [large, *small])
    transactions = rows_events(db.server, since)
    assert [t[0] for t in transactions] == ["retl.retl_mark"] * 2
    assert set(transactions[0][1:]) == {f"{db.schema}.cold", f"{db.schema}.other"}
    assert set(transactions[1][1:]) == {f"{db.schema}.hot"}


def test_each_slot_has_a_mark_of_its_own_that_names_the_channel(db):
    db.table("id INT PRIMARY KEY")
    for slot in (0, 3):
        ticket = ticket_for(db.schema, slot=slot, batch_id=5, through=77 + slot)
        db.sink.apply(ticket, [db.changes((ID,), [(slot,)])])
    key = db.ticket.pipeline_key
    found = rows_of(
        db.server,
        "SELECT ID, CHANNEL_ID, CHANNEL_INFO FROM retl.retl_mark WHERE ID IN (%s, %s) ORDER BY ID",
        mark_id(key, 0),
        mark_id(key, 3),
    )
    assert found == [(mark_id(key, 0), MARK, "1.5.0.77.n1"), (mark_id(key, 3), MARK, "1.5.3.80.n2")]
    with closing(db.server.connect()) as connection:
        assert applied_through(connection, key) == 80
        assert applied_through(connection, "shop/none") == 0
    settings = MysqlSinkSettings(endpoint_of(db.server), MARK)
    assert settings.applied_through(db.ticket) == 80


# -- fence ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epoch", "kind", "what"),
    [(1, FencedError, "epoch 2 is active"), (3, TargetWentBackError, "stands at epoch 2")],
)
def test_another_epoch_writes_nothing(db, epoch, kind, what):
    db.table("id INT PRIMARY KEY")
    fence_for(db.server, db.ticket).raise_to(2, "n2")
    ticket = ticket_for(db.schema, epoch=epoch)
    with pytest.raises(kind, match=what) as caught:
        db.sink.apply(ticket, [db.changes((ID,), [(1,)])])
    assert caught.value.where["pipeline"] == db.ticket.pipeline_key
    assert db.rows() == []
    key = db.ticket.pipeline_key
    assert rows_of(db.server, "SELECT ID FROM retl.retl_mark WHERE ID = %s", mark_id(key, 0)) == []
    # The same connection serves the leadership that holds the fence.
    db.sink.apply(ticket_for(db.schema, epoch=2), [db.changes((ID,), [(1,)])])
    assert db.rows() == [(1,)]


def test_without_a_leader_nothing_is_written(db):
    db.table("id INT PRIMARY KEY")
    with pytest.raises(TargetWentBackError, match="has no row"):
        db.sink.apply(ticket_for(unique("other")), [db.changes((ID,), [(1,)])])
    assert db.rows() == []


# -- keys ----------------------------------------------------------------------------------


def test_what_a_table_with_two_keys_has_is_not_written_again(db):
    db.table("id INT PRIMARY KEY, code VARCHAR(20), UNIQUE (code)")
    calls = [[(1, "a"), (2, "b")], [(1, "x")], [(3, "a")]]
    for _ in range(2):
        for at, rows in enumerate(calls, 1):
            changes = db.changes((ID, CODE), rows)
            changes.upsert_versions.extend([at] * len(rows))
            ticket = replace(db.ticket, through=at)
            db.sink.apply(ticket, [changes])
            assert at < 3 or db.rows() == [(1, "x"), (2, "b"), (3, "a")]


@pytest.mark.parametrize("position", ["id, k", "k, id"])
@pytest.mark.parametrize("type_", ["TIMESTAMP(2)", "DATETIME(2)"])
def test_a_row_keeps_a_time_in_its_key_that_the_server_would_set(db, position, type_):
    clock = "CURRENT_TIMESTAMP(2)"
    db.table(
        f"id INT, k {type_} NOT NULL DEFAULT {clock} ON UPDATE {clock}, v INT,"
        f" PRIMARY KEY ({position})"
    )
    columns = (ID, Column("k", Kind.DATETIME), Column("v", Kind.INTEGER))
    key = (0, 1) if position == "id, k" else (1, 0)
    rows = [(i, f"2024-01-0{i} 00:00:00.080000", 1) for i in (1, 2)]
    for count in (1, 2):  # alone, and several in one statement
        db.write(columns, rows, key=key)
        db.write(columns, [(*row[:2], row[2] + count) for row in rows[:count]], key=key)
        held = db.rows("id, DATE_FORMAT(k, '%Y-%m-%d %H:%i:%s.%f'), v")
        assert held == [(*row[:2], row[2] + count * (row in rows[:count])) for row in rows]


def test_columns_that_only_the_target_has_survive_an_upsert(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(20), note VARCHAR(20) DEFAULT 'none'")
    db.write((ID, NAME), [(1, "a")])
    execute(db.server, f"UPDATE {db.schema}.t SET note = 'mine'")
    db.write((ID, NAME), [(1, "b"), (2, "c")])
    assert db.rows() == [(1, "b", "mine"), (2, "c", "none")]


def test_a_primary_key_of_the_targets_own_is_left_to_it(db):
    db.table("own INT AUTO_INCREMENT PRIMARY KEY, id INT NOT NULL, name VARCHAR(9), UNIQUE (id)")
    db.write((ID, NAME), [(7, "a"), (8, "b")])
    db.write((ID, NAME), [(7, "c")], [(8,)])
    assert db.rows() == [(1, 7, "c")]


def test_without_a_unique_key_rows_are_still_there_once(db):
    db.table("id INT, name VARCHAR(20)")
    for _ in range(2):
        db.write((ID, NAME), [(1, "a"), (2, "b")])
    db.write((ID, NAME), [(1, "c")], [(2,)])
    assert db.rows() == [(1, "c")]


@pytest.mark.parametrize("constraint", ["KEY (id)", "UNIQUE (id)"])
def test_a_key_without_a_value_is_refused_since_it_would_be_there_twice(db, constraint):
    db.table(f"id INT NULL, name VARCHAR(20), {constraint}")
    with pytest.raises(DataError, match="is NULL") as caught:
        db.write((ID, NAME), [(3, "a"), (None, "b")])
    assert caught.value.where["key"] == "None"
    assert db.rows() == []


def test_a_key_that_is_all_generated_finds_its_rows(db):
    db.table("id INT, name VARCHAR(20), twice INT AS (id * 2) STORED, UNIQUE (twice)")
    columns = (ID, NAME, Column("twice", Kind.INTEGER, generated=True))
    db.write(columns, [(1, "a", 2), (2, "b", 4)], key=(2,))
    db.write(columns, [(1, "c", 2)], [(4,)], key=(2,))
    assert db.rows() == [(1, "c", 2)]


def test_generated_columns_are_left_to_the_target(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(20), twice INT AS (id * 2) STORED")
    db.write((ID, Column("twice", Kind.INTEGER), NAME), [(4, 8, "a")])
    db.write((ID, NAME), [(5, "b")])
    assert db.rows() == [(4, "a", 8), (5, "b", 10)]


def test_names_that_need_quotes(db):
    table, column = "odd `name` %s %d", "select `x`%d"
    execute(
        db.server,
        f"CREATE TABLE {db.schema}.`{table.replace('`', '``')}` "
        f"(id INT PRIMARY KEY, `{column.replace('`', '``')}` INT)".replace("%", "%%").replace(
            "%%", "%"
        ),
    )
    columns = (ID, Column(column, Kind.INTEGER))
    db.write(columns, [(1, 2), (3, 4)], name=table)
    db.write(columns, [(1, 5)], [(3,)], name=table)
    assert db.rows(name="`" + table.replace("`", "``") + "`") == [(1, 5)]


def test_children_may_come_before_their_parents_and_outlive_them(db):
    db.table("id INT PRIMARY KEY", name="parent")
    db.table(
        "id INT PRIMARY KEY, parent_id INT, "
        f"FOREIGN KEY (parent_id) REFERENCES {db.schema}.parent (id) ON DELETE CASCADE",
        name="child",
    )
    child = (ID, Column("parent_id", Kind.INTEGER))
    db.write(child, [(1, 10)], name="child")
    db.write((ID,), [(10,)], name="parent")
    db.write((ID,), [], [(10,)], name="parent")
    assert db.rows(name="child") == [(1, 10)]


def test_deleting_a_part_of_a_small_table_does_not_wait_for_its_other_rows(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(9)")
    db.write((ID, NAME), [(i, "a") for i in range(50)])
    with closing(db.server.connect(autocommit=False)) as other, other.cursor() as cursor:
        cursor.execute(f"UPDATE {db.schema}.t SET name = 'b' WHERE id = 45")
        db.write((ID, NAME), [], [(i,) for i in range(30)])
        other.rollback()
    assert [row[0] for row in db.rows()] == list(range(30, 50))


# -- values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "kind", "values"),
    [
        ("DECIMAL(30,10)", Kind.DECIMAL, [f"1234567890123456789.000000000{n}" for n in (1, 2)]),
        ("VARBINARY(20)", Kind.BINARY, [b"\x00", b"it's\\", b"\xff\xfe"]),
        ("DATETIME(6)", Kind.DATETIME, ["2026-01-01 00:00:00.1", "0000-00-00 00:00:00"]),
        ("TIMESTAMP(6)", Kind.TIMESTAMP, ["2026-03-29 01:30:00", "2026-03-29 02:30:00.5"]),
        ("TIME(6)", Kind.TIME, ["-100:11:12.340000", "00:00:00.000000"]),
        ("ENUM('1','0','x')", Kind.ENUM, ["1", "0", "x"]),
        ("VARCHAR(40)", Kind.TEXT, ["it's \\", "%s", "😀", "\0\x1a"]),
        ("BIT(64)", Kind.BIT, [0, 2**64 - 1]),
    ],
)  # fmt: skip
def test_every_kind_of_key_finds_its_row(db, definition, kind, values):
    db.table(f"k {definition} NOT NULL PRIMARY KEY, id INT")
    columns = (Column("k", kind), ID)
    db.write(columns, [(v, i) for i, v in enumerate(values)])
    db.write(columns, [(values[0], 99)], [(v,) for v in values[1:]])
    assert db.rows("id") == [(99,)]
    db.write(columns, [], [(values[0],)])
    assert db.rows("id") == []


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=50), max_size=20),
    blobs=st.lists(st.binary(max_size=50), max_size=20),
)
def test_any_text_and_any_bytes_arrive_as_they_left(db, texts, blobs):
    execute(db.server, f"DROP TABLE IF EXISTS {db.schema}.t")
    db.table("id INT PRIMARY KEY, name LONGTEXT COLLATE utf8mb4_bin, b LONGBLOB")
    rows = [(i, t, None) for i, t in enumerate(texts)]
    rows += [(100 + i, None, b) for i, b in enumerate(blobs)]
    db.write((ID, NAME, Column("b", Kind.BINARY)), rows)
    assert db.rows() == rows


# -- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, 137, 499])
def test_the_row_that_the_server_refuses_is_named_and_nothing_is_written(db, wrong):
    db.table("id INT PRIMARY KEY, name VARCHAR(5)")
    rows = [(i, "long one" if i == wrong else "ok") for i in range(500)]
    with pytest.raises(DataError, match="Data too long for column 'name'") as caught:
        db.write((ID, NAME), rows)
    assert caught.value.where["table"] == f"{db.schema}.t"
    assert caught.value.where["key"] == str(wrong)
    assert db.rows() == []
    db.write((ID, NAME), [(1, "ok")])
    assert db.rows() == [(1, "ok")]


@pytest.mark.parametrize(
    ("columns", "row", "message"),
    [
        ((ID, NAME), (7, "caf\udce9"), "column name holds text that is not valid"),
        ((ID, NAME), (7, ABSENT), "column name is missing"),
        ((ID, Column("name", Kind.FLOAT)), (7, float("nan")), "column name holds a float"),
    ],
)
def test_a_value_that_cannot_be_written_down_is_named(db, columns, row, message):
    db.table("id INT PRIMARY KEY, name VARCHAR(5)")
    with pytest.raises(DataError, match=message) as caught:
        db.write(columns, [(1, None), row])
    assert caught.value.where["key"] == "7"
    assert caught.value.where["table"] == f"{db.schema}.t"
    assert db.rows() == []


def test_a_missing_table_and_a_missing_column_are_configuration_errors(db):
    with pytest.raises(ConfigurationError, match="does not exist") as caught:
        db.write((ID, NAME), [(1, "a")])
    assert caught.value.where["table"] == f"{db.schema}.t"
    db.table("id INT PRIMARY KEY")
    with pytest.raises(ConfigurationError, match="lacks the columns name, code"):
        db.write((ID, NAME, CODE), [(1, "a", "b")])
    db.write((ID,), [(1,)])


def test_a_table_that_changes_is_looked_at_again(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(9), code VARCHAR(9)")
    columns = (ID, NAME, CODE)
    db.write(columns, [(1, "a", "b")])
    execute(db.server, f"ALTER TABLE {db.schema}.t DROP COLUMN code")
    with pytest.raises(ConfigurationError, match="lacks the columns code"):
        db.write(columns, [(1, "a", "c")])
    execute(db.server, f"ALTER TABLE {db.schema}.t ADD COLUMN code VARCHAR(9)")
    db.write(columns, [(1, "a", "d")])
    assert db.rows() == [(1, "a", "d")]


def test_a_column_that_a_table_has_just_got_is_found(db):
    """Who adds a column to the target first, and to the source next, does what is right."""
    db.table("id INT PRIMARY KEY, name VARCHAR(9)")
    db.write((ID, NAME), [(1, "a")])
    execute(db.server, f"ALTER TABLE {db.schema}.t ADD COLUMN code VARCHAR(9)")
    db.write((ID, NAME, CODE), [(1, "a", "c")])
    assert db.rows() == [(1, "a", "c")]


def test_a_column_that_was_widened_takes_what_fits_now(db):
    db.table("id INT PRIMARY KEY, kind ENUM('a')")
    columns = (ID, Column("kind", Kind.ENUM))
    db.write(columns, [(1, "a")])
    execute(db.server, f"ALTER TABLE {db.schema}.t MODIFY kind ENUM('a', 'b')")
    db.write(columns, [(1, "a"), (2, "b")])
    assert db.rows() == [(1, "a"), (2, "b")]
    with pytest.raises(DataError, match="would lack that label"):
        db.write(columns, [(3, "c")])


@pytest.mark.parametrize("more", ["", ", n INT UNIQUE"], ids=["plain", "with unique values"])
def test_a_row_that_a_widened_column_takes_is_not_put_aside(site_a, request, more):
    db = StartPoint(site_a, dead_letter_limit=9)
    request.addfinalizer(db.sink.close)
    db.table(f"id INT PRIMARY KEY, kind ENUM('a'){more}")
    columns = (ID, Column("kind", Kind.ENUM))
    db.write(columns, [(1, "a")])
    execute(site_a, f"ALTER TABLE {db.schema}.t MODIFY kind ENUM('a', 'b')")
    loaded = db.write(columns, [(2, "b"), (3, "c")])
    assert db.rows("id, kind") == [(1, "a"), (2, "b")]
    assert loaded.dead_letters == 1


def test_a_float_that_has_become_a_double_takes_all_digits_at_once(db):
    db.table("id INT PRIMARY KEY, amount FLOAT")
    columns = (ID, Column("amount", Kind.FLOAT))
    db.write(columns, [(1, 3.4028235e38)])
    execute(db.server, f"ALTER TABLE {db.schema}.t MODIFY amount DOUBLE")
    numbers = [(n, n / 10) for n in range(2, 20)]
    db.write(columns, numbers[:1])
    db.write(columns, numbers[1:])
    assert db.rows()[1:] == numbers


def test_a_missing_privilege_is_a_configuration_error(db):
    db.table("id INT PRIMARY KEY")
    user = unique("u")[:20]
    execute(
        db.server,
        f"CREATE USER {user}@'%' IDENTIFIED BY 'secret'",
        f"GRANT SELECT ON {db.schema}.* TO {user}@'%'",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON retl.* TO {user}@'%'",
    )
    endpoint = MysqlEndpoint(db.server.host, db.server.port, user, "secret")
    sink = MysqlSink(MysqlSinkSettings(endpoint, MARK), nonces())
    try:
        with pytest.raises(ConfigurationError, match=r"INSERT.* command denied") as caught:
            sink.apply(db.ticket, [db.changes((ID,), [(1,)])])
    finally:
        sink.close()
    assert "secret" not in str(caught.value)


def test_a_row_larger_than_the_server_accepts_is_named(db):
    db.table("id INT PRIMARY KEY, name LONGTEXT")
    (packet,) = rows_of(db.server, "SELECT @@max_allowed_packet")[0]
    with pytest.raises(DataError, match=f"the target accepts {packet}") as caught:
        db.write((ID, NAME), [(1, "a"), (2, "x" * packet)])
    assert caught.value.where["key"] == "2"
    db.write((ID, NAME), [(1, "a"), (2, "x" * (packet - 1000))])
    assert db.rows("id, LENGTH(name)") == [(1, 1), (2, packet - 1000)]


def test_waiting_too_long_for_a_lock_is_transient(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(9)")
    db.write((ID, NAME), [(1, "a"), (2, "a")])
    with closing(db.server.connect(autocommit=False)) as other, other.cursor() as cursor:
        cursor.execute(f"UPDATE {db.schema}.t SET name = 'b' WHERE id = 2")
        with pytest.raises(TransientError, match="1205"):
            db.write((ID, NAME), [(1, "c"), (2, "c")])
        other.commit()
    assert db.rows() == [(1, "a"), (2, "b")]
    db.write((ID, NAME), [(1, "c"), (2, "c")])
    assert db.rows() == [(1, "c"), (2, "c")]


def waits_for_a_lock(db):
    # Of this test alone: what the server tells may be a moment old.
    return rows_of(
        db.server,
        "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
        f" AND trx_query LIKE '%{db.schema}%'",
    )


def test_the_victim_of_a_deadlock_tries_again(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(9)")
    db.write((ID, NAME), [(i, "a") for i in range(500)])
    naps = []
    sink = MysqlSink(
        MysqlSinkSettings(endpoint_of(db.server), MARK), nonces("again"), sleep=naps.append
    )
    # Deletes come first, so the sink holds row 1 when it asks for row 2.
    changes = db.changes((ID, NAME), [(2, "c")], [(1,)])
    failures = []

    def load():
        try:
            sink.apply(db.ticket, [changes])
        except Exception as error:  # noqa: BLE001 - shown by the test's thread
            failures.append(error)

    with closing(db.server.connect(autocommit=False)) as other, other.cursor() as cursor:
        # More changes than the sink has, so that the sink is the victim. By the key, whatever the
        # server thinks of so new a table: going over all of it would lock row 1 as well.
        table = f"{db.schema}.t FORCE INDEX (PRIMARY)"
        cursor.execute(f"UPDATE {table} SET name = 'b' WHERE id = 2 OR id > 100")
        task = threading.Thread(target=load)
        task.start()
        eventually(lambda: waits_for_a_lock(db), 30, interval=INNODB_RENEWED)
        cursor.execute(f"UPDATE {db.schema}.t SET name = 'b' WHERE id = 1")
        other.commit()
        task.join(30)
    sink.close()
    assert failures == []
    assert len(naps) == 1
    assert db.rows(order="id")[:3] == [(0, "a"), (2, "c"), (3, "a")]


def kill_writers(db):
    """Kill the connections that are recorded for this position's pipeline."""
    for (writer,) in rows_of(
        db.server,
        "SELECT conn_id FROM retl.setl_writer WHERE pipeline = %s",
        db.ticket.pipeline_key,
    ):
        execute(db.server, f"KILL {writer}")
        # The connection ends a moment after the statement.
        there = f"SELECT 1 FROM information_schema.processlist WHERE id = {writer}"
        eventually(lambda there=there: not rows_of(db.server, there), 30)


def test_a_connection_lost_while_idle_is_opened_again(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(9)")
    db.write((ID, NAME), [(1, "a")])
    kill_writers(db)
    db.write((ID, NAME), [(1, "b")])
    assert db.rows() == [(1, "b")]
    # The record of the lost connection went with it.
    key = db.ticket.pipeline_key
    assert len(rows_of(db.server, "SELECT * FROM retl.setl_writer WHERE pipeline = %s", key)) == 1
    db.sink.close()
    assert rows_of(db.server, "SELECT * FROM retl.setl_writer WHERE pipeline = %s", key) == []


def test_a_server_that_is_not_there_is_transient():
    sink = MysqlSink(MysqlSinkSettings(MysqlEndpoint("127.0.0.1", 1, "u", "pw"), 1), nonces())
    changes = TargetChanges(("s", "t"), (ID,), (0,), [(1,)])
    with pytest.raises(TransientError, match="2003") as caught:
        sink.apply(ticket_for("p"), [changes])
    assert caught.value.where["server"] == "127.0.0.1:1"
    sink.close()


# -- sinks of a worker ---------------------------------------------------------------------


def test_a_worker_stores_its_sinks_and_their_number_is_limited(db):
    db.table("id INT PRIMARY KEY")
    settings = MysqlSinkSettings(endpoint_of(db.server), MARK)
    assert sink_for(settings) is sink_for(MysqlSinkSettings(endpoint_of(db.server), MARK))
    cache = SinkCache(limit=2)
    one, two, three = (
        MysqlSinkSettings(endpoint_of(db.server), MARK, lock_wait=n) for n in (1, 2, 3)
    )
    first = cache.get(one)
    first.apply(db.ticket, [db.changes((ID,), [(1,)])])
    key = db.ticket.pipeline_key
    written = "SELECT * FROM retl.setl_writer WHERE pipeline = %s"
    assert len(rows_of(db.server, written, key)) == 1
    cache.get(two)
    assert cache.get(one) is first
    cache.get(three)
    assert cache.get(one) is first
    with db.server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"{written} FOR UPDATE", (key,))
        # What closes the first one waits for this lock, and nobody waits for that.
        cache.get(two)
        cache.get(three)
        connection.rollback()
    eventually(lambda: rows_of(db.server, written, key) == [], 30)
    cache.close()


# -- tables without transactions -----------------------------------------------------------


@pytest.mark.parametrize("engine", ["MyISAM", "MEMORY"])
def test_a_table_without_transactions_is_refused_before_a_row_is_written(db, engine):
    db.table("id INT PRIMARY KEY, name VARCHAR(9)")
    execute(db.server, f"ALTER TABLE {db.schema}.t ENGINE = {engine}")
    with pytest.raises(ConfigurationError, match=f"{engine} table, which has no transactions") as e:
        db.write((ID, NAME), [(1, "a")])
    assert db.rows() == []
    execute(db.server, e.value.hint.rstrip(";"))
    db.write((ID, NAME), [(1, "a")])
    assert db.rows() == [(1, "a")]


def test_a_view_is_refused_before_a_row_is_written(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(9)", name="behind")
    view = f"CREATE VIEW {db.schema}.t AS SELECT * FROM {db.schema}.behind WHERE name < 'x'"
    execute(db.server, view)
    with pytest.raises(ConfigurationError, match="the target is a view"):
        db.write((ID, NAME), [(1, "a")])
    assert db.rows(name="behind") == []


def test_a_table_that_loses_its_transactions_between_two_loads_is_refused_at_once(db):
    db.table("id INT PRIMARY KEY, name VARCHAR(9)")
    db.table("id INT PRIMARY KEY, name VARCHAR(9)", name="other")
    db.write((ID, NAME), [(1, "a")])
    execute(db.server, f"ALTER TABLE {db.schema}.t ENGINE = MyISAM")
    both = [
        db.changes((ID, NAME), [(2, "b")], name="other"),
        db.changes((ID, NAME), [(2, "b")]),
    ]
    with pytest.raises(ConfigurationError, match="which has no transactions"):
        db.sink.apply(db.ticket, both)
    assert (db.rows(), db.rows(name="other")) == ([(1, "a")], [])


def test_nobody_alters_a_table_that_was_asked_for_inside_a_transaction(db):
    db.table("id INT PRIMARY KEY")
    with closing(db.server.connect()) as connection:
        connection.begin()
        with connection.cursor() as cursor:
            assert not cursor.execute(*tables_without_transactions([(db.schema, "t")]))
        with pytest.raises(pymysql.OperationalError, match="1205"):
            execute(
                db.server,
                "SET SESSION lock_wait_timeout = 1",
                f"ALTER TABLE {db.schema}.t ENGINE = MyISAM",
            )
        connection.rollback()


KEY_PARTS = [
    ("TIME", Kind.TIME, "01:30:00.000000", "00:00:00.000000"),
    ("TIME(3)", Kind.TIME, "-838:59:59.000000", "01:30:00.500000"),
    ("TIME(6)", Kind.TIME, "-01:30:00.500000", "01:30:00.500001"),
    ("DATETIME", Kind.DATETIME, "2026-01-01 01:30:00.000000", "0000-00-00 00:00:00.000000"),
    ("DATETIME(3)", Kind.DATETIME, "2026-01-01 01:30:00.500000", "2026-01-01 01:30:00.501000"),
    ("TIMESTAMP", Kind.TIMESTAMP, "2026-01-01 01:30:00.000000", "2026-01-01 01:30:01.000000"),
    ("DATE", Kind.DATE, "2026-01-01", "0000-00-00"),
    ("YEAR", Kind.YEAR, 2026, 1901),
    ("DECIMAL(10,3)", Kind.DECIMAL, "1.500", "-0.001"),
    ("DOUBLE", Kind.FLOAT, 0.1, -2.5),
    ("FLOAT", Kind.FLOAT, 0.1, -2.5),
    ("BIT(9)", Kind.BIT, 257, 0),
    ("BINARY(4)", Kind.BINARY, b"a\0\0\0", b"\0\0\0\0"),
    ("CHAR(4)", Kind.TEXT, "a", "\u00e9"),
    ("ENUM('a','b')", Kind.ENUM, "a", "b"),
    ("SET('a','b')", Kind.SET, "a,b", ""),
    # Labels like these are looked for by their numbers.
    ("ENUM('a','b','A') COLLATE utf8mb4_bin", Kind.ENUM, "a", "A"),
    ("SET('a','b','A') COLLATE utf8mb4_bin", Kind.SET, "a,b", "b,A"),
]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("beside", ["INT", "VARCHAR(9) CHARACTER SET utf8mb4"])
def test_deletes_find_rows_by_every_type_beside_another_column(db, count, beside):
    positions = f"id {beside}, k {{}}, PRIMARY KEY (id, k)"
    is_text = beside != "INT"
    for number, (definition, kind, first, second) in enumerate(KEY_PARTS):
        name = f"k{number}"
        columns = (Column("id", Kind.TEXT) if is_text else ID, Column("k", kind))
        db.table(positions.format(definition), name)
        ids = [f"i{i}" if is_text else i for i in range(count)]
        rows = [(i, value) for i in ids for value in (first, second)]
        db.write(columns, rows, name=name, key=(0, 1))
        db.write(columns, (), [(i, first) for i in ids], name=name, key=(0, 1))
        assert [row[0] for row in db.rows(name=name)] == ids, definition
