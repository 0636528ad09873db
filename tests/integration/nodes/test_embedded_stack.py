"""The servers of the embedded stack: they start, answer, survive what they should, and end."""

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pymysql
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError

from setl.clock import SystemClock
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.statements_ahead import finds_server_start
from setl_embedded import (
    Elasticsearch,
    EmbeddedError,
    Kafka,
    MariaDb,
    MySql,
    Stack,
    ZooKeeper,
    ZooKeeperEnsemble,
)
from setl_embedded.database import TEMPLATES
from tests.databases import new_server
from tests.loading import endpoint_of
from tests.waiting import eventually

pytestmark = pytest.mark.servers


def alive(pid):
    """Whether the process exists and is not merely waiting to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def rows(server, sql):
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


SETTINGS = "server_id, log_bin, binlog_format, binlog_row_image, binlog_row_metadata"
OF_FAMILY = {
    MariaDb: ("gtid_domain_id, gtid_strict_mode", (3, 1), "@@gtid_binlog_pos"),
    MySql: ("gtid_mode", ("ON",), "@@gtid_executed"),
}


@pytest.mark.parametrize("product", OF_FAMILY)
def test_full_row_binlogs_are_written_under_own_ids(product, tmp_path):
    names, values, gtids = OF_FAMILY[product]
    server = new_server(product.__name__.lower(), tmp_path, "db", 7, gtid_domain_id=3)
    with server:
        asked = f"{SETTINGS}, character_set_server, bind_address, {names}".split(", ")
        (settings,) = rows(server, "SELECT " + ", ".join(f"@@{name}" for name in asked))
        assert settings == (7, 1, "ROW", "FULL", "FULL", "utf8mb4", "127.0.0.1", *values)
        # Setting the account up left nothing in the binlog under test.
        assert rows(server, f"SELECT {gtids}") == (("",),)
        command = Path(f"/proc/{server.pid}/cmdline").read_text()
        assert server.password not in command
        if product is MySql:
            return  # what follows is the same code, and takes it many seconds
        rows(server, "CREATE DATABASE kept")
        server.pause()
        with pytest.raises(pymysql.err.OperationalError):
            server.connect(connect_timeout=1, read_timeout=1)
        server.resume()
        assert rows(server, "SELECT 1") == ((1,),)
        server.pause()
        server.stop()  # without force
        assert "Shutdown complete" in server.log.read_text()
    # The folder can be used again by another object.
    with new_server(product.__name__.lower(), tmp_path, "db", 7) as server:
        assert ("kept",) in rows(server, "SHOW DATABASES")


def started_since(server, position):
    return finds_server_start(endpoint_of(server), position, SystemClock(), 20.0)


@pytest.mark.parametrize("product", [MariaDb, MySql])
def test_a_database_stores_data_and_port_over_kill_and_restart(product, tmp_path):
    with product(tmp_path, "db", server_id=1) as server:
        rows(server, "CREATE DATABASE shop")
        rows(server, "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB")
        rows(server, "INSERT INTO shop.t VALUES (1), (2)")
        begin = BinlogServer(endpoint_of(server)).latest()
        rows(server, "FLUSH BINARY LOGS")
        assert started_since(server, begin) is False
        first = server.pid
        server.kill()
        assert not alive(first)
        with pytest.raises(pymysql.err.OperationalError):
            server.connect()
        server.start()
        assert server.pid != first
        assert started_since(server, begin) is True
        rows(server, "FLUSH BINARY LOGS")
        assert started_since(server, begin) is True
        assert started_since(server, BinlogServer(endpoint_of(server)).latest()) is False
        rows(server, "INSERT INTO shop.t VALUES (3)")
        server.restart()
        assert rows(server, "SELECT id FROM shop.t ORDER BY id") == ((1,), (2,), (3,))
        assert len(rows(server, "SHOW BINARY LOGS")) >= 3


@pytest.mark.parametrize(("product", "identity"), [(MariaDb, "server_uid"), (MySql, "server_uuid")])
def test_a_copied_data_folder_is_that_of_another_server(product, identity, tmp_path, monkeypatch):
    templates = tmp_path / "templates"
    monkeypatch.setenv(TEMPLATES, str(templates))
    found, position = set(), set()
    for name in ("first", "second", "third"):
        folder = tmp_path / name
        folder.mkdir()
        with product(folder, name, server_id=1) as server:
            found |= set(rows(server, f"SELECT @@{identity}"))
            position |= set(rows(server, "SHOW BINARY LOGS"))
            # What a server got later is in no copy.
            rows(server, "CREATE DATABASE later")
        assert [path.name for path in templates.iterdir()] == [product.__name__]
    assert len(found) == 3
    # Each copy begins as the first did.
    assert len({file for file, *_ in position}) == len(position)


def test_start_failure_shows_the_end_of_the_log(tmp_path):
    server = MariaDb(tmp_path, "db", server_id=1, options=("--no-such-option",))
    with pytest.raises(EmbeddedError, match=r"db ended instead of starting(?s:.*)no-such-option"):
        server.start()
    assert not server.running


def test_zookeeper_gives_the_session_timeouts_it_is_asked_for(tmp_path):
    with ZooKeeper(tmp_path) as server:
        client = KazooClient(server.hosts, timeout=2.0)
        client.start(timeout=30)
        try:
            assert client.client_id is not None
            assert client._session_timeout == 2000
        finally:
            client.stop()
            client.close()
        # Another session, which does not expire if the machine pauses for two seconds.
        client = KazooClient(server.hosts, timeout=30.0)
        client.start(timeout=30)
        try:
            assert (client.server_version() or ()) >= (3, 9)
            client.create("/kept", b"value")
        finally:
            client.stop()
            client.close()
        server.kill()
        with pytest.raises(KazooTimeoutError):
            KazooClient(server.hosts).start(timeout=1)
        server.start()
        client = KazooClient(server.hosts)
        client.start(timeout=30)
        assert client.get("/kept") is not None
        client.stop()
        client.close()
        assert " INFO " not in server.log.read_text()


def test_ensemble_elects_a_leader_and_another_one_when_it_dies(tmp_path):
    with ZooKeeperEnsemble(tmp_path, 3) as ensemble:
        assert len(ensemble.hosts.split(",")) == 3
        assert sorted(server.mode for server in ensemble.servers) == [
            "follower",
            "follower",
            "leader",
        ]
        first = ensemble.leader()
        client = KazooClient(ensemble.hosts, timeout=20.0)
        client.start(timeout=30)
        client.create("/kept", b"value")
        first.kill()

        def another_leads():
            assert any(s.mode == "leader" for s in ensemble.servers if s is not first)
            return True

        eventually(another_leads, 30)
        assert ensemble.leader() is not first

        def kept_is_there():
            try:
                return client.exists("/kept")
            except (ConnectionLoss, SessionExpiredError):
                return None

        eventually(kept_is_there, 30)
        client.stop()
        client.close()
        first.start()
        assert first.mode == "follower"


def test_kafka_stores_topics_over_restart(tmp_path):
    with Kafka(tmp_path) as server:
        admin = KafkaAdminClient(bootstrap_servers=server.brokers)
        admin.create_topics([NewTopic("orders", 1, 1)])
        admin.close()
        server.stop()
        assert not server.answers()
        server.start()
        admin = KafkaAdminClient(bootstrap_servers=server.brokers)
        assert "orders" in admin.list_topics()
        admin.close()


def test_elasticsearch_stores_what_was_acknowledged_before_it_was_stopped(tmp_path):
    with Elasticsearch(tmp_path) as server:
        for number in range(20):
            document = urllib.request.Request(
                f"{server.url}/orders/_doc/{number}",
                data=b'{"total": 1}',
                headers={"Content-Type": "application/json"},
                method="PUT",
            )
            urllib.request.urlopen(document, timeout=10).close()
        server.restart()
        assert server.answers()
        for number in range(20):
            with urllib.request.urlopen(f"{server.url}/orders/_doc/{number}", timeout=10) as answer:
                assert b'"total"' in answer.read()
    assert not server.answers()


def test_stack_starts_everything_and_leaves_nothing(tmp_path):
    with Stack(tmp_path, mariadb=2, zookeeper=1, kafka=True, elasticsearch=True) as stack:
        servers = [*stack.mariadb, stack.zookeeper, stack.kafka, stack.elasticsearch]
        pids = [server.pid for server in servers]
        assert all(alive(pid) for pid in pids)
        assert all(server.answers() for server in servers)
        ids = [rows(s, "SELECT @@server_id, @@gtid_domain_id")[0] for s in stack.mariadb]
        assert ids == [(1, 1), (2, 2)]
        assert stack.kafka_brokers.startswith("127.0.0.1:")
        assert stack.elasticsearch_url.startswith("http://127.0.0.1:")
        assert stack.zookeeper_hosts.startswith("127.0.0.1:")
        assert len({server.port for server in servers}) == 5
    assert not any(alive(pid) for pid in pids)


def test_temporary_folder_goes_after_success_and_stays_after_an_error():
    with Stack(kafka=True) as good:
        assert good.folder.is_dir()
    assert not good.folder.exists()

    bad = Stack(kafka=True)
    with pytest.raises(ZeroDivisionError), bad:
        raise ZeroDivisionError
    assert bad.stored == bad.folder
    assert (bad.folder / "kafka" / "kafka.log").is_file()
    bad.remove()
    assert not bad.folder.exists()


def test_stack_stops_the_others_when_one_does_not_start(tmp_path):
    stack = Stack(tmp_path, mariadb=1, kafka=True, mariadb_options=["--no-such-option"])
    with pytest.raises(EmbeddedError, match="no-such-option"):
        stack.start()
    assert stack.kafka is not None
    assert not stack.kafka.running


def test_server_outlives_the_thread_that_started_it(tmp_path):
    server = Kafka(tmp_path)
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    time.sleep(0.2)  # the kernel would have sent the signal at the thread's end
    assert server.running
    server.stop()


def test_servers_end_with_a_killed_parent(tmp_path):
    program = (
        "import sys, time\n"
        "from setl_embedded import Stack\n"
        f"stack = Stack({str(tmp_path)!r}, mariadb=1, zookeeper=1, kafka=True).start()\n"
        "servers = [*stack.mariadb, stack.zookeeper, stack.kafka]\n"
        "print(*[server.pid for server in servers], flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    try:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 3
        assert all(alive(pid) for pid in pids)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait(30)
        parent.stdout.close()
    eventually(lambda: not any(alive(pid) for pid in pids), 60)
