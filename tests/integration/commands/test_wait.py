"""`setl wait`: when it says so, the target has it; compared by plain SELECT, at once."""

import json
import time
from contextlib import contextmanager, suppress

import pymysql
import pytest

from arbiter.values import ChannelState
from setl.channel.reading import parse_channel
from setl.cli.main import run
from setl.systems.mysql.stored.state import opened_states
from setl.systems.stored_state import StoredState
from tests.arbiter_in_memory import MemoryArbiter
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql
from tests.loading import endpoint_of


class Waiting:
    """A channel whose pipeline a test leads, and the command about it."""

    def __init__(self, position, servers, db, heartbeat=0.2):
        self.position, self.a, self.b, self.db = position, *servers, db
        self.name = fresh_name("wait")
        source = {**mysql(self.a), "start": binlog_end(self.a), "heartbeat": heartbeat}
        self.definition = {
            "channel": self.name,
            "pipelines": [
                {
                    "name": "p",
                    "source": source,
                    "target": mysql(self.b),
                    "tables": [{"from": f"{db}.orders"}],
                }
            ],
        }
        self.put()

    def put(self):
        channel = self.position.arbiter.channels.put(self.name, self.definition)
        self.position.arbiter.channels.set_state(channel, ChannelState.START)

    def lead(self):
        running = self.position.lead(parse_channel(self.definition))
        self.put()
        return running

    @contextmanager
    def connect(self, zookeeper, root):
        arbiter = MemoryArbiter(self.position.arbiter._znodes._cluster)
        try:
            yield arbiter
        finally:
            arbiter.close()

    def command(self, *arguments):
        return run(["wait", self.name, *arguments, "-o", "json"], connect=self.connect)

    def write(self, first, count=1):
        with self.a.connect() as connection, connection.cursor() as cursor:
            for i in range(first, first + count):
                cursor.execute(f"INSERT INTO {self.db}.orders (id) VALUES ({i})")

    def ids(self):
        return {row[0] for row in execute(self.b, f"SELECT id FROM {self.db}.orders")}

    def gtid(self):
        if execute(self.a, "SELECT VERSION()")[0][0].lower().count("mariadb"):
            return execute(self.a, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
        return execute(self.a, "SELECT @@GLOBAL.gtid_executed")[0][0].replace("\n", "")


@pytest.fixture
def waiting(position, servers, db):
    return Waiting(position, servers, db)


def outcome(capsys):
    return json.loads(capsys.readouterr().out)[0]


def test_what_was_written_before_is_there_when_the_wait_is_over(waiting, capsys):
    waiting.lead()
    for first in (0, 100):
        waiting.write(first, 100)
        assert waiting.command("--for", "now") == 0
        assert waiting.ids() >= set(range(first + 100))
        assert outcome(capsys)["outcome"] == "passed"


def test_a_gtid_and_an_offset(waiting, capsys):
    waiting.write(1)
    gtid, end = waiting.gtid(), binlog_end(waiting.a)
    assert waiting.command("--for", gtid, "--timeout", "0.5") == 1
    assert outcome(capsys)["outcome"] == "timeout"
    running = waiting.lead()
    assert waiting.command("--for", gtid) == 0
    assert 1 in waiting.ids()
    assert waiting.command("--for", f"{end['file']}:{end['offset']}") == 0
    running.stop()
    waiting.write(2)
    assert waiting.command("--for", waiting.gtid(), "--timeout", "0.5") == 1
    assert waiting.command("--for", gtid, "--timeout", "0.5") == 0


def test_the_target_is_asked_on_one_connection(waiting, capsys):
    running = waiting.lead()
    waiting.write(1)
    assert waiting.command() == 0
    capsys.readouterr()
    running.stop()
    waiting.write(2)
    with statements_logged(waiting.b):
        assert waiting.command("--timeout", "5") == 1
    assert outcome(capsys)["outcome"] == "timeout"
    asked = f"argument LIKE '%setl_checkpoint%{waiting.name}/p%'"
    [(_, times)] = execute(
        waiting.b,
        f"SELECT thread_id, COUNT(*) FROM mysql.general_log WHERE {asked} GROUP BY thread_id",
    )
    assert times > 1


@contextmanager
def statements_logged(server):
    """The server lists statements in a table of its own meanwhile."""
    execute(server, "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1")
    try:
        yield
    finally:
        execute(server, "SET GLOBAL general_log = 0", "SET GLOBAL log_output = 'FILE'")


def test_a_look_outlives_its_connection(servers):
    target = servers[1]
    with opened_states(endpoint_of(target), "some/pipeline") as look:
        assert look() == StoredState()
        processes = "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
        found = execute(target, f"{processes} AND command = 'Sleep' AND time < 2")
        for (number,) in found:
            with suppress(pymysql.MySQLError):
                execute(target, f"KILL {number}")
        assert look() == StoredState()


def test_a_quiet_pipeline_is_not_waited_for_long(waiting, capsys):
    waiting.lead()
    waiting.write(1)
    assert waiting.command() == 0
    capsys.readouterr()
    assert waiting.command() == 0
    # The checkpoint of a quiet pipeline is kept each second; a wait takes about as long.
    assert outcome(capsys)["seconds"] < 20


def test_a_new_binlog_without_a_transaction_is_passed(waiting, position, capsys):
    quiet = Waiting(position, (waiting.a, waiting.b), waiting.db, heartbeat=0)
    quiet.write(1)
    quiet.lead()
    execute(quiet.a, "FLUSH BINARY LOGS")
    assert quiet.command() == 0
    assert 1 in quiet.ids()


def test_who_stands_still_is_not_waited_for(waiting, capsys):
    waiting.write(1)
    waiting.position.arbiter.channels.set_state(
        waiting.position.arbiter.channels.one(waiting.name), ChannelState.STOP
    )
    began = time.monotonic()
    assert waiting.command("--timeout", "600") == 1
    assert time.monotonic() - began < 60
    reported = outcome(capsys)
    assert (reported["outcome"], "set to STOP" in reported["why"]) == ("stopped", True)


def test_positions_that_are_none(waiting):
    assert waiting.command("--for", "2026-11-21T22:00") == 2
    assert waiting.command("--for", "somewhere") == 2
    assert waiting.command("--for", "0-4294967-99999999") == 2
    assert waiting.command("--for", "11111111-1111-1111-1111-111111111111:7") == 2


def test_rows_that_a_load_has_to_bring_are_waited_for(waiting, capsys, monkeypatch):
    waiting.write(1, 50)
    waiting.definition["pipelines"][0]["source"]["start"] = {"load": True}
    waiting.lead()
    assert waiting.command() == 0
    assert waiting.ids() == set(range(1, 51))
