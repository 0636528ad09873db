"""A certificate authority of one's own, and certificates that it signs, as PEM files."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=7)
_LATE_CLOCKS = timedelta(hours=1)


class CertificateAuthority:
    """Signs certificates for servers and clients; its key lives in memory only.

    Attributes:
        certificate: PEM file with the authority's own certificate, which others trust.
    """

    def __init__(self, folder: Path, name: str = "setl embedded authority") -> None:
        """Make a key and a certificate, and write the certificate to ``ca.pem`` in `folder`.

        Args:
            folder: where files go.
            name: the authority's common name.
        """
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.pem"
        _write(self.certificate, _pem(certificate))

    def issue(
        self,
        name: str,
        *,
        hosts: Sequence[str] = (),
        password: str = "",
        life: timedelta = _LIFE,
    ) -> tuple[Path, Path]:
        """Make a key and a certificate for it, fit for servers and clients.

        Args:
            name: the subject's common name, and the files' names.
            hosts: host names and addresses that the certificate is good for.
            password: what the key's file is encrypted with, "" for not at all.
            life: how long from now it is valid; less than nothing makes one that has expired.

        Returns:
            The files with the certificate and with the key (PKCS #8, which Java reads).
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_name(name), self._name, key.public_key(), life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        encryption = (
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption()
        )
        certificate_file = self._folder / f"{name}.pem"
        key_file = self._folder / f"{name}-key.pem"
        _write(certificate_file, _pem(builder.sign(self._key, hashes.SHA256())))
        _write(
            key_file,
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            ),
        )
        return certificate_file, key_file


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    life: timedelta = _LIFE,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LATE_CLOCKS)
        .not_valid_after(now + life)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)
