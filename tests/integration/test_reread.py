"""Tables whose rows are read at the source (`read: source`) when their changes are loaded."""

import json
from urllib.request import urlopen

import pytest

from setl.errors import CollisionError
from tests.integration.pipelines import execute, mysql, one_way, rows
from tests.integration.test_pipeline_binlog_settings import by_session
from tests.integration.test_table_load import fill, in_step, written
from tests.waiting import eventually


def rereading(source, target, db, *others, **options):
    table = {"from": f"{db}.orders", "read": "source"}
    return one_way(source, target, [table, *others], **options)


def unlogged(server, *statements):
    """Change what no stream tells, so that only who reads the table sees it."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in ("SET SESSION sql_log_bin = 0", *statements):
            cursor.execute(statement)


def test_rows_are_as_the_source_has_them_when_they_are_loaded(servers, db, place):
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
    running = place.lead(file)
    running.applied(10)
    running.stop()
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")
    assert [row[2] for row in rows(b, f"{db}.orders")] == ["zoë", "ann", "cy"]
    report = [(i, who, float(total)) for i, who, total in rows(b, f"{db}.report")]
    assert report == [(1, "ZOË", 4.0)]


def test_any_changes_by_leaders_that_die(servers, db, place):
    """Keys and unique values change places all the time, ahead of small loads."""
    a, b = servers
    fill(a, f"{db}.orders", 300)
    fill(b, f"{db}.orders", 300)
    file = rereading(a, mysql(b), db, batch_rows=40)
    running = None
    with written(a, f"{db}.orders", 350) as writer:
        for part in range(1, 4):
            running = place.lead(file)
            seen = running.figures.rows_total
            eventually(lambda part=part: writer.written > 60 * part or writer.error, 60)
            running.applied(seen + 50)
            running.abort()
        running = place.lead(file)
    in_step(a, b, running, db)
    # An unlogged change of every row tells whether rows that were taken last are still right.
    execute(a, f"UPDATE {db}.orders SET amount = 1")
    in_step(a, b, running, db)


def test_a_unique_key_that_only_the_target_has_removes_no_row(servers, db, place):
    a, b = servers
    execute(b, f"ALTER TABLE {db}.orders ADD UNIQUE KEY (name)")
    running = place.lead(rereading(a, mysql(b), db))
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (1, 'same')")
    running.applied(1)
    execute(a, f"INSERT INTO {db}.orders (id, name) VALUES (2, 'same')")
    assert isinstance(running.ends(), CollisionError)
    assert [row[0] for row in rows(b, f"{db}.orders")] == [1]


def test_a_table_that_was_altered_after_the_change(servers, db, place):
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
    running = place.lead(file)
    running.applied(4)
    running.stop()
    assert rows(b, f"{db}.orders") == rows(a, f"{db}.orders")


def test_keys_are_all_that_images_have_to_hold(servers, db, place):
    a, b = servers
    running = place.lead(rereading(a, mysql(b), db))
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


@pytest.mark.one_family(why="documents in Elasticsearch; rows are the same by then")
def test_documents_are_rows_as_they_were_read(servers, db, elasticsearch, place):
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
    running = place.lead(file)
    running.applied(5)
    running.stop()
    urlopen(f"{elasticsearch.url}/{db}/_refresh", data=b"").close()
    with urlopen(f"{elasticsearch.url}/{db}/_search") as answer:
        found = json.load(answer)["hits"]["hits"]
    assert {hit["_id"]: hit["_source"]["name"] for hit in found} == {"1": "zoë", "4": "di"}
