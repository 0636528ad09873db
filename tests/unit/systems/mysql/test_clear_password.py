"""Ways to log in that a server asks for and this client does not take."""

import socket
import struct
import threading

import pytest

from setl.errors import ConfigurationError, NodeLacksError
from setl.systems.mysql.connection import MysqlEndpoint, connect

PASSWORD = "the very secret"
# PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH: https://dev.mysql.com/doc/dev/mysql-server/latest/
CAPABILITIES = 0x200 | 0x8000 | 0x80000


def packet(number, body):
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


def greeting():
    scramble = b"12345678abcdefghijkl"
    return (
        b"\x0a8.4.0\x00" + struct.pack("<I", 1) + scramble[:8] + b"\0"
        + struct.pack("<H", CAPABILITIES & 0xFFFF) + b"\x2d\x02\x00"
        + struct.pack("<H", CAPABILITIES >> 16) + b"\x15" + bytes(10) + scramble[8:] + b"\0"
        + b"mysql_native_password\0"
    )  # fmt: skip


class Impostor:
    """Answers in the place of a server, and keeps what it is told."""

    def __init__(self, plugin):
        self._switch = (
            b"\xfe" + plugin + b"\0" + (b"\x05Password: " if plugin == b"dialog" else b"")
        )
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(20)
        self.port = self._listening.getsockname()[1]
        self.told = b""
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        with self._listening, self._listening.accept()[0] as client:
            client.settimeout(20)
            client.sendall(packet(0, greeting()))
            self.told += client.recv(4096)
            client.sendall(packet(2, self._switch))
            while more := client.recv(4096):
                self.told += more


@pytest.mark.parametrize("plugin", [b"mysql_clear_password", b"dialog"])
def test_whoever_answers_is_not_given_the_password(plugin):
    impostor = Impostor(plugin)
    with pytest.raises(ConfigurationError, match=r"password in clear text, .* `ssl_ca`"):
        connect(MysqlEndpoint("127.0.0.1", impostor.port, "u", PASSWORD))
    impostor.thread.join(20)
    assert impostor.told, "it was asked"
    assert PASSWORD.encode() not in impostor.told


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
    with pytest.raises(NodeLacksError, match="'pynacl' package is required") as caught:
        connect(MysqlEndpoint("127.0.0.1", impostor.port, "u", PASSWORD))
    assert caught.value.where["server"] == f"127.0.0.1:{impostor.port}"
    impostor.thread.join(20)
