"""Why connections fail, against servers of this test's own that misbehave."""

import math
import socket
import ssl
import struct
import threading
import time

import pytest

from arbiter.access import Access, Tls
from arbiter.errors import Contact, Denied, Invalid, Unreachable
from arbiter.session import kazoo_client
from arbiter.session.kazoo_link import LinkHandler
from arbiter.zookeeper import ZooKeeperArbiter
from setl_embedded.certificates import CertificateAuthority
from setl_embedded.ports import HOST, free_port
from tests.waiting import eventually

_SLACK = 10.0  # seconds that a busy machine may take longer

SASL = {"mechanism": "DIGEST-MD5", "username": "setl", "password": "p"}


def session_answer(milliseconds=4000):
    body = struct.pack("!iiqi", 0, milliseconds, 77, 16) + bytes(16) + b"\0"
    return struct.pack("!i", len(body)) + body


def read_frame(connection):
    head = connection.recv(4, socket.MSG_WAITALL)
    return connection.recv(struct.unpack("!i", head)[0], socket.MSG_WAITALL) if head else b""


@pytest.fixture
def serve():
    """Starts servers that treat each connection as told; gives their addresses."""
    listening = []

    def start(treat):
        server = socket.create_server((HOST, free_port()))
        listening.append(server)

        def run():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    treat(connection)

        threading.Thread(target=run, daemon=True).start()
        return f"{HOST}:{server.getsockname()[1]}"

    yield start
    for server in listening:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return CertificateAuthority(tmp_path_factory.mktemp("certificates"))


def refused(hosts, timeout, error, refused_limit=math.inf, **options):
    """How starting fails, and how long it took."""
    arbiter = ZooKeeperArbiter(hosts, session_timeout=4.0, **options)
    began = time.monotonic()
    try:
        with pytest.raises(error) as caught:
            arbiter.start(timeout, refused_limit=refused_limit)
        took = time.monotonic() - began
        assert arbiter.session.contact() is Contact.LOST
    finally:
        arbiter.close()
    assert took < timeout + _SLACK
    return str(caught.value), took


def refused_saying(hosts, words, error=Unreachable, **options):
    """What is said of them, with the least patience of some after which it has these words.

    How far a connection comes within a second is up to what else the machine does.
    """
    said = ""
    for timeout in (0.5, 2.0, 8.0):
        said, took = refused(hosts, timeout, error, **options)
        assert took >= timeout
        if all(part in said for part in words):
            break
    return said


def test_a_server_that_ends_connections_is_named(serve):
    hosts = serve(lambda connection: None)
    reason = (
        f"; {hosts}: it ended the connection before a session began; it has no quorum, or it wants"
        " TLS"
    )
    said = refused_saying(hosts, [reason])
    assert said.startswith("no ZooKeeper server answered within ")
    assert said.endswith(f" s at {hosts}{reason}")


def test_every_server_is_named_with_its_own_reason(serve):
    ending, closed = serve(lambda connection: None), f"{HOST}:{free_port()}"
    words = [f"; {ending}: it ended the connection", f"; {closed}: Connection refused"]
    said = refused_saying(f"{ending},{closed}", words)
    assert [part for part in words if part not in said] == []


def test_that_no_server_is_there_is_an_answer_after_a_moment():
    hosts = ",".join(f"{HOST}:{free_port()}" for _ in range(2))
    said, took = refused(hosts, 60, Unreachable, refused_limit=0.5)
    assert said.startswith(f"no ZooKeeper server is there at {hosts}, for 0.5 s now; ")
    assert said.count("Connection refused") == 2
    assert 0.5 <= took < 0.5 + _SLACK


def test_a_server_that_is_silent_or_ends_connections_is_waited_for(serve):
    held = threading.Event()
    silent, ending = serve(lambda _: held.wait(60)), serve(lambda _: None)
    try:
        for server in (silent, ending):
            hosts = f"{HOST}:{free_port()},{server}"
            said, took = refused(hosts, 1.5, Unreachable, refused_limit=0.1)
            assert said.startswith("no ZooKeeper server answered within 1.5 s")
            assert took >= 1.5
    finally:
        held.set()


def test_a_server_that_does_anything_but_refuse_is_there():
    handler = LinkHandler(1.0)
    refusal = ConnectionRefusedError(111, "Connection refused")
    began = time.monotonic()
    handler.note("zk1:2181", refusal)
    assert handler.refused_since(2) is None
    handler.note("zk2:2181", refusal)
    since = handler.refused_since(2)
    assert since is not None
    assert began <= since <= time.monotonic()
    handler.note("zk2:2181", refusal)
    assert handler.refused_since(2) == since
    handler.note("zk2:2181", TimeoutError("timed out"))
    assert handler.refused_since(2) is None
    handler.note("zk2:2181", refusal)
    assert (handler.refused_since(2) or 0.0) > since
    handler.forget_connect_failures()
    assert handler.refused_since(2) is None


