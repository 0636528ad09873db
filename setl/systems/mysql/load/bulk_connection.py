"""A connection that executes a prepared statement for many rows at once, where the server can.

MariaDB can. That costs it half of what statements with literals do: it parses no rows, and the
text of a statement, which it writes into its binlog beside the rows, is short. MySQL has nothing
like it.

Sources: https://mariadb.com/kb/en/com_stmt_bulk_execute/, https://mariadb.com/kb/en/com_stmt_prepare/
and, for the flags of a client, https://mariadb.com/kb/en/connection/.
"""

from __future__ import annotations

import re
import struct
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, cast

from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND
from pymysql.err import MySQLError
from pymysql.protocol import OKPacketWrapper

from setl.errors import SetlError
from setl.systems.mysql.connection import error_number
from setl.systems.mysql.login import PlainConnection

_COM_STMT_BULK_EXECUTE: Final = 0xFA
_TYPES_ARE_SENT: Final = 128
_NUMBER: Final = re.compile(rb"\d+")
_HEAD: Final = struct.Struct("<IH")  # number of the statement, flags
_PREPARED: Final = struct.Struct("<xIHH")  # number of the statement, columns, parameters

# A handshake begins with flags, the longest packet, a collation and 23 reserved bytes. The last
# four of these are MariaDB's own flags, if the first flag of all is not set.
_FLAGS: Final = struct.Struct("<I")
_OWN_FLAGS_AT: Final = 28
_HANDSHAKE_BYTES: Final = 32
_BULK: Final = 1 << 2  # 34 less the 32 of the other flags

_MAX_CONNECTIONS: Final = 16  # a server has 16,382 for all of its clients
_TOO_MANY: Final = 1461
# It knows no such command, cannot prepare this statement, or has too many.
_NOT_SUPPORTED: Final = frozenset({1047, 1235, 1295, _TOO_MANY})
_FORGOTTEN: Final = 1243

# Releases before these lose rows where a trigger of the table writes rows itself (MDEV-24411,
# MDEV-34718, MDEV-34958): the trigger's statement takes the rows of the one that it belongs to.
# What lies between these series, and before them, is left out.
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)-mariadb", re.IGNORECASE)
_FIXED: Final = {(10, 11): 11, (11, 4): 5}
_FIXED_SINCE: Final = (11, 8)


# A greeting's version ends with a zero byte; then come the number of the connection and the first
# part of a nonce (13 bytes), flags, collation, status, flags, a length and 6 reserved bytes. Behind
# them are MariaDB's own flags, if the first flag of all is not set.
_FLAGS_BEHIND_VERSION: Final = 13
_OWN_FLAGS_BEHIND_VERSION: Final = 27


def offers_bulk(greeting: bytes) -> bool:
    """Whether a server's first packet says that it executes statements for many rows.

    Source: https://mariadb.com/kb/en/connection/#initial-handshake-packet.
    """
    start = greeting.find(b"\0", 1) + 1
    flags = greeting[start + _FLAGS_BEHIND_VERSION : start + _FLAGS_BEHIND_VERSION + 1]
    own = greeting[start + _OWN_FLAGS_BEHIND_VERSION : start + _OWN_FLAGS_BEHIND_VERSION + 4]
    if not start or not flags or len(own) < _FLAGS.size or flags[0] & CLIENT.LONG_PASSWORD:
        return False
    return bool(_FLAGS.unpack(own)[0] & _BULK)


def loses_no_rows(version: str) -> bool:
    """Whether a MariaDB server of this version executes a statement for all rows it was given."""
    found = _VERSION.search(version)
    if found is None:
        return False
    major, minor, patch = map(int, found.groups())
    series = major, minor
    return series >= _FIXED_SINCE or patch >= _FIXED.get(series, patch + 1)


class BulkError(Exception):
    """The server cannot do it on this connection; nothing has happened."""


class RowsLostError(SetlError):
    """The server has not executed a statement for all rows; everything has to be rolled back."""


_Plain: Final[Any] = PlainConnection  # stubs do not tell what is overridden below


