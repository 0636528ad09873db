"""A server of another version: it stands before a real one, and speaks MySQL's protocol.

It greets as the other version does, refuses what that one refuses (`grammar`), and tells that
one's version and variables. Everything else is the real server's, rows and binlogs among it.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from contextlib import suppress

from tests.other_servers.grammar import has_variable, refusal

_QUERY, _PREPARE = 3, 0x16
_NULL = b"\xfb"
_TLS = 0x0800
_WHOLE = 0xFFFFFF

# Statements of the version that is played → what the real server calls them.
_NAMES = (
    (r"^SHOW SLAVE STATUS", "SHOW REPLICA STATUS"),
    (r"^SHOW SLAVE HOSTS", "SHOW REPLICAS"),
    (r"^SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"),
)


class OtherServer:
    """A server as a profile describes it, as a context manager.

    What tests ask it themselves, by `connect` and all else, they ask the real server.

    Attributes:
        host: where the stub is, and `port`.
        profile: what it plays.
        statements: all that it was told, in their order.
        refused: number of the error and statement, of those that it refused.
        hours: what the table ``mysql.rds_configuration`` has; "hidden" if nobody may read it.
    """

    def __init__(self, profile, real):
        self.profile = profile
        self.real = real
        self.host = "127.0.0.1"
        self.statements: list[str] = []
        self.refused: list[tuple[int, str]] = []
        self.hours: str | None = None
        self.variables = dict(profile.variables)
        self._listening = socket.create_server((self.host, 0))
        self.port = self._listening.getsockname()[1]
        self._open: set[socket.socket] = set()

    def __getattr__(self, name):
        return getattr(self.real, name)

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # Closing does not wake a thread that waits in accept; shutting down does.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                _Conversation(self, client).begin()

    def connects(self, *sockets):
        self._open.update(sockets)

    def answer(self, statement):
        """What it says by itself: an error, rows, or None for what the real server says."""
        self.statements.append(statement)
        reported = refusal(self.profile, statement)
        if reported is not None:
            self.refused.append((reported[0], statement))
            return _error(*reported)
        if "mysql.rds_configuration" in statement:
            if self.hours == "hidden":
                return _error(1142, "SELECT command denied to user for table 'rds_configuration'")
            return _rows(["value"], [[self.hours]])
        if re.fullmatch(r"SELECT VERSION\(\)", statement, re.IGNORECASE):
            return _rows(["VERSION()"], [[self.profile.version]])
        one = re.fullmatch(r"SELECT @@(?:GLOBAL\.)?(\w+)", statement, re.IGNORECASE)
        if one and one[1].lower() in self.variables:
            return _rows([one[1]], [[self.variables[one[1].lower()]]])
        return None

    def reported(self, statement, names, rows):
        """The rows of an answer as this server has them."""
        if re.match(r"SHOW GLOBAL VARIABLES", statement, re.IGNORECASE):
            own = {**self.variables, "version": self.profile.version}
            stored = {
                name: own.get(name.lower(), value)
                for name, value in rows
                if has_variable(self.profile, name.lower())
            }
            asked = set(re.findall(r"'(\w+)'", statement))
            stored.update((n, v) for n, v in own.items() if n in asked or ("WHERE" not in statement
                        and "LIKE" not in statement))  # fmt: skip
            return names, [list(each) for each in stored.items()]
        if re.match(r"SHOW SLAVE STATUS", statement, re.IGNORECASE):
            return [name.replace("Source", "Master") for name in names], rows
        if "SELECT * FROM information_schema.STATISTICS" in statement:
            return self._without(names, rows, "EXPRESSION", since=(8, 0, 13))
        return names, rows

    def _without(self, names, rows, column, since):
        if self.profile.mariadb or self.profile.numbers >= since or column not in names:
            return names, rows
        at = names.index(column)
        return [*names[:at], *names[at + 1 :]], [[*r[:at], *r[at + 1 :]] for r in rows]


class _Conversation:
    """One client, and the real server's connection for it."""

    def __init__(self, server, client):
        self._server, self._client = server, client
        self._real = socket.create_connection((server.real.host, server.real.port))
        self._edit: str | None = None
        server.connects(client, self._real)

    def begin(self):
        for work in (self._from_client, self._from_real):
            threading.Thread(target=self._end_both, args=(work,), daemon=True).start()

    def _end_both(self, work):
        with suppress(OSError, EOFError):
            work()
        for each in (self._client, self._real):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _from_client(self):
        while True:
            number, body = _packet(self._client)
            if number or not body or body[0] not in (_QUERY, _PREPARE):
                _send(self._real, number, body)
                continue
            statement = body[1:].decode("utf-8", "replace")
            answer = self._server.answer(statement)
            if answer is not None:
                for at, piece in enumerate(answer, start=1):
                    _send(self._client, at, piece)
                continue
            for pattern, name in () if self._server.profile.mariadb else _NAMES:
                body = body[:1] + re.sub(pattern, name, body[1:].decode("latin-1")).encode(
                    "latin-1"
                )
            if body[0] == _QUERY and re.match(
                r"SHOW (GLOBAL VARIABLES|SLAVE STATUS)|SELECT \* FROM information_schema\.STAT",
                statement.strip(),
                re.IGNORECASE,
            ):
                self._edit = statement.strip()
            _send(self._real, number, body)

    def _from_real(self):
        number, body = _packet(self._real)
        _send(self._client, number, _greeting(body, self._server.profile.greets_as))
        while True:
            data = self._real.recv(1 << 16)
            if not data:
                return
            if self._edit is None:
                self._client.sendall(data)
                continue
            statement, self._edit = self._edit, None
            self._edited(statement, _Buffered(data, self._real))

    def _edited(self, statement, real):
        number, body = _packet(real)
        if body[:1] in (b"\xff", b"\0"):
            _send(self._client, number, body)
            return
        names = [_name(_packet(real)[1]) for _ in range(body[0])]
        _packet(real)
        rows = []
        while not _is_end(row := _packet(real)[1]):
            rows.append(_texts(row))
        for at, piece in enumerate(_rows(*self._server.reported(statement, names, rows)), start=1):
            _send(self._client, at, piece)


