"""TLS of the connection to ZooKeeper, from files that people name."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

from arbiter.access import Tls
from arbiter.arbiter import Invalid

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_VERSION, _UTC_TIME, _LONG = 0xA0, 0x17, 0x80  # of DER


def client_context(tls: Tls) -> ssl.SSLContext:
    """What a client needs to speak TLS 1.2 or newer.

    If `tls.ca` is given, only servers with a certificate from there are trusted, and not those
    that the whole world trusts.

    Raises:
        Invalid: a file is missing or is not what it should be, or the key's password is wrong.
    """
    try:
        context = ssl.create_default_context(cafile=tls.ca or None)
    except OSError as error:
        raise Invalid(f"no certificates of authorities in {tls.ca}: {_reason(error)}") from error
    # Python's own builds say so by themselves, those of distributions leave it to OpenSSL's file.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_hostname
    if tls.key and not tls.certificate:
        raise Invalid(f"the key {tls.key} is of no use without its certificate")
    if tls.certificate:
        try:
            # Always with a password: without one OpenSSL would ask at the terminal, and wait.
            context.load_cert_chain(tls.certificate, tls.key or None, tls.key_password)
        except OSError as error:
            named = f"{tls.certificate} and the key {tls.key}" if tls.key else tls.certificate
            raise Invalid(f"cannot use the certificate {named}: {_reason(error)}") from error
    return context


def expired(file: str, now: datetime) -> str:
    """Since when a certificate is not valid any more, for people; "" if it is, or nobody knows.

    Args:
        file: with the certificate as PEM, the first if there are several.
        now: the time.
    """
    try:
        text = Path(file).read_text(encoding="ascii")
        begin = text.index(_BEGIN)
        end = text.index(_END, begin) + len(_END)
        until = _not_after(ssl.PEM_cert_to_DER_cert(text[begin:end]))
    except (OSError, ValueError, IndexError):
        return ""  # what is wrong with the file, whoever loads it says
    return f"{until:%Y-%m-%d %H:%M} UTC" if until < now else ""


def _not_after(certificate: bytes) -> datetime:
    """The end of a certificate's validity.

    Source: RFC 5280, section 4.1: Certificate > tbsCertificate > version if it is not 1, serial
    number, algorithm, issuer, validity > notBefore, notAfter.

    Raises:
        ValueError: it is not encoded as it should be; so does IndexError.
    """
    fields = _parts(_parts(_parts(certificate)[0][1])[0][1])
    validity = fields[3 + (fields[0][0] == _VERSION)][1]
    tag, content = _parts(validity)[1]
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(content.decode("ascii"), form).replace(tzinfo=UTC)


def _parts(der: bytes) -> list[tuple[int, bytes]]:
    """The values of DER that stand one after another: tag and content of each."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length >= _LONG:  # the number of bytes that say how long it is
            size = length - _LONG
            length, at = int.from_bytes(der[at : at + size], "big"), at + size
        found.append((tag, der[at : at + length]))
        at += length
    return found


def _reason(error: OSError) -> str:
    """What went wrong with a file; OpenSSL's words for it need some help."""
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    reason = error.reason or ""
    if reason == "KEY_VALUES_MISMATCH":
        return "the key belongs to another certificate"
    # All that Python tells of a wrong password is that PEM could not be read.
    return reason.lower().replace("_", " ") or "not PEM, or the key's password is wrong or missing"
