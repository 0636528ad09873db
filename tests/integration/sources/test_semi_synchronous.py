"""A source whose commits wait for a replica is still asked about its binlog, if it answers."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from setl.errors import TransientError
from setl.systems.mysql.binlog import unanswered
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.process_list import processes
from tests.integration.pipelines import execute, fresh_name
from tests.integration.table_loads.test_requested_loads import commits_that_hang
from tests.loading import endpoint_of
from tests.mysql_servers import is_mariadb
from tests.waiting import eventually

pytestmark = pytest.mark.servers

PATIENCE = 0.5


@pytest.fixture
def patience(monkeypatch):
    monkeypatch.setattr(unanswered, "_PATIENCE", PATIENCE)
    monkeypatch.setattr(unanswered, "_LOOKS", (PATIENCE,))
    monkeypatch.setattr(unanswered, "_answered", {})


def test_questions_about_the_binlog_while_commits_wait_for_a_replica(site_a, patience):
    db = fresh_name("semi")
    execute(site_a, f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t (id INT PRIMARY KEY)")
    with site_a.connect() as connection, ThreadPoolExecutor(3) as pool, commits_that_hang(site_a):
        for number in range(3):
            pool.submit(execute, site_a, f"INSERT INTO {db}.t VALUES ({number})")

        def waiting():
            states = [p.state for p in processes(connection) if p.seconds > PATIENCE]
            return sum("semi-sync" in each.lower() or "commit" in each.lower() for each in states)

        eventually(lambda: waiting() == 3, 30)
        server = BinlogServer(endpoint_of(site_a))
        if is_mariadb(connection):
            with pytest.raises(TransientError, match="waits for a semi-synchronous replica"):
                server.latest()
        else:
            assert server.latest()
