"""The servers of an ensemble one by one, of which a session tells nothing: it has one of them."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass, replace

from kazoo.hosts import collect_hosts

from arbiter.access import Tls
from arbiter.certificates import Certificate, shown_by
from arbiter.errors import Invalid
from arbiter.session.connect_failures import connect_failure_of
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What one server says when it is asked.

    Attributes:
        serves: whether it is there for this client.
        refused: which certificate is not accepted, its own or this client's, and why; "" if none
            was refused.
        chain: over TLS its certificate, then those that it is trusted by, as far as Python tells
            them (see `shown_by`); empty if it has shown none.
    """

    serves: bool
    refused: str = ""
    chain: tuple[Certificate, ...] = ()


def ask(host: str, port: int, seconds: float, tls: Tls | None = None) -> Answer:
    """Whether a server is there for clients: it takes a connection and answers a question.

    A process that hangs or was stopped takes connections all the same, as its kernel does that.
    So it is asked ``srvr``, which costs it nothing. Any answer will do, also that it does not
    answer this question, and so will the end of the connection: only a process that lives gives
    them. One that says it serves nobody, since it has not joined the others, is there for no
    client; nor is one with which no TLS can be had because of a certificate. A name that cannot be
    resolved counts as no.

    Args:
        host: name or address.
        port: its port.
        seconds: how long to wait for each address that the name has, and for the answer.
        tls: what the server speaks TLS with, None if it does not.
    """
    try:
        context = client_context(tls) if tls is not None else None
    except Invalid:
        # The session says what is wrong with files.
        return Answer(_takes_connection(host, port, seconds))
    try:
        with socket.create_connection((host, port), seconds) as taken:
            deadline = time.monotonic() + seconds
            if context is None:
                return Answer(_serves(taken, deadline))
            answer = _over_tls(taken, host, context, deadline, tls)
    except (OSError, UnicodeError):  # the latter: no name that could be resolved
        return Answer(serves=False)
    if answer.refused and not answer.chain:
        return replace(answer, chain=_unverified(host, port, seconds))
    return answer


def _takes_connection(host: str, port: int, seconds: float) -> bool:
    try:
        socket.create_connection((host, port), seconds).close()
    except (OSError, UnicodeError):
        return False
    return True


def _over_tls(
    taken: socket.socket, host: str, context: ssl.SSLContext, deadline: float, tls: Tls | None
) -> Answer:
    """What a server that has taken a connection says over TLS."""
    chain: tuple[Certificate, ...] = ()
    try:
        with context.wrap_socket(taken, server_hostname=host) as secured:
            chain = shown_by(secured)
            serves = _serves(secured, deadline)
            # A server logs each connection over TLS that does not end in order.
            with suppress(OSError, ValueError):
                secured.unwrap()
            return Answer(serves, chain=chain)
    except TimeoutError:
        return Answer(serves=False)
    except OSError as error:  # a refused certificate is an error of this kind, and a ValueError
        problem = connect_failure_of(host, error, tls)
        return Answer(not problem.final, problem.reason if problem.final else "", chain)
    except ValueError:
        return Answer(serves=True)


def _unverified(host: str, port: int, seconds: float) -> tuple[Certificate, ...]:
    """The certificate of a server that is not trusted, for when it expires."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), seconds) as taken,
            context.wrap_socket(taken, server_hostname=host) as secured,
        ):
            return shown_by(secured)
    except (OSError, ValueError):
        return ()


def _serves(connection: socket.socket, deadline: float) -> bool:
    """Whether a server that has taken a connection serves clients."""
    try:
        return _SERVES_NOBODY not in _answer(connection, deadline)
    except TimeoutError:
        return False
    except ssl.SSLError:
        raise
    except (OSError, ValueError):
        return True  # it ends the connection, and so it lives


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