@pytest.mark.parametrize(
    ("number", "there_is_none"), [(socket.EAI_NONAME, True), (socket.EAI_AGAIN, False)]
)
def test_a_name_that_nobody_knows_is_reported(monkeypatch, number, there_is_none):
    def unknown(*_, **__):
        raise socket.gaierror(number, "so says the resolver")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    timeout = 30.0 if there_is_none else 1.5
    said, took = refused("zk.example:2181", timeout, Unreachable, refused_limit=0.1)
    assert said.endswith("; zk.example:2181: its name cannot be looked up: so says the resolver")
    assert (took < timeout) == there_is_none


def test_a_plain_server_is_reported_from_a_wrong_certificate(serve, authority):
    hosts = serve(lambda connection: connection.recv(1))
    tls = Tls(ca=str(authority.certificate))
    said = refused_saying(hosts, [f"{hosts}: "], access=Access(tls=tls))
    assert f"{hosts}: " in said
    assert "TLS failed" in said or "speaks no TLS" in said


def tls_server(serve, authority, name, hosts=(HOST,)):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(name, hosts=hosts))

    def treat(connection):
        try:
            with context.wrap_socket(connection, server_side=True) as encrypted:
                encrypted.recv(1)
        except OSError:
            return  # the client does not like the certificate

    return serve(treat)


def test_a_refused_certificate_is_final_and_not_tried_for_long(serve, authority, tmp_path):
    hosts = tls_server(serve, authority, "right")
    other = Tls(ca=str(CertificateAuthority(tmp_path).certificate))
    said, took = refused(hosts, 30, Denied, access=Access(tls=other))
    assert said.startswith(f"no TLS with ZooKeeper: {hosts}: its certificate is not accepted: ")
    assert took < _SLACK


def test_one_server_with_a_wrong_certificate_does_not_speak_for_all(serve, authority):
    wrong = tls_server(serve, authority, "elsewhere", ("zk.example",))
    right = tls_server(serve, authority, "here")
    access = Access(tls=Tls(ca=str(authority.certificate)))
    words = f"{wrong}: its certificate is not accepted: IP address mismatch"
    assert words in refused_saying(f"{wrong},{right}", [words], access=access)


def test_a_renewed_certificate_that_is_broken_does_not_end_the_connection_thread(authority):
    handler = LinkHandler(0.5, Tls(ca="/nowhere/ca.pem"))
    with (
        socket.create_server((HOST, 0)) as server,
        pytest.raises(OSError, match=r"/nowhere/ca\.pem"),
    ):
        handler.create_connection(server.getsockname())
    (problem,) = handler.connect_failures()
    assert "/nowhere/ca.pem" in str(problem)
    assert not problem.final


def hang_up_at_the_login(connection):
    read_frame(connection)
    connection.sendall(session_answer())
    read_frame(connection)


def test_a_server_that_hangs_up_at_the_login_does_not_offer_it(serve):
    hosts = serve(hang_up_at_the_login)
    said, took = refused(hosts, 30, Denied, access=Access(sasl=SASL))
    assert "ended the connection at the login; does it offer SASL" in said
    assert took < _SLACK


def test_a_login_without_its_package_is_refused_before_anything_else(monkeypatch):
    monkeypatch.setattr(kazoo_client, "find_spec", lambda name: None)
    with pytest.raises(Invalid, match="takes the package pure-sasl"):
        ZooKeeperArbiter("127.0.0.1:2181", access=Access(sasl=SASL))
    ZooKeeperArbiter("127.0.0.1:2181", access=Access(digest="setl:p"))


def test_a_server_that_never_answers_the_login_is_waited_for_no_longer_than_said(serve):
    release = threading.Event()

    def hold(connection):
        read_frame(connection)
        connection.sendall(session_answer())
        release.wait(60)

    hosts = serve(hold)
    words = "; they did not answer to the login: do they offer SASL?"
    try:
        said = refused_saying(hosts, [words], access=Access(sasl=SASL))
    finally:
        release.set()
    assert said.endswith(words)


def test_two_answers_in_one_tls_record_are_both_read(authority):
    """Over TLS a socket may have nothing to read while its answer lies decrypted already."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("coalescing", hosts=(HOST,)))
    handler = LinkHandler(5.0, Tls(ca=str(authority.certificate)))
    with socket.create_server((HOST, 0)) as server:
        accepted = []

        def accept():
            plain, _ = server.accept()
            accepted.append(context.wrap_socket(plain, server_side=True))

        thread = threading.Thread(target=accept)
        thread.start()
        link = handler.create_connection(server.getsockname(), hostname=HOST)
        thread.join()
    (far,) = accepted
    idle, busy = socket.socketpair()
    with far, idle, busy:
        far.sendall(b"first" + b"second")
        link.setblocking(False)
        handler.select([link], [], [], 5.0)

        def first():
            try:
                return link.recv(5)
            except ssl.SSLWantReadError:
                return b""

        assert eventually(first) == b"first"
        began = time.monotonic()
        assert handler.select([link, idle], [], [], 40.0)[0] == [link]
        busy.sendall(b"x")
        assert handler.select([link, idle], [], [], 40.0)[0] == [link, idle]
        assert time.monotonic() - began < 30, "it has waited for as long as it may"
        assert link.recv(100) == b"second"
        idle.recv(1)
        assert handler.select([link, idle], [], [], 0)[0] == []
        link.close()
