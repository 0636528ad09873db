"""What a source promises that reads a binlog."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import pairwise

import pymysql
import pytest

from setl.channel.file import BinlogStart, GtidStart
from setl.codec.binlog.transactions.gtid import same_gtids
from setl.errors import ConfigurationError, FatalError, PositionLostError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.select.batching import BatchSettings
from setl.select.reader import SelectLoop
from setl.select.reading import SelectSettings
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.heartbeats.heartbeat import MysqlHeartbeat
from tests.contract.source_sides import BinlogSide, endpoint, kinds, read_rows, until_error
from tests.loading import create_system_tables
from tests.mysql_servers import dump_threads, reset_binlogs
from tests.waiting import eventually


@pytest.fixture
def binlog(site_a):
    made = BinlogSide(site_a)
    yield made
    made.close()


def test_binlog_a_start_by_gtid_becomes_a_position(binlog):
    binlog.write(2)
    source = binlog.source()
    source.open(binlog.origin)
    entries = read_rows(source, 4)
    middle = entries[3].position
    assert middle.gtid
    found = binlog.source(GtidStart(gtid=middle.gtid)).initial()
    assert found.order == middle.order
    assert same_gtids(found.gtid, middle.gtid)
    end = binlog.source(GtidStart(gtid=entries[-1].position.gtid)).initial()
    assert end.order == entries[-1].position.order
    unknown = re.sub(r"\d+$", "999999999", middle.gtid)
    with pytest.raises(PositionLostError, match="not executed"):
        binlog.source(GtidStart(gtid=unknown)).initial()
    with pytest.raises(ConfigurationError, match="not GTIDs"):
        binlog.source(GtidStart(gtid="nonsense")).initial()


def test_binlog_a_start_by_file_and_offset(binlog):
    binlog.write()
    origin = binlog.origin
    start = binlog.source(BinlogStart(file=origin.file, offset=origin.offset)).initial()
    assert start == origin
    with pytest.raises(PositionLostError, match="keeps"):
        binlog.source(BinlogStart(file="binlog.999999", offset=4)).initial()
    with pytest.raises(PositionLostError, match="ends at"):
        binlog.source(BinlogStart(file=origin.file, offset=2**31)).initial()


def test_binlog_a_start_by_file_and_offset_knows_its_gtids(binlog):
    """As long as nothing was read yet, they alone tell a replica where to go on."""
    binlog.execute("FLUSH BINARY LOGS")
    binlog.write()
    middle = binlog.source("latest").initial()
    binlog.write(2)
    assert middle.gtid
    start = binlog.source(BinlogStart(file=middle.file, offset=middle.offset)).initial()
    assert same_gtids(start.gtid, middle.gtid)
    binlog.execute("FLUSH BINARY LOGS")
    earlier = binlog.source(BinlogStart(file=middle.file, offset=middle.offset)).initial()
    assert same_gtids(earlier.gtid, middle.gtid)


def test_binlog_positions_cross_files(binlog):
    binlog.write()
    binlog.execute("FLUSH BINARY LOGS")
    binlog.write()
    source = binlog.source()
    source.open(binlog.origin)
    entries = read_rows(source, 4)
    files = [e.position.file for e in entries]
    assert len(set(files)) >= 2  # a file that is full ends by itself, too
    assert [e.position.order for e in entries] == sorted(e.position.order for e in entries)


def test_binlog_purged_files_are_a_lost_position(another_server, tmp_path):
    """Of a server whose files have names outside ASCII, so that each question names them."""
    with another_server(tmp_path, "own", 7, options=("--log-bin=журнал",)) as own:
        side = BinlogSide(own)
        side.write()
        side.execute("FLUSH BINARY LOGS")
        server = BinlogServer(endpoint(own))
        newest = server.latest().file
        assert newest.startswith("журнал.")
        side.write()
        source = side.source()
        source.open(side.origin)
        ends = [e.position for e in read_rows(source, 4) if e.kind is EntryKind.COMMIT]
        assert [end.file for end in ends] == [side.origin.file, newest]
        source.open(ends[0])
        assert kinds(read_rows(source, 2)) == "BRRC"
        for end, start in (
            (ends[0], BinlogStart(file=ends[0].file, offset=ends[0].offset)),
            (ends[1], GtidStart(gtid=ends[1].gtid)),
        ):
            found = side.source(start).initial()
            assert found.order == end.order
            assert same_gtids(found.gtid, end.gtid)

        def purged():
            # Refused while the server still needs the file to recover from a crash.
            side.execute(f"PURGE BINARY LOGS TO '{newest}'")
            return [file.name for file in server.files()] == [newest]

        eventually(purged, 20)
        with pytest.raises(PositionLostError, match=f"was purged; it keeps {newest}"):
            side.source().open(side.origin)
        with pytest.raises(PositionLostError, match="purged"):
            side.source(GtidStart(gtid=side.origin.gtid)).initial()
        with own.connect() as connection:
            reset_binlogs(connection)
        with pytest.raises(PositionLostError, match="reset"):
            side.source().open(BinlogPosition("binlog.000009", 500))
        side.close()


def test_binlog_two_readers_with_one_server_id(binlog):
    one, two = binlog.source(server_id=3_000_000_001), binlog.source(server_id=3_000_000_001)
    one.open(binlog.origin)
    binlog.write()
    read_rows(one, 2)  # the server ends the one that it knows already, and knows it by now
    two.open(binlog.origin)
    binlog.write()
    error, _ = until_error(one)
    assert isinstance(error, FatalError)
    assert "another reader uses server id 3000000001" in str(error)
    assert "`server_id`" in error.hint
    assert kinds(read_rows(two, 4)) == "BRRC" * 2


def test_binlog_a_refused_account(binlog):
    binlog.execute(
        "DROP USER IF EXISTS low@'%'", "CREATE USER low@'%' IDENTIFIED BY 'low-secret-9'"
    )
    server = binlog.server
    for user, password in (("low", "low-secret-9"), ("low", "wrong-secret-8")):
        source = MysqlBinlogSource(endpoint(server, user=user, password=password), 3_000_000_002)
        for call in (partial(source.open, binlog.origin), source.initial, source.latest):
            with pytest.raises(ConfigurationError) as raised:
                call()
            assert "secret" not in str(raised.value)
            assert str(server.port) in str(raised.value)


def test_binlog_an_account_that_may_ask_but_not_read(binlog):
    binlog.execute(
        "DROP USER IF EXISTS monitor@'%'",
        "CREATE USER monitor@'%' IDENTIFIED BY 'pw-7'",
        "GRANT REPLICATION CLIENT ON *.* TO monitor@'%'",
    )
    source = MysqlBinlogSource(endpoint(binlog.server, user="monitor", password="pw-7"), 3_000_003)
    source.open(binlog.origin)
    error, _ = until_error(source)
    assert isinstance(error, ConfigurationError)
    assert "REPLICATION SLAVE" in str(error)
    source.close()


def test_binlog_a_statement_instead_of_rows_is_delivered_behind_what_came_before(binlog):
    binlog.write()
    with binlog.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute(f"INSERT INTO {binlog.schema}.t (v) VALUES ('statement')")
    source = binlog.source()
    source.open(binlog.origin)
    found = read_rows(source, 2)
    eventually(lambda: found.extend(source.read(1000, 0.5)) or kinds(found).endswith("SC"), 40)
    assert kinds(found).startswith("BRRC")
    (statement,) = (entry for entry in found if entry.kind is EntryKind.STATEMENT)
    assert "'statement'" in statement.statement


def test_binlog_what_is_absorbed_is_taken_by_the_thread_that_reads_ahead(binlog):
    """As servers send it: each transaction comes whole, encrypted or not."""
    source = binlog.source()
    source.open(binlog.origin)
    offered, passing, written = [], True, 0

    def absorb(entries):
        offered.append((kinds(entries), threading.current_thread().name))
        return passing

    def goes_by():
        nonlocal written
        binlog.write(rows=1)
        written += 1
        # The last one too: it would be read, not passed by, if it came later.
        eventually(lambda: sum(found.count("C") for found, _ in offered) == written, 20)
        taken = [thread for _, thread in offered[-3:]]
        return len(taken) == 3 and all(thread.startswith("binlog-") for thread in taken)

    with ThreadPoolExecutor(1) as other:
        reading = other.submit(source.read, 100, 60.0, absorb)
        eventually(goes_by, 40, interval=0.2)
        assert {kind for kind, _ in offered[-3:]} == {"BRC"}
        passing = False
        binlog.write(rows=3)
        assert kinds(reading.result(60)) == "BRRRC"
    binlog.write(rows=2)
    assert kinds(read_rows(source, 2)) == "BRRC", "its own thread goes on"


def test_binlog_a_reader_that_is_slow_does_not_fill_the_memory(binlog):
    binlog.write(transactions=600, rows=5)
    source = binlog.source(entries=200, bytes=1 << 20)
    source.open(binlog.origin)
    stream = source._stream
    assert stream is not None
    eventually(lambda: stream._waiting_entries >= 200, 30)
    for _ in range(20):
        assert stream._waiting_entries <= 200 + 1024
        time.sleep(0.01)
    entries = read_rows(source, 3000, timeout=30)
    assert kinds(entries) == "BRRRRRC" * 600
    for before, after in pairwise(entries):
        assert before.position.order < after.position.order


def test_binlog_an_event_beyond_the_limit_is_an_error_and_not_a_hang(binlog):
    binlog.execute(
        f"CREATE TABLE {binlog.schema}.big (b LONGBLOB)",
        f"INSERT INTO {binlog.schema}.big VALUES (REPEAT('x', 3000000))",
    )
    source = binlog.source(event_bytes=1024 * 1024)
    source.open(binlog.origin)
    error, seconds = until_error(source)
    assert type(error) is FatalError, error
    assert seconds < 30
    fits = binlog.source()
    fits.open(binlog.origin)
    found = []
    while not any(e.table == "big" and e.rows for e in found):
        found += fits.read(100, 5)
    assert max(len(e.payload) for e in found) > 3_000_000


def test_binlog_heartbeats_come_back_through_the_stream(binlog):
    create_system_tables(binlog.server)
    source = binlog.source()
    source.open(source.latest())
    one, two = (
        MysqlHeartbeat(endpoint(binlog.server), number, interval=0.2, name="p")
        for number in (11, 12)
    )
    one.start()
    two.start()
    try:
        rows = [e for e in read_rows(source, 6) if e.kind is EntryKind.ROWS]
        # All six may be of one of them, and each counts a write after the row is there.
        eventually(lambda: min(each.status().written for each in (one, two)) > 1, 20)
    finally:
        one.stop()
        two.stop()
    # Each write changes the row, else the binlog would have none of it.
    assert {(e.schema, e.table) for e in rows} == {("retl", "xdual")}
    assert one.status().errors == two.status().errors == 0
    with binlog.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM retl.xdual WHERE id IN (11, 12)")
        assert cursor.fetchone() == (2,)


@pytest.mark.parametrize(
    ("age", "writes"), [("0", False), ("100", False), ("3700", True), ("-3600", True)]
)
def test_binlog_a_heartbeat_that_somebody_has_written_lately_will_do(binlog, age, writes):
    """Of several nodes, one is read; a time in the future is a clock's that was set back."""
    create_system_tables(binlog.server)
    with binlog.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("REPLACE INTO retl.xdual VALUES (13, NOW(6) - INTERVAL %s SECOND)", (age,))
        cursor.execute("SELECT X FROM retl.xdual WHERE ID = 13")
        before = cursor.fetchone()
        source = binlog.source()
        source.open(source.latest())
        other = MysqlHeartbeat(endpoint(binlog.server), 13, interval=7200, name="p")
        other.start()
        try:
            eventually(lambda: other.status().written, 30)
        finally:
            other.stop()
        binlog.write(rows=1)
        found = [e.table for e in read_rows(source, 1 + writes) if e.kind is EntryKind.ROWS]
        assert found.count("xdual") == writes
        assert len(found) == 1 + writes
        cursor.execute("SELECT X FROM retl.xdual WHERE ID = 13")
        assert (cursor.fetchone() != before) == writes
    assert other.status().errors == 0


