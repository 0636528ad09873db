"""Our own binlog client against bytes of a server, and how it is chosen."""

import socket
import ssl
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from mysql_event_stream import MesConnectionError, MesError, MesErrorCode

from setl.codec.binlog.transactions.gtid import MysqlGtids
from setl.errors import FatalError, TransientError
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog import dump as binlog_dump
from setl.systems.mysql.binlog.dump import DumpClient
from setl.systems.mysql.binlog.stream import BinlogStream, StreamLimits
from setl.systems.mysql.connection import MysqlEndpoint
from setl_embedded.certificates import CertificateAuthority
from tests.unit.codec.binlog_events import EventWriter, names

DB = MysqlEndpoint("db1", 3306, "u", "p")
POSITION = BinlogPosition("binlog.000007", 4)
SOURCE = "9d437549-9a4c-11ea-9659-9efc635af2ae"


class Server:
    """The far end of a connection that has logged in, which sends what it is told."""

    def __init__(self, version="8.4.3", checksum="CRC32", **settings):
        self.near, self.far = socket.socketpair()
        self._sock, self.server_version = self.near, version
        self.settings = {"binlog_checksum": checksum, **settings}
        self.asked = []

    # ---- what is used of pymysql's connection

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, statement, values=None):
        self.asked.append((statement, values))

    def fetchall(self):
        return self.settings.items()

    # ---- the protocol

    def command(self):
        size = int.from_bytes(self.far.recv(3), "little")
        assert self.far.recv(1) == b"\0"  # the first packet of a command
        return self.far.recv(size)

    def send(self, *packets, most=0xFFFFFF):
        for packet in packets:
            data, number = packet, 0
            while True:
                piece, data = data[:most], data[most:]
                self.far.sendall(struct.pack("<I", len(piece) | number << 24) + piece)
                number = (number + 1) % 256
                if len(piece) < most:
                    break


@pytest.fixture
def dumping(monkeypatch):
    servers = []

    def start(
        position: BinlogPosition | str = POSITION,
        *,
        event_bytes=1 << 20,
        silence=5.0,
        prepare=lambda _: None,
        **options,
    ):
        server = Server(**options)
        prepare(server)
        servers.append(server)
        monkeypatch.setattr(binlog_dump, "connect", lambda *_: server)
        client = DumpClient(DB, 4711, position, silence=silence, event_bytes=event_bytes)
        client.connect()
        client.start()
        return client, server

    yield start
    for server in servers:
        server.near.close()
        server.far.close()


def test_a_position_is_asked_for_as_servers_expect_it(dumping):
    _, server = dumping()
    assert server.command() == struct.pack("<BIHI", 0x12, 4, 0, 4711) + b"binlog.000007"
    _, server = dumping(version="10.11.6-MariaDB-log")
    # Without the flag with which MariaDB sends every statement beside its rows.
    assert server.command() == struct.pack("<BIHI", 0x12, 4, 0, 4711) + b"binlog.000007"


def test_a_position_beyond_four_gibibytes(dumping):
    position = BinlogPosition("binlog.000007", 5 << 30)
    _, server = dumping(position)
    expected = struct.pack("<BHII", 0x1E, 0, 4711, 13) + b"binlog.000007"
    assert server.command() == expected + struct.pack("<QI", 5 << 30, 0)
    with pytest.raises(FatalError, match="beyond 4 GiB"):
        dumping(position, version="10.11.6-MariaDB")


def test_a_start_by_gtids(dumping):
    text = f"{SOURCE}:1-5,{SOURCE}:tag:2-3"
    _, server = dumping(text)
    gtids = MysqlGtids(text).encoded()
    expected = struct.pack("<BHII", 0x1E, 4, 4711, 0) + struct.pack("<QI", 4, len(gtids)) + gtids
    assert server.command() == expected
    _, server = dumping("0-1-5", version="10.11.6-MariaDB")
    assert server.command() == struct.pack("<BIHI", 0x12, 4, 0, 4711)
    assert ("SET @slave_connect_state = %s", ("0-1-5",)) in server.asked


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
def test_events_come_whole_however_they_arrive(dumping, most):
    client, server = dumping()
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN"), writer.xid()]
    stream = b"".join(struct.pack("<I", len(e) + 1) + b"\0" + e for e in events)

    def write():
        for at in range(0, len(stream), most):
            server.far.sendall(stream[at : at + most])

    thread = threading.Thread(target=write)
    thread.start()
    got = []
    while len(got) < len(events):
        got += client.poll_batch()
    thread.join()
    assert [(r.data, r.checksum_enabled) for r in got] == [(e, True) for e in events]


