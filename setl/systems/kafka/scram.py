"""Logs in to Kafka with SCRAM, and says in words why that fails.

kafka-python reads a refusal of RFC 5802 (`e=…`) as if it were an answer and fails with
``KeyError('v')``, which would count as a lost connection, for ever. It also sends a name with a
comma or an equals sign as it is, which the broker reads as another name.

Source: https://www.rfc-editor.org/rfc/rfc5802, sections 5.1 and 7.
"""

from __future__ import annotations

from typing import Any, Final

from kafka.errors import SaslAuthenticationFailedError
from kafka.net import sasl  # pyright: ignore[reportMissingTypeStubs]
from kafka.net.sasl.scram import SaslMechanismScram  # pyright: ignore[reportMissingTypeStubs]

_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_USER: Final = "sasl_plain_username"


class Scram:
    """One login, as kafka-python asks for it; one is made for each connection."""

    def __init__(self, **config: Any) -> None:
        """Nothing is sent yet; `config` holds the settings of the connection."""
        user = str(config.get(_USER) or "").replace("=", "=3D").replace(",", "=2C")
        make: Any = SaslMechanismScram  # the library has no types here
        self._login = make(**{**config, _USER: user})

    def auth_bytes(self) -> bytes:
        """The next message to the broker."""
        return self._login.auth_bytes()

    def is_done(self) -> bool:
        """Whether no further message is to be sent."""
        return self._login.is_done()

    def is_authenticated(self) -> bool:
        """Whether both sides know the password."""
        return self._login.is_authenticated()

    def auth_details(self) -> str:
        """Who is logged in, for the log."""
        return self._login.auth_details()

    def receive(self, auth_bytes: bytes) -> bool:
        """Take an answer of the broker in; returns whether the login is complete.

        Raises:
            SaslAuthenticationFailedError: the broker refuses, or its answer proves nothing.
        """
        if auth_bytes.startswith(b"e="):
            reason = auth_bytes[2:].split(b",")[0].decode("utf-8", "replace")
            raise SaslAuthenticationFailedError(f"the broker answers {reason!r} to the login")
        try:
            return bool(self._login.receive(auth_bytes))
        except KeyError as error:
            raise SaslAuthenticationFailedError(
                f"the broker's answer to the login has no {error}"
            ) from error
        except ValueError as error:
            raise SaslAuthenticationFailedError(
                f"the broker's answer to the login proves nothing: {error}"
            ) from error


def register() -> None:
    """Make all of kafka-python's connections log in this way."""
    known: Any = sasl  # without types
    for name in _MECHANISMS:
        known.register_sasl_mechanism(name, Scram, overwrite=True)
