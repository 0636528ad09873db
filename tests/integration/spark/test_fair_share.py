"""Many pipelines of one node share a Spark session: those that wait do not hold up the others."""

import threading
import time
from contextlib import closing, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from setl.channel.routes.routing import Route
from setl.errors import SetlError
from setl.extract.extractor import RoutedRows
from setl.load.sink import LoadTicket
from setl.model.entry import Entry, EntryKind
from setl.model.leadership import Leadership
from setl.model.position import BinlogPosition
from setl.run.loads.job import LoadJob
from setl.run.spark.session import parallelism
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.mysql import target_system
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.search_index.load.sink import IndexSinkSettings
from setl.transform.spark_on_demand import SparkOnDemand
from setl.transform.work import TransformPlan
from tests.integration.pipelines import execute, fresh_name, mysql, one_way, rows
from tests.waiting import eventually

PIPELINES = 10
BACKLOG = 60_000  # rows


class Table:
    """A table on both servers, and the run that keeps it in step."""

    def __init__(self, position, servers, trigger=""):
        self.servers = servers
        self.db = fresh_name("shop")
        self.table = f"{self.db}.t"
        for server in servers:
            execute(
                server,
                f"CREATE DATABASE {self.db}",
                f"CREATE TABLE {self.table} (id INT PRIMARY KEY, v VARCHAR(20))",
            )
        if trigger:
            execute(
                servers[1],
                f"CREATE TRIGGER {self.db}.slow BEFORE INSERT ON {self.table}"
                f" FOR EACH ROW {trigger}",
            )
        file = one_way(
            servers[0], mysql(servers[1]), [{"from": self.table}], batch_rows=200, rows_per_task=100
        )
        self.running = position.lead(file)

    def insert(self, first, count):
        values = ", ".join(f"({i}, 'row')" for i in range(first, first + count))
        execute(self.servers[0], f"INSERT INTO {self.table} VALUES {values}")

    def drop(self):
        for server in self.servers:
            execute(server, f"DROP DATABASE {self.db}")


@pytest.fixture
def tables(position, servers):
    made = []

    def make(trigger=""):
        made.append(Table(position, servers, trigger))
        return made[-1]

    yield make
    for table in made:
        table.running.run.abort()
    for table in made:
        table.running.thread.join(60)
        table.drop()


def start_workers(spark, count):
    """Have so many Python processes that have imported what tasks need, which takes a while."""

    def wait(_):
        import time

        import setl.load.worker  # noqa: F401

        time.sleep(1)

    spark.sparkContext.parallelize(range(count), count).foreach(wait)


@pytest.fixture
def patient(monkeypatch):
    """Loads that wait for their target's answer as long as the test may last.

    As a rule a target that does not answer for a minute counts as lost, one that does not greet
    for five seconds cannot be connected, and the load is tried again. On a machine that is busy
    with other things the test may take longer than that.
    """

    def endpoint(configured):
        return replace(mysql_endpoint(configured), read_timeout=600.0, connect_timeout=600.0)

    monkeypatch.setattr(target_system, "mysql_endpoint", endpoint)


def waiting(server):
    """The connections that wait for a lock of `GET_LOCK`.

    It may miss one: a server looks once a second whether the client is still there, and the
    connection is in no state for that moment.
    """
    return busy(server, "state = 'User lock'")


def busy(server, condition="TRUE"):
    """The connections that carry out a statement."""
    found = "SELECT id FROM information_schema.processlist WHERE command <> 'Sleep'"
    return {number for (number,) in execute(server, f"{found} AND {condition}")}


def at_least(count, found):
    return found if len(found) >= count else None


