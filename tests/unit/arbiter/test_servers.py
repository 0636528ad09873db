"""The servers one by one, and whether one answers; with real sockets."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest

from arbiter.access import Tls
from arbiter.errors import Invalid
from arbiter.servers import ask, servers_of

HOST = "127.0.0.1"


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


@contextmanager
def server(answer):
    """A server that answers one client, and ends the connection; tells what it was asked."""
    asked = []

    def work():
        taken, _ = listening.accept()
        with taken:
            taken.settimeout(5.0)
            asked.append(taken.recv(100))
            taken.sendall(answer)

    with socket.create_server((HOST, 0)) as listening:
        thread = threading.Thread(target=work)
        thread.start()
        yield listening.getsockname()[1], asked
        thread.join(5.0)


@pytest.mark.parametrize(
    ("said", "serves"),
    [
        (b"Zookeeper version: 3.9.4\nMode: follower\n", True),
        (b"srvr is not executed because it is not in the whitelist.\n", True),
        (b"", True),  # it ends the connection: somebody lives there
        (b"This ZooKeeper instance is not currently serving requests\n", False),
    ],
)
def test_a_server_that_answers_is_there_unless_it_serves_nobody(said, serves):
    with server(said) as (port, asked):
        assert ask(HOST, port, 5.0).serves is serves
    assert asked == [b"srvr"]


def test_a_port_at_which_nobody_listens_does_not_answer():
    with socket.create_server((HOST, 0)) as listening:
        port = listening.getsockname()[1]
    assert not ask(HOST, port, 2.0).serves
    assert not ask(HOST, port, 2.0, Tls()).serves
    assert not ask(HOST, port, 2.0, Tls(ca="/there/is/no/such/file")).serves


@pytest.mark.parametrize("tls", [None, Tls()])
def test_a_server_that_hangs_takes_connections_and_does_not_answer(tls):
    """As one that was stopped: its kernel takes them."""
    with socket.create_server((HOST, 0)) as listening:
        began = time.monotonic()
        assert not ask(HOST, listening.getsockname()[1], 0.1, tls).serves
        assert 0.1 <= time.monotonic() - began < 20.0  # it would hang for ever


def test_trouble_with_tls_that_is_about_no_certificate_does_not_make_a_server_that_is_gone():
    """The session tells it."""
    with server(b"I speak no TLS") as (port, _):
        assert ask(HOST, port, 5.0, Tls()).serves
    with socket.create_server((HOST, 0)) as listening:
        port = listening.getsockname()[1]
        assert ask(HOST, port, 0.2, Tls(ca="/there/is/no/such/file")).serves


def test_one_whose_queue_is_full_is_not_waited_for():
    with socket.create_server((HOST, 0), backlog=0) as listening:
        address = listening.getsockname()
        waiting = []
        try:
            for _ in range(3):  # nobody accepts, so that the kernel lets the next ones wait
                client = socket.socket()
                client.setblocking(False)
                client.connect_ex(address)
                waiting.append(client)
            assert not ask(address[0], address[1], 0.2).serves
        finally:
            for client in waiting:
                client.close()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64])
def test_a_name_that_nobody_knows_does_not_answer(host):
    assert not ask(host, 1, 0.2).serves
