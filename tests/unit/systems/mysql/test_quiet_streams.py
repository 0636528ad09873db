"""One thread receives for quiet streams; their own ones rest, and lose nothing by it."""

import socket
import ssl
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from mysql_event_stream import MesError

from setl.errors import TransientError
from setl.model.entry import EntryKind
from setl.systems.mysql.binlog import dump as binlog_dump
from setl.systems.mysql.binlog.dump import DumpClient
from setl.systems.mysql.binlog.quick_events import takes_no_time
from setl.systems.mysql.binlog.quiet_streams import QuietStreams
from setl.systems.mysql.binlog.stream import BinlogStream, StreamLimits
from setl_embedded.certificates import CertificateAuthority
from tests.unit.codec.binlog_events import EventWriter, one_row
from tests.unit.systems.mysql.test_binlog_dump import DB, PLACE, Server, Tables
from tests.waiting import eventually


@pytest.fixture
def pair():
    near, far = socket.socketpair()
    with near, far:
        yield near, far


@pytest.fixture
def resting(pair):
    """What a stream says to each call, and the thread that rests meanwhile."""
    near, far = pair
    quiet, said, heard = QuietStreams(), [], []

    def receive():
        heard.append((near.recv(100), threading.current_thread().name))
        answer = said.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with ThreadPoolExecutor() as threads:

        def rest(*answers, silence=30.0):
            said[:] = answers
            return threads.submit(quiet.rest, near.fileno(), receive, silence)

        yield rest, far, heard, quiet


def test_a_thread_rests_until_its_stream_is_quiet_no_more(resting):
    rest, far, heard, quiet = resting
    ended = rest(True, True, False)
    for number in range(3):
        assert not ended.done()
        far.sendall(b"x%d" % number)
        eventually(lambda number=number: len(heard) == number + 1, 20)
    assert ended.result(20) is None
    assert heard == [(b"x%d" % number, "quiet-streams") for number in range(3)]
    far.sendall(b"more")
    again = rest(False)
    assert again.result(20) is None
    assert heard[-1][0] == b"more", "what came before is there, too"
    assert not quiet._resting


def test_what_goes_wrong_is_raised_where_the_stream_is_read(resting):
    rest, far, _, quiet = resting
    ended = rest(MesError("damaged", 1))
    far.sendall(b"x")
    with pytest.raises(MesError, match="damaged"):
        ended.result(20)
    other, end = socket.socketpair()
    with other, end, ThreadPoolExecutor() as threads:
        going_on = threads.submit(quiet.rest, other.fileno(), lambda: False, 30.0)
        end.sendall(b"x")
        assert going_on.result(20) is None, "others do not suffer from it"


def test_a_silent_connection_is_lost(resting):
    rest, far, heard, quiet = resting
    ended = rest(True, silence=0.3)
    far.sendall(b"x")
    with pytest.raises(TransientError, match="lost: timed out"):
        ended.result(20)
    assert len(heard) == 1
    assert not quiet._resting


def test_a_stream_notices_by_itself_that_nobody_receives_for_it(resting, monkeypatch):
    """Whatever becomes of the thread for all, none of them waits for ever."""
    rest, far, heard, quiet = resting
    monkeypatch.setattr(quiet, "_run", lambda _: None)
    with pytest.raises(TransientError, match="lost: timed out"):
        rest(True, silence=0.3).result(20)
    ended = rest(True, silence=0.3)
    far.sendall(b"x")
    assert ended.result(20) is None, "the stream's own thread takes what has come"
    assert not heard
    assert not quiet._resting


