import socket
import struct

import pytest

from arbiter.session.kazoo_link import LinkHandler, _Link


@pytest.fixture
def pair():
    near, far = socket.socketpair()
    yield _Link(near), far
    near.close()
    far.close()


def answer(milliseconds):
    body = struct.pack("!iiqi", 0, milliseconds, 77, 16) + bytes(16) + b"\0"
    return struct.pack("!i", len(body)) + body


def receive(link, sizes):
    return b"".join(link.recv(size) for size in sizes)


@pytest.mark.parametrize("sizes", [(4, 37), (4, 3, 1, 33), (41,), (1,) * 41])
def test_the_granted_timeout_is_read_along(pair, sizes):
    link, far = pair
    assert link.granted_timeout is None
    far.sendall(answer(6500))
    assert receive(link, sizes) == answer(6500)
    assert link.granted_timeout == 6.5
    far.sendall(answer(1))
    receive(link, (41,))
    assert link.granted_timeout == 6.5


def test_a_refused_session_grants_nothing(pair):
    link, far = pair
    far.sendall(answer(0))
    receive(link, (41,))
    assert link.granted_timeout is None


def test_a_cut_link_ends_on_both_sides(pair):
    link, far = pair
    link.cut()
    assert link.recv(1) == b""
    assert far.recv(1) == b""
    link.close()
    link.cut()


def test_a_link_is_no_tls_socket_unless_it_is_one(pair):
    link, _ = pair
    assert not hasattr(link, "pending")
    assert link.fileno() >= 0


def test_the_handler_remembers_the_last_grant():
    handler = LinkHandler(connect_timeout=0.5)
    assert handler.granted_timeout is None
    handler.drop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        first = handler.create_connection(address=address, timeout=60.0)
        far, _ = server.accept()
        assert 0 < first.gettimeout() <= 0.5
        far.sendall(answer(4000))
        receive(first, (41,))
        assert handler.granted_timeout == 4.0
        second = handler.create_connection(address=address)
        assert handler.granted_timeout == 4.0
        handler.drop()
        assert second.recv(1) == b""
        for each in (first, second, far):
            each.close()
