"""The end of a binlog that others write to: its GTIDs are those of all transactions before it.

The judge is the list of events that the server itself shows.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from setl.codec.binlog.transactions.gtid import MysqlGtids, same_gtids
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from tests.integration.pipelines import execute, new_database
from tests.integration.table_loads.test_requested_loads import commits_that_hang
from tests.loading import endpoint_of
from tests.waiting import eventually

pytestmark = pytest.mark.servers

ANSWERS, WRITERS = 15, 4  # every third answer is wrong where only the server is asked


@pytest.fixture
def table(site_a):
    with new_database([site_a], "ends") as name:
        yield f"{name}.t"


def end_of(source):
    """The end of the binlog, as a source tells it."""
    end = source.initial()
    assert isinstance(end, BinlogPosition)
    return end


@contextmanager
def written_to(server, table, writers):
    """Connections that commit one transaction after another."""
    execute(server, f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY)")
    stop = threading.Event()

    def write():
        with server.connect() as connection, connection.cursor() as cursor:
            while not stop.is_set():
                cursor.execute(f"INSERT INTO {table} VALUES ()")

    with ThreadPoolExecutor(writers) as pool:
        writing = [pool.submit(write) for _ in range(writers)]
        try:
            yield
        finally:
            stop.set()
    for each in writing:
        each.result()


def gtids_before(server, file):
    """Tells which GTIDs of MySQL are before an offset of a file."""
    events = execute(server, f"SHOW BINLOG EVENTS IN '{file}'")
    begun, *_ = (info for _, _, kind, _, _, info in events if kind == "Previous_gtids")
    added = [
        (position, info.split("'")[1]) for _, position, kind, _, _, info in events if kind == "Gtid"
    ]

    def before(offset):
        found = MysqlGtids(begun.replace("\n", ""))
        for position, gtid in added:
            if position < offset:
                found.add(gtid)
        return str(found)

    return before


@pytest.mark.family("mysql")
def test_what_is_being_committed_is_before_the_end(site_a, table):
    source = MysqlBinlogSource(endpoint_of(site_a), 4711)
    with written_to(site_a, table, WRITERS):
        ends = [end_of(source) for _ in range(ANSWERS)]
    shown = {file: gtids_before(site_a, file) for file in {end.file for end in ends}}
    wrong = [end for end in ends if not same_gtids(end.gtid, shown[end.file](end.offset))]
    assert not wrong


@pytest.mark.family("mysql")
def test_a_commit_that_waits_for_a_replica_is_before_the_end(site_a, table):
    execute(site_a, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    source = MysqlBinlogSource(endpoint_of(site_a), 4711)
    before = end_of(source)
    with ThreadPoolExecutor(1) as pool, commits_that_hang(site_a):
        pool.submit(execute, site_a, f"INSERT INTO {table} VALUES (1)")
        owned = "SELECT @@GLOBAL.gtid_owned"
        eventually(lambda: execute(site_a, owned) != (("",),), 30)
        eventually(lambda: source.initial().order > before.order, 30)
        end = end_of(source)
    assert same_gtids(end.gtid, gtids_before(site_a, end.file)(end.offset))
    assert not same_gtids(end.gtid, before.gtid)
