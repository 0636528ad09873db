"""Tables whose rows are read at the source (`read: source`) when their changes are loaded."""

import json
from urllib.request import urlopen

import pytest

from setl.channel.routes.routing import Route
from setl.errors import CollisionError, FatalError
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.preflight.unique_keys import agreeing_tables
from tests.integration.pipelines import execute, mysql, one_way, rows
from tests.integration.sources.test_pipeline_binlog_settings import by_session
from tests.integration.table_loads.test_table_load import fill, in_step, written
from tests.integration.type_catalogue import LABELS
from tests.waiting import eventually


def rereading(source, target, db, *others, **options):
    table = {"from": f"{db}.orders", "read": "source"}
    return one_way(source, target, [table, *others], **options)


def unlogged(server, *statements):
    """Change what no stream tells, so that only who reads the table sees it."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in ("SET SESSION sql_log_bin = 0", *statements):
            cursor.execute(statement)


def test_rows_are_as_the_source_has_them_when_they_are_loaded(servers, db, position):
    a, b = servers
    execute(b, f"CREATE TABLE {db}.report (id BIGINT PRIMARY KEY, who TEXT, total DECIMAL(30,6))")
    report = {
        "from": f"{db}.orders",
        "to": f"{db}.report",
        "read": "source",
        "include": ["id"],
        "columns": {"who": "upper(name)", "total": "amount * 2"},
        "where": "amount > 1",
    }
    file = rereading(a, mysql(b), db, report, batch_rows=2)
    execute(
        a,
        f"INSERT INTO {db}.orders (id, email, name, amount) VALUES"
        " (1, 'a', 'ann', 1), (2, 'b', 'bob', 2), (3, 'c', 'cy', 3), (4, 'd', 'di', 4)",
        f"UPDATE {db}.orders SET id = 0 WHERE id = 1",  # 1 and 2 change places
        f"UPDATE {db}.orders SET id = 1 WHERE id = 2",
        f"UPDATE {db}.orders SET id = 2 WHERE id = 0",
        f"UPDATE {db}.orders SET amount = 0 WHERE id = 3",
        f"DELETE FROM {db}.orders WHERE id = 4",
        f"UPDATE {db}.orders SET email = NULL WHERE id = 1",  # b moves on
        f"UPDATE {db}.orders SET email = 'b' WHERE id = 3",
    )
    unlogged(a, f"UPDATE {db}.orders SET name = 'zoë', payload = x'00ff' WHERE id = 1")
    running = position.lead(file)
    running.applied(10)
    running.stop()
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")
    assert [row[2] for row in rows(b, f"{db}.orders")] == ["zoë", "ann", "cy"]
    report = [(i, who, float(total)) for i, who, total in rows(b, f"{db}.report")]
    assert report == [(1, "ZOË", 4.0)]


def test_a_table_agrees_only_with_all_that_it_goes_into(servers, db):
    """Rows that are in each other's way are read again only where no key is of the target's own."""
    a, b = (MysqlEndpoint(x.host, x.port, x.user, x.password) for x in servers)
    execute(
        servers[1],
        f"CREATE TABLE {db}.strict (id BIGINT PRIMARY KEY, name TEXT, UNIQUE (id, name(9)))",
    )
    execute(servers[1], f"CREATE TABLE {db}.own (id BIGINT PRIMARY KEY, amount INT UNIQUE)")
    orders = (db, "orders")
    plain, strict, own = (Route(i, (db, n)) for i, n in enumerate(("orders", "strict", "own")))
    for routes, agrees in (
        ((plain, strict), True), ((plain, own), False), ((own, plain), False),
    ):  # fmt: skip
        found = agreeing_tables(a, b, [(orders, route) for route in routes])
        assert (f"{db}.orders" in found) == agrees


def test_any_changes_by_leaders_that_die(servers, db, position):
    """Keys and unique values change places all the time, ahead of small loads."""
    a, b = servers
    fill(a, f"{db}.orders", 300)
    fill(b, f"{db}.orders", 300)
    file = rereading(a, mysql(b), db, batch_rows=40)
    running = None
    with written(a, f"{db}.orders", 350) as writer:
        for part in range(1, 4):
            running = position.lead(file)
            seen = running.figures.rows_total
            eventually(lambda part=part: writer.written > 60 * part or writer.error, 60)
            running.applied(seen + 50)
            running.abort()
        running = position.lead(file)
    in_step(a, b, running, db)
    # An unlogged change of every row tells whether rows that were taken last are still right.
    execute(a, f"UPDATE {db}.orders SET amount = 1")
    in_step(a, b, running, db)


def test_a_unique_key_that_only_the_target_has_removes_no_row(servers, db, position):
    a, b = servers
    execute(b, f"ALTER TABLE {db}.orders ADD UNIQUE KEY (name)")
    running = position.lead(rereading(a, mysql(b), db))
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'same')")
    running.applied(1)
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (2, 'same')")
    assert isinstance(running.ends(), CollisionError)
    assert [row[0] for row in rows(b, f"{db}.orders")] == [1]


def test_a_table_that_was_altered_after_the_change(servers, db, position):
    a, b = servers
    file = rereading(a, mysql(b), db, ddl="pass", batch_rows=2)
    execute(
        a,
        f"INSERT INTO {db}.orders (id, email, name) VALUES (1, 'a', 'ann'), (2, 'b', 'bob')",
        f"ALTER TABLE {db}.orders ADD COLUMN more INT NOT NULL DEFAULT 7, DROP COLUMN big",
        f"UPDATE {db}.orders SET more = 8, name = 'bo' WHERE id = 2",
        f"ALTER TABLE {db}.orders RENAME COLUMN rate TO pace",
        f"UPDATE {db}.orders SET pace = 0.5 WHERE id = 1",
        f"CREATE TABLE {db}.more_orders (id INT PRIMARY KEY)",
    )
    running = position.lead(file)
    running.applied(4)
    running.stop()
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")


NAMES_AGAIN = {
    "columns swapped": (
        "ALTER TABLE {db}.orders RENAME COLUMN name TO email, RENAME COLUMN email TO name",
    ),
    "a column instead of a renamed one": (
        "ALTER TABLE {db}.orders CHANGE name called VARCHAR(40)",
        "ALTER TABLE {db}.orders ADD name VARCHAR(40) DEFAULT 'new'",
    ),
    "keys swapped": (
        "ALTER TABLE {db}.orders ADD other BIGINT",
        "UPDATE {db}.orders SET other = 3 - id",
        "ALTER TABLE {db}.orders MODIFY other BIGINT NOT NULL",
        "ALTER TABLE {db}.orders RENAME COLUMN id TO other, RENAME COLUMN other TO id",
        "ALTER TABLE {db}.orders DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
    ),
    "a table instead of a renamed one": (
        "RENAME TABLE {db}.orders TO {db}.orders_old",
        "CREATE TABLE {db}.orders LIKE {db}.orders_old",
    ),
    "tables swapped": (
        "CREATE TABLE {db}.orders_new LIKE {db}.orders",
        "INSERT INTO {db}.orders_new (id, email) VALUES (2, 'of the other')",
        "RENAME TABLE {db}.orders TO {db}.orders_old, {db}.orders_new TO {db}.orders",
    ),
}


@pytest.mark.parametrize("how", NAMES_AGAIN)
def test_names_that_mean_something_else_by_now_stop_the_pipeline(servers, db, position, how):
    """What was read before the change came may be of another row, or of another column."""
    a, b = servers
    table = {"from": f"{db}.orders*", "read": "source"}
    file = one_way(a, mysql(b), [table], ddl="pass")
    execute(
        a,
        f"INSERT INTO {db}.orders (id, email, name) VALUES (1, 'a', 'ann'), (2, 'b', 'bob')",
        *(statement.format(db=db) for statement in NAMES_AGAIN[how]),
    )
    error = position.lead(file).ends()
    assert isinstance(error, FatalError)
    assert "by now" in error.message
    assert "load the table again" in error.hint


def test_a_key_that_is_another_one_by_now_finds_no_row(servers, db, position):
    """Where values or columns of the key have changed, the change says what the row was."""
    a, b = servers
    for server in servers:
        execute(
            server,
            f"CREATE TABLE {db}.fine (id DECIMAL(10,4) PRIMARY KEY, v INT)",
            f"CREATE TABLE {db}.other (id INT PRIMARY KEY, v INT)",
        )
    tables = [{"from": f"{db}.{name}", "read": "source"} for name in ("fine", "other")]
    file = one_way(a, mysql(b), tables, ddl="pass")
    execute(
        a,
        "SET sql_mode = ''",
        f"INSERT INTO {db}.fine VALUES (1.2345, 1), (2, 2)",
        f"ALTER TABLE {db}.fine MODIFY id DECIMAL(10,1)",
        f"UPDATE {db}.fine SET v = 3 WHERE id = 2",
        f"INSERT INTO {db}.other VALUES (1, 10), (2, 20)",
        f"ALTER TABLE {db}.other DROP PRIMARY KEY, ADD PRIMARY KEY (v)",
        f"UPDATE {db}.other SET id = 1",
    )
    running = position.lead(file)
    running.applied(6)
    for table in ("fine", "other"):
        assert rows(b, f"{db}.{table}") == rows(a, f"{db}.{table}")
        assert len(rows(a, f"{db}.{table}")) == 2


def test_keys_are_all_that_images_have_to_hold(servers, db, position):
    a, b = servers
    running = position.lead(rereading(a, mysql(b), db))
    by_session(
        a,
        "binlog_row_image = MINIMAL",
        f"INSERT INTO {db}.orders (id, email, name) VALUES (1, 'a', 'ann'), (2, 'b', 'bob')",
        f"UPDATE {db}.orders SET name = 'bo' WHERE id = 2",
        f"UPDATE {db}.orders SET id = 3 WHERE id = 1",
        f"DELETE FROM {db}.orders WHERE id = 2",
    )
    running.applied(5)
    running.stop()
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")
    assert [row[:3] for row in rows(b, f"{db}.orders")] == [(3, "a", "ann")]


def test_labels_that_print_alike_are_read_by_their_numbers(servers, db, position):
    a, b = servers
    lenient = "SET sql_mode = ''"
    for i, (definition, _) in enumerate(LABELS.values()):
        for server in servers:
            table = f"{db}.t{i} (k {definition} PRIMARY KEY, v {definition}, n INT)"
            execute(server, lenient, f"CREATE TABLE {table}")
    running = position.lead(one_way(a, mysql(b), [{"from": f"{db}.t*", "read": "source"}]))
    changes = 0
    for i, (_, numbers) in enumerate(LABELS.values()):
        values = ", ".join(f"({n}, {n}, 1)" for n in numbers)
        one = f"CAST(k AS UNSIGNED) = {numbers[0]}"
        execute(
            a, lenient, f"INSERT INTO {db}.t{i} VALUES {values}",
            f"UPDATE {db}.t{i} SET n = 2 WHERE {one}", f"DELETE FROM {db}.t{i} WHERE NOT {one}",
            f"INSERT INTO {db}.t{i} VALUES ({numbers[1]}, {numbers[-1]}, 3)",
        )  # fmt: skip
        changes += 2 * len(numbers) + 1
    running.applied(changes)
    running.stop()
    shown = "SELECT CAST(k AS UNSIGNED), CAST(v AS UNSIGNED), n FROM {} ORDER BY 1"
    for i in range(len(LABELS)):
        here, there = (execute(server, shown.format(f"{db}.t{i}")) for server in servers)
        assert here == there
        assert len(here) == 2


@pytest.mark.not_mixed(why="documents in Elasticsearch; rows are the same by then")
def test_documents_are_rows_as_they_were_read(servers, db, elasticsearch, position):
    a, _ = servers
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    table = {"from": f"{db}.orders", "to": db, "read": "source", "include": ["id", "name"]}
    file = one_way(a, target, [table], batch_rows=1)
    execute(
        a,
        f"INSERT INTO {db}.orders (id, name) VALUES (1, 'ann'), (2, 'bob'), (3, 'cy')",
        f"UPDATE {db}.orders SET id = 4, name = 'di' WHERE id = 3",
        f"DELETE FROM {db}.orders WHERE id = 2",
    )
    unlogged(a, f"UPDATE {db}.orders SET name = 'zoë' WHERE id = 1")
    running = position.lead(file)
    running.applied(5)
    running.stop()
    urlopen(f"{elasticsearch.url}/{db}/_refresh", data=b"").close()
    with urlopen(f"{elasticsearch.url}/{db}/_search") as answer:
        found = json.load(answer)["hits"]["hits"]
    assert {hit["_id"]: hit["_source"]["name"] for hit in found} == {"1": "zoë", "4": "di"}
