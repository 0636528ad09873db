"""A node that answers over HTTP, and strangers who are not kind to it."""

import socket

import pytest

from tests.unit.node.http_node import node  # noqa: F401

STRANGER = "127.0.0.2"
"""Another address of this machine than the one from which `Node.ask` comes."""


@pytest.fixture
def connect(node):  # noqa: F811
    """Opens connections to a node, from an address that is not that of `Node.ask`."""
    opened = []

    def connect(sent=b"", *, at=None, come_from=STRANGER):
        server = node.server or node.serve()
        host, port = (at or server.address).removeprefix("http://").split(":")
        connection = socket.create_connection((host, int(port)), 10, (come_from, 0))
        opened.append(connection)
        connection.sendall(sent)
        return connection

    yield connect
    for each in opened:
        each.close()
