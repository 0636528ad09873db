"""The benchmark itself, in small: what it writes, what it competes with, what it checks."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch as Client

from tests.bench import workloads
from tests.bench.contents import differences
from tests.bench.cpu import cpu_seconds
from tests.bench.plain_script import Settings
from tests.bench.report import Figure, Taken
from tests.bench.servers import Target, mysql_settings
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
SMALL = [workloads.inserts(2_500), workloads.updates(1_050, 40)]


def plain_script(source, written, target):
    settings = Settings(
        source=mysql_settings(source),
        start=tuple(written.start),
        end=tuple(written.end),
        schema=workloads.SCHEMA,
        table=written.workload.table,
        key="id",
        target=target.settings,
        batch_rows=500,
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.plain_script"],
        input=json.dumps(asdict(settings)), cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.fixture
def dropped(mariadb_a, mariadb_b):
    yield
    for server in (mariadb_a, mariadb_b):
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {workloads.SCHEMA}")


def test_rows_are_the_same_on_every_run():
    one, two = (list(workloads.rows(SMALL[0], 50)) for _ in range(2))
    assert one == two
    assert len({row[0] for row in one}) == 50
    assert any(row[5] is None for row in one)
    assert any(ord(char) > 0xFFFF for row in one for char in row[6])


@pytest.mark.parametrize("workload", SMALL, ids=["w1", "w2"])
def test_the_plain_script_into_mysql(mariadb_a, mariadb_b, dropped, workload):
    with mariadb_a.connect() as connection, mariadb_b.connect() as other:
        written = workloads.write(connection, workload)
        workloads.create_table(other, workload)
    target = Target(mariadb=mariadb_b)
    assert differences(mariadb_a, target, workload)
    answer = plain_script(mariadb_a, written, target)
    assert answer["rows"] == workload.changes
    assert differences(mariadb_a, target, workload) == []
    with mariadb_b.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"UPDATE bench.{workload.table} SET note = CONCAT(note, ' ') WHERE id = 7")
    assert len(differences(mariadb_a, target, workload)) == 1


def test_the_plain_script_into_elasticsearch(mariadb_a, elasticsearch, dropped, mariadb_b):
    workload = SMALL[1]
    with mariadb_a.connect() as connection:
        written = workloads.write(connection, workload)
    target = Target(elasticsearch=elasticsearch)
    with Client(elasticsearch.url) as client:
        try:
            answer = plain_script(mariadb_a, written, target)
            assert answer["rows"] == workload.changes
            assert differences(mariadb_a, target, workload) == []
            client.update(index=workload.table, id="7", doc={"coupon": "no such coupon"})
            assert differences(mariadb_a, target, workload) == ["document 7: coupon"]
            client.delete(index=workload.table, id="8")
            assert differences(mariadb_a, target, workload) == ["39 documents for 40 rows"]
        finally:
            client.options(ignore_status=404).indices.delete(index=workload.table)


def test_each_row_of_w2_is_updated(mariadb_a, dropped, mariadb_b):
    workload = workloads.updates(60, 50)
    with mariadb_a.connect() as connection, connection.cursor() as cursor:
        workloads.write(connection, workload)
        cursor.execute("SELECT id, quantity FROM bench.w2 ORDER BY id")
        after = list(cursor.fetchall())
    before = [(row[0], row[1]) for row in workloads.rows(workload, 50)]
    assert all(one != two for one, two in zip(before, after, strict=True))


def test_the_best_runs_count():
    plain, setl = (Taken(12.0, 1.0), Taken(10.0, 2.0)), (Taken(4.0, 3.0), Taken(8.0, 1.0))
    figure = Figure("w1", "mysql", 1000, plain, setl)
    assert figure.ratio == 2.5
    assert figure.rate(setl) == 250
    assert figure.cpu(setl) == 3000
    assert Figure("w1", "mysql", 1000, (), setl).ratio is None


def test_cpu_of_a_process_and_its_children():
    busy = "import time\nwhile time.process_time() < 0.3: pass\ninput()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        eventually(lambda: cpu_seconds(process.pid) >= 0.3, timeout=60)
    finally:
        process.communicate(b"\n")
    assert cpu_seconds(process.pid) == 0
