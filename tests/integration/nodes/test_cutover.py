"""`setl cutover` on two nodes and two servers, compared by plain SELECT."""

import json
import threading

import pymysql
import pytest

from tests.integration.pipelines import execute, fresh_name, rows
from tests.integration.two_nodes import command
from tests.waiting import eventually

# An application that writes as fast as it can keeps all of a machine busy as long as setl compares
# tables, and shows nothing more: it writes in each step of the cut-over either way. Seconds.
BETWEEN_WRITES = 0.1


class Application:
    """Writes with an account of its own, and knows what was committed."""

    def __init__(self, servers, db):
        self.servers, self.db, self.name = servers, db, fresh_name("app")
        self.committed, self.refused = [], None
        self.ending = threading.Event()
        for server in servers:
            execute(
                server,
                f"CREATE USER '{self.name}'@'%' IDENTIFIED BY 'secret'",
                f"GRANT ALL ON {db}.* TO '{self.name}'@'%'",
            )
        self.thread = threading.Thread(target=self._write, daemon=True)

    def connect(self, server):
        return pymysql.connect(
            host=server.host, port=server.port, user=self.name, password="secret", autocommit=True
        )

    def _write(self):
        with self.connect(self.servers[0]) as connection, connection.cursor() as cursor:
            number = 1000
            while not self.ending.wait(BETWEEN_WRITES):
                try:
                    cursor.execute(f"INSERT INTO {self.db}.t VALUES ({number}, 'app')")
                except pymysql.MySQLError as error:
                    self.refused = error.args[0]
                    return
                self.committed.append(number)
                number += 1

    def close(self):
        self.ending.set()
        for server in self.servers:
            execute(server, f"DROP USER '{self.name}'@'%'")


def read_only(server):
    return str(execute(server, "SELECT @@GLOBAL.read_only")[0][0]) in {"1", "ON"}


@pytest.fixture
def cutover(spark_command, sites):
    """The command, for pipeline `ab`, with the session of the tests."""
    return lambda *more: spark_command(
        sites.cluster, "cutover", f"{sites.name}/ab", *more, check=False
    )


@pytest.fixture
def sites(channel):
    execute(channel.a, f"INSERT INTO {channel.db}.t VALUES (1, 'one'), (2, 'two')")
    eventually(channel.equal, 60)
    try:
        yield channel
    finally:
        for server in (channel.a, channel.b):
            execute(server, "SET GLOBAL read_only = OFF")


def test_the_application_moves_and_loses_nothing(sites, cutover):
    plan = command(sites.cluster, "cutover", f"{sites.name}/ab", "--dry-run", "-o", "json")
    assert json.loads(plan.stdout)["way_back"] == f"{sites.name}/ba"
    application = Application((sites.a, sites.b), sites.db)
    try:
        application.thread.start()
        eventually(lambda: len(application.committed) > 10, 30)
        done = cutover("-o", "json", "--max-lag", "60")
        assert done.returncode == 0, done.stderr
        application.thread.join(60)
        assert application.refused == 1290
        there = {row[0] for row in rows(sites.b, f"{sites.db}.t")}
        assert there >= {1, 2, *application.committed}
        assert sites.equal()
        assert read_only(sites.a)
        assert not read_only(sites.b)
        # What it writes to the new site comes back to the old one, which is read-only.
        with application.connect(sites.b) as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {sites.db}.t VALUES (9999999, 'moved')")
        eventually(sites.equal, 60)
        status = command(sites.cluster, "cutover", f"{sites.name}/ab", "--status", "-o", "json")
        assert json.loads(status.stdout)["step"] == "done"
        command(sites.cluster, "cutover", f"{sites.name}/ab", "--abort", "-y")
        assert not read_only(sites.a)
    finally:
        execute(sites.a, "SET GLOBAL read_only = OFF")
        application.close()


def test_a_damaged_row_refuses(sites, cutover):
    with sites.b.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"UPDATE {sites.db}.t SET v = 'damaged' WHERE id = 1")
    done = cutover()
    assert done.returncode == 1, done.stderr
    assert "1 different" in done.stderr
    assert not read_only(sites.a)
    status = command(sites.cluster, "cutover", f"{sites.name}/ab", "--status")
    assert "there is no cut-over" in status.stdout
