"""TLS of the connection to ZooKeeper, from files that people name."""

from __future__ import annotations

import ssl
from pathlib import Path

from arbiter.access import Tls
from arbiter.certificates import certificates_in
from arbiter.errors import Invalid


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
        for what, file in (("certificate", tls.certificate), ("key", tls.key)):
            _look_into(what, file)
        try:
            # Always with a password: without one OpenSSL would ask at the terminal, and wait.
            context.load_cert_chain(tls.certificate, tls.key or None, tls.key_password)
        except OSError as error:
            raise Invalid(_unusable(tls, error)) from error
    return context


def _look_into(what: str, file: str) -> None:
    """See whether a file can be read: OpenSSL does not say which one cannot.

    Raises:
        Invalid: it cannot.
    """
    if not file:
        return
    try:
        with Path(file).open("rb") as opened:
            opened.read(1)
    except OSError as error:
        raise Invalid(f"cannot read the {what} {file}: {_reason(error)}") from error


def _unusable(tls: Tls, error: OSError) -> str:
    """Why files that can be read are of no use."""
    if not certificates_in(tls.certificate):
        return f"there is no certificate (PEM) in {tls.certificate}"
    named = f"{tls.certificate} and the key {tls.key}" if tls.key else tls.certificate
    return f"cannot use the certificate {named}: {_reason(error)}"


def _reason(error: OSError) -> str:
    """What went wrong with a file; OpenSSL's words for it need some help."""
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    reason = error.reason or ""
    if reason == "KEY_VALUES_MISMATCH":
        return "the key belongs to another certificate; put both files there that belong together"
    # All that Python tells of a wrong password is that PEM could not be read.
    return reason.lower().replace("_", " ") or (
        "the key is not there, is not PEM, or its password is wrong or missing"
    )
