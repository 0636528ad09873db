"""Rows are read as they are after a position of the binlog, though tables show it later."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from setl.errors import TransientError
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.systems.finding import Report
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.preflight.first_load import check_prepared
from setl.systems.mysql.reading.consistent_read import read_all_before
from setl.systems.mysql.server import Server
from tests.integration.pipelines import execute
from tests.integration.table_loads.test_requested_loads import WAITING_FOR_GTIDS, commits_that_hang
from tests.mysql_servers import is_mariadb
from tests.waiting import INNODB_RENEWED, eventually

NEW_FILE = "FLUSH BINARY LOGS"
LOCKED_OUT = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"


def read(server, db, position):
    """What is read after a position, and how the SELECT ends."""
    with server.connect() as connection:
        ending = read_all_before(connection, position)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT v FROM {db}.t{ending}")
            return cursor.fetchone()[0], ending.strip()


def named_file(server):
    """The file of which the server says that its tables show it."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_file'")
        return cursor.fetchone()[1]


def test_a_new_binlog_file_says_nothing_of_the_one_before(servers, db):
    """MariaDB tells the head of the new file while a commit in the old one still hangs."""
    a, _ = servers
    with a.connect() as connection:
        mariadb = is_mariadb(connection)
    create = f"CREATE TABLE {db}.t (id INT PRIMARY KEY, v INT)"
    execute(a, create, f"INSERT INTO {db}.t VALUES (1, 1)")
    with ThreadPoolExecutor(3) as pool, ExitStack() as hanging:
        hanging.enter_context(commits_that_hang(a))
        before = named_file(a) if mariadb else ""
        gtid = "" if mariadb else f"{uuid.uuid4()}:1"
        position = BinlogPosition("binlog.000001", 4, gtid)
        named = (f"SET gtid_next = '{gtid}'",) if gtid else ()
        committing = pool.submit(execute, a, *named, f"UPDATE {db}.t SET v = 2")
        hangs = "SELECT 1 FROM information_schema.processlist WHERE state LIKE '%semi%'"
        eventually(lambda: execute(a, hangs) != (), 60)
        flushing = pool.submit(execute, a, NEW_FILE)
        if mariadb:
            eventually(lambda: named_file(a) != before, 60)
            position = BinlogPosition(named_file(a), 4)
        reading = pool.submit(read, a, db, position)
        waits = LOCKED_OUT if mariadb else WAITING_FOR_GTIDS
        eventually(lambda: reading.done() or execute(a, waits) != (), 60, interval=INNODB_RENEWED)
        assert not reading.done(), reading.result()
        assert not committing.done()
        hanging.close()
        assert reading.result(60) == (2, "LOCK IN SHARE MODE" if mariadb else "")
        flushing.result(60)


def test_another_server_than_that_of_the_stream_says_nothing(servers, db):
    """As behind a name that leads to another server by now."""
    a, b = servers
    with a.connect() as connection:
        mariadb = is_mariadb(connection)
    execute(
        a, f"CREATE TABLE {db}.t (id INT PRIMARY KEY, v INT)", f"INSERT INTO {db}.t VALUES (1, 1)"
    )
    own, other = (
        str(execute(s, "SELECT @@GLOBAL.server_id" if mariadb else "SELECT @@server_uuid")[0][0])
        for s in (a, b)
    )
    position = BinlogPosition("binlog.000001", 4, origin=BinlogOrigin(other))
    with pytest.raises(TransientError, match="another server"):
        read(a, db, position)
    assert read(a, db, replace(position, origin=BinlogOrigin(own)))[0] == 1
    if not mariadb:
        gtids = execute(a, "SELECT @@GLOBAL.gtid_executed")[0][0]
        assert read(a, db, replace(position, gtid=gtids)) == (1, "")


def test_rows_of_a_binlog_file_with_transactions_are_read_without_locks(servers, db):
    a, _ = servers
    with a.connect() as connection:
        mariadb = is_mariadb(connection)
    create = f"CREATE TABLE {db}.t (id INT PRIMARY KEY, v INT, x MEDIUMTEXT)"
    execute(a, NEW_FILE, create, f"INSERT INTO {db}.t VALUES (1, 1, REPEAT('x', 100000))")
    position = BinlogPosition("binlog.000001", 4)
    if mariadb:
        position = BinlogPosition(named_file(a), 4)
    else:
        position = replace(position, gtid=execute(a, "SELECT @@GLOBAL.gtid_executed")[0][0])
    assert read(a, db, position) == (1, "")


@pytest.mark.family("mysql", why="MariaDB tells everybody which transactions are prepared")
def test_an_account_that_is_not_reported_of_prepared_transactions_reads_under_locks(servers, db):
    a, _ = servers
    name = f"u_{uuid.uuid4().hex[:8]}"
    execute(
        a,
        f"CREATE TABLE {db}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {db}.t VALUES (1, 1)",
        f"CREATE USER {name}@'%' IDENTIFIED BY 'pw'",
        f"GRANT SELECT ON {db}.* TO {name}@'%'",
    )
    endpoint = MysqlEndpoint(a.host, a.port, name, "pw")
    position = replace(
        BinlogPosition("binlog.000001", 4), gtid=execute(a, "SELECT @@GLOBAL.gtid_executed")[0][0]
    )

    def ending():
        with closing(connect(endpoint)) as connection:
            return read_all_before(connection, position)

    def found():
        report = Report("here")
        with Server.opened(endpoint) as server:
            check_prepared(server, report)
        return report.findings

    with a.connect() as connection, connection.cursor() as cursor:
        cursor.execute("XA START 'told'")
        cursor.execute("XA END 'told'")
        cursor.execute("XA PREPARE 'told'")
        cursor.execute("XA COMMIT 'told'")
    assert ending() == " FOR SHARE", "there may be others that are prepared"
    (finding,) = found()
    assert (finding.level, finding.code) == ("warning", "xa-not-seen")
    execute(a, *finding.statements)
    assert ending() == ""
    assert found() == []
    execute(a, f"DROP USER {name}@'%'")
