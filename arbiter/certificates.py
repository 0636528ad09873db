"""Certificates: whose they are, and how long they are valid.

Imports `cryptography` when one is read: most commands speak no TLS, and it takes time.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Certificate as X509Certificate


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate.

    Attributes:
        subject: whose it is, such as ``CN=zk1,O=Example``.
        issuer: who signed it.
        begins: since when it is valid, seconds since 1970 UTC.
        expires: until when.
        der: the certificate itself.
    """

    subject: str
    issuer: str
    begins: float
    expires: float
    der: bytes = field(default=b"", repr=False)


def certificates_in(file: str) -> tuple[Certificate, ...]:
    """All certificates in a PEM file, in their order; none if it cannot be read.

    What is wrong with a file, whoever loads it says.
    """
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415 - see above

    try:
        return tuple(map(_read, load_pem_x509_certificates(Path(file).read_bytes())))
    except (OSError, ValueError):
        return ()


def shown_by(secured: ssl.SSLSocket) -> tuple[Certificate, ...]:
    """What the other side has shown: its own certificate, then those that it is trusted by.

    The certificate stands alone before Python 3.13, which does not tell the others, and where this
    side has not verified it. Empty if it cannot be read.
    """
    from cryptography.x509 import load_der_x509_certificate  # noqa: PLC0415 - see above

    try:
        return tuple(_read(load_der_x509_certificate(each)) for each in _shown(secured))
    except ValueError:
        return ()


def signed_by(certificate: Certificate, authority: Certificate) -> bool:
    """Whether an authority has signed a certificate; one of its name may have another key."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see above
    from cryptography.x509 import load_der_x509_certificate  # noqa: PLC0415

    if certificate.issuer != authority.subject:
        return False
    try:
        load_der_x509_certificate(certificate.der).verify_directly_issued_by(
            load_der_x509_certificate(authority.der)
        )
    except (InvalidSignature, TypeError, ValueError):
        return False
    return True


def _shown(secured: ssl.SSLSocket) -> Sequence[bytes]:
    describe_failures = getattr(secured, "get_verified_chain", None)
    if describe_failures is not None and secured.context.verify_mode is not ssl.CERT_NONE:
        return describe_failures()
    own = secured.getpeercert(binary_form=True)
    return [own] if own else []


def _read(certificate: X509Certificate) -> Certificate:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - see above

    return Certificate(
        certificate.subject.rfc4514_string(),
        certificate.issuer.rfc4514_string(),
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
        certificate.public_bytes(Encoding.DER),
    )
