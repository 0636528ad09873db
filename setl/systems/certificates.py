"""How long the certificate of a server is valid that speaks TLS from the first byte on."""

from __future__ import annotations

import socket
import ssl

from setl.errors import TransientError
from setl.systems.expiry import Expiration

_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED


def certificate_at(
    host: str, port: int, ca: str = "", *, seconds: float = 5.0
) -> Expiration | None:
    """How long the certificate at an address is valid; None if it does not tell.

    One that has expired already did so at 0.0.

    Args:
        host: name or address.
        port: TCP port.
        ca: file with the authorities that it must come from, "" for those of the system.
        seconds: how long an answer may take.

    Raises:
        TransientError: nothing answers there, or no trusted certificate.
    """
    try:
        context = ssl.create_default_context(cafile=ca or None)
        context.check_hostname = False  # whoever uses it looks at the name; this is about the time
        with (
            socket.create_connection((host, port), timeout=seconds) as plain,
            context.wrap_socket(plain, server_hostname=host) as secured,
        ):
            found = secured.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == _EXPIRED:
            return Expiration("certificate", f"{host}:{port}", 0.0)
        raise TransientError(
            f"the certificate is not trusted: {error.verify_message}", server=f"{host}:{port}"
        ) from error
    except OSError as error:
        raise TransientError(f"no TLS there: {error}", server=f"{host}:{port}") from error
    since, until = (_seconds(found.get(name)) for name in ("notBefore", "notAfter"))
    return until if until is None else Expiration("certificate", f"{host}:{port}", until, since)


def _seconds(time: object) -> float | None:
    return float(ssl.cert_time_to_seconds(time)) if isinstance(time, str) else None
