"""TLS and SASL for embedded ZooKeeper servers, with keys and passwords made up at the start."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from setl_embedded.certificates import CertificateAuthority
from setl_embedded.ports import HOST


class ZooKeeperSecurity:
    """What secured servers and their clients have to know; one may serve a whole ensemble.

    Everything secret lies in files of `folder` that only their owner reads. Nothing secret is
    on a command line.

    Attributes:
        tls: whether servers speak TLS, and nothing else, on their client ports.
        authority: signs more certificates, such as one that has expired.
        ca: PEM file with the authority that signed the servers' certificate.
        certificate: PEM file with a client's certificate, signed by the same authority.
        key: PEM file with its private key, encrypted.
        key_password: the password of that file.
        passwords: SASL account → password.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        tls: bool = False,
        client_certificates: bool = False,
        server_names: Sequence[str] = (HOST, "localhost"),
        accounts: Sequence[str] = (),
        require_sasl: bool = False,
    ) -> None:
        """Make keys, certificates and passwords, and write the files.

        Args:
            folder: where the files go.
            tls: whether the servers are to speak TLS.
            client_certificates: whether they refuse clients that show no certificate.
            server_names: hosts that the servers' certificate names.
            accounts: names that may log in by SASL (DIGEST-MD5); none means no SASL.
            require_sasl: whether servers refuse clients that have not logged in by SASL.
        """
        self.tls = tls
        self._client_certificates = client_certificates
        self._require_sasl = require_sasl
        self._folder = Path(folder).absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        self.passwords: Mapping[str, str] = {name: secrets.token_urlsafe(12) for name in accounts}
        self.authority = authority = CertificateAuthority(self._folder)
        self.ca = authority.certificate
        self.key_password = secrets.token_urlsafe(12)
        self.certificate, self.key = authority.issue(
            "client", hosts=(HOST, "localhost"), password=self.key_password
        )
        certificate, key = authority.issue("server", hosts=server_names)
        self._server_store = self._write(
            "server-store.pem", key.read_text() + certificate.read_text()
        )
        self._jaas = self._write("jaas.conf", _jaas(self.passwords))

    def settings(self, port: int) -> list[str]:
        """Lines of ``zoo.cfg``, those of the client port included."""
        lines: list[str] = []
        if self.tls:
            lines += [
                f"secureClientPort={port}",
                f"secureClientPortAddress={HOST}",
                # The default one, NIO, speaks no TLS.
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                f"ssl.keyStore.location={self._server_store}",
                "ssl.keyStore.type=PEM",
                f"ssl.trustStore.location={self.ca}",
                "ssl.trustStore.type=PEM",
                f"ssl.clientAuth={'need' if self._client_certificates else 'none'}",
            ]
        else:
            lines += [f"clientPort={port}", f"clientPortAddress={HOST}"]
        if self.passwords:
            lines += [
                "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
            ]
        if self._require_sasl:
            lines += ["enforce.auth.enabled=true", "enforce.auth.schemes=sasl"]
        return lines

    def java_options(self) -> list[str]:
        """Options of the JVM; they name files, whose content is secret."""
        if not self.passwords:
            return []
        return [f"-Djava.security.auth.login.config={self._jaas}"]

    def context(self) -> ssl.SSLContext | None:
        """How a client speaks TLS with the servers, None if they do not.

        It does not compare host names, so that servers with another name can be asked, too.
        """
        if not self.tls:
            return None
        context = ssl.create_default_context(cafile=str(self.ca))
        context.check_hostname = False
        context.load_cert_chain(self.certificate, self.key, self.key_password)
        return context

    def _write(self, name: str, content: str) -> Path:
        file = self._folder / name
        file.touch(mode=0o600)
        file.write_text(content)
        return file


def _jaas(passwords: Mapping[str, str]) -> str:
    """A JAAS file for ZooKeeper's servers.

    Source: ZooKeeper's ``DigestLoginModule``, whose options are ``user_NAME="PASSWORD"``.
    """
    users = "\n".join(f'  user_{name}="{password}"' for name, password in passwords.items())
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    return f"Server {{\n  {module}\n{users};\n}};\n"
