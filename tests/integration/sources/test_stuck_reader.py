"""A former reader of the binlog that takes nothing and does not end is in nobody's way."""

import time
from contextlib import contextmanager

import pytest
from mysql_event_stream import BinlogClient, SslMode

from setl.errors import TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.binlog.stream import StreamLimits
from tests.integration.pipelines import execute
from tests.loading import endpoint_of
from tests.waiting import eventually

pytestmark = pytest.mark.servers

READER = 3_900_000_002
SILENCE = 6.0


@pytest.fixture
def server(another_server, tmp_path):
    """A server whose binlog is larger than what connections hold on their way."""
    with another_server(tmp_path, "own", 206, options=["--net-write-timeout=600"]) as server:
        execute(
            server,
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)",
            *["INSERT INTO d.t (v) VALUES (REPEAT('x', 1000000))"] * 16,
        )
        yield server


@contextmanager
def stuck_reader(server):
    """Asks for all of the binlog, and takes next to nothing of it."""
    (file, *_), *_ = execute(server, "SHOW BINARY LOGS")
    client = BinlogClient(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        server_id=READER,
        start_binlog_file=file,
        start_binlog_position=4,
        ssl_mode=SslMode.DISABLED,
        allow_public_key_retrieval=True,
        max_queue_size=1,
    )
    try:
        client.connect()
        client.start()
        eventually(lambda: is_stuck(server), 20)
        yield
    finally:
        client.close()


def is_stuck(server):
    """Whether a connection sends its binlog and gets nowhere, for a second."""
    until = time.monotonic() + 1
    while time.monotonic() < until:
        states = execute(
            server,
            "SELECT state FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'",
        )
        if not states or "has sent all" in (states[0][0] or "").lower():
            return False
        time.sleep(0.05)
    return True


def rows_from(source, position):
    """The first rows from a position, from the first or the second attempt."""
    failure = None
    for _ in range(2):
        source.open(position)
        try:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                found = [e for e in source.read(100, 0.5) if e.kind is EntryKind.ROWS]
                if found:
                    return found
        except TransientError as error:
            failure = error
            # MySQL does not let anybody wait, so there may be no error at all.
            if "sent nothing" not in str(error) or "net_write_timeout" not in error.hint:
                raise
    raise AssertionError("no rows came") from failure


def test_a_position_is_found_and_read_from(server):
    source = MysqlBinlogSource(endpoint_of(server), READER, limits=StreamLimits(silence=SILENCE))
    with stuck_reader(server):
        position = source.initial()
        checkpoint = Checkpoint(position)
        assert source.locate(checkpoint) is checkpoint
        execute(server, "INSERT INTO d.t (v) VALUES ('wanted')")
        try:
            (entry,) = rows_from(source, position)
        finally:
            source.close()
        assert b"wanted" in entry.payload
