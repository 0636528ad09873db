"""Pipelines run inside the test's process, on real servers: build, run, and wait."""

import threading
import time
import uuid
from contextlib import contextmanager
from functools import partial

import pytest

from setl.channel.file import KafkaTarget, MysqlTarget
from setl.channel.reading import parse_channel
from setl.clock import SystemClock
from setl.errors import SetlError
from setl.model.leadership import Leadership
from setl.run.assembly import build_run
from setl.run.measured.figures import RunState
from setl.run.measured.progress import Progress
from setl.run.relay.assembly import build_relay_run
from setl.systems.mysql.sql_files import system_table_statements
from setl.transform.spark_on_demand import SparkOnDemand
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.mysql_servers import binlog_status
from tests.waiting import eventually

ORDERS = """CREATE TABLE {db}.orders (
    id BIGINT PRIMARY KEY, email VARCHAR(60) NULL UNIQUE, name VARCHAR(40) NULL,
    amount DECIMAL(20,6) NULL, payload VARBINARY(20) NULL, at DATETIME(6) NULL,
    seen TIMESTAMP(3) NULL, kind ENUM('a','二手') NULL, big BIGINT UNSIGNED NULL, rate DOUBLE NULL)
    CHARACTER SET utf8mb4"""


def fresh_name(prefix="t"):
    return f"{prefix}_{uuid.uuid4().hex[:10]}"


def execute(server, *statements):
    """Run statements on a server; returns the rows of the last one."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall()


def install_system_tables(server):
    execute(server, *system_table_statements())


@contextmanager
def new_database(servers, prefix, *statements, options=""):
    """A database of its own on servers while the block lasts; statements say {db} for its name."""
    name = fresh_name(prefix)
    for server in servers:
        made = (statement.format(db=name) for statement in statements)
        execute(server, f"CREATE DATABASE {name} {options}", *made)
    try:
        yield name
    finally:
        for server in servers:
            execute(server, "SET foreign_key_checks = 0", f"DROP DATABASE IF EXISTS {name}")


def on_both(prefix, *statements, options=""):
    """A fixture: the name of a database on both servers, with what statements make in it."""

    @pytest.fixture
    def made(servers):
        with new_database(servers, prefix, *statements, options=options) as name:
            yield name

    return made


def on_a(prefix, *statements, options="", system_tables=False):
    """A fixture: as `on_both`, on the first server alone."""

    @pytest.fixture
    def made(site_a):
        if system_tables:
            install_system_tables(site_a)
        with new_database([site_a], prefix, *statements, options=options) as name:
            yield name

    return made


def mysql(server):
    return {
        "type": "mysql",
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }


def hasty(file):
    """A channel whose leaders wait a second for what others have left open, and not five."""

    def changed(pipeline):
        target = pipeline.target
        if isinstance(target, MysqlTarget) and "fence_timeout" not in target.model_fields_set:
            target = target.model_copy(update={"fence_timeout": 1.0})
        return pipeline.model_copy(update={"target": target})

    return file.model_copy(update={"pipelines": [changed(each) for each in file.pipelines]})


def binlog_end(server):
    with server.connect() as connection:
        file, offset = binlog_status(connection)
    return {"file": file, "offset": offset}


def one_way(server_a, target, tables, name=None, **options):
    """A channel from where server_a's binlog ends now to a target."""
    source = {**mysql(server_a), "start": binlog_end(server_a), "heartbeat": 0}
    pipeline = {"name": "p", "source": source, "target": target, "tables": tables, **options}
    return parse_channel({"channel": name or fresh_name("channel"), "pipelines": [pipeline]})


def two_way(server_a, server_b, tables, name=None, channel=None, **options):
    """A channel whose pipelines ``ab`` and ``ba`` begin where both binlogs end now."""
    pipelines = [
        {
            "name": pipeline,
            "source": {**mysql(source), "start": binlog_end(source), "heartbeat": 0},
            "target": mysql(target),
            "tables": tables,
            **options,
        }
        for pipeline, source, target in (("ab", server_a, server_b), ("ba", server_b, server_a))
    ]
    named = {"channel": name or fresh_name("both"), "pipelines": pipelines}
    return parse_channel({**named, **(channel or {})})


class Watched(Progress):
    """Calls `watch` in the run's own thread, after each batch that is counted."""

    watch = None

    def acknowledged(self, passed):
        super().acknowledged(passed)
        if self.watch is not None:
            self.watch()


