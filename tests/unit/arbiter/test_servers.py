"""The servers one by one, and whether one takes connections; with real sockets."""

import socket

import pytest

from arbiter.access import Tls
from arbiter.arbiter import Invalid
from arbiter.servers import servers_of, takes_connection


@pytest.mark.parametrize(
    ("hosts", "found"),
    [
        ("", ()),
        ("zk1:2182", (("zk1", 2182),)),
        ("zk1,zk2:2182,zk1:2181", (("zk1", 2181), ("zk2", 2182))),
        ("zk1:2181,zk2:2181/below", (("zk1", 2181), ("zk2", 2181))),
        ("[::1]:2182, zk2", (("::1", 2182), ("zk2", 2181))),
    ],
)
def test_addresses_are_read_as_a_session_reads_them(hosts, found):
    assert servers_of(hosts) == found


@pytest.mark.parametrize("hosts", [",", "zk1:x"])
def test_what_is_no_address_is_refused(hosts):
    with pytest.raises(Invalid, match="not ZooKeeper addresses"):
        servers_of(hosts)


def test_a_listening_socket_takes_a_connection_and_a_closed_one_does_not():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()
        assert takes_connection(host, port, 2.0)
        taken, _ = listening.accept()
        with taken:
            taken.settimeout(2.0)
            assert taken.recv(1) == b""  # nothing was sent, and it was closed
    assert not takes_connection(host, port, 2.0)


def test_a_server_that_cannot_speak_tls_takes_a_connection_all_the_same():
    """A certificate that is refused does not make a server that is gone."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()
        assert takes_connection(host, port, 0.2, Tls())  # nobody says a word
        assert takes_connection(host, port, 0.2, Tls(ca="/there/is/no/such/file"))
    assert not takes_connection(host, port, 0.2, Tls())


def test_one_whose_queue_is_full_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening:
        address = listening.getsockname()
        waiting = []
        try:
            for _ in range(3):  # nobody accepts, so that the kernel lets the next ones wait
                client = socket.socket()
                client.setblocking(False)
                client.connect_ex(address)
                waiting.append(client)
            assert not takes_connection(address[0], address[1], 0.2)
        finally:
            for client in waiting:
                client.close()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64])
def test_a_name_that_nobody_knows_takes_none(host):
    assert not takes_connection(host, 1, 0.2)
