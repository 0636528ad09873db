"""Tells a broker that refuses from one that does not answer.

kafka-python tries a connection again whatever it failed of, and says in the end that no broker
answered. Who has a wrong password would wait for ever, so here every connection's failure is
looked at, and the first that trying again will not mend ends the attempt.
"""

from __future__ import annotations

import ssl
from functools import partial
from typing import Any

from kafka.errors import (
    AuthorizationError,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient  # pyright: ignore[reportMissingTypeStubs]
from kafka.net.manager import KafkaConnectionManager  # pyright: ignore[reportMissingTypeStubs]
from kafka.net.selector import NetworkSelector  # pyright: ignore[reportMissingTypeStubs]

from setl.errors import ConfigurationError
from setl.systems.kafka.receiving import receive_fast

# These also come of a connection that was cut in the middle of the handshake.
_CUT = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class RefusedError(KafkaError):
    """A broker or a file will refuse again next time; `reason` says what to tell people."""

    def __init__(self, reason: ConfigurationError) -> None:
        super().__init__(reason.message)
        self.reason = reason


class ClientMaker:
    """Makes the client inside a KafkaConsumer, and keeps it.

    A consumer that cannot be made leaves its client running, with a thread; nobody but its
    maker can close it.
    """

    def __init__(self) -> None:
        self._client: Any = None
        self._failures: _Failures | None = None

    def __call__(self, **settings: Any) -> Any:
        """See the setting `kafka_client` of KafkaConsumer."""
        # The library has no types for what is behind its API.
        make_net: Any = NetworkSelector
        make_manager: Any = KafkaConnectionManager
        make_client: Any = KafkaNetClient
        net = make_net(**settings)
        manager = make_manager(net, **settings)
        receive_fast(manager)
        self._failures = _Failures(manager)
        self._client = make_client(net=net, manager=manager, **settings)
        return self._client

    @property
    def last_failure(self) -> str:
        """What the last connection failed of, "" if none has."""
        return self._failures.last if self._failures else ""

    def close(self) -> None:
        """End the client's thread and its connections."""
        if self._client is not None:
            self._client.close()


class _Failures:
    """What the connections of one manager failed of.

    The library has a place for refused logins too, but asks for the failure before there is one.
    """

    def __init__(self, manager: Any) -> None:
        self.last = ""
        self._refused: dict[Any, RefusedError] = {}
        self._manager = manager
        self._get_connection = manager.get_connection
        manager.get_connection = self.get_connection

    def get_connection(self, node_id: Any, *args: Any, **more: Any) -> Any:
        """In place of the manager's own; nobody catches what this raises."""
        refused = self._refused.get(node_id)
        if refused is not None:
            raise refused
        known = self._manager._conns.get(node_id)  # noqa: SLF001
        connection = self._get_connection(node_id, *args, **more)
        if connection is not known:
            connection.init_future.add_errback(partial(self._failed, node_id))
            connection.close_future.add_errback(partial(self._failed, node_id))
        return connection

    def _failed(self, node_id: Any, error: BaseException) -> None:
        self.last = _text(error)
        reason = refusal(error)
        if reason is not None:
            self._refused[node_id] = RefusedError(reason)


def refusal(error: BaseException) -> ConfigurationError | None:
    """What a connection failed of, if trying again will not help."""
    if isinstance(error, UnsupportedSaslMechanismError | IllegalSaslStateError):
        return ConfigurationError(
            f"Kafka does not offer the way to log in that was chosen: {_text(error)}",
            hint="Choose another `mechanism`, or none if the brokers ask for no account",
        )
    if isinstance(error, SaslAuthenticationFailedError | AuthorizationError):
        return ConfigurationError(
            f"Kafka refuses the account: {_text(error)}",
            hint="Check `user`, `password` and, for a subscription, `sid`",
        )
    if isinstance(error, ssl.SSLError | FileNotFoundError | PermissionError | IsADirectoryError):
        # Before anything was sent: a certificate that cannot be used.
        return ConfigurationError(
            f"a file for TLS cannot be used: {error.strerror or _text(error)}",
            hint="Check `ssl_ca`, and the files named under `kafka`",
        )
    cause = error.__context__  # of a handshake that failed
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ConfigurationError(
            f"the broker's certificate is not trusted: {cause.verify_message}",
            hint="Check `ssl_ca`, and that the certificate names the broker's address",
        )
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, _CUT):
        return ConfigurationError(
            f"the broker does not speak TLS as it should: {cause.reason or cause}",
            hint="Check the port, and whether the brokers use TLS at all (`ssl_ca`)",
        )
    return None


def _text(error: BaseException) -> str:
    return ", ".join(map(str, error.args)) or type(error).__name__