class PipelineRunner:
    """A run in a thread of its own.

    Args:
        run: what runs.
        progress: its counters, a `Watched`.
        dies_when: takes the figures after each batch; if true, the run is aborted before it does
            anything else, as if its process were killed there. A test that looks on from its own
            thread may come too late.
    """

    def __init__(self, run, progress, dies_when=None):
        self.run = run
        self.progress = progress
        self.error = None
        if dies_when is not None:
            progress.watch = lambda: dies_when(progress.figures()) and run.abort()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        try:
            self.run.run()
        except SetlError as error:
            self.error = error

    @property
    def figures(self):
        return self.progress.figures()

    def applied(self, rows, timeout=180):
        """Wait until so many row changes are applied and acknowledged, over all leaderships."""

        def reached():
            if not self.thread.is_alive():
                raise RuntimeError(f"the run ended: {self.error}")
            figures = self.figures
            assert figures.rows_total >= rows, f"{figures.state}: {figures.error or figures}"
            return True

        eventually(reached, timeout, message=f"{rows} rows applied")
        return self.figures

    def runs(self, timeout=60):
        """Wait until the run has taken over; if it is a relay's, its topic is there by then."""

        def state():
            assert self.thread.is_alive(), self.error
            return self.figures.state is RunState.RUNNING

        eventually(state, timeout, message=str(self.figures))
        return self

    def ends(self, timeout=60):
        """Wait until the run has ended by itself; returns its error."""
        self.thread.join(timeout)
        assert not self.thread.is_alive(), "the run goes on"
        return self.error

    def dies(self, timeout=120):
        """Wait until the run has been aborted by `dies_when`; returns the figures that it had."""
        assert self.ends(timeout) is None, self.error
        return self.figures

    def stop(self):
        self.run.stop()
        self.thread.join(60)
        assert not self.thread.is_alive(), "the run does not stop"

    def abort(self):
        self.run.abort()
        self.thread.join(60)
        assert not self.thread.is_alive(), "the run does not stop"


class Site:
    """Starts runs of channels on one Spark session and one arbiter; stops what is left."""

    def __init__(self, spark):
        self.build_run = partial(build_run, spark=SparkOnDemand.of(spark))
        self.arbiter = MemoryArbiter(MemoryCluster())
        self.epoch = int(time.time() * 1000)
        self.runs = []

    def lead(self, file, pipeline="p", nid="n1", epoch=None, dies_when=None):
        self.epoch += 1
        self.arbiter.channels.put(file.channel, {})
        clock = SystemClock()
        progress = Watched(clock)
        target = next(p.target for p in file.pipelines if p.name == pipeline)
        build = build_relay_run if isinstance(target, KafkaTarget) else self.build_run
        run = build(
            hasty(file),
            Leadership(file.channel, pipeline, nid, epoch or self.epoch),
            arbiter=self.arbiter,
            progress=progress,
            clock=clock,
        )
        running = PipelineRunner(run, progress, dies_when)
        self.runs.append(running)
        return running


@contextmanager
def site(spark):
    position = Site(spark)
    try:
        yield position
    finally:
        for running in position.runs:
            running.run.abort()
        for running in position.runs:
            running.thread.join(60)


def rows(server, table, order="1"):
    """A table's rows as the server prints them."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {table} ORDER BY {order}")
        return cursor.fetchall()


def shown_rows(cursor, schema, table):
    """Columns of a table, and its rows: of each value the bytes in hexadecimal, text in UTF-8."""
    cursor.execute(
        "SELECT COLUMN_NAME, CHARACTER_SET_NAME FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (schema, table),
    )
    columns = cursor.fetchall()
    shown = [
        f"HEX(CONVERT(`{name}` USING utf8mb4))" if charset else f"HEX(CAST(`{name}` AS BINARY))"
        for name, charset in columns
    ]
    cursor.execute(f"SELECT {', '.join(shown)} FROM {schema}.{table}")
    rows = sorted([list(row) for row in cursor.fetchall()], key=str)
    return [name for name, _ in columns], rows


def seven_changes(db):
    """Statements that insert, update, delete and move rows of `orders`: seven row changes."""
    rows_of_each_type = (
        "(1, 'a@x', 'naïve 🦊 ''\\\\', '-123.456000', x'00ff27',"
        " '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05.678', '二手', 18446744073709551615,"
        " 0.1), (2, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    return (
        f"INSERT INTO {db}.orders VALUES {rows_of_each_type}",
        f"INSERT INTO {db}.orders (id, name) VALUES (3, 'gone'), (4, 'moves')",
        f"UPDATE {db}.orders SET name = NULL, amount = 7 WHERE id = 1",
        f"DELETE FROM {db}.orders WHERE id = 3",
        f"UPDATE {db}.orders SET id = 40 WHERE id = 4",
    )
