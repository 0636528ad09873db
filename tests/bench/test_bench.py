"""The benchmark itself, in small: what it writes, what it competes with, what it checks."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from click.testing import CliRunner
from elasticsearch import Elasticsearch as Client

from tests.bench import figures, latency, rates, visibility, whole_tables, workloads
from tests.bench.contents import differences
from tests.bench.metering import DRIVER, OWN, ROLES, Meter, Taken
from tests.bench.peers.replica import Replica
from tests.bench.peers.scripts import Bulk, Plain
from tests.bench.servers import Target, add_system_tables, fill_indexes
from tests.bench.topic import PartitionCopy
from tests.bench.turns import Result, StartPoint
from tests.bench.workloads import WORKLOADS
from tests.waiting import eventually

SIZES = {"w1": 2_500, "w2": 1_050, "w3": 400, "wide": 120, "many": 300, "big": 700}


def small(name):
    workload = WORKLOADS[name].sized(SIZES[name])
    # So that many rows come, change and go.
    return replace(
        workload, tables_count=min(workload.tables_count, 8), base=min(workload.base, 30)
    )


@pytest.fixture
def position(tmp_path, site_a):
    """Makes a position with a workload in its binlog."""

    def written(workload):
        with site_a.connect() as connection:
            return StartPoint(tmp_path, site_a, workloads.write(connection, workload))

    yield written
    with site_a.connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS bench")


@pytest.fixture
def table_target(site_b):
    """Makes a MySQL target with what is there before a workload."""

    def filled(workload):
        add_system_tables(site_b)
        with site_b.connect() as connection:
            workloads.fill(connection, workload)
        return Target(site_b)

    yield filled
    with site_b.connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS bench")


@pytest.fixture
def index_target(elasticsearch):
    """Makes an Elasticsearch target with what is there before a workload."""
    with Client(elasticsearch.url) as client:

        def filled(workload):
            client.options(ignore_status=404).indices.delete(index=workload.name)
            fill_indexes(client, workload)
            return Target(elasticsearch=elasticsearch)

        yield filled


def measured(folder, command, *options):
    """Run a command; returns what it printed and what it wrote as JSON. 1: a floor is not met."""
    file = folder / "figures.json"
    done = CliRunner().invoke(command, [*options, "--json", str(file)])
    assert done.exit_code in ({0, 1} if "--floors" in options else {0}), done.output
    return done, json.loads(file.read_text())


@pytest.mark.parametrize("name", ["w1", "wide"])
def test_rows_are_the_same_on_every_run(name):
    workload = small(name)
    one, two = (list(workloads.new_rows(workload, 50)) for _ in range(2))
    assert one == two
    assert len({row[0] for row in one}) == 50
    assert any(ord(char) > 0xFFFF for row in one for value in row for char in str(value))
    assert all(len(row) == len(workload.shape.columns) for row in one)


def test_w3_has_the_mix_that_it_says_over_all_its_tables():
    workload = WORKLOADS["w3"].sized(20_000)
    drawn = [statement for statement, _ in workloads._changes(workload, workloads.MIX)]
    kinds = Counter(text.split()[0] for text in drawn)
    fractions = [kinds[kind] / len(drawn) for kind in ("UPDATE", "INSERT", "DELETE")]
    assert fractions == pytest.approx([0.6, 0.25, 0.15], abs=0.01)
    assert {table for text in drawn for table in workload.tables if f"`{table}`" in text} == set(
        workload.tables
    )


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_replica_and_the_plain_script_bring_everything(position, table_target, name):
    workload = small(name)
    at = position(workload)
    for peer in (Replica(), Plain()):
        target = table_target(workload)
        assert differences(at.source, target, workload)
        taken = peer.measure(at, target)
        assert differences(at.source, target, workload) == []
        assert taken.seconds > 0
        assert {"target", "source"} <= taken.cpu.keys()
        assert (DRIVER in taken.cpu) == (peer.name == "plain")
        assert (taken.memory.get(DRIVER, 0) > 1 << 20) == (peer.name == "plain")


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
    workload = WORKLOADS[name].sized(120)
    at = position(workload)
    target = index_target(workload)
    assert differences(at.source, target, workload)
    Bulk().measure(at, target)
    assert differences(at.source, target, workload) == []
    assert Plain().measure(at, target).cpu[DRIVER] > 0
    assert differences(at.source, target, workload) == []


def test_wrong_contents_of_an_index_are_found(position, index_target, elasticsearch):
    workload = replace(WORKLOADS["w2"].sized(105), base=40)
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
        Plain().measure(at, Target(site_b))


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
        tmp_path, rates.main, "--workload", "W3", "--only", "replica,debezium,plain",
        "--only", "setl-kafka", "--rows", "300", "--floors",
    )  # fmt: skip
    found = {one["peer"]: one for one in content["figures"]}
    assert found["debezium"]["missing"] or found["debezium"]["rate"]
    for name in ("replica", "plain", "setl-kafka"):
        assert (found[name]["wrong"], found[name]["failed"]) == ([], []), done.output
        assert found[name]["rate"] > 0
        assert f"  {name}: " in done.output
    (mine,) = found["setl-kafka"]["runs"]
    assert set(ROLES) <= mine["cpu"].keys()
    assert all(mine["memory"][role] > 1 << 20 for role in OWN)
    assert 0 < mine["start_seconds"] <= mine["seconds"] + 1
    assert "w3 to mysql: setl-kafka / setl" in done.output


@pytest.mark.servers
@pytest.mark.timeout(1_200)  # nodes get warm slowly on a busy machine
def test_latency_of_setl_into_elasticsearch(tmp_path):
    """The other target, whose checkpoint is in ZooKeeper."""
    _, content = measured(
        tmp_path, latency.main, "--target", "elasticsearch", "--rows", "300", "--seconds", "1"
    )
    steady, half, made = content["figures"]
    loads = [one["load"] for one in content["figures"]]
    assert loads == [figures.STEADY, figures.HALF, figures.EXPRESSIONS]
    assert steady["transactions"] == made["transactions"] == 20
    assert made["problems"] == half["problems"] == []
    assert 0 < steady["p50"] <= steady["p99"] <= steady["worst"]


@pytest.mark.servers
@pytest.mark.timeout(1_200)  # nodes get warm slowly on a busy machine
def test_loads_of_whole_tables(tmp_path):
    _, content = measured(
        tmp_path, whole_tables.main, "load", "--target", "mysql", "--rows", "3000", "--rounds",
        "1", "--seconds", "0", "--only", "setl,mariadb-dump",
    )  # fmt: skip
    found = {one["peer"]: one for one in content["figures"]}
    assert found["setl"]["rate"] > 0
    assert set(ROLES) <= found["setl"]["runs"][0]["cpu"].keys()


def test_rows_are_visible_up_to_the_first_that_is_missing(site_a):
    with site_a.connect() as connection, connection.cursor() as cursor:
        workloads.fill(connection, visibility.CHANGED)
        with visibility.looking(Target(site_a)) as look:
            assert look(0) == 0
            insert = "INSERT INTO latency SELECT %s, 1, 'n', 1, '2026-01-01', NULL, '', 0"
            for key in (1, 2, 4):
                cursor.execute(insert, (key,))
            assert look(0) == 2
            assert look(2) == 2
            cursor.execute(insert, (3,))
            assert look(2) == 4
        cursor.execute("DROP DATABASE bench")


def result(peer, seconds, **more):
    runs = [Taken(s, None, {DRIVER: 2.0}, {DRIVER: 1 << 20}) for s in seconds]
    return Result("w1", "mysql", peer, 1000, runs=runs, **more)


def test_the_best_runs_count():
    mine, theirs = result("setl", [8.0, 4.0]), result("replica", [2.0, 3.0])
    assert figures.ratio(mine, theirs) == 0.5
    assert figures.ratios_by_round(mine, theirs) == [0.25, 0.75]
    assert mine.rate == 250
    assert mine.cpu(DRIVER) == 2000
    assert figures.ratio(mine, None) is None


def test_floors_are_met_or_not_or_not_measured():
    results = [result("replica", [1.0]), result("setl", [3.9])]
    found = {v.title: v.met for v in figures.floors_met(results)}
    assert found["w1 to mysql: setl / replica"] is True
    assert found["w2 to mysql: setl / replica"] is None
    for mine in (result("setl", [4.1]), result("setl", [3.9], wrong=["no"])):
        met = {v.title: v.met for v in figures.floors_met([results[0], mine])}
        assert met["w1 to mysql: setl / replica"] is False
    slow = [
        figures.Latency("mysql", load, p50=p50, p99=p99)
        for load, p50, p99 in (
            (figures.STEADY, 0.02, 0.07), (figures.HALF, 9.0, 0.19), (figures.EXPRESSIONS, 0.2, 0),
        )
    ]  # fmt: skip
    assert [v.met for v in figures.ceilings_met(slow)] == [True, False, True, False]


def test_cpu_and_memory_of_a_process_and_its_children():
    busy = "import time\nwhile time.process_time() < 0.3: pass\ninput()"
    worker = f"[sys.executable, '-c', {busy!r}, 'pyspark.worker']"
    code = f"import subprocess, sys; subprocess.run({worker})"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        with Meter(process.pid) as meter:
            eventually(lambda: meter.taken(0).cpu.get("workers", 0) >= 0.2, timeout=60)
        assert meter.taken(0).memory["workers"] > 1 << 20
        assert meter.taken(0).memory[DRIVER] > 1 << 20
    finally:
        process.communicate(b"\n")
    assert sum(Meter(process.pid).taken(0).cpu.values()) == 0