@pytest.mark.timeout(600)
def test_pipelines_whose_targets_hang_leave_room_for_the_others(spark, patient, tables, servers):
    # A lock that the server waits for without the limit that row locks have. The server may
    # give it to the next, and rows need not follow each other: it is only to be waited for.
    gate = fresh_name("gate")
    hang = f"SET @held = GET_LOCK('{gate}', 300) + RELEASE_LOCK('{gate}')"
    slow = [tables(hang) for _ in range(PIPELINES)]
    fast = [tables() for _ in range(PIPELINES)]
    start_workers(spark, 2 * PIPELINES)
    with closing(servers[1].connect()) as holder, holder.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 0)", (gate,))
        for number, table in enumerate(slow):
            # Some of them with enough for several tasks.
            table.insert(0, 200 if number < 2 else 1)
        least = PIPELINES + 2 * (parallelism(spark.sparkContext) - 1)
        hanging = eventually(lambda: at_least(least, waiting(servers[1])), 180)
        for table in fast:
            table.insert(0, 10)
        for table in fast:
            table.running.applied(10)
        # All the others still wait as they did, and none of them has made room by giving up.
        assert hanging <= busy(servers[1])
        assert [table.running.figures.rows_total for table in slow] == [0] * PIPELINES
        tried_again = [table.running.progress.pace().retrying for table in slow]
        assert tried_again == [None] * PIPELINES
    for number, table in enumerate(slow):
        table.running.applied(200 if number < 2 else 1, timeout=120)
    for table in slow + fast:
        assert rows(servers[0], table.table) == rows(servers[1], table.table)


def cancelled_load(spark, number, after):
    """A load of two tasks that is cancelled so many seconds after Spark has heard of it."""
    sink = IndexSinkSettings(ElasticEndpoint(("http://127.0.0.1:1",)))
    router: Any = SimpleNamespace(decides=False, route=lambda *_: ())
    plan = TransformPlan("binlog", router)
    job = LoadJob(
        SparkOnDemand.of(spark),
        name=f"cancelled/{number}",
        epoch=1,
        plan=plan,
        sink=sink,
        rows_per_task=1,
    )
    entry = Entry(
        EntryKind.ROWS, BinlogPosition("binlog.000001", 4), 0.0, "s", "t", rows=2, payload=b"x" * 50
    )
    work = [RoutedRows(entry, (Route(0, ("s", "t")),))] * 2

    def run():
        with suppress(SetlError):
            job.run(work, LoadTicket(Leadership("cancelled", str(number), "n1", 1), 1, 0), 0)

    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: job.activity() or not thread.is_alive(), 30, interval=0.001)
    time.sleep(after)
    job.cancel()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.timeout(300)
def test_a_load_that_is_cancelled_leaves_the_tasks_of_others_alone(spark, tmp_path):
    # The moment is that at which Spark makes a Python process for a task. So the others take all
    # that are there, and the cancelled ones, of which none is used again, need new ones.
    others, begun, gate = 14, tmp_path / "begun", tmp_path / "gate"
    begun.mkdir()

    def wait(number):
        import time

        (begun / str(number)).touch()
        while not gate.exists():
            time.sleep(0.05)
        return number

    found = []

    def run_others():
        waiting = spark.sparkContext.parallelize(range(others), others).map(wait)
        found.extend(waiting.collect())

    thread = threading.Thread(target=run_others)
    thread.start()
    try:
        eventually(lambda: len(list(begun.iterdir())) == others, 120)
        for number in range(60):
            cancelled_load(spark, number, after=0.002 * (number % 15))
    finally:
        gate.touch()
        thread.join(60)
    assert found == list(range(others))


@pytest.mark.timeout(600)
def test_a_pipeline_with_a_long_backlog_does_not_hold_up_another(tables, servers):
    busy, quick = tables(), tables()
    written = 0
    for number in range(10):
        # As long again before each change, however long this thread has been held up.
        while written < busy.running.figures.rows_total + BACKLOG:
            busy.insert(written, 1000)
            written += 1000
        quick.insert(number, 1)
        quick.running.applied(number + 1)
        # It was applied while the backlog was worked off.
        assert busy.running.figures.rows_total < written, number
    busy.running.applied(written, timeout=300)
    assert rows(servers[0], busy.table) == rows(servers[1], busy.table)
