"""Ways to log in that a server asks for and this client does not take."""

import socket
import ssl
import struct
import threading
from contextlib import suppress
from functools import cache

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from setl.errors import ConfigurationError, NodeNotReadyError, SetlError, UntrustedServerError
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.login import PlainConnection
from setl_embedded.certificates import CertificateAuthority

PASSWORD = "the very secret"
# PROTOCOL_41, SSL, SECURE_CONNECTION, PLUGIN_AUTH:
# https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html
CAPABILITIES, TLS = 0x200 | 0x8000 | 0x80000, 0x800
SALT = b"12345678abcdefghijkl"
SWITCHED_TO = (
    b"mysql_clear_password", b"dialog", b"mysql_old_password", b"sha256_password",
    b"caching_sha2_password",
)  # fmt: skip
REFUSED = "asks for the password itself"
_ENCRYPTED = 256  # bytes that a key of 2048 bits makes of a password


def packet(number, body):
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


def greeting(plugin, capabilities):
    return (
        b"\x0a8.4.0\x00" + struct.pack("<I", 1) + SALT[:8] + b"\0"
        + struct.pack("<H", capabilities & 0xFFFF) + b"\x2d\x02\x00"
        + struct.pack("<H", capabilities >> 16) + b"\x15" + bytes(10) + SALT[8:] + b"\0"
        + plugin + b"\0"
    )  # fmt: skip


@cache
def key():
    return rsa.generate_private_key(65537, 2048)


def public_key():
    return (
        key()
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


class Impostor:
    """Answers instead of a server, and keeps what it is told.

    Args:
        plugin: the way to log in that it asks for once a client has begun.
        greeted: the one that its greeting names.
        tls: the context with which it takes TLS; None offers none.
    """

    def __init__(self, plugin, greeted=b"mysql_native_password", tls=None):
        self._plugin, self._greeted, self._tls = plugin, greeted, tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(20)
        self.port = self._listening.getsockname()[1]
        self.reported: list[bytes] = []
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        with self._listening:
            client, _ = self._listening.accept()
        with suppress(OSError), client:
            client.settimeout(20)
            offered = CAPABILITIES | (TLS if self._tls else 0)
            client.sendall(packet(0, greeting(self._greeted, offered)))
            number = 2
            if self._tls:
                client.recv(36)  # the request for TLS, as long as it always is
                client, number = self._tls.wrap_socket(client, server_side=True), 3
            self.reported.append(client.recv(4096))
            prompt = b"\x05Password: " if self._plugin == b"dialog" else SALT + b"\0"
            client.sendall(packet(number, b"\xfe" + self._plugin + b"\0" + prompt))
            while more := client.recv(4096):
                self.reported.append(more)
                body = more[4:]
                number = more[3] + 1
                if len(body) == _ENCRYPTED:
                    return  # nobody waits for an answer
                if body in {b"\1", b"\2"}:
                    client.sendall(packet(number, b"\1" + public_key()))
                elif self._plugin == b"caching_sha2_password" and len(body) == 32:
                    client.sendall(packet(number, b"\1\4"))  # the full exchange, please

    def has_the_password(self):
        """Whether it was told as it is, or encrypted for a key that it has itself."""
        self.thread.join(20)
        assert self.reported, "it was asked"
        return any(
            PASSWORD.encode() in reported or PASSWORD in _opened(reported[4:])
            for reported in self.reported
        )


def _opened(body):
    """What was encrypted for the impostor's key, "" if it was not."""
    with suppress(ValueError):
        hidden = key().decrypt(body, padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None))
        return bytes(c ^ SALT[i % len(SALT)] for i, c in enumerate(hidden)).decode()
    return ""