class _Buffered:
    """A connection of which some bytes have been read."""

    def __init__(self, data, connection):
        self._data, self._connection = data, connection

    def recv(self, count):
        if not self._data:
            return self._connection.recv(count)
        found, self._data = self._data[:count], self._data[count:]
        return found


def _exactly(connection, count):
    found = b""
    while len(found) < count:
        piece = connection.recv(count - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found


def _packet(connection):
    """The number of a packet, and what it says, with those that go on with it."""
    head = _exactly(connection, 4)
    number, size = head[3], int.from_bytes(head[:3], "little")
    body = _exactly(connection, size)
    while size == _WHOLE:
        head = _exactly(connection, 4)
        size = int.from_bytes(head[:3], "little")
        body += _exactly(connection, size)
    return number, body


def _send(connection, number, body):
    while True:
        piece, body = body[:_WHOLE], body[_WHOLE:]
        connection.sendall(struct.pack("<I", len(piece) | (number & 255) << 24) + piece)
        number += 1
        if len(piece) < _WHOLE:
            return


def _greeting(body, version):
    """A greeting with another version, and without TLS."""
    rest = body[body.index(b"\0", 1) :]
    flags = int.from_bytes(rest[14:16], "little") & ~_TLS
    return body[:1] + version.encode() + rest[:14] + flags.to_bytes(2, "little") + rest[16:]


def _error(number, text):
    return [b"\xff" + struct.pack("<H", number) + b"#42000" + text.encode()]


def _rows(names, rows):
    """The packets of an answer in text."""
    end = b"\xfe\0\0\x02\0"
    columns = [
        b"\x03def" + 3 * b"\0" + 2 * _text(name)
        + b"\x0c" + struct.pack("<HIBHB", 45, 1024, 253, 0, 0) + b"\0\0"
        for name in names
    ]  # fmt: skip
    packed = [b"".join(map(_text, row)) for row in rows]
    return [bytes([len(names)]), *columns, end, *packed, end]


def _text(value):
    if value is None:
        return _NULL
    data = str(value).encode()
    if len(data) < 251:
        return bytes([len(data)]) + data
    return b"\xfc" + struct.pack("<H", len(data)) + data


def _texts(row):
    found, at = [], 0
    while at < len(row):
        value, at = _one_text(row, at)
        found.append(value)
    return found


def _one_text(data, at):
    first = data[at]
    if first == _NULL[0]:
        return None, at + 1
    size, at = first, at + 1
    if first == 0xFC:
        size, at = int.from_bytes(data[at : at + 2], "little"), at + 2
    elif first == 0xFD:
        size, at = int.from_bytes(data[at : at + 3], "little"), at + 3
    return data[at : at + size].decode("utf-8", "replace"), at + size


def _name(column):
    """Of a column: the fifth text of its description."""
    at = 0
    for _ in range(4):
        _, at = _one_text(column, at)
    return _one_text(column, at)[0]


def _is_end(row):
    return row[:1] == b"\xfe" and len(row) < 9
