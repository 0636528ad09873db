"""Credentials and encryption of the connection to ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tls:
    """Encryption of the connection.

    Attributes:
        ca: file with the certificates that sign the servers', "" for the system's own.
        certificate: file with this client's certificate, "" if servers do not ask for one.
        key: file with its private key.
        key_password: password of that file.
        check_hostname: whether a server's certificate has to name the host connected to.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class Access:
    """Credentials and encryption; all of it is left out by default.

    With credentials, digest or SASL or both, every znode is made so that these credentials may
    do everything and nobody else may even read. Then a root that lets others in is refused.
    Servers know a digest by nothing but what was made with it: a wrong password is noticed once
    there is something that it does not open. A certificate is not a credential in this sense.

    Attributes:
        digest: ``user:password`` of ZooKeeper's digest scheme, "" for none.
        sasl: options of a SASL login as kazoo takes them, for example mechanism, username and
            password. Takes the package ``pure-sasl``.
        tls: encryption, None for a plain connection.
    """

    digest: str = field(default="", repr=False)
    sasl: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    tls: Tls | None = None
