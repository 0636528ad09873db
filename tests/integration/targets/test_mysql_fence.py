"""Taking a MySQL target over from leaderships that are gone, slow, frozen or recorded wrongly."""

import threading
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest

from setl.errors import FencedError, TransientError
from setl.model.change import TargetChanges
from setl.model.schema import Column, Kind
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.load import fence
from setl.systems.mysql.load.fence import MysqlFence
from setl.systems.mysql.load.writer import Writer
from setl.systems.mysql.locks.waits import look
from setl.systems.mysql.sink.sink import MysqlSink, MysqlSinkSettings
from setl.systems.mysql.stored import writers
from setl.systems.mysql.stored.marks import mark_id
from tests.loading import (
    MARK,
    create_system_tables,
    execute,
    nonces,
    rows_of,
    ticket_for,
    unique,
)
from tests.waiting import INNODB_RENEWED, eventually

ID = Column("id", Kind.INTEGER)
ALIVE = "SELECT 1 FROM information_schema.processlist WHERE id = %s"


class Site:
    """A target with one pipeline, used through an account that has what sql/ grants, no more."""

    def __init__(self, server):
        create_system_tables(server)
        self.server = server
        self.schema = unique("fence")
        self.key = f"shop/{self.schema}"
        user = unique("u")[:20]
        execute(
            server,
            f"CREATE DATABASE {self.schema}",
            f"CREATE TABLE {self.schema}.t (id INT PRIMARY KEY)",
            f"CREATE USER {user}@'%' IDENTIFIED BY 'pw'",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {self.schema}.* TO {user}@'%'",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON retl.* TO {user}@'%'",
        )
        self.endpoint = MysqlEndpoint(server.host, server.port, user, "pw")

    def fence(self, timeout=1.0):
        return MysqlFence(self.endpoint, self.key, timeout)

    def ticket(self, epoch, slot=0):
        return ticket_for(self.schema, epoch=epoch, slot=slot)

    def sink(self, **options):
        return MysqlSink(MysqlSinkSettings(self.endpoint, MARK, **options), nonces())

    def changes(self, *ids):
        return [TargetChanges((self.schema, "t"), (ID,), (0,), [(i,) for i in ids])]

    def open_transaction(self, epoch, row):
        """A writer in the middle of a load: fence locked, mark and a row written."""
        writer = Writer(self.endpoint, lock_wait=30)
        writer.register(self.ticket(epoch))
        writer.begin(self.ticket(epoch, slot=row), MARK, unique("n"))
        connection = writer.open()
        connection.query(f"INSERT INTO {self.schema}.t VALUES ({row})")
        return writer

    def rows(self):
        return [r[0] for r in rows_of(self.server, f"SELECT id FROM {self.schema}.t ORDER BY id")]

    def epoch(self):
        found = rows_of(
            self.server, "SELECT epoch, nid FROM retl.setl_fence WHERE pipeline = %s", self.key
        )
        return found[0] if found else None

    def recorded(self):
        sql = "SELECT conn_id, epoch FROM retl.setl_writer WHERE pipeline = %s ORDER BY 2"
        return rows_of(self.server, sql, self.key)

    def waiting(self, count=1):
        """Whether so many transactions of this account wait for a lock."""
        sql = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
        return rows_of(self.server, sql)[0][0] >= count

    def wait_for_waiting(self, count=1):
        eventually(lambda: self.waiting(count), 30, interval=INNODB_RENEWED)


@pytest.fixture
def site(site_b):
    return Site(site_b)


@contextmanager
def in_background(call, *args):
    """Run a call in a thread while the block runs; its outcome is in the list afterwards."""
    outcome = []

    def run():
        try:
            outcome.append(call(*args))
        except Exception as error:  # noqa: BLE001 - the test looks at it
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield outcome
    finally:
        thread.join(60)
        assert not thread.is_alive()


def test_the_first_leadership_and_those_after_it(site):
    assert site.epoch() is None
    site.fence().raise_to(5, "n1")
    assert site.epoch() == (5, "n1")
    site.fence().raise_to(5, "n1")
    assert site.epoch() == (5, "n1")
    site.fence().raise_to(2**63 - 1, "n2")
    assert site.epoch() == (2**63 - 1, "n2")
    with pytest.raises(FencedError, match=f"the target is at epoch {2**63 - 1}") as caught:
        site.fence().raise_to(6, "n1")
    assert caught.value.where["pipeline"] == site.key
    assert site.epoch() == (2**63 - 1, "n2")


def test_a_row_that_comes_between_two_statements_holds_nobody_back(site, monkeypatch):
    class Between(pymysql.cursors.Cursor):
        def execute(self, query, args=None):
            count = super().execute(query, args)
            if query.startswith("UPDATE retl.setl_fence") and site.epoch() is None:
                execute(
                    site.server,
                    f"INSERT INTO retl.setl_fence (pipeline, epoch, nid) "
                    f"VALUES ('{site.key}', 0, '')",
                )
            return count

    def connect(*args, **options):
        connection = connection_to(*args, **options)
        connection.cursorclass = Between
        return connection

    connection_to = fence.connect
    monkeypatch.setattr(fence, "connect", connect)
    site.fence().raise_to(3, "n3")
    assert site.epoch() == (3, "n3")