@pytest.fixture
def far(monkeypatch):
    """As if servers were on other machines."""
    monkeypatch.setattr("setl.systems.mysql.connection.stays_here", lambda _: False)


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """What an impostor takes TLS with: a certificate of its own."""
    authority = CertificateAuthority(tmp_path_factory.mktemp("rogue"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("rogue", hosts=["127.0.0.1"]))
    return context


def endpoint(impostor, **given):
    return MysqlEndpoint("127.0.0.1", impostor.port, "u", PASSWORD, **given)


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("greeted", [b"mysql_native_password", *SWITCHED_TO[-2:]])
@pytest.mark.parametrize("plugin", SWITCHED_TO)
def test_whoever_answers_is_not_given_the_password(far, tls, plugin, greeted, encrypted):
    impostor = Impostor(plugin, greeted, tls if encrypted else None)
    with pytest.raises(ConfigurationError, match=REFUSED) as caught:
        connect(endpoint(impostor))
    assert not impostor.has_the_password()
    assert "`server_public_key`" in caught.value.hint
    assert caught.value.where["server"] == f"127.0.0.1:{impostor.port}"


@pytest.mark.parametrize("plugin", SWITCHED_TO[:3])
def test_nor_is_it_on_this_machine_as_it_is(plugin):
    impostor = Impostor(plugin)
    with pytest.raises(ConfigurationError, match=REFUSED):
        connect(endpoint(impostor))
    assert not impostor.has_the_password()


@pytest.mark.parametrize("plugin", SWITCHED_TO[-2:])
def test_with_the_right_key_an_impostor_gets_what_it_cannot_read(far, tmp_path, plugin):
    other = rsa.generate_private_key(65537, 2048).public_key()
    pem = tmp_path / "server.pem"
    pem.write_bytes(
        other.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    impostor = Impostor(plugin)
    with pytest.raises(SetlError):
        connect(endpoint(impostor, server_public_key=str(pem)))
    assert not impostor.has_the_password()
    assert any(len(reported) == 4 + _ENCRYPTED for reported in impostor.reported), (
        "it was encrypted and sent"
    )


@pytest.mark.parametrize("plugin", SWITCHED_TO[-2:])
def test_who_accepts_the_risk_logs_in(far, plugin):
    impostor = Impostor(plugin)
    with pytest.raises(SetlError):
        connect(endpoint(impostor, insecure_login=True))
    assert impostor.has_the_password()


def test_no_key_or_no_file(far, tmp_path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no key")
    impostor = Impostor(b"caching_sha2_password")
    with pytest.raises(ConfigurationError, match="no RSA key in PEM"):
        connect(endpoint(impostor, server_public_key=str(wrong)))
    with pytest.raises(NodeNotReadyError, match="No such file") as caught:
        connect(endpoint(impostor, server_public_key=str(tmp_path / "none")))
    assert "server_public_key" in caught.value.hint


def test_tls_that_is_taken_away_is_missed_before_anything_is_sent(tmp_path):
    authority = CertificateAuthority(tmp_path)
    impostor = Impostor(b"mysql_clear_password")
    with pytest.raises(UntrustedServerError, match="does not offer it"):
        connect(endpoint(impostor, ssl_ca=str(authority.certificate)))
    impostor.thread.join(20)
    assert impostor.reported in ([], [b""])


def test_no_release_of_the_library_takes_tls_away(monkeypatch, tmp_path):
    monkeypatch.setattr(PlainConnection, "__init__", lambda self, **_: None)
    monkeypatch.setattr(PlainConnection, "encrypted", False)
    monkeypatch.setattr(PlainConnection, "close", lambda _: None)
    monkeypatch.setattr(PlainConnection, "__del__", lambda _: None)
    with pytest.raises(UntrustedServerError, match="does not offer it"):
        connect(MysqlEndpoint("127.0.0.1", 1, "u", PASSWORD, ssl_ca="ca.pem"))


def test_a_way_to_log_in_that_is_not_known():
    impostor = Impostor(b"parsec")
    with pytest.raises(ConfigurationError, match="parsec") as caught:
        connect(MysqlEndpoint("127.0.0.1", impostor.port, "u", PASSWORD))
    assert "caching_sha2_password" in caught.value.hint
    impostor.thread.join(20)


def test_a_way_to_log_in_that_another_package_knows(monkeypatch):
    def lacking(*_):
        raise RuntimeError("'pynacl' package is required for ed25519_password auth method")

    monkeypatch.setattr("pymysql._auth.ed25519_password", lacking)
    impostor = Impostor(b"client_ed25519")
    with pytest.raises(NodeNotReadyError, match="'pynacl' package is required") as caught:
        connect(MysqlEndpoint("127.0.0.1", impostor.port, "u", PASSWORD))
    assert caught.value.where["server"] == f"127.0.0.1:{impostor.port}"
    impostor.thread.join(20)
