"""XA transactions that are rolled back after they were prepared, and so stand in the binlog."""

import threading
import time
from contextlib import closing

import pytest

from setl.channel.reading import parse_channel
from setl.errors import FatalError
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog import source as source_module
from setl.systems.mysql.binlog.earlier_prepares import EarlierPrepares
from setl.systems.registry import system_of
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql, on_a

TABLES = [f"CREATE TABLE {{db}}.{name} (id INT PRIMARY KEY)" for name in ("mapped", "other")]
db = on_a("xa", *TABLES)


def position(server):
    end = binlog_end(server)
    return BinlogPosition(end["file"], end["offset"])


def stream(server, db):
    pipeline = {
        "name": "p",
        "source": mysql(server),
        "target": {"type": "mysql", "host": "db2", "user": "u", "password": "p"},
        "tables": [{"from": f"{db}.mapped"}],
    }
    file = parse_channel({"channel": "xa", "pipelines": [pipeline]})
    return system_of(file.pipelines[0].source).stream(file.pipelines[0], "xa", fresh_name())


def prepare(cursor, xid, *tables):
    cursor.execute(f"XA START {xid}")
    for table in tables:
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
    cursor.execute(f"XA END {xid}")
    cursor.execute(f"XA PREPARE {xid}")


def is_behind(found, before):
    """Whether entries end with a transaction behind a position."""
    return (
        bool(found)
        and found[-1].kind is EntryKind.COMMIT
        and (found[-1].position.order > before.order)
    )


def read_to_the_end(server, db, start):
    """The entries from a position on, with those of a row of the mapped table written now."""
    # Not where the binlog ends behind it: after FLUSH, MariaDB adds an event of its own some time
    # later, which is no entry.
    before = position(server)
    execute(server, f"INSERT INTO {db}.mapped VALUES (99)")
    found, deadline = [], time.monotonic() + 60
    with closing(stream(server, db)) as source:
        source.open(start)
        while time.monotonic() < deadline:
            found += source.read(100, 0.5)
            if is_behind(found, before):
                return found
    raise AssertionError("the binlog was not read to its end")


def test_a_stream_that_waits_for_a_look_at_older_files_is_not_taken_for_silent(
    site_a, db, monkeypatch
):
    monkeypatch.setattr(source_module, "_QUIET", 0.05)
    enough, find = threading.Event(), EarlierPrepares._find

    def found_late(*args):
        assert enough.wait(60)
        return find(*args)

    monkeypatch.setattr(EarlierPrepares, "_find", found_late)
    with site_a.connect() as connection, connection.cursor() as cursor:
        prepare(cursor, "'a'", f"{db}.other")
        start = position(site_a)
        cursor.execute("XA ROLLBACK 'a'")
    before = position(site_a)
    execute(site_a, f"INSERT INTO {db}.mapped VALUES (1)")
    found, deadline = [], time.monotonic() + 60
    with closing(stream(site_a, db)) as source:
        source.open(start)
        for _ in range(10):
            assert not source.read(100, 0.1)
        enough.set()
        while not is_behind(found, before):
            assert time.monotonic() < deadline
            found += source.read(100, 0.5)
    assert [e.kind for e in found].count(EntryKind.COMMIT) == 2


@pytest.mark.parametrize(
    ("earlier", "compressed"),
    [
        pytest.param(False, False, id="read"),
        pytest.param(True, False, id="read by another leader"),
        pytest.param(
            True,
            True,
            id="compressed",
            marks=pytest.mark.family("mysql", why="MariaDB compresses no whole transactions"),
        ),
    ],
)
def test_a_rollback_passes_where_no_row_of_a_mapped_table_was_prepared(
    site_a, db, earlier, compressed
):
    def at_once(*statements):
        execute(site_a, *statements)
        return position(site_a)

    xid = f"'{fresh_name()}','b',7"
    with site_a.connect() as connection, connection.cursor() as cursor:
        if compressed:
            cursor.execute("SET SESSION binlog_transaction_compression = ON")
        # An id may be used again and again.
        prepare(cursor, xid, f"{db}.mapped")
        cursor.execute(f"XA COMMIT {xid}")
        start = at_once(f"DELETE FROM {db}.mapped")
        prepare(cursor, xid, f"{db}.other")
        between = at_once("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        cursor.execute(f"XA ROLLBACK {xid}")
        found = read_to_the_end(site_a, db, between if earlier else start)
        assert [e.table for e in found if e.kind is EntryKind.ROWS][-1] == "mapped"

        start = at_once(f"DELETE FROM {db}.mapped")
        prepare(cursor, xid, f"{db}.mapped", f"{db}.other")
        between = at_once("FLUSH BINARY LOGS")
        cursor.execute(f"XA ROLLBACK {xid}")
    with pytest.raises(FatalError, match="took back rows") as caught:
        read_to_the_end(site_a, db, between if earlier else start)
    assert caught.value.where["position"].startswith(position(site_a).file)