def test_a_transaction_that_ends_in_time_is_waited_for(site):
    site.fence().raise_to(1, "n1")
    writer = site.open_transaction(1, 10)
    with in_background(site.fence(30).raise_to, 2, "n2") as raised:
        site.wait_for_waiting()
        assert raised == []
        assert site.epoch()[0] == 1
        writer.open().commit()
    assert raised == [None]
    assert site.epoch() == (2, "n2")
    assert site.rows() == [10]
    writer.open().ping(reconnect=False)
    # It lives, so its record stays; once it is gone, so is the record.
    assert [epoch for _, epoch in site.recorded()] == [1]
    writer.drop()
    eventually(lambda: rows_of(site.server, ALIVE, site.recorded()[0][0]) == [])
    site.fence().raise_to(3, "n3")
    assert site.recorded() == []


def test_a_frozen_transaction_is_ended_and_leaves_nothing(site):
    site.fence().raise_to(1, "n1")
    writer = site.open_transaction(1, 10)
    before = site.recorded()
    site.fence(1).raise_to(2, "n2")
    assert site.epoch() == (2, "n2")
    assert site.rows() == []
    with pytest.raises(pymysql.MySQLError):
        writer.open().query(f"INSERT INTO {site.schema}.t VALUES (11)")
    sink = site.sink()
    sink.apply(site.ticket(2), site.changes(20))
    assert site.rows() == [20]
    # The next to take over finds it gone, if the first came while the server still ended it.
    (frozen,) = [conn for conn, epoch in before if epoch == 1]
    eventually(lambda: rows_of(site.server, ALIVE, frozen) == [])
    site.fence().raise_to(2, "n2")
    assert [epoch for _, epoch in site.recorded()] == [2]
    sink.close()


def test_several_frozen_transactions_are_all_ended(site):
    site.fence().raise_to(1, "n1")
    held = [site.open_transaction(1, row) for row in (10, 11, 12)]
    site.fence(1).raise_to(2, "n2")
    assert site.epoch()[0] == 2
    assert site.rows() == []
    for writer in held:
        writer.drop()


def test_a_stale_leader_that_wakes_up_is_fenced_and_writes_nothing(site):
    site.fence().raise_to(1, "n1")
    sink = site.sink()
    sink.apply(site.ticket(1), site.changes(1))
    site.fence().raise_to(2, "n2")
    with pytest.raises(FencedError, match="epoch 1 is over"):
        sink.apply(site.ticket(1), site.changes(2))
    assert site.rows() == [1]
    # Its connection is in order and holds no lock.
    site.fence().raise_to(3, "n3")
    sink.apply(site.ticket(3), site.changes(3))
    assert site.rows() == [1, 3]
    sink.close()


def test_a_stale_writer_that_asks_while_the_fence_is_being_raised_is_fenced(site):
    site.fence().raise_to(1, "n1")
    holder = site.open_transaction(1, 10)
    sink = site.sink(lock_wait=30)
    with in_background(site.fence(30).raise_to, 2, "n2") as raised:
        site.wait_for_waiting(1)
        with in_background(sink.apply, site.ticket(1), site.changes(11)) as stale:
            site.wait_for_waiting(2)
            holder.open().commit()
    assert raised == [None]
    assert isinstance(stale[0], FencedError)
    assert site.rows() == [10]
    holder.drop()
    sink.close()


def test_a_stranger_under_a_recorded_id_is_not_killed(site):
    site.fence().raise_to(1, "n1")
    with closing(site.server.connect(autocommit=False)) as stranger, stranger.cursor() as cursor:
        # As after a restart of the server: the record is of a writer that had the same id.
        own = writers.connection_id(stranger)
        execute(
            site.server,
            "INSERT INTO retl.setl_writer (conn_id, pipeline, epoch, nid) "
            f"VALUES ({own}, '{site.key}', 1, 'n1')",
        )
        cursor.execute(
            "SELECT epoch FROM retl.setl_fence WHERE pipeline = %s LOCK IN SHARE MODE", (site.key,)
        )
        with pytest.raises(TransientError, match="stale transactions hold the fence"):
            site.fence(1).raise_to(2, "n2")
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
        stranger.rollback()
        site.fence(1).raise_to(2, "n2")
        assert site.epoch() == (2, "n2")
        assert site.recorded() == []


