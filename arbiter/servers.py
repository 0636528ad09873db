"""The servers of an ensemble one by one, of which a session tells nothing: it has one of them."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress

from kazoo.hosts import collect_hosts

from arbiter.access import Tls
from arbiter.arbiter import Invalid
from arbiter.session.tls import client_context

_QUESTION = b"srvr"
"""The one four-letter word that servers answer unless they are told not to."""

_SERVES_NOBODY = b"not currently serving requests"
_ENOUGH = 4096


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


def answers(host: str, port: int, seconds: float, tls: Tls | None = None) -> bool:
    """Whether a server is there for clients: it takes a connection and answers a question.

    A process that hangs or was stopped takes connections all the same, as its kernel does that.
    So it is asked ``srvr``, which costs it nothing. Any answer will do, also that it does not
    answer this question, and so will the end of the connection: only a process that lives gives
    them. One that says it serves nobody, since it has not joined the others, is there for no
    client. A name that cannot be resolved counts as no.

    Args:
        host: name or address.
        port: its port.
        seconds: how long to wait for each address that the name has, and for the answer.
        tls: what the server speaks TLS with, None if it does not.
    """
    try:
        context = client_context(tls) if tls is not None else None
    except Invalid:
        return _takes_connection(host, port, seconds)  # the session says what is wrong with files
    try:
        with socket.create_connection((host, port), seconds) as taken:
            return _tells(taken, host, seconds, context)
    except (OSError, UnicodeError):  # the latter: no name that could be resolved
        return False


def _takes_connection(host: str, port: int, seconds: float) -> bool:
    try:
        socket.create_connection((host, port), seconds).close()
    except (OSError, UnicodeError):
        return False
    return True


def _tells(taken: socket.socket, host: str, seconds: float, context: ssl.SSLContext | None) -> bool:
    """Whether a server that has taken a connection serves clients."""
    deadline = time.monotonic() + seconds
    try:
        if context is None:
            return _SERVES_NOBODY not in _answer(taken, deadline)
        with context.wrap_socket(taken, server_hostname=host) as secured:
            said = _answer(secured, deadline)
            # A server logs each connection over TLS that does not end in order.
            with suppress(OSError, ValueError):
                secured.unwrap()
            return _SERVES_NOBODY not in said
    except TimeoutError:
        return False
    except (OSError, ValueError):
        # It refuses, and so it lives. What is wrong with TLS is told by the session.
        return True


def _answer(connection: socket.socket, deadline: float) -> bytes:
    """What a server says until it ends the connection.

    Raises:
        TimeoutError: it has not said anything in time.
        OSError: it broke the connection off.
    """
    connection.sendall(_QUESTION)
    said = b""
    while len(said) < _ENOUGH:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            part = connection.recv(_ENOUGH)
        except TimeoutError:
            if said:
                break
            raise
        if not part:
            break
        said += part
    return said
