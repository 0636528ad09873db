"""The servers of an ensemble one by one, of which a session tells nothing: it has one of them."""

from __future__ import annotations

import socket
from contextlib import suppress

from kazoo.hosts import collect_hosts

from arbiter.access import Tls
from arbiter.arbiter import Invalid
from arbiter.session.tls import client_context


def servers_of(hosts: str) -> tuple[tuple[str, int], ...]:
    """Host and port of each server, as a session reads them; each once, none for "".

    Args:
        hosts: the servers, ``host:port,host:port``.

    Raises:
        Invalid: these are no addresses.
    """
    if not hosts:
        return ()
    try:
        found, _ = collect_hosts(hosts)
    except ValueError as error:
        raise Invalid(f"not ZooKeeper addresses: {hosts!r} ({error})") from error
    return tuple(dict.fromkeys(found))


def takes_connection(host: str, port: int, seconds: float, tls: Tls | None = None) -> bool:
    """Whether somebody takes a TCP connection there; it is closed again, and nothing is asked.

    A name that cannot be resolved counts as no. A process that was stopped still takes
    connections, as its kernel does that.

    Args:
        host: name or address.
        port: its port.
        seconds: how long to wait for each address that the name has, and for TLS.
        tls: what the server speaks TLS with, None if it does not.
    """
    try:
        with socket.create_connection((host, port), seconds) as taken:
            if tls is not None:
                _greet(taken, host, tls)
            return True
    except (OSError, UnicodeError):  # the latter: no name that could be resolved
        return False


def _greet(taken: socket.socket, host: str, tls: Tls) -> None:
    """Begin TLS and end it in order: a server logs each connection that ends otherwise.

    What is wrong with TLS is told by the session, and does not mean that the server is gone.
    """
    with (
        suppress(OSError, ValueError, Invalid),
        client_context(tls).wrap_socket(taken, server_hostname=host) as greeted,
    ):
        greeted.unwrap()