def test_an_event_in_several_packets(dumping, monkeypatch):
    monkeypatch.setattr(binlog_dump, "_FULL_PACKET", 100)
    client, server = dumping()
    writer = EventWriter()
    # The last one is as long as a packet may be, so that an empty one follows.
    events = [*writer.opening(), writer.query("x" * 777), writer.event(29, b"y" * (99 - 23))]
    server.send(*(b"\0" + event for event in events), most=100)
    got = []
    while len(got) < len(events):
        got += client.poll_batch()
    assert [r.data for r in got] == events


class Rooms:
    """A socket that tells how much was asked for at a time."""

    def __init__(self, inner):
        self._inner, self.asked = inner, []

    def recv(self, size):
        self.asked.append(size)
        return self._inner.recv(size)

    def __getattr__(self, name):
        return getattr(self._inner, name)


def test_a_quiet_server_is_asked_for_little_and_a_busy_one_for_much(dumping):
    """Room for much is taken from the system for each question, which heartbeats need not pay."""

    def look(server):
        server._sock = Rooms(server.near)

    client, server = dumping(prepare=look)
    little, much = binlog_dump._LITTLE, binlog_dump._PIECE
    event = b"\0" + EventWriter().query("x" * (little - 100))
    server.send(b"\0" + EventWriter().xid())
    assert len(client.poll_batch()) == 1
    server.send(event, event, event)
    assert sum(len(client.poll_batch()) for _ in range(2)) == 3
    server.send(b"\0" + EventWriter().xid())
    assert len(client.poll_batch()) == 1
    server.send(b"\0" + EventWriter().xid())
    assert len(client.poll_batch()) == 1
    assert server._sock.asked == [little, little, much, much, little]


def test_checksums_are_those_of_the_file(dumping):
    client, server = dumping(checksum="CRC32")
    with_checksum, without = EventWriter(), EventWriter(checksum=False)
    first = [*with_checksum.opening(), with_checksum.xid()]
    then = [without.format_description(), without.xid()]
    server.send(*(b"\0" + e for e in [*first, *then]))
    got = client.poll_batch()
    assert [r.checksum_enabled for r in got] == [True, True, True, False, False]


def test_a_wrong_checksum_is_reported_behind_what_came_before_it(dumping):
    client, server = dumping()
    writer = EventWriter()
    good, bad = [*writer.opening(), writer.xid()], bytearray(writer.xid())
    bad[20] ^= 1
    server.send(*(b"\0" + e for e in [*good, bytes(bad)]))
    assert [r.data for r in client.poll_batch()] == good
    with pytest.raises(MesError, match="CRC32") as caught:
        client.poll_batch()
    assert caught.value.code == MesErrorCode.CHECKSUM


@pytest.mark.parametrize("kind", [27, 41])
def test_heartbeats_are_no_events(dumping, kind):
    client, server = dumping()
    server.send(b"\0" + EventWriter().event(kind, b"binlog.000007", artificial=True))
    (result,) = client.poll_batch()
    assert (result.data, result.is_heartbeat) == (None, True)


@pytest.mark.parametrize(
    ("packet", "said"),
    [
        (b"\xff\xd4\x04#HY000log event entry exceeded", "error 1236: log event entry exceeded"),
        (b"\xfe\0\0\2\0", "ended the stream"),
        (b"\0short", "too short"),
    ],
)
def test_how_a_server_ends_a_stream(dumping, packet, said):
    client, server = dumping()
    server.send(packet)
    with pytest.raises((MesError, MesConnectionError), match=said):
        client.poll_batch()


def test_a_connection_that_ends_or_is_silent_is_lost(dumping):
    client, server = dumping()
    server.far.close()
    with pytest.raises(TransientError, match="lost"):
        client.poll_batch()
    client, _ = dumping(silence=0.1)
    with pytest.raises(TransientError, match="lost"):
        client.poll_batch()


def test_silence_is_noticed_over_tls_too(dumping, tmp_path):
    """The system's limit of a plain connection is none for OpenSSL, which would ask again."""
    certificate, key = CertificateAuthority(tmp_path).issue("db1")
    offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    offered.load_cert_chain(certificate, key)
    any_server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    any_server.check_hostname, any_server.verify_mode = False, ssl.CERT_NONE
    with ThreadPoolExecutor(1) as other:

        def encrypt(server):
            far = other.submit(offered.wrap_socket, server.far, server_side=True)
            server._sock = server.near = any_server.wrap_socket(server.near)
            server.far = far.result()

        client, server = dumping(silence=0.5, prepare=encrypt)
        server.send(b"\0" + EventWriter().query("BEGIN"))
        assert len(client.poll_batch()) == 1
        ended = other.submit(client.poll_batch)
        try:
            with pytest.raises(TransientError, match="lost"):
                ended.result(30)
        finally:
            client.stop()


