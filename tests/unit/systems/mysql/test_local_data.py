"""LOAD DATA LOCAL: what counts as done, and what a server cannot have."""

from typing import Any

import pymysql
import pytest
from pymysql.protocol import MysqlPacket

from setl.model.schema import Capacity, Column, Kind
from setl.systems.mysql.load.local_data import LocalData, LocalTables, load_statement

TABLE = ("s", "t")
COLUMNS = (Column("id", Kind.INTEGER, capacity=Capacity("int")),)
ASKS = b"\xfbrows of setl"


def answer(message, affected, warnings=0):
    return b"\x00" + bytes([affected, 0, 2, 0]) + warnings.to_bytes(2, "little") + message


class Server:
    """Gives these packets, or raises them, and keeps what it was sent."""

    def __init__(self, *packets):
        self.packets, self.said, self.sent = list(packets), [], []

    def query(self, text):
        self.said.append(text)

    def _execute_command(self, _, text):
        self.said.append(text.decode())

    def _read_packet(self):
        packet = self.packets.pop(0)
        if isinstance(packet, Exception):
            raise packet
        return MysqlPacket(packet, "utf8")

    def write_packet(self, data):
        self.sent.append(data)


def written(*packets):
    server: Any = Server(*packets)
    tables = LocalTables()
    clean = LocalData(server, TABLE, COLUMNS, tables).write([b"(1)", b"(2)"])
    return clean, server, tables.may(TABLE)


def test_rows_that_the_server_took_as_they_are():
    clean, server, again = written(
        ASKS, answer(b"Records: 2  Deleted: 0  Skipped: 0  Warnings: 0", affected=2)
    )
    assert clean
    assert again
    assert server.sent == [b"(1)\n(2)\n", b""]
    assert server.said[1:] == [load_statement(TABLE, COLUMNS).decode()]


@pytest.mark.parametrize(
    ("message", "affected", "warnings"),
    [
        (b"Records: 2  Deleted: 0  Skipped: 1  Warnings: 1", 1, 1),
        (b"Records: 2  Deleted: 0  Skipped: 0  Warnings: 1", 2, 0),
        (b"Records: 2  Deleted: 0  Skipped: 0  Warnings: 0", 2, 1),
        (b"Records: 1  Deleted: 0  Skipped: 0  Warnings: 0", 1, 0),
        (b"Records: 2  Deleted: 1  Skipped: 0  Warnings: 0", 3, 0),
        (b"", 2, 0),
    ],
)
def test_whatever_else_the_server_says_is_taken_back(message, affected, warnings):
    clean, server, again = written(ASKS, answer(message, affected, warnings))
    assert (clean, again) == (False, False)
    assert server.said[-1].startswith("ROLLBACK TO SAVEPOINT")


def test_a_server_that_asks_for_another_file_gets_nothing():
    server: Any = Server(b"\xfb/etc/passwd")
    with pytest.raises(pymysql.OperationalError, match="another file"):
        LocalData(server, TABLE, COLUMNS, LocalTables()).write([b"(1)"])
    assert server.sent == []


@pytest.mark.parametrize("number", [1148, 1235, 3948, 4166])
def test_a_server_that_takes_no_data_gets_statements(number):
    clean, server, again = written(pymysql.OperationalError(number, "no"))
    assert (clean, again) == (False, False)
    assert server.sent == []


@pytest.mark.parametrize(("number", "tried_again"), [(1213, True), (1205, True), (2013, False)])
def test_other_errors_are_the_callers(number, tried_again):
    tables = LocalTables()
    server: Any = Server(ASKS, pymysql.OperationalError(number, "gone"))
    with pytest.raises(pymysql.OperationalError):
        LocalData(server, TABLE, COLUMNS, tables).write([b"(1)"])
    assert tables.may(TABLE) is tried_again


def test_a_table_is_tried_again_after_a_while():
    tables = LocalTables()
    tables.pause(TABLE)
    asked = [tables.may(TABLE) for _ in range(22)]
    assert asked == [*([False] * 20), True, True]
    assert tables.may(("s", "other"))


def test_bytes_and_bits_are_computed_from_their_text():
    columns = [
        Column(name, Kind.BINARY, capacity=Capacity(type_))
        for name, type_ in (("a", "int"), ("b", "blob"), ("c", "bit"), ("d", "year"))
    ]
    text = load_statement(TABLE, columns).decode()
    assert "(`a`,@setl_1,@setl_2,`d`) SET `b`=UNHEX(" in text
    assert text.endswith("`c`=CAST(@setl_2 AS UNSIGNED)")
