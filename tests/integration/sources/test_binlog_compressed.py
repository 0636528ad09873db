"""What servers write when they compress their binlogs, read by a source as a pipeline has one."""

import threading
import time
import uuid

import pytest
from mysql_event_stream import MesConnectionError

from setl.channel.file import GtidStart
from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import TransientError
from setl.model.change import Op
from setl.model.entry import EntryKind
from setl.systems.mysql.binlog.dump import DumpClient
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from tests.integration.every_type import TYPES, run, sandbox_database
from tests.integration.type_catalogue import known
from tests.loading import endpoint_of
from tests.mysql_servers import compressed_binlog, is_mariadb
from tests.unit.codec.binlog_server import (
    comparable,
    decoded,
    end_of,
    raw_events,
    selected,
    utc_text,
)


@pytest.fixture(scope="module")
def sandbox(site_a):
    with sandbox_database(site_a) as sandbox:
        yield sandbox


def entries_until(source, end):
    """Entries from where the source was opened to a position."""
    found, deadline = [], time.monotonic() + 60
    while time.monotonic() < deadline:
        found += source.read(1000, 0.5)
        if found and found[-1].position.order >= end.order:
            return found
    raise AssertionError(f"not at {end} but at {found[-1:]}")


def read_again(server, start, end):
    """What a source reads that has just been made; `start` may be GTIDs."""
    by_gtid = isinstance(start, GtidStart)
    source = MysqlBinlogSource(endpoint_of(server), 4720, start if by_gtid else "latest")
    try:
        source.open(source.initial() if by_gtid else start)
        return entries_until(source, end)
    finally:
        source.close()


def test_compressed_rows_and_statements(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.`squeezed`"
    start = end_of(connection)
    with compressed_binlog(connection):
        run(
            connection,
            f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(2000), n INT) /* {'x' * 300} */",
            f"INSERT INTO {table} VALUES (1, REPEAT('a', 1000), NULL), (2, 'b', 2), (3, 'c', 3)",
            f"UPDATE {table} SET v = REPEAT('é', 900), n = NULL WHERE id < 3",
            f"UPDATE {table} SET id = id + 10 WHERE id = 3",
            f"DELETE FROM {table} WHERE id = 2",
        )
        end = end_of(connection)
        entries = read_again(site_a, start, end)
        kinds = {e[4] for e, _ in dumped(site_a, start, end)}
        assert ({165, 166, 167, 168} if is_mariadb(connection) else {40}) <= kinds
    ddl = [e for e in entries if e.kind is EntryKind.DDL]
    assert [(e.schema, e.table) for e in ddl] == [(schema, "squeezed")]
    rows = [r for _, r in decoded(BinlogRowCodec(), entries)]
    assert [r.op for r in rows] == [Op.INSERT, Op.UPDATE, Op.UPDATE, Op.DELETE]
    long = "é" * 900
    assert [image for r in rows for image in r.images] == [
        (None, (1, "a" * 1000, None)),
        (None, (2, "b", 2)),
        (None, (3, "c", 3)),
        ((1, "a" * 1000, None), (1, long, None)),
        ((2, "b", 2), (2, long, None)),
        ((3, "c", 3), (13, "c", 3)),
        ((2, long, None), None),
    ]


def test_every_type_compressed(site_a, sandbox):
    connection, schema = sandbox
    run(connection, "SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'")
    with compressed_binlog(connection), utc_text(site_a) as cursor:
        for name, (definition, values) in known(TYPES, connection).items():
            table = f"{schema}.`z_{name}`"
            column = f"f_{name}" if definition == "FLOAT" else f"c_{name}"
            run(
                connection,
                f"CREATE TABLE {table} (id INT PRIMARY KEY, `{column}` {definition}, last INT)",
            )
            start = end_of(connection)
            rows = ", ".join(f"({i}, {v}, 7)" for i, v in enumerate(values))
            run(connection, f"INSERT INTO {table} VALUES {rows}")
            end = end_of(connection)
            codec, entries = BinlogRowCodec(), _entries(dumped(site_a, start, end), start)
            found = [rows for _, rows in decoded(codec, entries)]
            stored = found[0].schema
            got = [comparable(stored, after) for rows in found for _, after in rows.images]
            assert got == selected(cursor, table, stored), name


