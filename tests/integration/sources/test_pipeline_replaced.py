"""Pipelines whose source is replaced behind its address while they run."""

import socket
import threading
from contextlib import suppress

import pytest

from arbiter.values import PipelineId
from setl.channel.reading import parse_channel
from setl.errors import PositionLostError
from setl.model.checkpoint import Checkpoint
from setl_embedded import MariaDb
from tests.integration.pipelines import (
    binlog_end,
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    rows,
)
from tests.integration.search.test_pipeline_search import Index, elasticsearch_target
from tests.waiting import eventually

pytestmark = pytest.mark.servers

USER, PASSWORD = "shared", "shared-pw-1"


class Address:
    """A TCP address behind which another server can be put."""

    def __init__(self, server):
        self._server = server
        self._pairs = []
        self._choosing = threading.Lock()  # no connection is made while the server changes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, server):
        """From now on this server answers; connections to the one before are cut."""
        with self._choosing:
            self._server = server
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            cut(*pair)

    def close(self):
        self._listener.close()
        self.lead_to(None)

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                with self._choosing:
                    server = self._server
                    other = socket.create_connection((server.host, server.port))
                    self._pairs.append((client, other))
            except (OSError, AttributeError):
                return
            for one, two in ((client, other), (other, client)):
                threading.Thread(target=pump, args=(one, two), daemon=True).start()


def pump(one, two):
    with suppress(OSError):
        while data := one.recv(65536):
            two.sendall(data)
    cut(one, two)


def cut(*sockets):
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@pytest.fixture
def pair(tmp_path):
    """A server, its replica, and an address that leads to the first."""
    with (
        MariaDb(tmp_path / "one", "one", 211, gtid_domain_id=1) as one,
        MariaDb(
            tmp_path / "two", "two", 212, gtid_domain_id=1, options=["--log-slave-updates=ON"]
        ) as two,
    ):
        execute(
            two,
            f"CHANGE MASTER TO MASTER_HOST='{one.host}', MASTER_PORT={one.port},"
            f" MASTER_USER='{one.user}', MASTER_PASSWORD='{one.password}',"
            " MASTER_USE_GTID=slave_pos",
            "START SLAVE",
        )
        execute(
            one,
            f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT ALL PRIVILEGES ON *.* TO {USER}@'%'",
            # So that places on the replica are lower than those that were read already.
            *["FLUSH BINARY LOGS"] * 4,
        )
        address = Address(one)
        yield one, two, address
        address.close()


def caught_up(replica, server):
    gtid = execute(server, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
    eventually(lambda: execute(replica, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0] == gtid, 30)


def channel(address, server, target, table):
    """One pipeline from the address on, from where the server's binlog ends now."""
    source = {
        **mysql(server),
        "port": address.port,
        "user": USER,
        "password": PASSWORD,
        "start": binlog_end(server),
        "heartbeat": 0,
    }
    pipeline = {"name": "p", "source": source, "target": target, "tables": [table]}
    return {"channel": fresh_name("channel"), "pipelines": [pipeline]}


def stored(position, file):
    value, _ = position.arbiter.positions.read(PipelineId(file.channel, "p"))
    return Checkpoint.from_json(value["checkpoint"])


def test_documents_follow_a_replica_that_takes_over(pair, elasticsearch, position):
    one, two, address = pair
    name = fresh_name("shop")
    execute(one, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v TEXT)")
    index = Index(elasticsearch, f"{name}-t")
    target = elasticsearch_target(elasticsearch)
    raw = channel(address, one, target, {"from": f"{name}.t", "to": f"{name}-t"})
    file = parse_channel(raw)
    execute(one, f"INSERT INTO {name}.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    running = position.lead(file)
    running.applied(3)
    left = stored(position, file)
    caught_up(two, one)

    execute(two, "STOP SLAVE")  # it is promoted
    address.lead_to(two)
    execute(
        two,
        f"UPDATE {name}.t SET v = 'later' WHERE id = 1",
        f"DELETE FROM {name}.t WHERE id = 2",
        f"INSERT INTO {name}.t VALUES (4, 'new')",
    )
    running.applied(6)
    assert index.document(1) == {"id": 1, "v": "later"}
    assert index.document(2) is None
    assert index.document(3) == {"id": 3, "v": "c"}
    assert index.document(4) == {"id": 4, "v": "new"}
    moved = stored(position, file)
    assert (left.generation, moved.generation) == (1, 2)
    assert moved.resume.order < left.resume.order
    assert running.figures.stale == 0
    assert running.figures.retries >= 1
    running.stop()

    # An operator who starts over is above both.
    raw["pipelines"][0]["generation"] = 2
    raw["pipelines"][0]["source"]["start"] = "latest"
    again = position.lead(parse_channel(raw))
    eventually(lambda: stored(position, file).generation == 3, 30)
    assert stored(position, file).requested == 2
    execute(two, f"UPDATE {name}.t SET v = 'last' WHERE id = 4")
    again.applied(7)
    assert index.document(4) == {"id": 4, "v": "last"}
    again.stop()
    position.lead(parse_channel(raw)).applied(7)
    assert stored(position, file).generation == 3  # once


def test_a_replica_that_lacks_what_was_applied_ends_the_run(pair, site_b, position):
    one, two, address = pair
    name = fresh_name("shop")
    table = f"{name}.t"
    install_system_tables(site_b)
    execute(site_b, f"CREATE DATABASE {name}", f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    execute(one, f"CREATE DATABASE {name}", f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    caught_up(two, one)
    execute(two, "STOP SLAVE")
    file = parse_channel(channel(address, one, mysql(site_b), {"from": table}))
    execute(one, f"INSERT INTO {table} VALUES (1), (2)")
    running = position.lead(file)
    running.applied(2)
    address.lead_to(two)
    execute(two, "SET GLOBAL gtid_strict_mode = OFF", f"INSERT INTO {table} VALUES (100)")
    error = running.ends()
    assert isinstance(error, PositionLostError)
    assert "lacks GTIDs 1-211-" in str(error)
    assert "server 212 answers now" in str(error)
    assert rows(site_b, table) == ((1,), (2,))
    # No retry loop: one lost connection, then the end.
    assert running.figures.retries <= 3
    # Back at the first server nothing has moved.
    address.lead_to(one)
    execute(one, f"INSERT INTO {table} VALUES (3)")
    position.lead(file).applied(3)
    assert rows(site_b, table) == ((1,), (2,), (3,))


def test_a_replica_without_what_a_relay_wrote_ends_the_relay(pair, kafka, position):
    """The topic is ahead of the checkpoint, whose transactions the replica has all."""
    one, two, address = pair
    name = fresh_name("shop")
    table = f"{name}.t"
    execute(one, f"CREATE DATABASE {name}", f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    topic = {"type": "kafka", "brokers": [kafka.brokers], "topic": name, "heartbeat": 60}
    file = parse_channel(channel(address, one, topic, {"from": table}))
    running = position.lead(file).runs()
    execute(one, f"INSERT INTO {table} VALUES (1)")
    running.applied(1)
    caught_up(two, one)
    execute(two, "STOP SLAVE")
    execute(one, f"INSERT INTO {table} VALUES (2), (3)")
    running.applied(3)
    address.lead_to(two)
    execute(two, "SET GLOBAL gtid_strict_mode = OFF", f"INSERT INTO {table} VALUES (100)")
    error = running.ends()
    assert isinstance(error, PositionLostError), error
    assert "the target has at least a part of 1-211-" in str(error)
