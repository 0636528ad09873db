"""Makes kazoo clients for a session, and translates their errors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec
from typing import NoReturn

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KeeperState

from arbiter.access import Access
from arbiter.errors import ArbiterError, Denied, Invalid, Unreachable
from arbiter.session.acls import own_acls
from arbiter.session.connect_failures import describe_failures
from arbiter.session.kazoo_link import LinkHandler
from arbiter.session.tls import client_context
from arbiter.znodes import Changed, Exists, Missing, Silent


def new_client(
    hosts: str, *, session_timeout: float, access: Access, wake: Callable[[], None]
) -> tuple[LinkHandler, KazooClient]:
    """A client that has not been started, and the handler of its connections.

    Args:
        hosts: the servers.
        session_timeout: seconds to ask for.
        access: credentials and encryption.
        wake: called, from any thread, when a connection fails; must not block.

    Raises:
        Invalid: the addresses, a certificate or a key cannot be used, or SASL is wanted and its
            package is not installed.
    """
    if access.sasl and find_spec("puresasl") is None:
        # kazoo would find out in its own thread, over and over.
        raise Invalid("a SASL login takes the package pure-sasl, which is not installed")
    if access.tls is not None:
        client_context(access.tls)
    handler = LinkHandler(connect_timeout=session_timeout / 3, tls=access.tls, wake=wake)
    try:
        client = KazooClient(
            hosts=hosts,
            timeout=session_timeout,
            handler=handler,
            # The default pauses grow up to an hour; a session is lost long before.
            connection_retry={
                "max_tries": -1,
                "delay": 0.1,
                "max_delay": min(1.0, session_timeout / 10),
            },
            auth_data=[("digest", access.digest)] if access.digest else None,
            sasl_options=dict(access.sasl) or None,
            default_acl=own_acls(access) or None,
            logger=_quiet_logger(),
        )
    except (KazooException, ValueError) as error:
        raise Invalid(f"not ZooKeeper addresses: {hosts!r} ({error})") from error
    return handler, client


def refusal(hosts: str, client: KazooClient, handler: LinkHandler, ended: str) -> str:
    """What the servers have against a client; "" if they have not said anything final.

    Args:
        hosts: the servers.
        client: the client.
        handler: its connections.
        ended: the state in which it gave up, "" if it has not.
    """
    at = f"ZooKeeper at {hosts}"
    if ended == KeeperState.AUTH_FAILED and handler.ended_by_server:
        return f"{at} ended the connection at the login; does it offer SASL with DIGEST-MD5?"
    if ended == KeeperState.AUTH_FAILED:
        return f"{at} refuses the credentials"
    if ended and isinstance(handler.fault(1.0), SessionClosedRequireSaslError):
        return f"{at} wants a login, and refuses these credentials"
    final = [problem for problem in handler.connect_failures() if problem.final]
    if len(final) >= len(set(client.hosts)):
        return f"no TLS with ZooKeeper: {'; '.join(map(str, final))}"
    return ""


def unanswered(client: KazooClient, handler: LinkHandler, access: Access) -> str:
    """Why there may have been no answer, as the end of a sentence; "" if nothing is known."""
    connect_failures = handler.connect_failures()
    if not connect_failures and access.sasl and handler.granted_timeout is not None:
        return "; they did not answer to the login: do they offer SASL?"
    why = describe_failures(connect_failures, len(set(client.hosts)))
    return f"; {why}" if why else ""


def translate(error: Exception, hosts: str, path: str, *, hung_up: bool) -> NoReturn:
    """Raise what an error of kazoo means here.

    Args:
        error: what a request ended with.
        hosts: the servers that were asked.
        path: what they were asked about.
        hung_up: whether the server ended the connection. To kazoo that is a failed login if it
            happens during one, but a server that dies refuses nobody.
    """
    at = f"ZooKeeper at {hosts}"
    if isinstance(error, NodeExistsError):
        raise Exists(path) from error
    if isinstance(error, NoNodeError):
        raise Missing(path) from error
    if isinstance(error, BadVersionError):
        raise Changed(path) from error
    if isinstance(error, KazooTimeoutError | OperationTimeoutError):
        raise Silent(f"{at} did not answer in time about {path}") from error
    if isinstance(error, ConnectionLoss | ConnectionClosedError | SessionExpiredError) or (
        hung_up and isinstance(error, AuthFailedError)
    ):
        raise Unreachable(
            f"the connection to {at} was lost while it was asked about {path}"
        ) from error
    if isinstance(error, SessionClosedRequireSaslError):
        raise Denied(f"{at} wants a login that this client has not made") from error
    if isinstance(error, AuthFailedError):
        raise Denied(f"{at} refuses the credentials") from error
    if isinstance(error, NoAuthError | InvalidACLError):
        raise Denied(f"{at} does not allow this for {path}") from error
    raise ArbiterError(f"{at} answered {type(error).__name__} about {path}") from error


def _quiet_logger() -> logging.Logger:
    """The logger of kazoo without its debug lines: they show requests, credentials included."""
    logger = logging.getLogger("kazoo.client")
    if _worth_reading not in logger.filters:
        logger.addFilter(_worth_reading)
    return logger


def _worth_reading(record: logging.LogRecord) -> bool:
    # kazoo does not expect that a server demands a login and refuses this one, and shows a
    # traceback; it is said in one sentence by `refusal`.
    error = record.exc_info[1] if record.exc_info else None
    expected = isinstance(error, SessionClosedRequireSaslError)
    return record.levelno >= logging.INFO and not expected
