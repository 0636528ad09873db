"""Why a connection to a server failed, in words, and whether it will fail the next time, too."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from arbiter.access import Tls
from arbiter.certificates import certificates_in

_UNKNOWN_NAME = (socket.EAI_NONAME, socket.EAI_NODATA)
"""Others say that the name could not be asked for just now."""


@dataclass(frozen=True, slots=True)
class ConnectFailure:
    """Why no session began on the last connection to a server.

    Attributes:
        server: ``host:port`` as it was named.
        reason: what happened, as the end of a sentence.
        final: a certificate was refused; it will be the next time, too.
        refused: somebody answered at once that there is no server: its machine, or whoever
            knows names.
    """

    server: str
    reason: str
    final: bool
    refused: bool = False

    def __str__(self) -> str:
        return f"{self.server}: {self.reason}"


def describe_failures(connect_failures: Iterable[ConnectFailure], servers: int) -> str:
    """All troubles in a sentence without its end, the same for the same ones; "" for none.

    Args:
        connect_failures: one for each server at most.
        servers: how many servers there are.
    """
    found = sorted(connect_failures, key=lambda each: each.server)
    sentence = "; ".join(map(str, found))
    needed = servers // 2 + 1
    if servers > 1 and servers - len(found) < needed:
        sentence += f"; {needed} of the {servers} servers must run and have joined each other"
    return sentence


def connect_failure_of(server: str, error: OSError | None, tls: Tls | None) -> ConnectFailure:
    """What a failed connection means.

    Args:
        server: which one.
        error: what it failed with, None if the server ended it before a session began.
        tls: what this side spoke TLS with, None if it did not.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = f"its certificate is not accepted: {error.verify_message}"
        return ConnectFailure(server, reason, final=True)
    if isinstance(error, ssl.SSLError) and "_ALERT_" in (error.reason or ""):
        alert = (error.reason or "").partition("_ALERT_")[2]
        said = alert.lower().replace("_", " ")
        if "CERT" in alert or alert in ("UNKNOWN_CA", "ACCESS_DENIED"):
            return ConnectFailure(server, _tls_refusal(tls, said), final=True)
        return ConnectFailure(server, f"it ended TLS: {said}", final=False)
    if isinstance(error, ssl.SSLError):
        said = (error.reason or str(error)).lower().replace("_", " ")
        return ConnectFailure(server, f"TLS failed; is it a TLS port? ({said})", final=False)
    if error is None or isinstance(error, ConnectionResetError | BrokenPipeError):
        reason = (
            f"it ended the connection before a session began; it has no quorum, or {_wish(tls)}"
        )
        return ConnectFailure(server, reason, final=False)
    reason, refused = error.strerror or str(error), isinstance(error, ConnectionRefusedError)
    if isinstance(error, socket.gaierror):
        reason, refused = f"its name cannot be looked up: {reason}", error.errno in _UNKNOWN_NAME
    return ConnectFailure(server, reason, final=False, refused=refused)


def _wish(tls: Tls | None) -> str:
    """What a server may want that ends a connection without a word."""
    if tls is None:
        return "it wants TLS"
    if not tls.certificate:
        return "it wants a client certificate or speaks no TLS"
    # ZooKeeper takes one in TLS by its truststore of now, and in the session by that of its start.
    return (
        f"it did not trust the authority of this client's certificate, {tls.certificate}, when it"
        " was started, or it speaks no TLS"
    )


def _tls_refusal(tls: Tls | None, said: str) -> str:
    """Why a server may not have taken what it was shown, and the hint."""
    certificate = tls.certificate if tls else ""
    if not certificate:
        return (
            f"it wants a certificate, and this client was given none ({said}); give it one of an"
            " authority that the server trusts, and its key"
        )
    expires = [each.expires for each in certificates_in(certificate)]
    if expires and min(expires) < time.time():
        since = f"{datetime.fromtimestamp(min(expires), UTC):%Y-%m-%d %H:%M} UTC"
        return f"the certificate of this client, {certificate}, expired at {since}; renew it"
    return (
        f"it does not accept the certificate of this client, {certificate} ({said}); its truststore"
        " must have the authority of that"
    )
