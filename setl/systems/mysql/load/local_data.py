"""Sends rows with LOAD DATA LOCAL, which costs a server about half of what an INSERT does.

The statement is lenient: rows that are there already are skipped, and of a value that a column
cannot hold the server makes something else. It counts both. So a load counts only if nothing of it
was counted: then each row is in the table as an INSERT would have put it. Otherwise it is taken
back, and the rows are written with statements that refuse.

Nothing is read from a file, whatever name the server asks for: a server in a wrong place could have
any file of this machine. So pymysql's own way, which opens the file, stays switched off.

Sources: https://dev.mysql.com/doc/refman/8.4/en/load-data.html,
https://mariadb.com/kb/en/load-data-infile/ and, for the packets,
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_local_infile_request.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from pymysql.connections import Connection
from pymysql.constants import COMMAND
from pymysql.err import MySQLError, OperationalError
from pymysql.protocol import LoadLocalPacketWrapper as LoadLocal
from pymysql.protocol import OKPacketWrapper

from setl.model.schema import Column
from setl.systems.mysql.connection import error_number
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.values.row_text import BYTES

SIZE: Final = 4 << 20
"""Bytes of rows that go with one statement. Longer ones gain nothing more."""

_SAVEPOINT: Final = "setl_local_data"
_NAME: Final = b"rows of setl"
_PACKET: Final = 1 << 20
# The server, its settings or somebody between does not let a client send data.
_NOT_ALLOWED: Final = frozenset({1047, 1148, 1235, 3948, 4166})
_TRANSIENT: Final = frozenset({1205, 1213})  # a lock
# In English "Records: 1  Deleted: 0  Skipped: 0  Warnings: 0". The byte in front of it, which is
# its length, may be a digit too.
_NUMBER: Final = re.compile(rb"\d+")

_PAUSE: Final = 20  # times


def load_statement(table: tuple[str, str], columns: Sequence[Column]) -> bytes:
    """LOAD DATA for rows in the form `setl.systems.mysql.values.row_text.VALUES`.

    Args:
        table: its schema and name.
        columns: what a row holds, named and typed as the table's columns.
    """
    fields: list[str] = []
    computed: list[str] = []
    for i, column in enumerate(columns):
        name, type_ = quote(column.name), column.capacity.type if column.capacity else ""
        variable = f"@setl_{i}"
        if type_ in BYTES:
            # It comes as x'00FF'.
            computed.append(f"{name}=UNHEX(SUBSTR({variable},3,CHAR_LENGTH({variable})-3))")
        elif type_ == "bit":  # as text, its digits would be their letters
            computed.append(f"{name}=CAST({variable} AS UNSIGNED)")
        fields.append(variable if type_ in BYTES or type_ == "bit" else name)
    filled = f" SET {','.join(computed)}" if computed else ""
    return (
        f"LOAD DATA LOCAL INFILE '{_NAME.decode()}' INTO TABLE {qualified(*table)}"
        " CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY ''''"
        r" ESCAPED BY '\\' LINES STARTING BY '(' TERMINATED BY ')\n'"
        f" ({','.join(fields)}){filled}"
    ).encode()


class LocalData:
    """Sends rows over a connection, inside the caller's transaction.

    The connection has to be opened with ``client_flag=CLIENT.LOCAL_FILES``.
    """

    def __init__(
        self,
        connection: Connection[Any],
        table: tuple[str, str],
        columns: Sequence[Column],
        tables: LocalTables,
    ) -> None:
        """Send nothing yet.

        Args:
            connection: over which; in a transaction.
            table: see `load_statement`.
            columns: see `load_statement`.
            tables: told when the table did not take rows so.
        """
        self._connection = cast("Any", connection)
        self._statement = load_statement(table, columns)
        self._tables = tables
        self._table = table

    def give_up(self) -> None:
        """Not to be tried again with this table for a while."""
        self._tables.pause(self._table)

    def write(self, rows: Sequence[bytes]) -> bool:
        """Have all rows in the table; False if none is, and they are to be written otherwise.

        Raises:
            pymysql.MySQLError: an error of the server, or the connection is lost.
        """
        self._connection.query(f"SAVEPOINT {_SAVEPOINT}")
        try:
            clean = self.send(b"\n".join((*rows, b"")), len(rows))
        except MySQLError as error:
            if error_number(error) not in _NOT_ALLOWED:
                raise
            return False
        if not clean:
            self._connection.query(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        return clean

    def send(self, rows: bytes | memoryview, count: int) -> bool:
        """Send rows, each ended by a line break; whether they are in the table as they were sent.

        If not, some may be there, or something else in their place: the caller rolls back.

        Raises:
            pymysql.MySQLError: an error of the server, or the connection is lost.
        """
        try:
            clean = self._sent(rows, count)
        except MySQLError as error:
            if error_number(error) in _NOT_ALLOWED:
                self._tables.forbid()
            elif error_number(error) not in _TRANSIENT:
                self.give_up()
            raise
        if not clean:
            self.give_up()
        return clean

    def _sent(self, rows: bytes | memoryview, count: int) -> bool:
        client = self._connection
        client._execute_command(COMMAND.COM_QUERY, self._statement)  # noqa: SLF001
        asked = client._read_packet()  # noqa: SLF001 - raises the server's error
        if not asked.is_load_local_packet() or _wrapped(LoadLocal, asked).filename != _NAME:
            raise OperationalError(2013, "the server asks for another file than it was told of")
        data = memoryview(rows)
        for start in range(0, len(data), _PACKET):
            client.write_packet(bytes(data[start : start + _PACKET]))
        client.write_packet(b"")
        answer = _wrapped(OKPacketWrapper, client._read_packet())  # noqa: SLF001
        counts = [int(number) for number in _NUMBER.findall(answer.message or b"")[-4:]]
        return (
            answer.warning_count == 0
            and answer.affected_rows == count
            and counts == [count, 0, 0, 0]
        )


def _wrapped(wrapper: Any, packet: Any) -> Any:
    return wrapper(packet)  # these have no types


class LocalTables:
    """Which tables take rows with LOAD DATA LOCAL. Where it failed, it is not tried for a while."""

    def __init__(self) -> None:
        self._pauses: dict[tuple[str, str], int] = {}
        self._forbidden = False

    def may(self, table: tuple[str, str]) -> bool:
        """Whether to try it with this table; counts how often that was asked since it failed."""
        if self._forbidden:
            return False
        left = self._pauses.get(table, 0)
        if left:
            self._pauses[table] = left - 1
        return not left

    def pause(self, table: tuple[str, str]) -> None:
        """It was of no use."""
        self._pauses[table] = _PAUSE

    def forbid(self) -> None:
        """The server, or somebody between, takes no data from clients."""
        self._forbidden = True