def test_a_locked_table_is_waited_for_no_longer_than_a_locked_row(site):
    site.fence().raise_to(1, "n1")
    with closing(site.server.connect()) as backup, backup.cursor() as cursor:
        cursor.execute("LOCK TABLES retl.setl_fence WRITE")
        with pytest.raises(TransientError, match="has locked the target's tables"):
            site.fence(1).raise_to(2, "n2")
    site.fence(1).raise_to(2, "n2")
    assert site.epoch() == (2, "n2")


def test_a_sink_that_lost_its_connection_ends_what_the_server_still_runs_for_it(site):
    site.fence().raise_to(1, "n1")
    sink = site.sink(lock_wait=20)
    sink.apply(site.ticket(1), site.changes(1))
    # The client's side is gone while the server's side still holds row 5 and the mark.
    writer = sink._writer
    writer.begin(site.ticket(1), MARK, "lost")
    connection = writer.open()
    connection.query(f"INSERT INTO {site.schema}.t VALUES (5)")
    writer._connection = None
    sink.apply(site.ticket(1), site.changes(5, 6))
    assert site.rows() == [1, 5, 6]
    with pytest.raises(pymysql.MySQLError):
        connection.query("SELECT 1")
    assert len(site.recorded()) == 1
    sink.close()


def test_a_leader_that_must_not_write_any_more_ends_its_own_writers(site):
    site.fence().raise_to(7, "n1")
    writer = site.open_transaction(7, row=1)
    site.fence().end_writers(7)
    site.fence().end_writers(7)
    connection = writer.open()
    with pytest.raises(pymysql.MySQLError):
        connection.commit()
    assert site.rows() == []


def test_it_leaves_those_of_its_successor_alone(site):
    site.fence().raise_to(8, "n2")
    writer = site.open_transaction(8, row=1)
    site.fence().end_writers(7)
    writer.open().commit()
    assert site.rows() == [1]
    writer.close()


# MySQL ends itself if it finds such a connection killed; MariaDB tears its binlog.
SLOW_COMMITS = {
    "mysql": {"binlog_group_commit_sync_delay": 1_000_000},
    "mariadb": {"binlog_commit_wait_usec": 1_000_000, "binlog_commit_wait_count": 100},
}


@pytest.fixture
def slow_commits(site):
    """A commit takes a second, as if it waited for the server's disk."""
    with closing(connect(site.endpoint)) as asking, asking.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        kind = "mariadb" if "mariadb" in cursor.fetchone()[0].lower() else "mysql"
    names = SLOW_COMMITS[kind]
    execute(site.server, *(f"SET GLOBAL {name} = {value}" for name, value in names.items()))
    yield
    execute(site.server, *(f"SET GLOBAL {name} = 0" for name in names))


def test_a_commit_that_waits_for_the_servers_disk_is_not_killed(site, slow_commits):
    site.fence().raise_to(7, "n1")
    watcher = site.endpoint
    with closing(connect(watcher)) as watching:
        for row in range(1, 20):  # until one is seen before it is over
            writer = site.open_transaction(7, row)
            connection = writer.open()
            own = writers.connection_id(connection)
            with in_background(connection.commit) as outcome:
                eventually(lambda at=own: outcome or writers.commits(watching, at))
                site.fence().end_writers(7)
                seen = look(watcher, site.key, 7).statements
                under_way = writers.commits(watching, own)
            writer.close()
            assert outcome == [None]
            assert row in site.rows()
            if under_way:
                break
        else:
            pytest.fail("each commit was over before anything was seen")
    (state,) = [s.state for s in seen if s.connection == own]
    assert state.endswith("; mostly its disk is full")


def test_a_transaction_is_begun_with_one_message(site, monkeypatch):
    site.fence().raise_to(1, "n1")
    with closing(Writer(site.endpoint, lock_wait=5)) as writer:
        writer.register(site.ticket(1))
        sent = []
        connection: Any = writer.open()
        send = connection._write_bytes
        monkeypatch.setattr(
            connection, "_write_bytes", lambda data: (sent.append(data), send(data))
        )
        writer.begin(site.ticket(1), MARK, unique("n"), [(site.schema, "t")] * 2)
        assert len(sent) == 1
        writer.rollback()


def test_an_outdated_leader_is_reported_so_whatever_else_is_wrong(site):
    site.fence().raise_to(2, "n2")
    marks = f"SELECT * FROM retl.retl_mark WHERE ID = {mark_id(site.key, 0)}"
    with closing(Writer(site.endpoint, lock_wait=5)) as writer:
        with pytest.raises(FencedError):
            writer.begin(site.ticket(1), MARK, unique("n"), [(site.schema, "missing")])
        writer.rollback()
        assert not rows_of(site.server, marks)
        # The connection has no answer left in it.
        with pytest.raises(pymysql.ProgrammingError, match="1146"):
            writer.begin(site.ticket(2), MARK, unique("n"), [(site.schema, "missing")])
        writer.rollback()
        writer.begin(site.ticket(2), MARK, unique("n"), [(site.schema, "t")])
        writer.open().commit()
    assert len(rows_of(site.server, marks)) == 1
