"""The benchmark itself, in small: what it writes, what it competes with, what it checks."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from click.testing import CliRunner
from elasticsearch import Elasticsearch as Client

from tests.bench import latency, whole_tables, workloads
from tests.bench.__main__ import main
from tests.bench.competition import WORKLOADS, StartPoint, differences
from tests.bench.fetching import PartitionCopy
from tests.bench.peers.scripts import Bulk, Plain
from tests.bench.peers.server_tools import Replica
from tests.bench.report import (
    EXPRESSIONS,
    HALF,
    STEADY,
    Latency,
    Result,
    Taken,
    ceilings_met,
    floors_met,
    ratio,
)
from tests.bench.servers import Target, add_system_tables, fill_indexes
from tests.bench.watching import DRIVER, PeakMemory, cpu_by_role
from tests.waiting import eventually

SIZES = {"w1": 2_500, "w2": 1_050, "w3": 400, "wide": 120, "many": 300, "big": 700}


def small(name):
    if name == "many":
        return workloads.many(SIZES[name], tables=8)
    if name == "w3":
        return workloads.mixed(SIZES[name], 30)  # so that many rows come, change and go
    return WORKLOADS[name](SIZES[name])


@pytest.fixture
def position(tmp_path, site_a):
    """Makes a position with a workload in its binlog."""

    def written(workload):
        with site_a.connect() as connection:
            return StartPoint(tmp_path, site_a, workloads.write(connection, workload))

    yield written
    with site_a.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {workloads.SCHEMA}")


@pytest.fixture
def table_target(site_b):
    """Makes a MySQL target with what is there before a workload."""

    def filled(workload):
        add_system_tables(site_b)
        with site_b.connect() as connection:
            workloads.fill(connection, workload)
        return Target(mariadb=site_b)

    yield filled
    with site_b.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {workloads.SCHEMA}")


@pytest.fixture
def index_target(elasticsearch):
    """Makes an Elasticsearch target with what is there before a workload."""
    made = []

    def filled(workload):
        made.extend(workload.tables)
        with Client(elasticsearch.url) as client:
            fill_indexes(client, workload)
        return Target(elasticsearch=elasticsearch)

    yield filled
    with Client(elasticsearch.url) as client:
        for index in made:
            client.options(ignore_status=404).indices.delete(index=index)


def measured(folder, command, *options):
    """Run a command; returns what it printed and what it wrote as JSON. 1: a floor is not met."""
    file = folder / "figures.json"
    done = CliRunner().invoke(command, [*options, "--json", str(file)])
    assert done.exit_code in ({0, 1} if "--floors" in options else {0}), done.output
    return done, json.loads(file.read_text())


@pytest.mark.parametrize("name", ["w1", "wide"])
def test_rows_are_the_same_on_every_run(name):
    workload = small(name)
    one, two = (list(workloads._rows(workload, 50)) for _ in range(2))
    assert one == two
    assert len({row[0] for row in one}) == 50
    assert any(ord(char) > 0xFFFF for row in one for value in row for char in str(value))
    assert all(len(row) == len(workload.shape.columns) for row in one)


def test_w3_has_the_mix_that_it_says_over_all_its_tables():
    workload = workloads.mixed()
    assert workload.mix == (0.6, 0.25)
    statements = workloads._statements(workload, workloads.Mix(0.6, 0.25))
    drawn = [next(statements)[0] for _ in range(20_000)]
    kinds = Counter(text.split()[0] for text in drawn)
    shares = [kinds[kind] / len(drawn) for kind in ("UPDATE", "INSERT", "DELETE")]
    assert shares == pytest.approx([0.6, 0.25, 0.15], abs=0.01)
    assert {table for text in drawn for table in workload.tables if f"`{table}`" in text} == set(
        workload.tables
    )


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_replica_and_the_plain_script_bring_everything(position, table_target, name):
    workload = small(name)
    at = position(workload)
    for competitor in (Replica(), Plain()):
        target = table_target(workload)
        assert differences(at.source, target, workload)
        taken = competitor.measure(at, target)
        assert differences(at.source, target, workload) == []
        assert taken.seconds > 0
        assert {"target", "source"} <= taken.cpu.keys()
        assert taken.memory["target"] > 1 << 20
        assert (DRIVER in taken.cpu) == (competitor.name == "plain")


def test_wrong_contents_of_a_table_are_found(position, table_target):
    workload = small("w3")
    at = position(workload)
    target = table_target(workload)
    Replica().measure(at, target)
    with target.mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE bench.w3_001 SET note = CONCAT(note, ' ') LIMIT 1")
        cursor.execute("DELETE FROM bench.w3_002 LIMIT 1")
    found = differences(at.source, target, workload)
    assert ["COUNT" in text for text in found] == [False, True, False]
    assert ["w3_001" in text for text in found] == [True, False, False]


def test_a_replica_that_stops_fails(position, table_target):
    workload = small("w3")
    at = position(workload)
    target = table_target(workload)
    with target.mysql.connect() as connection, connection.cursor() as cursor:
        for table in workload.tables:
            cursor.execute(f"DELETE FROM bench.`{table}`")
    with pytest.raises(RuntimeError, match=r"the replica stopped: .*HA_ERR_KEY_NOT_FOUND"):
        Replica().measure(at, target)


@pytest.mark.parametrize("name", ["w1", "wide"])
def test_ready_documents_and_the_plain_script_into_elasticsearch(position, index_target, name):
    workload = WORKLOADS[name](120)
    at = position(workload)
    target = index_target(workload)
    assert differences(at.source, target, workload)
    Bulk().measure(at, target)
    assert differences(at.source, target, workload) == []
    assert Plain().measure(at, target).cpu[DRIVER] > 0
    assert differences(at.source, target, workload) == []


def test_wrong_contents_of_an_index_are_found(position, index_target, elasticsearch):
    workload = workloads.updates(105, 40)
    at = position(workload)
    target = index_target(workload)
    Plain().measure(at, target)
    assert differences(at.source, target, workload) == []
    with Client(elasticsearch.url) as client:
        client.update(index="w2", id="7", doc={"coupon": "no such coupon"})
        assert differences(at.source, target, workload) == ["w2: document 7: coupon"]
        client.delete(index="w2", id="8")
    assert differences(at.source, target, workload) == ["w2: 39 documents for 40 rows"]


def test_a_script_that_fails_says_why(position, site_b):
    at = position(small("w1"))
    with pytest.raises(RuntimeError, match="doesn't exist"):
        Plain().measure(at, Target(mariadb=site_b))


def test_a_fetch_is_answered_with_whole_batches_and_no_more_than_it_asks_for():
    copy = PartitionCopy(b"aaabbbcc", last=[9, 19, 24], ends=[3, 6, 8])
    asked = [(0, 1), (0, 6), (9, 5), (10, 4), (15, 5), (15, 1 << 30), (24, 0), (25, 9)]
    given = [bytes(copy.piece(offset, most)) for offset, most in asked]
    assert given == [b"aaa", b"aaabbb", b"aaa", b"bbb", b"bbbcc", b"bbbcc", b"cc", b""]


@pytest.mark.servers
@pytest.mark.timeout(1_200)  # nodes get warm slowly on a busy machine
def test_setl_is_measured_from_kafka_and_beside_others(tmp_path):
    """The whole command, on servers of its own: workloads, floors, tables and JSON."""
    done, content = measured(
        tmp_path, main, "--target", "mysql", "--workload", "w3", "--source", "kafka", "--rows",
        "300", "--floors",
    )  # fmt: skip
    figures = {one["competitor"]: one for one in content["figures"]}
    assert figures["debezium"]["missing"] or figures["debezium"]["rate"]
    for name in ("replica", "plain", "setl, kafka"):
        assert (figures[name]["wrong"], figures[name]["failed"]) == ([], []), done.output
        assert figures[name]["rate"] > 0
    mine = figures["setl, kafka"]
    assert {"driver", "jvm", "workers", "target", "source"} <= mine["cpu_per_million"].keys()
    assert all(mine["peak_bytes"][role] > 1 << 20 for role in ("driver", "jvm", "workers"))
    assert 0 < mine["start_seconds"] <= mine["seconds"][0] + 1
    assert "w3 to mysql: setl, kafka / setl" in done.output


@pytest.mark.servers
@pytest.mark.timeout(1_200)  # nodes get warm slowly on a busy machine
def test_latency_of_setl_into_elasticsearch(tmp_path):
    """The other target, whose checkpoint is in ZooKeeper."""
    _, content = measured(
        tmp_path, latency.main, "--target", "elasticsearch", "--rows", "300", "--seconds", "1"
    )
    steady, half, made = content["latencies"]
    assert (steady["load"], steady["transactions"], half["load"]) == (STEADY, 20, HALF)
    assert (made["load"], made["transactions"], made["problems"]) == (EXPRESSIONS, 20, [])
    assert 0 < steady["p50"] <= steady["p99"] <= steady["worst"]


@pytest.mark.servers
@pytest.mark.timeout(1_200)  # nodes get warm slowly on a busy machine
def test_loads_of_whole_tables(tmp_path):
    _, content = measured(
        tmp_path, whole_tables.main, "load", "--target", "mysql", "--rows", "3000", "--rounds",
        "1", "--seconds", "0", "--only", "setl", "--only", "mariadb-dump",
    )  # fmt: skip
    turns = {turn["competitor"]: turn for turn in content["turns"]}
    assert turns["setl"]["seconds"] > 0
    assert {"driver", "jvm", "workers", "target", "source"} <= turns["setl"]["cpu"].keys()


def test_ratios_of_loads_are_those_of_each_round():
    turns = [
        whole_tables.Turn("mysql", name, 10, seconds, {})
        for name, seconds in (("setl", 2.0), ("mydumper", 1.0), ("setl", 4.0), ("mydumper", 8.0))
    ]
    assert whole_tables.ratios(turns, "mysql", "mydumper") == [0.5, 2.0]


def test_rows_are_visible_up_to_the_first_that_is_missing(site_a):
    with site_a.connect() as connection, connection.cursor() as cursor:
        workloads.fill(connection, workloads.Workload("latency", 0, 1))
        with latency.looking(Target(mariadb=site_a)) as look:
            assert look(0) == 0
            insert = "INSERT INTO latency SELECT %s, 1, 'n', 1, '2026-01-01', NULL, '', 0"
            for key in (1, 2, 4):
                cursor.execute(insert, (key,))
            assert look(0) == 2
            assert look(2) == 2
            cursor.execute(insert, (3,))
            assert look(2) == 4
        cursor.execute("DROP DATABASE bench")


def result(competitor, seconds, **more):
    runs = tuple(Taken(s, None, {DRIVER: 2.0}, {DRIVER: 1 << 20}) for s in seconds)
    return Result("w1", "mysql", competitor, 1000, runs, **more)


def test_the_best_runs_count():
    mine, theirs = result("setl", [8.0, 4.0]), result("replica", [2.0, 3.0])
    assert ratio([mine, theirs], mine, "replica") == 0.5
    assert mine.rate == 250
    assert mine.cpu(DRIVER) == 2000
    assert ratio([mine], mine, "replica") is None


def test_floors_are_met_or_not_or_not_measured():
    results = [result("replica", [1.0]), result("setl", [3.9])]
    found = {v.title: v.met for v in floors_met(results)}
    assert found["w1 to mysql: setl / replica"] is True
    assert found["w2 to mysql: setl / replica"] is None
    for mine in (result("setl", [4.1]), result("setl", [3.9], wrong=("no",))):
        met = {v.title: v.met for v in floors_met([results[0], mine])}
        assert met["w1 to mysql: setl / replica"] is False
    slow = [Latency("mysql", STEADY, p50=0.02, p99=0.07), Latency("mysql", HALF, p50=9.0, p99=0.19),
            Latency("mysql", EXPRESSIONS, p50=0.2)]  # fmt: skip
    assert [v.met for v in ceilings_met(slow)] == [True, False, True, False]


def test_cpu_and_memory_of_a_process_and_its_children():
    busy = "import time\nwhile time.process_time() < 0.3: pass\ninput()"
    worker = f"[sys.executable, '-c', {busy!r}, 'pyspark.worker']"
    code = f"import subprocess, sys; subprocess.run({worker})"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    roots = {DRIVER: process.pid}
    try:
        with PeakMemory(roots) as memory:
            eventually(lambda: cpu_by_role(roots).get("workers", 0) >= 0.2, timeout=60)
        assert memory.peak["workers"] > 1 << 20
        assert memory.peak[DRIVER] > 1 << 20
    finally:
        process.communicate(b"\n")
    assert sum(cpu_by_role(roots).values()) == 0
