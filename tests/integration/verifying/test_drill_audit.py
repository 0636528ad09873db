"""What drills read from a real binlog, and what their users write."""

import threading
from contextlib import contextmanager

import pytest

from setl.systems.mysql.stored.marks import MARK_STATEMENT, mark_id
from setl_drills.binlog import binlog_end, read_transactions
from setl_drills.checkers import check_epochs, count_echoes
from setl_drills.connections import connections, open_transactions, working_transactions
from setl_drills.tables import create_tables, drop_tables
from tests.integration.pipelines import execute, fresh_name, install_system_tables
from tests.waiting import INNODB_RENEWED, eventually

KEY = "drill-audit/ba"


@pytest.fixture
def schema(site_a):
    install_system_tables(site_a)
    name = fresh_name("drill")
    create_tables(site_a, name)
    yield name
    drop_tables(site_a, name)


def loads(server, schema, epoch, site, ident):
    """A transaction as a pipeline writes it."""
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        info = f"{epoch}.1.0.99.{ident}"
        cursor.execute(MARK_STATEMENT, (mark_id(KEY, 0), 77, info))
        cursor.execute(f"INSERT INTO {schema}.entries VALUES (%s, %s, 1, NULL)", (ident, site))
        connection.commit()


def raises_fence(server, epoch):
    execute(
        server,
        f"REPLACE INTO retl.setl_fence (pipeline, epoch, nid) VALUES ('{KEY}', {epoch}, 'n')",
    )


def test_a_transaction_that_waits_for_its_client_does_not_work(site_a, schema):
    with site_a.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        [(own,)] = cursor.fetchall()
        cursor.execute(f"INSERT INTO {schema}.entries VALUES (1, 'a', 1, NULL)")

        def works():
            cursor.execute("SELECT 1")  # what it did before may be more than two seconds ago
            return own in working_transactions(site_a)

        eventually(works, 30, interval=INNODB_RENEWED)
        eventually(lambda: own not in working_transactions(site_a), 30, interval=INNODB_RENEWED)
        assert own in open_transactions(site_a)
        with _held(site_a, schema):
            asking = threading.Thread(
                target=cursor.execute, args=(f"DO GET_LOCK('{schema}', 300)",)
            )
            asking.start()
            eventually(lambda: _asks(site_a, own), 30)
            assert own in working_transactions(site_a)
        asking.join(30)


@contextmanager
def _held(site, name):
    """A user lock, for which others wait as long as the block lasts."""
    with site.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DO GET_LOCK('{name}', 0)")
        yield
        cursor.execute(f"DO RELEASE_LOCK('{name}')")


def _asks(site, number):
    return connections(site)[number] == "Query"


def test_marks_fences_and_rows_are_read_in_order(site_a, schema):
    begin = binlog_end(site_a)
    execute(site_a, f"INSERT INTO {schema}.entries VALUES (1, 'a', 1, NULL)")
    raises_fence(site_a, 5)
    loads(site_a, schema, 5, "b", 11)
    execute(site_a, "FLUSH BINARY LOGS")
    raises_fence(site_a, 9)
    loads(site_a, schema, 9, "b", 12)
    read = list(read_transactions(site_a, schema, begin, binlog_end(site_a)))
    assert [dict(t.rows) for t in read if t.rows] == [
        {("entries", "a"): 1}, {("entries", "b"): 1}, {("entries", "b"): 1},
    ]  # fmt: skip
    assert check_epochs(read, KEY) == []
    assert count_echoes(read, "a") == 0
    loads(site_a, schema, 5, "a", 13)
    read = list(read_transactions(site_a, schema, begin, binlog_end(site_a)))
    assert check_epochs(read, KEY)
    assert count_echoes(read, "a") == 1
