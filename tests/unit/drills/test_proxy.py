"""A link passes bytes on, holds them back while it is cut, and delivers them when it heals."""

import asyncio
import contextlib
import socket
import struct
import threading
import time

import pytest

from setl_drills.proxy import Direction, Links
from setl_embedded.ports import free_port
from tests.waiting import eventually


class Echo(threading.Thread):
    """Answers every line with the same line in capitals."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", free_port()))
        self.port = self.socket.getsockname()[1]
        self.heard = []

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, contextlib.suppress(OSError):
            for line in connection.makefile("rb"):
                self.heard.append(line)
                connection.sendall(line.upper())


@pytest.fixture
def echo():
    server = Echo()
    server.start()
    yield server
    server.socket.close()


@pytest.fixture
def link(echo):
    with Links() as links:
        yield links.add("echo", "127.0.0.1", echo.port)


@pytest.fixture
def client(link):
    with socket.create_connection((link.host, link.port), timeout=30) as connection:
        yield connection


def ask(client, text):
    client.sendall(text)
    return client.recv(100)


def silent(client):
    client.settimeout(0.2)
    try:
        client.recv(100)
    except TimeoutError:
        return True
    finally:
        client.settimeout(30)
    return False


def test_bytes_pass(client):
    assert ask(client, b"one\n") == b"ONE\n"


def test_a_slow_link_delays_each_way_and_stores_the_order(echo):
    with Links() as links:
        link = links.add("echo", "127.0.0.1", echo.port, delay=0.05)
        with socket.create_connection((link.host, link.port), timeout=30) as client:
            started = time.monotonic()
            client.sendall(b"one\n")
            client.sendall(b"two\n")
            answers = client.makefile("rb")
            assert (answers.readline(), answers.readline()) == (b"ONE\n", b"TWO\n")
            assert time.monotonic() - started >= 0.1


def test_a_cut_link_stays_open_and_delivers_when_it_heals(link, client, echo):
    ask(client, b"one\n")
    link.cut()
    client.sendall(b"two\n")
    assert silent(client)
    assert echo.heard == [b"one\n"]
    link.heal()
    assert client.recv(100) == b"TWO\n"


def test_one_way_towards_the_server(link, client, echo):
    ask(client, b"one\n")
    link.cut(Direction.TO_SERVER)
    client.sendall(b"two\n")
    assert silent(client)
    assert echo.heard == [b"one\n"]


def test_one_way_towards_the_client(link, client, echo):
    ask(client, b"one\n")
    link.cut(Direction.TO_CLIENT)
    client.sendall(b"two\n")
    eventually(lambda: echo.heard == [b"one\n", b"two\n"])
    assert silent(client)
    link.heal()
    assert client.recv(100) == b"TWO\n"


def test_a_connection_made_while_cut_is_served_after_healing(link, echo):
    link.cut()
    with socket.create_connection((link.host, link.port), timeout=30) as client:
        client.sendall(b"late\n")
        assert silent(client)
        link.heal()
        assert client.recv(100) == b"LATE\n"


def test_reset_ends_connections_and_takes_new_ones(link, client):
    ask(client, b"one\n")
    link.reset()
    with pytest.raises(ConnectionResetError):
        client.recv(100)
    with socket.create_connection((link.host, link.port), timeout=30) as other:
        assert ask(other, b"two\n") == b"TWO\n"


def test_a_server_that_is_gone_is_seen_as_gone(link, client, echo):
    ask(client, b"one\n")
    echo.socket.shutdown(socket.SHUT_RDWR)
    echo.socket.close()
    # Reset at once, or a moment after it was accepted.
    with (
        pytest.raises(ConnectionResetError),
        socket.create_connection((link.host, link.port), timeout=30) as other,
    ):
        other.recv(100)


async def tasks_but_this():
    return len(asyncio.all_tasks()) - 1


def test_a_client_that_resets_its_connection_leaves_nothing_behind(echo):
    with Links() as links:
        link = links.add("echo", "127.0.0.1", echo.port)
        with socket.create_connection((link.host, link.port), timeout=30) as client:
            assert ask(client, b"one\n") == b"ONE\n"
            reset = struct.pack("ii", 1, 0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        eventually(lambda: not links.call(tasks_but_this()), 10)