def drop_readers(server):
    """End all connections that stream the binlog."""
    with server.connect() as connection, connection.cursor() as cursor:
        for number in dump_threads(server):
            with suppress(pymysql.OperationalError):  # it has just ended by itself
                cursor.execute(f"KILL {number}")


def test_binlog_every_row_is_applied_once_while_connections_are_lost(binlog):
    """The whole of Select: cut transactions, lost connections, rollbacks."""
    for rows in (1, 40, 3, 200, 1, 1, 75):
        binlog.write(rows=rows)
    source = binlog.source(entries=50)
    loop = SelectLoop(
        source, SelectSettings(BatchSettings(rows=20, wait=0.01), 3), epoch=1, name="p"
    )
    checkpoint, applied, errors, cut = Checkpoint(binlog.origin), [], 0, 0
    went_back_to = []
    loop.start(checkpoint)
    try:
        while len(applied) < 321:
            try:
                batch = loop.next_batch(60)
            except TransientError:
                went_back_to.append((loop.rollback(), checkpoint))
                errors += 1
                continue
            assert batch is not None
            if errors < 3 and len(applied) > errors * 90:
                drop_readers(binlog.server)
                eventually(lambda: loop.status().state == "failed" or loop.status().waiting, 30)
                loop.rollback()
                errors += 1
                continue
            applied += [e.payload for e in batch.entries if e.rows and not checkpoint.covers(e)]
            checkpoint = loop.ack(batch)
            cut += checkpoint.applied is not None
    finally:
        loop.stop()
    assert all(got == expected for got, expected in went_back_to)
    assert errors >= 3
    assert cut > 5
    whole = binlog.source()
    whole.open(binlog.origin)
    assert applied == [e.payload for e in read_rows(whole, 321) if e.rows]
