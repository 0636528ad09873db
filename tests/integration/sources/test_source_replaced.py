"""The source behind an address is not the one it was: rotated, purged, reset, replaced.

No entry may be lost without an error, and none may be read from a position that only looks the
same.
"""

import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from setl.channel.file import GtidStart
from setl.errors import PositionLostError, TransientError
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.model.table_load import TableLoad
from setl.select.batching import BatchSettings
from setl.select.identity import temporary_server_id
from setl.select.reader import SelectLoop
from setl.select.reading import SelectSettings
from setl.systems.mysql.binlog import source as binlog_source
from setl.systems.mysql.binlog.shared_reader import SharedReaders
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl_embedded import MariaDb, MySql
from tests.integration.pipelines import execute, fresh_name
from tests.integration.replicas import points_at
from tests.integration.streams_read import checkpoint_at, read_until
from tests.integration.table_loads.test_requested_loads import commits_that_hang
from tests.loading import endpoint_of
from tests.waiting import eventually

pytestmark = pytest.mark.servers

READER = 3_900_000_001


def source_of(server, start: Any = "latest", reader=READER):
    return MysqlBinlogSource(endpoint_of(server), reader, start)


@contextmanager
def opened(server, position, reader=READER):
    source = source_of(server, reader=reader)
    try:
        source.open(position)
        yield source
    finally:
        source.close()


def read_to_end(server, position, timeout=60.0):
    """Entries from a position to where the server's binlog ends now."""
    end = source_of(server).latest().order
    with opened(server, position) as source:
        return read_until(source, lambda found: found and found[-1].position.order >= end, timeout)


def ended(entry):
    return entry.kind in (EntryKind.COMMIT, EntryKind.DDL)


def transactions(entries):
    return [e.transaction for e in entries if ended(e)]


def row_counts(entries):
    counts = {}
    for entry in entries:
        if entry.kind is EntryKind.ROWS:
            counts[entry.transaction] = counts.get(entry.transaction, 0) + 1
    return counts


def newest(server):
    return execute(server, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0]


def insert(server, table, times=1, rows=1, domain=None):
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        if domain is not None:
            cursor.execute(f"SET SESSION gtid_domain_id = {domain}")
        for _ in range(times):
            for _ in range(rows):
                cursor.execute(f"INSERT INTO {table} (v) VALUES (UUID())")
            connection.commit()


def make_table(server):
    name = fresh_name("replaced")
    execute(
        server,
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40))",
    )
    return f"{name}.t"


def follow(replica, server):
    """Make a server the replica of another."""
    execute(
        replica,
        f"CHANGE MASTER TO MASTER_HOST='{server.host}', MASTER_PORT={server.port},"
        f" MASTER_USER='{server.user}', MASTER_PASSWORD='{server.password}',"
        " MASTER_USE_GTID=slave_pos",
        "START SLAVE",
    )


def caught_up(replica, server):
    gtid = newest(server)
    assert execute(replica, f"SELECT MASTER_GTID_WAIT('{gtid}', 30)") == ((0,),)
    # The replica's own binlog ends with it as well, not just its tables.
    eventually(lambda: newest(replica) == gtid, 30)


def commits(entries):
    return [i + 1 for i, entry in enumerate(entries) if entry.kind is EntryKind.COMMIT]


def binlog_place(checkpoint):
    assert isinstance(checkpoint.resume, BinlogPosition)
    return checkpoint.resume


