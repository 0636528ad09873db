"""What a node holds does not grow with the size of a transaction, nor while a target is down."""

import os
import time

import pytest
import yaml

from setl.clock import SystemClock
from setl.node.host.resources import MemoryLook
from setl.operate.units import size
from setl_drills.nodes import Cluster
from setl_embedded import MariaDb, ZooKeeper
from setl_embedded.ports import free_port
from tests.integration.numbers import MILLION, NUMBER, NUMBERS
from tests.integration.pipelines import (
    binlog_end,
    execute,
    fresh_name,
    install_system_tables,
    mysql,
)
from tests.integration.two_nodes import command, is_warm
from tests.waiting import eventually

MIB = 1 << 20
BUFFER = 8 * MIB
ROW_BYTES = 100
WIDE_BYTES = 1000  # the same bytes in a tenth of the rows
# Longer by hand: SETL_TEST_DOWN_SECONDS=600.
DOWN_SECONDS = float(os.environ.get("SETL_TEST_DOWN_SECONDS", "20"))


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A server that can be stopped without disturbing other tests."""
    with MariaDb(tmp_path_factory.mktemp("target") / "t", "mariadb-t", server_id=104) as server:
        install_system_tables(server)
        yield server


@pytest.fixture(scope="module")
def node(site_a, target, tmp_path_factory):
    """A cluster of one node, which has done nothing else before."""
    install_system_tables(site_a)
    environment = {"SITE_A_PASSWORD": site_a.password, "SITE_T_PASSWORD": target.password}
    folder = tmp_path_factory.mktemp("bounds")
    with ZooKeeper(folder / "zookeeper") as zookeeper:
        cluster = Cluster(folder, zookeeper.hosts, environment)
        try:
            cluster.start_node("m1", free_port(), master="local[2]")
            eventually(lambda: is_warm(cluster, "m1"), 280)
            yield cluster
        finally:
            cluster.stop()


class Channel:
    """A channel over one table."""

    def __init__(self, node, source, target):
        self.node, self.source, self.target = node, source, target
        self.name, self.db = fresh_name("bounds"), fresh_name("bounds")
        self.highest = 0
        for server in (source, target):
            execute(
                server,
                f"CREATE DATABASE {self.db}",
                f"CREATE TABLE {self.db}.t (id INT PRIMARY KEY, v VARCHAR({WIDE_BYTES}))",
            )
        pipeline = {
            "name": "p",
            "source": {
                **mysql(source),
                "password": "${SITE_A_PASSWORD}",
                "start": binlog_end(source),
            },
            "target": {**mysql(target), "password": "${SITE_T_PASSWORD}"},
            "tables": [{"from": f"{self.db}.t"}],
            "buffer_bytes": BUFFER,
            "batch_bytes": BUFFER // 4,  # so that what is kept comes near to the limit
        }
        file = node.folder / f"{self.name}.yaml"
        file.write_text(yaml.safe_dump({"channel": self.name, "pipelines": [pipeline]}))
        command(node, "apply", str(file))

    def start(self):
        """Returns at once: on a fast machine much is applied before a leader was seen."""
        command(self.node, "start", self.name, "--no-wait")

    def look(self):
        """The figures that the node tells; {} while it does not lead."""
        node = self.node.nodes["m1"]

        def told():
            assert node.running, node.tail()
            return self.node.status("m1", timeout=10)  # it may be held up for longer than that

        status = eventually(told, 60)
        line = next((p for p in status["pipelines"] if p["channel"] == self.name), {})
        return line.get("figures", {})

    def memory(self):
        """What the node holds now; what it tells itself may be a quarter of a minute old."""
        return MemoryLook(SystemClock(), self.node.nodes["m1"].pid).seen()

    def insert(self, count, width=ROW_BYTES):
        """So many rows in one transaction."""
        text = f"REPEAT(CHAR(97 + ({NUMBER}) % 26), {width})"
        select = NUMBERS.format(f"{self.highest} + {NUMBER}, {text}")
        execute(self.source, f"INSERT INTO {self.db}.t {select} WHERE {NUMBER} < {count}")
        self.highest += count

    def applied(self, timeout):
        eventually(lambda: self.look().get("rows_applied", 0) >= self.highest, timeout)
        check = f"SELECT COUNT(*), SUM(id), SUM(CRC32(v)) FROM {self.db}.t"
        assert execute(self.target, check) == execute(self.source, check)


@pytest.fixture
def channel(node, site_a, target):
    channel = Channel(node, site_a, target)
    yield channel
    command(node, "stop", channel.name, check=False)


def samples(channel, until, limit):
    """(rows applied, driver, largest worker, buffered) again and again until something is so.

    The last sample is from then or later, so there is one of the end at any speed.
    """
    found = []
    deadline = time.monotonic() + limit
    ended = False
    while not ended:
        assert time.monotonic() < deadline
        ended = until()
        figures, memory = channel.look(), channel.memory()
        found.append(
            (
                figures.get("rows_applied", 0),
                memory.driver,
                memory.worker_most,
                figures.get("buffered_bytes", 0),
            )
        )
        time.sleep(0.2)
    return found


def held_back(channel):
    """The figures, while Select waits because its buffer is full."""
    figures = channel.look()
    full = figures.get("buffered_bytes", 0) > BUFFER / 2
    return figures if full and figures["held_back_seconds"] > 0 else None


def test_a_transaction_of_a_million_rows(channel):
    channel.insert(MILLION)
    channel.start()
    seen = samples(channel, lambda: channel.look().get("rows_applied", 0) >= 0.98 * MILLION, 240)
    channel.applied(120)
    # The rows are 100 MB and more, so whatever keeps them shows in the second half.
    early = [s for s in seen if 0 < s[0] < MILLION / 2]
    late = [s for s in seen if s[0] >= MILLION / 2]
    assert early
    assert late
    for which, name in ((1, "driver"), (2, "worker")):
        before, after = (max(s[which] for s in part) for part in (early, late))
        assert after - before < 24 * MIB, (name, before / MIB, after / MIB)
    assert 0 < max(s[3] for s in seen) <= BUFFER


def test_a_target_that_hangs_or_is_down_holds_the_source_back(channel, target):
    channel.start()
    channel.insert(1000)
    channel.applied(60)
    with target.connect() as stranger, stranger.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {channel.db}.t WRITE")
        channel.insert(15_000, WIDE_BYTES)
        figures = eventually(lambda: held_back(channel), 120)
        assert BUFFER / 2 < figures["buffered_bytes"] <= BUFFER == figures["buffer_bytes"]
        before = channel.memory().driver
        for _ in (1, 2):
            channel.insert(110_000, WIDE_BYTES)
        target.pause()
        try:
            ends = time.monotonic() + DOWN_SECONDS
            seen = samples(channel, lambda: time.monotonic() > ends, DOWN_SECONDS + 60)
        finally:
            target.resume()
    # 32 MiB are read ahead on the connection and as many of a transaction kept for its end, beside
    # the buffer and what Python needs for them. The rows alone are 220 MB and more.
    held = [s[1] for s in seen]
    assert max(held) - before < 128 * MIB, "it has read on"
    late = len(held) * 3 // 4
    assert max(held[late:]) - max(held[:late]) < 8 * MIB, "it reads on"
    assert max(s[3] for s in seen) <= BUFFER
    channel.applied(240)
    reported = command(channel.node, "status", channel.name, "-v").stdout
    for words in ("buffered bytes", size(BUFFER), "held back seconds", "memory of m1: driver"):
        assert words in reported, reported