def test_a_stream_whose_thread_cannot_be_begun_does_not_rest(resting, monkeypatch):
    rest, far, _, quiet = resting

    class Full(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr("setl.systems.mysql.binlog.quiet_streams.threading.Thread", Full)
        quiet.rest(far.fileno(), lambda: True, 30.0)  # returns at once
    ended = rest(False)
    far.sendall(b"x")
    assert ended.result(20) is None


def test_the_thread_ends_once_no_stream_rests_and_comes_back(resting, monkeypatch):
    rest, far, _, quiet = resting
    monkeypatch.setattr("setl.systems.mysql.binlog.quiet_streams._POLL_SECONDS", 0.05)
    for _ in range(2):
        ended = rest(False)
        far.sendall(b"x")
        ended.result(20)
        eventually(lambda: quiet._thread is None, 20)


# ---- what may be taken in at once


def packets(*events, status=b"\0"):
    return b"".join(
        struct.pack("<I", len(event) + 1 | number << 24) + status + event
        for number, event in enumerate(events)
    )


def beat(writer, number):
    begin = [writer.mariadb_gtid(number)] if writer.mariadb else [
        writer.gtid(number), writer.query("BEGIN"),
    ]  # fmt: skip
    return [*begin, *one_row(writer, schema="retl", table="xdual"), writer.xid()]


@pytest.mark.parametrize("mariadb", [False, True])
@pytest.mark.parametrize("checksum", [False, True])
def test_a_heartbeat_takes_no_time(mariadb, checksum):
    writer = EventWriter(mariadb=mariadb, checksum=checksum)
    data = packets(*beat(writer, 1), writer.event(27, b"binlog.000007", artificial=True))
    assert takes_no_time(data, checksum=checksum)
    assert not takes_no_time(data[:-1], checksum=checksum), "a part of an event"
    assert not takes_no_time(data + b"\x07\0", checksum=checksum)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: w.query("XA ROLLBACK X'61',X'',1"),
        lambda w: w.query("ALTER TABLE t ADD c INT -- BEGIN"),
        lambda w: w.query("COMMIT"),
        lambda w: w.xa_prepare(),
        lambda w: w.payload([w.query("BEGIN"), w.xid()]),
        lambda w: w.rotate("binlog.000008"),
        lambda w: w.format_description(),
    ],
)
def test_what_may_have_to_be_asked_about_takes_time(make):
    assert not takes_no_time(packets(make(EventWriter())), checksum=True)


def test_how_a_server_ends_a_stream_is_for_the_stream_itself():
    event = EventWriter().xid()
    assert takes_no_time(packets(event), checksum=True)
    assert not takes_no_time(packets(event, status=b"\xff"), checksum=True)
    assert not takes_no_time(packets(event[:10]), checksum=True)


# ---- streams


class Stream:
    """A stream of a server's bytes, and who reads it; heartbeats pass by while `passing`."""

    def __init__(self, monkeypatch, server, *, silence=30.0):
        self.server, self.passing, self.offered = server, True, []
        self.quiet = QuietStreams()
        monkeypatch.setattr(binlog_dump, "connect", lambda *_: server)
        self.stream = BinlogStream(
            DB,
            4711,
            PLACE,
            limits=StreamLimits(silence=silence),
            server=cast("Any", Tables()),
            cut=cast("Any", None),
            quiet=self.quiet,
        )
        self.stream.open()
        server.command()

    def passes_by(self, entries):
        thread = threading.current_thread().name
        self.offered.append((entries[-1].position.offset, thread))
        return self.passing

    def read(self, timeout=20.0):
        return self.stream.read(100, timeout, self.passes_by)

    def is_waited_for(self):
        return self.stream._passes_by == self.passes_by

    def rests(self):
        return bool(self.quiet._resting)


@pytest.fixture
def streaming(monkeypatch):
    made = []

    def start(server=None, **options):
        made.append(Stream(monkeypatch, server or Server(), **options))
        return made[-1]

    yield start
    for each in made:
        each.stream.close()
        each.server.near.close()
        each.server.far.close()


def sent(writer, number):
    return [b"\0" + event for event in beat(writer, number)]


def test_a_quiet_stream_is_received_for_and_hands_on_what_does_not_pass(streaming):
    writer = EventWriter()
    with ThreadPoolExecutor() as threads:
        made, reading = resting_stream(streaming, writer, threads)
        ends = [writer.offset]
        for number in (2, 3):
            made.server.far.sendall(packets(*beat(writer, number)))
            ends.append(writer.offset)
            eventually(lambda number=number: len(made.offered) == number, 20)
        made.passing = False
        made.server.far.sendall(packets(*beat(writer, 4)))
        entries = reading.result(20)
    assert [offset for offset, _ in made.offered] == [*ends, writer.offset]
    assert {thread for _, thread in made.offered[1:]} == {"quiet-streams"}
    kinds = [entry.kind for entry in entries]
    assert kinds == [EntryKind.BEGIN, EntryKind.ROWS, EntryKind.COMMIT]
    eventually(lambda: not made.rests(), 20)
    # Its own thread goes on, and rests again once all passes by.
    made.server.send(*sent(writer, 5))
    assert made.read()[-1].position.offset == writer.offset
    made.passing = True
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(made.read)
        eventually(made.is_waited_for, 20)
        made.server.send(*sent(writer, 6))
        eventually(made.rests, 20)
        made.stream.close()
        with pytest.raises(TransientError, match="closed"):
            reading.result(20)
    assert made.stream._thread is not None
    assert not made.stream._thread.is_alive(), "closing ends the rest at once"