class Pair:
    """A server and its replica, whose binlog holds the same transactions in other files."""

    def __init__(self, one, two):
        self.one, self.two = one, two
        self.table = make_table(one)
        self.origin = source_of(one).initial()

    def write(self, times=1, rows=1):
        insert(self.one, self.table, times, rows)

    def read(self):
        """Everything since this object was made, as the first server has it."""
        return read_to_end(self.one, self.origin)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replaced")
    with (
        MariaDb(folder / "one", "one", 201, gtid_domain_id=1) as one,
        MariaDb(
            folder / "two", "two", 202, gtid_domain_id=1, options=["--log-slave-updates=ON"]
        ) as two,
    ):
        # So that its files and offsets are others from the beginning.
        execute(two, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        follow(two, one)
        yield one, two


@pytest.fixture
def pair(servers):
    made = Pair(*servers)
    yield made
    execute(made.two, "START SLAVE")
    caught_up(made.two, made.one)


@pytest.fixture
def own(tmp_path):
    with MariaDb(tmp_path, "own", 203, gtid_domain_id=1) as server:
        yield server


# ---- a server that died while it wrote

LARGE = 40_000_000
"""Bytes of a transaction of which rows come before its end."""


def write_large(server, table):
    """A large transaction; returns where it begins, in the file that it is written to."""
    file = server.folder / "data" / binlogs(server)[-1]
    begin = file.stat().st_size
    execute(
        server,
        f"INSERT INTO {table} SELECT seq, REPEAT('x', 100000) FROM {table[:-2]}.seq_1_to_400",
    )
    return file, begin


def cut(file, begin, *, inside):
    """End a file where a server that died could have come to."""
    data, at = file.read_bytes(), begin
    while at < begin + LARGE * 0.9:
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    assert at < len(data)
    with file.open("r+b") as opened_file:
        opened_file.truncate(at - 100 if inside else at)


def test_what_a_server_was_writing_when_it_died_never_comes(own):
    """It leaves the beginning in its binlog, rolls it back, and begins another file."""
    table, large = make_table(own), make_table(own)
    execute(own, f"ALTER TABLE {large} MODIFY v LONGTEXT")
    begin = source_of(own).initial()
    for inside in (False, True):
        insert(own, table, times=2)
        position = write_large(own, large)
        own.kill()
        cut(*position, inside=inside)
        own.start()
        execute(own, f"TRUNCATE TABLE {large}")  # its rows are committed here, cut as it may be
    insert(own, table, times=2)
    write_large(own, large)
    own.restart()
    insert(own, table)
    entries = read_to_end(own, begin)
    found = {table: [], large: []}
    for entry in entries:
        if entry.kind is EntryKind.ROWS:
            found[f"{entry.schema}.t"].append(entry.transaction)
    assert len(found[table]) == 7
    assert len(found[large]) >= 400
    assert len(set(found[large])) == 1
    names = transactions(entries)
    assert len(set(names)) == len(names)


# ---- another server with the same transactions


def test_on_a_replica_reading_goes_on_behind_the_same_transaction(pair):
    pair.write(20)
    entries = pair.read()
    caught_up(pair.two, pair.one)
    source = source_of(pair.two)
    for index in (commits(entries)[4], commits(entries)[-1]):
        checkpoint = replace(checkpoint_at(entries, index), rows=77, timestamp=5.0)
        assert source_of(pair.one).locate(checkpoint) is checkpoint
        moved = source.locate(checkpoint)
        assert str(moved.resume) != str(checkpoint.resume)
        position, left = binlog_place(moved), binlog_place(checkpoint)
        assert position.gtid == left.gtid
        assert position.origin is not None
        assert position.origin.server == "202"
        assert (moved.generation, moved.rows, moved.timestamp) == (2, 77, 5.0)
        assert moved.applied is None
        assert source.locate(checkpoint) == moved  # asked again, the same
        assert source.locate(moved) is moved  # and that holds
        pair.write(2)
        rest = read_to_end(pair.one, checkpoint.resume)
        caught_up(pair.two, pair.one)
        found = read_to_end(pair.two, moved.resume)
        assert transactions(found) == transactions(rest)
        assert row_counts(found) == row_counts(rest)
        assert len(set(transactions(found))) == len(transactions(found)) > 1


def test_a_position_that_exists_on_the_replica_and_is_another_one(pair):
    """The dangerous one: nothing fails, and transactions between the two places are missing."""
    pair.write(12)
    entries = pair.read()
    caught_up(pair.two, pair.one)
    index = commits(entries)[5]
    left = entries[index - 1].position
    on_two = read_to_end(pair.two, BinlogPosition(binlogs(pair.two)[-1], 4))
    there = next(
        e.position for e in on_two if e.transaction == transactions(entries)[9] and ended(e)
    )
    assert there.gtid != left.gtid
    # Servers number files alike, and transactions of one size end at the same offsets.
    trap = replace(left, file=there.file, offset=there.offset)
    checkpoint = Checkpoint(trap)
    moved = source_of(pair.two).locate(checkpoint)
    assert moved.generation == 2
    rest = transactions(entries[index:])
    assert transactions(read_to_end(pair.two, moved.resume)) == rest
    # Whoever opens it all the same gets an error before any entry.
    with opened(pair.two, trap) as source, pytest.raises(TransientError, match="is not the file"):
        read_until(source, lambda found: found)


def binlogs(server):
    return [row[0] for row in execute(server, "SHOW BINARY LOGS")]


def test_a_transaction_that_was_cut_is_delivered_whole_again(pair):
    pair.write(3)
    pair.write(1, rows=40)
    pair.write(3)
    entries = pair.read()
    caught_up(pair.two, pair.one)
    large = next(t for t, n in row_counts(entries).items() if n == 40)
    inside = [i for i, e in enumerate(entries) if e.transaction == large][20]
    checkpoint = checkpoint_at(entries, inside)
    assert checkpoint.applied is not None
    assert source_of(pair.one).locate(checkpoint) is checkpoint
    moved = source_of(pair.two).locate(checkpoint)
    assert moved.applied is None
    assert moved.generation == 2
    found = read_to_end(pair.two, moved.resume)
    assert transactions(found)[0] == large
    assert row_counts(found)[large] == 40


def test_a_replica_without_the_transaction_that_is_applied_in_part_is_a_lost_position(pair):
    """It has all that came before; the target has rows that it never had."""
    pair.write(3)
    caught_up(pair.two, pair.one)
    execute(pair.two, "STOP SLAVE")
    pair.write(1, rows=40)
    entries = pair.read()
    inside = [i for i, e in enumerate(entries) if e.kind is EntryKind.ROWS][-20]
    checkpoint = checkpoint_at(entries, inside)
    assert checkpoint.applied is not None
    for known in (checkpoint, Checkpoint.from_json(checkpoint.to_json())):
        with pytest.raises(PositionLostError) as raised:
            source_of(pair.two).locate(known)
        text = str(raised.value)
        assert f"at least a part of {first_domain(newest(pair.one))}, which followed" in text
        assert "server 202 answers now, which lacks it" in text
        assert "setl load" in raised.value.hint
    # An earlier release did not keep which one it is.
    with pytest.raises(PositionLostError, match="which transaction it is was not kept"):
        source_of(pair.two).locate(replace(checkpoint, transaction=""))
    execute(pair.two, "START SLAVE")
    caught_up(pair.two, pair.one)
    assert source_of(pair.two).locate(checkpoint).applied is None


def test_a_replica_without_what_was_read_from_tables_is_a_lost_position(pair):
    """A load is ahead of the stream: its rows were read when the source had more."""
    pair.write(3)
    entries = pair.read()
    caught_up(pair.two, pair.one)
    execute(pair.two, "STOP SLAVE")
    pair.write(2)
    load = TableLoad("1", until=source_of(pair.one).latest())
    checkpoint = replace(checkpoint_at(entries, len(entries)), load=load)
    under_way = replace(checkpoint, load=TableLoad("1", read_to=source_of(pair.one).latest()))
    for known in (checkpoint, under_way, Checkpoint.from_json(under_way.to_json())):
        with pytest.raises(PositionLostError, match="which lacks it") as raised:
            source_of(pair.two).locate(known)
        assert first_domain(newest(pair.one)) in str(raised.value)
    # When the stream has come there, the checkpoint itself shows what is missing.
    ended = replace(checkpoint, load=replace(load, ended=5.0))
    assert source_of(pair.two).locate(ended).generation == 2
    execute(pair.two, "START SLAVE")
    caught_up(pair.two, pair.one)
    assert source_of(pair.two).locate(checkpoint).generation == 2


def test_going_back_to_the_first_server_is_another_move(pair):
    pair.write(5)
    entries = pair.read()
    caught_up(pair.two, pair.one)
    checkpoint = checkpoint_at(entries, commits(entries)[2])
    there = source_of(pair.two).locate(checkpoint)
    back = source_of(pair.one).locate(there)
    assert back.generation == 3
    assert back.resume == checkpoint.resume


def test_domains_that_are_interleaved_otherwise_lose_nothing(pair):
    """What one server has between two places may be on either side of one on the other."""
    caught_up(pair.two, pair.one)  # the table's creation is of the first domain
    execute(pair.two, "STOP SLAVE")
    insert(pair.one, pair.table, 2)
    insert(pair.one, pair.table, 2, domain=11)
    entries = pair.read()
    position = entries[commits(entries)[-1] - 1].position
    insert(pair.one, pair.table, 2)
    insert(pair.one, pair.table, 2, domain=11)
    # The replica gets the second domain's transactions first.
    stop_at = ",".join(sorted({*newest(pair.one).split(",")} - {first_domain(newest(pair.one))}))
    first = first_domain(execute(pair.two, "SELECT @@GLOBAL.gtid_slave_pos")[0][0])
    execute(pair.two, f"START SLAVE UNTIL master_gtid_pos = '{first},{stop_at}'")
    eventually(
        lambda: execute(pair.two, "SELECT @@GLOBAL.gtid_slave_pos")[0][0].endswith(
            stop_at.split(",")[-1]
        ),
        20,
    )
    eventually(lambda: not slave_runs(pair.two), 20)
    execute(pair.two, "START SLAVE")
    end = newest(pair.one)
    assert execute(pair.two, f"SELECT MASTER_GTID_WAIT('{end}', 30)") == ((0,),)
    moved = source_of(pair.two).locate(Checkpoint(position))
    with opened(pair.one, position) as one, opened(pair.two, moved.resume) as two:
        rest = set(transactions(read_until(one, lambda found: len(transactions(found)) >= 4)))
        found = transactions(read_until(two, lambda found: rest <= set(transactions(found))))
    assert len(rest) == 4
    assert len(found) > 4  # the rest, and what cannot be distinguished by one place
    assert source_of(pair.two).locate(moved) is moved


def first_domain(gtids):
    return next(g for g in gtids.split(",") if g.startswith("1-"))


def slave_runs(server):
    """Whether any of its threads runs; START SLAVE would not start that one again."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SLAVE STATUS")
        names = [column[0] for column in cursor.description]
        status = dict(zip(names, cursor.fetchone(), strict=True))
        return (status["Slave_IO_Running"], status["Slave_SQL_Running"]) != ("No", "No")


GTIDS = "11111111-2222-3333-4444-555555555555"


def test_on_a_mysql_replica_reading_goes_on_behind_each_transaction(tmp_path):
    """With tags, gaps and transactions that hold nothing, all in files of its own."""
    with MySql(tmp_path / "one", "one", 201) as one, MySql(tmp_path / "two", "two", 202) as two:
        execute(two, "SET GLOBAL replica_parallel_workers = 1", "FLUSH BINARY LOGS")
        points_at(two, one)
        execute(two, "START REPLICA")
        table = make_table(one)
        origin = source_of(one).initial()
        for name in (f"{GTIDS}:7", f"{GTIDS}:tag:3", "AUTOMATIC:mine", f"{GTIDS}:4", "AUTOMATIC"):
            row = f"INSERT INTO {table} (v) VALUES (UUID()), (UUID())"
            execute(one, f"SET gtid_next = '{name}'", "BEGIN", row, "COMMIT")
        execute(one, f"SET gtid_next = '{GTIDS}:tag:9'", "BEGIN", "COMMIT")
        insert(one, table, rows=3)
        execute(one, "FLUSH BINARY LOGS", f"ALTER TABLE {table} ADD n INT", f"TRUNCATE {table}")
        entries = read_to_end(one, origin)
        assert len(transactions(entries)) == 9
        executed = binlog_place(Checkpoint(source_of(one).latest())).gtid
        waited = execute(two, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60)")
        assert waited == ((0,),)
        execute(one, f"INSERT INTO {table} (v) VALUES ('the last')")
        eventually(lambda: execute(two, f"SELECT 1 FROM {table}"), 60)
        entries = read_to_end(one, origin)
        for index in (i + 1 for i, entry in enumerate(entries) if ended(entry)):
            checkpoint = Checkpoint(entries[index - 1].position)
            moved = source_of(two).locate(checkpoint)
            rest = entries[index:]
            found = read_to_end(two, moved.resume) if rest else []
            assert transactions(found) == transactions(rest)
            assert row_counts(found) == row_counts(rest)
        # Of a transaction that it lacks, a part may be applied.
        execute(two, "STOP REPLICA")
        insert(one, table, rows=9)
        later = read_to_end(one, entries[-1].position)
        inside = [i for i, e in enumerate(later) if e.kind is EntryKind.ROWS][4]
        tracker = CheckpointTracker(Checkpoint(entries[-1].position))
        tracker.advance_all(later[:inside])
        assert tracker.checkpoint.applied is not None
        with pytest.raises(PositionLostError, match="which lacks it"):
            source_of(two).locate(tracker.checkpoint)
        # A MySQL whose binlogs are reset ends the streams that it has.
        with opened(one, later[-1].position) as source:
            execute(one, "RESET BINARY LOGS AND GTIDS", f"INSERT INTO {table} (v) VALUES ('new')")
            with pytest.raises(PositionLostError, match="were reset") as raised:
                read_until(source, lambda found: found)
            assert "setl position reset" in raised.value.hint


# ---- another server without them


def test_a_replica_that_lacks_transactions_is_a_lost_position(pair):
    pair.write(3)
    caught_up(pair.two, pair.one)
    execute(pair.two, "STOP SLAVE")
    pair.write(3)
    entries = pair.read()
    checkpoint = checkpoint_at(entries, len(entries))
    gtid = first_domain(newest(pair.one))
    with pytest.raises(PositionLostError) as raised:
        source_of(pair.two).locate(checkpoint)
    text = str(raised.value)
    assert f"of server 201, and server 202 answers now, which lacks GTIDs {gtid}" in text
    assert "still catches up" in raised.value.hint
    assert "setl position reset" in raised.value.hint
    execute(pair.two, "START SLAVE")
    caught_up(pair.two, pair.one)
    assert source_of(pair.two).locate(checkpoint).generation == 2


def test_without_gtids_another_server_is_a_lost_position(pair):
    pair.write(3)
    entries = pair.read()
    caught_up(pair.two, pair.one)
    known = replace(entries[commits(entries)[0] - 1].position, gtid="")
    assert source_of(pair.one).locate(Checkpoint(known)).resume is known
    with pytest.raises(PositionLostError, match="without GTIDs it cannot be found there"):
        source_of(pair.two).locate(Checkpoint(known))


def test_a_checkpoint_stored_without_origin_is_taken_for_what_it_is(pair):
    pair.write(5)
    entries = pair.read()
    caught_up(pair.two, pair.one)
    position = entries[commits(entries)[1] - 1].position
    old = Checkpoint.from_json(Checkpoint(replace(position, origin=None)).to_json())
    assert source_of(pair.one).locate(old) is old
    source = source_of(pair.one)
    source.open(old.resume)
    found = read_until(source, lambda found: found)
    assert found[0].position.origin.server == "201"  # from here on it is known
    source.close()
    # Its GTIDs tell a wrong place all the same, but not what became of the server.
    with pytest.raises(PositionLostError):
        source_of(pair.two).locate(old)


# ---- the same server


def purge_all(server):
    """Keep the newest binlog only."""
    execute(server, "FLUSH BINARY LOGS")
    keep = binlogs(server)[-1]

    def purged():
        # Refused while the server still needs a file to recover from a crash.
        execute(server, f"PURGE BINARY LOGS TO '{keep}'")
        return binlogs(server) == [keep]

    eventually(purged, 20)
    return keep


PURGED = "of server 201, and server 204 answers now: the source has purged what follows the GTIDs"


def test_purged_is_lost_on_this_server_and_on_another(servers, tmp_path):
    one, _ = servers
    pair = Pair(*servers)
    with MariaDb(
        tmp_path, "three", 204, gtid_domain_id=1, options=["--log-slave-updates=ON"]
    ) as three:
        follow(three, one)
        pair.write(5)
        entries = pair.read()
        checkpoint = checkpoint_at(entries, commits(entries)[1])
        caught_up(three, one)
        assert source_of(three).locate(checkpoint).generation == 2
        # Read to the end there, nothing that was purged is needed.
        end = checkpoint_at(entries, len(entries))
        keep = purge_all(three)
        moved = source_of(three).locate(end)
        assert binlog_place(moved).file == keep
        with pytest.raises(PositionLostError, match=PURGED):
            source_of(three).locate(checkpoint)
        # Back on a position of its own, it is plainly purged.
        here = replace(
            checkpoint,
            resume=replace(checkpoint.resume, origin=moved.resume.origin, file="binlog.000001"),
        )
        with pytest.raises(PositionLostError, match=r"binlog\.000001 was purged; it keeps"):
            source_of(three).locate(here)


def test_reset_is_lost_even_when_files_offsets_and_gtids_come_again(own):
    table = make_table(own)
    start = BinlogPosition(binlogs(own)[0], 4)
    insert(own, table, 10)
    entries = read_to_end(own, start)
    checkpoint = checkpoint_at(entries, commits(entries)[5])
    assert source_of(own).locate(checkpoint) is checkpoint
    time.sleep(1.1)  # a file begun in the same second is distinguished by its contents alone
    execute(own, "RESET MASTER")
    with pytest.raises(PositionLostError, match="binlogs were reset"):
        source_of(own).locate(checkpoint)
    insert(own, table, 30)
    again = read_to_end(own, start)
    assert binlog_place(checkpoint).gtid in transactions(again)
    with pytest.raises(PositionLostError, match="was begun by server 203 at") as raised:
        source_of(own).locate(checkpoint)
    assert "setl position reset" in raised.value.hint
    # Its number was given again, to another transaction.
    there = next(e for e in again if e.position.gtid == binlog_place(checkpoint).gtid and ended(e))
    with pytest.raises(PositionLostError, match="was begun by server 203 at"):
        source_of(own).locate(Checkpoint(replace(there.position, origin=checkpoint.resume.origin)))
    with pytest.raises(PositionLostError, match="ends there, and not"):
        source_of(own).locate(Checkpoint(replace(there.position, gtid="1-203-2")))
    with pytest.raises(PositionLostError, match="no event begins there"):
        source_of(own).locate(Checkpoint(replace(there.position, offset=there.position.offset + 1)))
    assert source_of(own).locate(Checkpoint(there.position)).resume is there.position


def test_a_reset_is_noticed_while_a_stream_is_open(own, monkeypatch):
    """The server goes on with heartbeats on a stream of a binlog that is no more."""
    monkeypatch.setattr(binlog_source, "_QUIET", 1.0)
    table = make_table(own)
    insert(own, table, 10)
    with opened(own, BinlogPosition(binlogs(own)[0], 4)) as source:
        entries = read_until(source, lambda found: len(transactions(found)) >= 12)
        time.sleep(1.1)
        execute(own, "RESET MASTER")
        insert(own, table, 2)
        with pytest.raises(TransientError, match="sends nothing and its binlog ends at"):
            read_until(source, lambda found: found)
    with pytest.raises(PositionLostError, match="were reset"):
        source_of(own).locate(checkpoint_at(entries, len(entries)))


def pass_on(one, other, bytes_a_second=0):
    with suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
            if bytes_a_second:
                time.sleep(len(data) / bytes_a_second)
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def narrow_line(server, bytes_a_second):
    """A port at which a server is reached that answers slowly."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    far = socket.create_connection((server.host, server.port))
                    for way in ((client, far), (far, client, bytes_a_second)):
                        threading.Thread(target=pass_on, args=way, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("shared", [False, True])
def test_an_event_that_is_long_on_its_way_is_no_silence(own, monkeypatch, shared):
    """Nothing whole comes for four times as long as a stream may be quiet."""
    monkeypatch.setattr(binlog_source, "_QUIET", 1.0)
    table = make_table(own)
    execute(own, f"ALTER TABLE {table} ADD long_text LONGTEXT")
    with narrow_line(own, 2_000_000) as port:
        readers = SharedReaders() if shared else None
        source = MysqlBinlogSource(
            replace(endpoint_of(own), port=port), temporary_server_id(), shared=readers
        )
        source.open(source.initial())
        try:
            while shared and not source.shared():
                insert(own, table)
                source.read(100, 0.2)
            execute(own, f"INSERT INTO {table} (id, long_text) VALUES (9, REPEAT('x', 8000000))")
            eventually(lambda: any(len(e.payload) > 8_000_000 for e in source.read(100, 0.2)), 60)
        finally:
            source.close()


def test_a_stream_at_rest_stays_at_rest(own, monkeypatch):
    monkeypatch.setattr(binlog_source, "_QUIET", 0.2)
    table = make_table(own)
    insert(own, table, 1)
    source = source_of(own)
    source.open(source.initial())
    for _ in range(6):
        assert source.read(10, 0.3) == ()
    execute(own, "FLUSH BINARY LOGS")
    found = read_until(
        source, lambda found: found and found[-1].position.order == source.latest().order
    )
    for _ in range(6):  # MariaDB adds an event of its own some time later
        found += source.read(10, 0.3)
    assert {e.kind for e in found} == {EntryKind.HEARTBEAT}
    source.close()


def test_every_boundary_of_a_stream_is_found_to_be_right(own):
    """No false alarm: DDL, rotations, restarts, empty transactions, two domains, statements."""
    table = make_table(own)
    start = BinlogPosition(binlogs(own)[0], 4)
    schema = table.partition(".")[0]
    execute(own, f"CREATE TABLE {schema}.held (id INT PRIMARY KEY) ENGINE=MEMORY")
    for number in range(3):
        insert(own, table, 2, rows=3)
        execute(
            own,
            "SET SESSION binlog_format = STATEMENT",
            f"INSERT INTO {schema}.held VALUES ({number})",
            f"UPDATE {table} SET id = id + 1000000 WHERE id < 0",
        )
        execute(own, f"ALTER TABLE {table} ADD c{number} INT", f"ANALYZE TABLE {table}")
        execute(own, f"CREATE TABLE {schema}.copy{number} AS SELECT * FROM {table}")
        insert(own, table, 1, domain=9)
        execute(own, "FLUSH BINARY LOGS")
    own.stop()
    own.start()
    execute(own, f"SELECT * FROM {schema}.held")
    insert(own, table, 2)
    source = source_of(own)
    source.open(replace(start, origin=None))
    entries = read_until(
        source, lambda found: found and found[-1].position.order == source.latest().order
    )
    source.close()
    tracker, positions = CheckpointTracker(Checkpoint(start)), set()
    for entry in entries:
        positions.add(tracker.advance(entry).resume)
    assert len(positions) > 20
    for position in positions:
        assert source_of(own).locate(Checkpoint(position)).resume is position
    # The restart has emptied the table, which the server says in a statement that names it alone.
    of_held = [e for e in entries if re.search(r"`held`|held VALUES", e.statement)]
    assert [e.kind for e in of_held] == [*[EntryKind.STATEMENT] * 3, EntryKind.DDL]
    assert of_held[-1].statement.startswith("TRUNCATE TABLE")
    assert (of_held[-1].schema, of_held[-1].table) == (schema, "held")


def test_a_commit_that_waits_for_a_replica_is_not_lost(site_a):
    """MySQL has it in the binlog, and setl may have applied it, while nobody sees it executed."""
    table = make_table(site_a)
    source = source_of(site_a)
    source.open(source.initial())
    with ThreadPoolExecutor(1) as pool, ExitStack() as hanging:
        hanging.enter_context(commits_that_hang(site_a))
        committing = pool.submit(insert, site_a, table)
        entries = read_until(source, commits)
        source.close()
        checkpoint = checkpoint_at(entries, commits(entries)[0])
        assert not committing.done()
        if isinstance(site_a, MySql):
            with pytest.raises(TransientError, match="theirs may be among them"):
                source_of(site_a).locate(checkpoint)
        hanging.close()
        committing.result(60)
    assert source_of(site_a).locate(checkpoint) is checkpoint


# ---- rotation under load


def newer(server, gtids):
    """What the server's binlog ends with, if that is not these."""
    now = newest(server)
    return now if now != gtids else ""


def test_rotations_under_load_lose_and_reorder_nothing(own):
    tables = [make_table(own) for _ in range(2)]
    source = source_of(own)
    start = source.initial()
    stopped, rotations, written = threading.Event(), 0, newest(own)

    def write(table):
        while not stopped.is_set():
            insert(own, table, 10, rows=2)

    writers = [threading.Thread(target=write, args=(table,)) for table in tables]
    loop = SelectLoop(
        source, SelectSettings(BatchSettings(rows=50, wait=0.01)), epoch=1, name="rotating"
    )
    checkpoint, entries, interrupted = Checkpoint(start), [], 0
    loop.start(checkpoint)
    for writer in writers:
        writer.start()
    try:
        deadline = time.monotonic() + 120
        while rotations < 40:
            assert time.monotonic() < deadline
            # Each file has a transaction, however slow the writers are.
            written = eventually(lambda before=written: newer(own, before), 20)
            execute(own, "FLUSH BINARY LOGS")
            rotations += 1
            batch = loop.next_batch(5)
            if batch is None:
                continue
            if rotations >= 10 * (interrupted + 1):
                # A load fails: read again from what is acknowledged, perhaps files back.
                assert source_of(own, reader=READER + 1).locate(checkpoint) is checkpoint
                loop.rollback()
                interrupted += 1
                continue
            entries += [e for e in batch.entries if not checkpoint.covers(e)]
            checkpoint = loop.ack(batch)
        stopped.set()
        for writer in writers:
            writer.join()
        end = newest(own)
        while not entries or entries[-1].position.gtid != end:
            assert time.monotonic() < deadline
            batch = loop.next_batch(5)
            if batch is None:
                continue
            entries += [e for e in batch.entries if not checkpoint.covers(e)]
            checkpoint = loop.ack(batch)
    finally:
        stopped.set()
        loop.stop()
    assert interrupted >= 3
    sequence = [int(gtid.split("-")[2]) for gtid in transactions(entries)]
    first = int(binlog_place(Checkpoint(start)).gtid.split("-")[2])
    assert sequence == list(range(first + 1, first + 1 + len(sequence)))
    stored = sum(execute(own, f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables)
    assert sum(e.kind is EntryKind.ROWS for e in entries) == stored
    assert len({e.position.file for e in entries}) > 30


def test_a_start_by_gtid_of_another_server_with_that_number_is_refused(pair):
    pair.write(3)
    gtid = first_domain(newest(pair.one))
    domain, _, number = gtid.split("-")
    with pytest.raises(PositionLostError, match="has not executed the GTIDs 1-999-"):
        source_of(pair.one, GtidStart(gtid=f"{domain}-999-{number}")).initial()