def test_events_beyond_the_limit_are_refused(dumping):
    client, server = dumping(event_bytes=1000)
    server.send(b"\0" + EventWriter().query("x" * 2000))
    with pytest.raises(FatalError, match=r"an event of 20\d\d bytes is larger than the 1000"):
        client.poll_batch()


@pytest.mark.parametrize(
    ("setting", "value"), [("binlog_format", "MIXED"), ("binlog_row_image", "MINIMAL")]
)
def test_a_server_that_does_not_log_whole_rows_is_refused(dumping, setting, value):
    with pytest.raises(MesConnectionError, match=f"{setting} must be .*, got {value}") as caught:
        dumping(**{setting: value})
    assert caught.value.code == MesErrorCode.VALIDATION


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("binlog_row_value_options", "PARTIAL_JSON"),
        ("binlog_transaction_compression", "ON"),
        ("binlog_row_image", "FULL_NODUP"),
    ],
)
def test_a_server_that_writes_what_is_decoded_all_the_same_is_read(dumping, setting, value):
    client, server = dumping(**{setting: value})
    server.send(b"\0" + EventWriter().xid())
    assert len(client.poll_batch()) == 1


class Replay:
    """A client that has some events, then nothing more."""

    arriving = 0

    def __init__(self, events):
        self._events = events
        self._stopped = threading.Event()

    def connect(self):
        pass

    def start(self):
        pass

    def deliver(self, to):
        events, self._events = self._events, []
        if not events:
            self._stopped.wait(30)
            raise MesError("stopped", MesErrorCode.DISCONNECTED)
        for event in events:
            to.read(event, checksum=True)

    def stop(self):
        self._stopped.set()

    def close(self):
        pass


def payload_of(rows, image_bytes):
    inner, writer = EventWriter(checksum=False), EventWriter()
    columns = [(3, b""), (15, struct.pack("<H", 60_000))]
    events = [inner.query("BEGIN"), inner.table_map(columns, optional=names("id", "v"))]
    for n in range(rows):
        image = (
            b"\0"
            + struct.pack("<iH", n, image_bytes)
            + struct.pack("<I", n * 7919) * (image_bytes // 4)
        )
        events.append(inner.rows(30, 2, [image]))
    return [*writer.opening(), writer.gtid(1), writer.payload([*events, inner.xid()])]


class Tables:
    """A server at which everything that is named is a table."""

    def is_table(self, schema, table):
        return True


def test_a_large_compressed_transaction_waits_for_its_reader(monkeypatch):
    """What waits to be read stays within the limit, though one event holds it all."""
    limits = StreamLimits(bytes=8 << 20)
    stream = BinlogStream(
        DB, 4711, POSITION, limits=limits, server=cast("Any", Tables()), cut=cast("Any", None)
    )
    monkeypatch.setattr(stream, "_client", Replay(payload_of(4000, 40_000)))
    stream.open()
    try:
        found = []
        while not found or found[-1].kind is not EntryKind.COMMIT:
            entries = stream.read(100_000, 10)
            assert entries
            assert sum(len(e.payload) for e in entries) < 50 << 20
            assert stream._waiting_bytes < 50 << 20
            found += [e._replace(payload=b"") for e in entries]
        assert len(found) == 4002
        offsets = [e.position.order for e in found]
        assert offsets == sorted(set(offsets))
    finally:
        stream.close()


class Prompted(Replay):
    """Sends one list of events after another, each when it is asked to."""

    def __init__(self, *pieces):
        super().__init__([])
        self._pieces = list(pieces)
        self.next = threading.Semaphore(0)

    def deliver(self, to):
        self.next.acquire()
        self._events = self._pieces.pop(0) if self._pieces else []
        super().deliver(to)


def test_what_is_absorbed_wakes_nobody_up_and_leaves_the_rest_in_order(monkeypatch):
    writer = EventWriter()
    opening = writer.opening()
    pieces = [[writer.gtid(n), writer.query("BEGIN"), writer.xid()] for n in (1, 2, 3)]
    stream = BinlogStream(
        DB,
        4711,
        POSITION,
        limits=StreamLimits(),
        server=cast("Any", Tables()),
        cut=cast("Any", None),
    )
    client = Prompted([*opening, *pieces[0]], *pieces[1:])
    monkeypatch.setattr(stream, "_client", client)
    offered, passes = [], iter([True, False])

    def absorb(entries):
        offered.append((entries[-1].position.offset, threading.current_thread().name))
        client.next.release()
        return next(passes)

    stream.open()
    try:
        client.next.release()
        [*_, second] = stream.read(2, 30, absorb)
        [*_, third] = stream.read(2, 30)
    finally:
        stream.close()
    (first, thread), (again, _) = offered  # not the third: nobody lets anything pass any more
    assert first < again == second.position.offset < third.position.offset
    assert thread == f"binlog-{DB}"