def resting_stream(streaming, writer, threads, **options):
    made = streaming(**options)
    reading = threads.submit(made.read)
    eventually(made.is_waited_for, 20)
    made.server.send(*(b"\0" + event for event in writer.opening()), *sent(writer, 1))
    eventually(made.rests, 20)
    return made, reading


@pytest.mark.parametrize("cut", [3, 60, -1])
def test_a_transaction_that_comes_in_parts_comes_whole(streaming, cut):
    writer = EventWriter()
    with ThreadPoolExecutor() as threads:
        made, reading = resting_stream(streaming, writer, threads)
        made.passing = False
        data = packets(*beat(writer, 2))
        made.server.far.sendall(data[:cut])
        eventually(lambda: not made.rests(), 20)
        made.server.far.sendall(data[cut:])
        entries = reading.result(20)
    assert [entry.kind for entry in entries][-1] is EntryKind.COMMIT
    assert entries[-1].position.offset == writer.offset


def test_a_stream_inside_a_transaction_is_not_quiet(streaming):
    """The rest may be large, and the server has to be asked whether it is whole."""
    writer = EventWriter()
    with ThreadPoolExecutor() as threads:
        made, reading = resting_stream(streaming, writer, threads)
        begin, *rest = sent(writer, 2)
        made.server.send(begin)
        eventually(lambda: not made.rests(), 20)
        made.passing = False
        made.server.send(*rest)
        assert reading.result(20)[-1].position.offset == writer.offset


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (packets(b"\xd4\x04#HY000log event entry exceeded", status=b"\xff"), "entry exceeded"),
        (b"", "was lost"),
    ],
)
def test_how_the_stream_of_a_resting_thread_ends(streaming, data, said):
    writer = EventWriter()
    with ThreadPoolExecutor() as threads:
        made, reading = resting_stream(streaming, writer, threads)
        made.server.far.sendall(data)
        made.server.far.shutdown(socket.SHUT_WR)
        with pytest.raises(Exception, match=said):
            reading.result(20)


def test_damage_is_noticed_while_the_thread_rests(streaming):
    writer = EventWriter()
    with ThreadPoolExecutor() as threads:
        made, reading = resting_stream(streaming, writer, threads)
        *good, bad = beat(writer, 2)
        damaged = bytearray(bad)
        damaged[20] ^= 1
        made.server.send(*(b"\0" + event for event in (*good, bytes(damaged))))
        with pytest.raises(Exception, match="CRC32"):
            reading.result(20)
    assert len(made.offered) == 1


def test_silence_is_noticed_while_the_thread_rests(streaming):
    with ThreadPoolExecutor() as threads:
        _, reading = resting_stream(streaming, EventWriter(), threads, silence=0.5)
        with pytest.raises(TransientError, match="timed out"):
            reading.result(20)


def test_a_quiet_stream_over_tls(streaming, tmp_path):
    certificate, key = CertificateAuthority(tmp_path).issue("db1")
    offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    offered.load_cert_chain(certificate, key)
    any_server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    any_server.check_hostname, any_server.verify_mode = False, ssl.CERT_NONE
    server, writer = Server(), EventWriter()
    with ThreadPoolExecutor() as threads:
        far = threads.submit(offered.wrap_socket, server.far, server_side=True)
        server._sock = server.near = any_server.wrap_socket(server.near)
        server.far = far.result()
        made, reading = resting_stream(streaming, writer, threads, server=server)
        for number in (2, 3):
            server.far.sendall(packets(*beat(writer, number)))
            eventually(lambda: made.offered[-1][0] == writer.offset, 20)
            assert made.offered[-1][1] == "quiet-streams"
        server.send(*sent(writer, 4))  # one record for each event
        eventually(lambda: made.offered[-1][0] == writer.offset, 20)
        eventually(made.rests, 20)
        made.passing = False
        server.send(*sent(writer, 5))
        assert reading.result(20)[-1].position.offset == writer.offset


def test_a_client_that_holds_something_is_not_watched(monkeypatch):
    server = Server()
    monkeypatch.setattr(binlog_dump, "connect", lambda *_: server)
    client = DumpClient(DB, 4711, PLACE, silence=5.0, event_bytes=1 << 20)
    assert client.watched is None
    client.connect()
    client.start()
    assert client.watched is client
    writer = EventWriter()
    data = packets(*writer.opening())
    server.far.sendall(data + packets(writer.xid())[:10])
    client.poll_batch()
    assert client.arriving == 10
    assert client.watched is None
    client.close()
    server.far.close()