class BulkConnection(PlainConnection):
    """See the module's text. Prepared statements are kept, and end with the connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._greeted = self._introduced = False
        self._able = False
        self._statements: OrderedDict[str, int] = OrderedDict()
        _Plain.__init__(self, *args, **kwargs)

    def write_packet(self, payload: bytes) -> None:
        """As the base does; the handshake of this client offers more."""
        if not self._introduced:
            # Over TLS the beginning of the handshake is sent twice, first alone.
            self._introduced = len(payload) > _HANDSHAKE_BYTES
            if self._able:
                (flags,) = _FLAGS.unpack_from(payload)
                own = _FLAGS.pack(_BULK)
                payload = b"".join((
                    _FLAGS.pack(flags & ~CLIENT.LONG_PASSWORD),
                    payload[_FLAGS.size : _OWN_FLAGS_AT],
                    own,
                    payload[_HANDSHAKE_BYTES:],
                ))  # fmt: skip
        _Plain.write_packet(self, payload)

    def _read_packet(self, *args: Any) -> Any:
        """As the base does; the server's first one says what it, or a proxy before it, can do."""
        packet = _Plain._read_packet(self, *args)  # noqa: SLF001
        if not self._greeted:
            self._greeted = True
            greeting = packet.get_all_data()
            version = greeting[1 : greeting.find(b"\0", 1)].decode("latin-1")
            self._able = offers_bulk(greeting) and loses_no_rows(version)
        return packet

    @property
    def takes_bulk(self) -> bool:
        """Whether to try: the server has offered it, and has not refused since."""
        return self._able

    def execute_bulk(
        self, statement: str, types: bytes, rows: Sequence[bytes | memoryview], count: int
    ) -> None:
        """Execute a statement for all rows, as one statement that has them all.

        Args:
            statement: with a question mark for each value.
            types: of the values, two bytes for each.
            rows: the values of the rows, one behind the other.
            count: of the rows.

        Raises:
            BulkError: it has to be done in another way.
            RowsLostError: some rows are written, and others are not.
            pymysql.MySQLError: the server refuses the statement, and has undone it.
        """
        try:
            number = self._prepared(statement)
            self._execute_command(
                _COM_STMT_BULK_EXECUTE,
                b"".join((_HEAD.pack(number, _TYPES_ARE_SENT), types, *rows)),
            )
            answer: Any = OKPacketWrapper(self._read_packet())
        except MySQLError as error:
            if error_number(error) == _TOO_MANY:
                while self._statements:  # others need them more
                    self._close(self._statements.popitem()[1])
            if error_number(error) in _NOT_SUPPORTED:
                self._able = False
            elif error_number(error) == _FORGOTTEN:
                self._statements.pop(statement, None)
            else:
                raise
            raise BulkError(str(error)) from error
        # In English "Records: 8  Duplicates: 0  Warnings: 0", nothing if it was one row. The byte
        # in front of it, which is its length, may be a digit too.
        reported = _NUMBER.findall(answer.message or b"")[-3:]
        if (int(reported[0]) if reported else 1) != count:
            self._able = False
            raise RowsLostError(f"the server wrote another number of rows than {count}")

    def _close(self, number: int) -> None:
        self._execute_command(COMMAND.COM_STMT_CLOSE, _FLAGS.pack(number))  # has no answer

    def _prepared(self, statement: str) -> int:
        number = self._statements.pop(statement, None)
        if number is None:
            self._execute_command(COMMAND.COM_STMT_PREPARE, statement.encode())
            number, columns, parameters = _PREPARED.unpack_from(self._read_packet().get_all_data())
            # Each of these is described; what comes last says that there are no more.
            for described in (columns, parameters):
                for _ in range(described + 1 if described else 0):
                    self._read_packet()
        self._statements[statement] = number
        if len(self._statements) > _MAX_CONNECTIONS:
            self._close(self._statements.popitem(last=False)[1])
        return number


def bulk_of(connection: Connection[Any]) -> BulkConnection | None:
    """The same connection, if it may execute statements for many rows; else None."""
    own = cast("Any", connection)
    return own if isinstance(own, BulkConnection) and own.takes_bulk else None
