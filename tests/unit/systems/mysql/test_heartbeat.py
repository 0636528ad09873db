import logging

import pymysql
import pytest

from setl.errors import TransientError
from setl.select.heartbeat import HeartbeatStatus
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.heartbeats import heartbeat
from setl.systems.mysql.heartbeats.heartbeat import MysqlHeartbeat
from setl.systems.mysql.stored import writers
from tests.waiting import eventually

DOWN = pymysql.err.OperationalError(2013, "Lost connection")
READ_ONLY = pymysql.err.OperationalError(1290, "running with --read-only")


class FakeServer:
    """Connections whose statements succeed, or fail with what `problem` holds."""

    def __init__(self):
        self.use_unicode = True
        self.problem = None
        self.refused = None
        self.connected = 0
        self.statements = []
        self.open = False

    def connect(self, endpoint, *, lock_wait):
        if self.refused:
            raise self.refused
        self.connected += 1
        self.open = True
        return self

    def cursor(self, _=None):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, statement, values=None):
        if "xdual" not in statement:
            return  # what is asked about connections
        if self.problem:
            raise self.problem
        self.statements.append((statement, values))

    def fetchone(self):
        return (None,)

    def fetchall(self):
        return []

    def close(self):
        self.open = False


@pytest.fixture
def server(monkeypatch):
    fake = FakeServer()
    monkeypatch.setattr(heartbeat, "connect", fake.connect)
    return fake


@pytest.fixture
def beating(server):
    made = MysqlHeartbeat(
        MysqlEndpoint("db1", 3306, "u", "s3cret"), 42, interval=0.01, name="shop/orders"
    )
    yield made
    made.stop()


def test_it_writes_its_own_row_again_and_again_on_one_connection(server, beating):
    assert beating.status() == HeartbeatStatus()
    beating.start()
    beating.start()
    eventually(lambda: beating.status().written >= 3)
    beating.stop()
    assert server.connected == 1
    assert not server.open
    statement, values = server.statements[0]
    assert "retl.xdual" in statement
    assert values == (42, 5_000)  # microseconds
    status = beating.status()
    assert (status.errors, status.error) == (0, "")
    assert status.last_at > 1_600_000_000
    written = len(server.statements)
    beating.stop()
    assert len(server.statements) == written


def test_trouble_is_counted_and_logged_once_until_it_changes(server, beating, caplog):
    caplog.set_level(logging.INFO, heartbeat.__name__)
    server.problem = DOWN
    beating.start()
    eventually(lambda: beating.status().errors >= 3)
    assert "Lost connection" in beating.status().error
    server.problem = READ_ONLY
    eventually(lambda: "read-only" in beating.status().error)
    server.problem = None
    eventually(lambda: beating.status().written >= 2)
    beating.stop()
    said = [record.getMessage() for record in caplog.records]
    assert [("Lost" in s, "read-only" in s, "written again" in s) for s in said] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    assert server.connected >= 4  # a failed connection is not used again
    assert not any("s3cret" in s for s in said)


def test_a_connection_that_was_idle_for_too_long_is_no_trouble(server, beating, caplog):
    """A server's wait_timeout may be shorter than the interval: each beat would miss in turn."""
    beat, idle = server.execute, []

    def execute(statement, values=None):
        if "xdual" in statement and idle and idle.pop():
            raise DOWN
        beat(statement, values)

    server.execute = execute
    beating.start()
    eventually(lambda: beating.status().written >= 1)
    idle.append(True)
    eventually(lambda: server.connected == 2)
    eventually(lambda: beating.status().written >= 3)
    assert (beating.status().errors, beating.status().error) == (0, "")
    assert "no heartbeat" not in caplog.text


def test_a_server_that_refuses_connections_is_trouble_too(server, beating):
    server.refused = TransientError("no connection")
    beating.start()
    eventually(lambda: beating.status().errors >= 2)
    server.refused = None
    eventually(lambda: beating.status().written >= 1)
    assert beating.status().error == ""


def test_a_commit_that_must_not_be_ended_is_waited_for(server, beating, monkeypatch):
    """A MySQL whose disk is full would end itself, and another heartbeat would hang as well."""
    monkeypatch.setattr(writers, "is_alive", lambda *_: True)
    monkeypatch.setattr(writers, "commits", lambda *_: True)
    beating.start()
    eventually(lambda: beating.status().errors >= 3)
    assert "does not end" in beating.status().error
    assert "Its log says why; once commits end there" in beating.status().error
    assert beating.status().hangs_at == "db1:3306"
    assert not server.statements
    monkeypatch.setattr(writers, "is_alive", lambda *_: False)
    eventually(lambda: beating.status().written >= 1)
    assert (beating.status().error, beating.status().hangs_at) == ("", "")


def test_an_interval_of_zero_writes_none(server):
    idle_poller = MysqlHeartbeat(MysqlEndpoint("db1"), 1, interval=0, name="p")
    idle_poller.start()
    idle_poller.stop()
    assert server.connected == 0
