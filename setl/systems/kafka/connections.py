"""Tells a broker that refuses from one that does not answer.

librdkafka tries a connection again whatever it failed of, and reports each failure beside its
answers. Who has a wrong password would wait for ever, so the first failure that trying again does
not cure ends the attempt.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from confluent_kafka import KafkaError

from setl.errors import (
    ConfigurationError,
    LoginRefusedError,
    SetlError,
    TransientError,
    UntrustedServerError,
)
from setl.systems.kafka.errors import LOGGER

# Around what a failure says: which connection it is of, and since when.
_BEFORE: Final = re.compile(r"^\S+/(?:bootstrap|-?\d+): ")
_AFTER: Final = re.compile(r" \(after \d+ms in state [A-Z_]+.*\)$")
_NO_SUCH_WAY: Final = ("mechanism handshake failed", "Unsupported SASL mechanism")
# These also come of a connection that was cut in the middle of the handshake.
_CUT: Final = ("Disconnected", "connection reset", "unexpected eof", "Broken pipe", "SSL_ERROR_SYS")


def reason_of(error: KafkaError) -> str:
    """What a failure says, without the connection's name and age."""
    return _AFTER.sub("", _BEFORE.sub("", error.str()))


def refusal(error: KafkaError) -> ConfigurationError | None:
    """What a connection failed of, if trying again will not help."""
    name, reason = error.name(), reason_of(error)
    if name == "_AUTHENTICATION" and any(phrase in reason for phrase in _NO_SUCH_WAY):
        return ConfigurationError(
            f"Kafka does not offer the way to log in that was chosen: {reason}",
            hint="Choose another `mechanism`, or none if the brokers ask for no account",
        )
    if name in ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"):
        return LoginRefusedError(
            f"Kafka refuses the account: {reason}",
            hint="Check `user`, `password` and, for a subscription, `sid`",
        )
    if name != "_SSL" or any(phrase in reason for phrase in _CUT):
        return None
    if "certificate verify failed" in reason:
        return UntrustedServerError(
            # What follows is about librdkafka's own names, and the same if the address is wrong.
            f"the broker's certificate is not trusted: {reason.partition(', verify that')[0]}",
            hint="Check `ssl_ca`, and that the certificate names the broker's address",
        )
    return ConfigurationError(
        f"the broker does not speak TLS as it should: {reason}",
        hint="Check the port, and whether the brokers use TLS at all (`ssl_ca`)",
    )


def wrong_setting(error: BaseException) -> ConfigurationError:
    """What a client that cannot be made says of its settings."""
    what = error.args[0].str() if isinstance(error.args[0], KafkaError) else str(error)
    if "ssl." in what and "No such configuration property" not in what:
        return ConfigurationError(
            f"a file for TLS cannot be used: {what}",
            hint="Check `ssl_ca`, and the files named under `kafka`",
        )
    return ConfigurationError(
        f"a Kafka setting is wrong: {what}",
        hint="They are named and written as in librdkafka's CONFIGURATION.md",
    )


class Connections(logging.Handler):
    """What a client reports of its connections: by `error_cb`, and in its log.

    A single lost connection, of several, stands in the log only.

    Attributes:
        lost: whether a connection was lost that stood. May be set back.
    """

    def __init__(self) -> None:
        """For one client."""
        super().__init__()
        self.lost = False
        self._last = ""
        self._refusal: ConfigurationError | None = None

    def logger(self) -> logging.Logger:
        """Where a client is to write, inside `poll`."""
        # One of its own, which `getLogger` would keep for ever.
        logger = logging.Logger(LOGGER.name)  # noqa: LOG001
        logger.addHandler(self)
        return logger

    def heard(self, error: KafkaError) -> None:
        """Librdkafka's `error_cb`, called inside `poll`."""
        if error.name() == "_ALL_BROKERS_DOWN":
            self.lost = True
            return
        self._last = reason_of(error)
        self._refusal = self._refusal or refusal(error)

    def emit(self, record: logging.LogRecord) -> None:
        """Take in a line of the log."""
        text = record.getMessage()
        LOGGER.debug("%s", text)
        if text.startswith("FAIL ") and "GroupCoordinator" not in text and "Connect to" not in text:
            self.lost = True
            self._last = text.rpartition("]: ")[2]

    def raise_refusal(self) -> None:
        """Raise the first failure that trying again does not cure."""
        if self._refusal is not None:
            raise self._refusal

    def instead_of(self, late: SetlError) -> SetlError:
        """The error to raise for a question without an answer."""
        if not self._last:
            return late
        # Brokers close a connection that speaks no TLS, or does not log in, without a word.
        return TransientError(
            f"{late.message}; the last connection failed: {self._last}",
            hint="Check `brokers`, and whether they ask for TLS (`ssl_ca`) or an account (`user`)",
        )