def test_the_number_of_compressed_rows_is_estimated(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.counted"
    with compressed_binlog(connection):
        run(connection, f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(50))")
        start = end_of(connection)
        rows = ",".join(f"({i}, 'row {i}')" for i in range(5000))
        run(connection, f"INSERT INTO {table} VALUES {rows}", f"UPDATE {table} SET v = 'other'")
        entries = _entries(dumped(site_a, start, end_of(connection)), start)
    estimated = sum(e.rows for e in entries if e.kind is EntryKind.ROWS)
    assert 10_000 * 0.8 < estimated < 10_000 * 1.2


def test_a_start_by_gtid_while_the_server_compresses(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.by_gtid"
    with compressed_binlog(connection):
        run(connection, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
        run(connection, f"INSERT INTO {table} VALUES (1)")
        with connection.cursor() as cursor:
            executed = "gtid_binlog_pos" if is_mariadb(connection) else "gtid_executed"
            cursor.execute(f"SELECT @@GLOBAL.{executed}")
            (gtid,) = cursor.fetchone()
        run(connection, f"INSERT INTO {table} VALUES (2)")
        end = end_of(connection)
        entries = read_again(site_a, GtidStart(gtid=gtid), end)
    rows = [r.images for _, r in decoded(BinlogRowCodec(), entries) if r.schema.table == "by_gtid"]
    assert rows == [[(None, (2,))]]


def test_our_own_client_gets_the_same_events_as_the_native_one(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.same"
    start = end_of(connection)
    run(
        connection,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, v LONGTEXT)",
        f"INSERT INTO {table} VALUES (1, REPEAT('x', 1000000)), (2, '')",
        "FLUSH BINARY LOGS",
        f"UPDATE {table} SET v = 'y'",
    )
    end = end_of(connection)
    assert dumped(site_a, start, end) == without_statements(site_a, start, end)


def test_events_larger_than_a_packet(site_a, sandbox):
    connection, schema = sandbox
    table = f"{schema}.large"
    run(connection, f"CREATE TABLE {table} (id INT PRIMARY KEY, v LONGBLOB)")
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.max_allowed_packet")
        (packet,) = cursor.fetchone()
    run(connection, "SET GLOBAL max_allowed_packet = 67108864")
    try:
        with site_a.connect() as other:
            start = end_of(other)
            run(other, f"INSERT INTO {table} VALUES (1, REPEAT('x', 20000000))")
            end = end_of(other)
        events = dumped(site_a, start, end)
        assert max(len(e) for e, _ in events) > 1 << 24
        assert events == without_statements(site_a, start, end)
        small = DumpClient(endpoint_of(site_a), 4721, start, silence=10, event_bytes=1 << 20)
        with pytest.raises(Exception, match="larger than the 1048576 that are accepted"):
            _dump(small, end)
    finally:
        run(connection, f"SET GLOBAL max_allowed_packet = {packet}")


def test_a_position_that_is_not_there(site_a, sandbox):
    connection, _ = sandbox
    position = end_of(connection)
    lost = DumpClient(
        endpoint_of(site_a),
        4722,
        type(position)("mariadb-bin.999999", 4),
        silence=10,
        event_bytes=1 << 20,
    )
    with pytest.raises(MesConnectionError, match="error 1236: Could not find first log file"):
        _dump(lost, position)


def test_stopping_wakes_whoever_waits(site_a, sandbox):
    connection, _ = sandbox
    position = end_of(connection)
    client = DumpClient(endpoint_of(site_a), 4723, position, silence=30, event_bytes=1 << 20)
    try:
        client.connect()
        client.start()
        threading.Timer(0.5, client.stop).start()  # not before: it would find nothing to end
        began = time.monotonic()
        with pytest.raises(TransientError, match="lost"):
            _wait(client, 60)
        assert time.monotonic() - began < 25
    finally:
        client.close()


def _wait(client, seconds):
    """Wait for what a server sends, which may be heartbeats alone."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        client.poll_batch()


def without_statements(server, start, end):
    """The same by the native client, which asks MariaDB for the statements of rows too."""
    return [found for found in raw_events(server, start, end) if found[0][4] != 160]


def dumped(server, start, end):
    """(event, checksum) of everything between two positions, by our own client."""
    identity = 4724 + uuid.uuid4().int % 1000
    client = DumpClient(endpoint_of(server), identity, start, silence=20, event_bytes=1 << 28)
    return _dump(client, end)


def _dump(client, end):
    events, file = [], ""
    try:
        client.connect()
        client.start()
        while True:
            for result in client.poll_batch():
                if result.data is None:
                    continue
                events.append((result.data, result.checksum_enabled))
                if result.data[4] == 4:
                    file = result.data[27 : -4 if result.checksum_enabled else None].decode()
                elif (
                    file == end.file and int.from_bytes(result.data[13:17], "little") >= end.offset
                ):
                    return events
    finally:
        client.close()


def _entries(events, start):
    reader = BinlogHeaderReader(start)
    return [e for event, checksum in events for e in reader.read(event, checksum=checksum)]
