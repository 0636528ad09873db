"""``python -m tests.bench.statements``: what a row costs a server, by how it is sent.

The same new rows, 1,000 a transaction, are written in each way that a server offers. Everything
that can be made ready beforehand is, so what is left is the server's work and the way to it.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple, cast

import click
from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND
from rich.console import Console
from rich.table import Table

from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.load.bulk_connection import BulkConnection, bulk_of
from setl.systems.mysql.load.local_data import LocalData, LocalTables
from setl.systems.mysql.load.row_statement import Limits, RowStatement
from setl.systems.mysql.load.statements import plan_writes
from setl.systems.mysql.values.literals import render_columns
from setl_embedded import MariaDb
from tests.bench.servers import fresh_target, mysql_settings, scratch_folder
from tests.bench.watching import cpu_by_role
from tests.bench.workloads import NARROW, SCHEMA, WIDE, Shape, Workload

_A_TRANSACTION = 1_000
_STATEMENT = 1 << 18  # bytes, as setl sends them to a server that is near
_SHAPES = {"narrow": NARROW, "wide": WIDE}


class Written(NamedTuple):
    """Rows that were written in one way.

    Attributes:
        way: how.
        rows: how many.
        seconds: it took.
        cpu: seconds of the server's processor time.
    """

    way: str
    rows: int
    seconds: float
    cpu: float


class Way(NamedTuple):
    """A way to write rows.

    Attributes:
        name: for people.
        ready: makes transactions ready on a connection; each call of what it gives is one.
        session: set before.
        connections: that write side by side.
    """

    name: str
    ready: Callable[[Bench, Connection[Any], Sequence[Row]], Callable[[], None]]
    session: tuple[str, ...] = ()
    connections: int = 1


Row = tuple[Any, ...]


class Bench:
    """A server with a table, and the rows that go into it."""

    def __init__(self, server: MariaDb, family: str, shape: Shape, rows: int) -> None:
        self.server = server
        self.family = family
        self.shape = shape
        random = Random(20260101)
        self.rows = [shape.row(key, random) for key in range(rows)]
        with self.connect() as connection:
            target = read_table(connection, SCHEMA, "t")
        if target is None:
            raise SystemExit("the table is not there")
        columns = tuple(target.columns)
        self.plan = plan_writes(columns, (0,), target, row_alias=family == "mysql")

    def connect(self) -> Connection[Any]:
        """A connection that may send data."""
        endpoint = MysqlEndpoint(**mysql_settings(self.server))
        return connect(endpoint, kind=BulkConnection, client_flag=CLIENT.LOCAL_FILES)

    def fresh(self) -> None:
        """Create the table anew."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {SCHEMA}.t")
            cursor.execute(f"USE {SCHEMA}")
            cursor.execute(self.shape.create("t"))

    def count(self) -> int:
        """The rows that the table has."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {SCHEMA}.t")
            [(count,)] = cursor.fetchall()
            return count


def measure(bench: Bench, way: Way) -> Written:
    """Write all rows into an empty table."""
    bench.fresh()
    share = len(bench.rows) // way.connections
    connections = [bench.connect() for _ in range(way.connections)]
    try:
        works: list[list[Callable[[], None]]] = []
        for n, connection in enumerate(connections):
            with connection.cursor() as cursor:
                for statement in ("SET SESSION foreign_key_checks = 0", *way.session):
                    cursor.execute(statement)
            own = bench.rows[n * share : (n + 1) * share]
            works.append([
                way.ready(bench, connection, own[start : start + _A_TRANSACTION])
                for start in range(0, len(own), _A_TRANSACTION)
            ])  # fmt: skip
        roots = {"server": bench.server.pid}
        before, began = cpu_by_role(roots), time.monotonic()
        threads = [
            threading.Thread(target=_run, args=(connection, work))
            for connection, work in zip(connections, works, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds, after = time.monotonic() - began, cpu_by_role(roots)
    finally:
        for connection in connections:
            connection.close()
    if bench.count() != share * way.connections:
        raise SystemExit(f"{way.name}: the table has {bench.count()} rows")
    return Written(way.name, share * way.connections, seconds, after["server"] - before["server"])


def _run(connection: Connection[Any], work: list[Callable[[], None]]) -> None:
    for transaction in work:
        connection.begin()
        transaction()
        connection.commit()


def _statement(bench: Bench, *, plain: bool) -> RowStatement:
    inserts = bench.plan.inserts
    return replace(inserts, tail="") if plain else inserts


def _statements(*, plain: bool = False) -> Callable[..., Callable[[], None]]:
    def ready(bench: Bench, connection: Connection[Any], rows: Sequence[Row]) -> Callable[[], None]:
        divided = _statement(bench, plain=plain).divided(rows, Limits(size=_STATEMENT))
        texts, send = [text for text, _ in divided], cast("Any", connection)

        def transaction() -> None:
            for text in texts:
                send.query(text)

        return transaction

    return ready


def _local_data(
    bench: Bench, connection: Connection[Any], rows: Sequence[Row]
) -> Callable[[], None]:
    columns = bench.plan.inserts.columns
    rendered = [
        row.encode()
        for row in render_columns(columns, list(zip(*rows, strict=True)), for_key=False)
    ]
    data = LocalData(connection, (SCHEMA, "t"), columns, LocalTables())

    def transaction() -> None:
        if not data.write(rendered):
            raise SystemExit("the server did not take the data")

    return transaction


class _Prepared:
    """A statement that a server has prepared, and rows in the form of its parameters."""

    def __init__(self, bench: Bench, connection: Connection[Any]) -> None:
        client: Any = connection
        text = bench.plan.inserts.with_parameters.encode()
        client._execute_command(COMMAND.COM_STMT_PREPARE, text)
        told = client._read_packet()
        self.id = struct.unpack_from("<xI", told.get_all_data())[0]
        for _ in range(len(bench.shape.columns) + 1):
            client._read_packet()
        self.types = b"".join(_type(column.sql) for column in bench.shape.columns)
        self._sql = [column.sql for column in bench.shape.columns]

    def values(self, row: Row) -> list[bytes | None]:
        """Each value, None for NULL."""
        return [
            None if v is None else _binary(sql, v) for sql, v in zip(self._sql, row, strict=True)
        ]


def _bulk_execute(*, plain: bool = False) -> Callable[..., Callable[[], None]]:
    def ready(bench: Bench, connection: Connection[Any], rows: Sequence[Row]) -> Callable[[], None]:
        statement = _statement(bench, plain=plain)
        packed, text = statement.packed(rows), statement.with_parameters
        step = max(1, _STATEMENT // max(map(len, packed.rows)))
        bulk = bulk_of(connection)

        def transaction() -> None:
            for start in range(0, len(rows), step):
                assert bulk is not None
                bulk.execute_bulk(text, packed.types, packed.rows[start : start + step])

        return transaction

    return ready


def _pipelined(
    bench: Bench, connection: Connection[Any], rows: Sequence[Row]
) -> Callable[[], None]:
    statement = _Prepared(bench, connection)
    width = (len(bench.shape.columns) + 7) // 8
    sent = bytearray()
    for row in rows:
        nulls, values = 0, bytearray()
        for i, value in enumerate(statement.values(row)):
            if value is None:
                nulls |= 1 << i
            else:
                values += value
        body = struct.pack("<BIBI", COMMAND.COM_STMT_EXECUTE, statement.id, 0, 1)
        body += nulls.to_bytes(width, "little") + b"\1" + statement.types + values
        sent += struct.pack("<I", len(body))[:3] + b"\0" + body
    client: Any = connection

    def transaction() -> None:
        sender = threading.Thread(target=client._sock.sendall, args=(sent,))
        sender.start()
        for _ in rows:
            client._next_seq_id = 1
            client._read_packet()
        sender.join()

    return transaction


_NUMBERS = {"BIGINT": ("<q", 8), "INT": ("<i", 3), "DOUBLE": ("<d", 5)}
_TEXT = 0xFD


def _type(sql: str) -> bytes:
    _, code = _NUMBERS.get(sql.split()[0], ("", _TEXT))
    return bytes([code, 0])


def _binary(sql: str, value: Any) -> bytes:
    layout, _ = _NUMBERS.get(sql.split()[0], ("", 0))
    if layout:
        return struct.pack(layout, value)
    text = str(value).encode()
    return (
        bytes([len(text)]) if len(text) < 251 else b"\xfc" + struct.pack("<H", len(text))
    ) + text


def ways(family: str) -> Iterator[Way]:
    """What a family's servers offer."""
    quiet: tuple[str, ...] = ()
    if family == "mariadb":
        quiet = ("SET SESSION binlog_annotate_row_events = OFF",)
        yield Way("upsert, its text in the binlog", _statements())
    yield Way("upsert", _statements(), quiet)
    yield Way("insert", _statements(plain=True), quiet)
    yield Way("LOAD DATA LOCAL", _local_data, quiet)
    if family == "mariadb":
        yield Way("upsert, bulk execution", _bulk_execute(), quiet)
        yield Way("insert, bulk execution", _bulk_execute(plain=True), quiet)
    yield Way("upsert, prepared, row by row in a pipeline", _pipelined, quiet)
    yield Way("upsert, 2 connections", _statements(), quiet, connections=2)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--family", default="mariadb", show_default=True,
              type=click.Choice(["mariadb", "mysql"]), help="Of the server.")  # fmt: skip
@click.option("--shape", default="narrow", show_default=True,
              type=click.Choice(list(_SHAPES)), help="Of the rows: 8 columns or 60.")  # fmt: skip
@click.option("--rows", default=100_000, show_default=True, help="New rows.")
@click.option("--rounds", default=3, show_default=True, help="Runs of each way, in turns.")
def main(family: str, shape: str, rows: int, rounds: int) -> None:
    """Measure what a row costs a server, by how it is sent."""
    console = Console(width=None if Console().is_terminal else 120)
    nothing = Workload("t", 0, 1, shape=_SHAPES[shape])
    options = () if family == "mariadb" else ("--local-infile=ON",)
    with (
        scratch_folder("statements") as folder,
        fresh_target(folder, "mysql", nothing, options, family) as target,
    ):
        bench = Bench(target.mysql, family, nothing.shape, rows)
        turns = [measure(bench, way) for _ in range(rounds) for way in ways(family)]
    print_written(turns, console)


def print_written(turns: list[Written], console: Console) -> None:
    """Print the best of each way."""
    table = Table("way", "server, µs a row", "rows/s")
    for way in dict.fromkeys(turn.way for turn in turns):
        own = [turn for turn in turns if turn.way == way]
        cpu = min(turn.cpu / turn.rows for turn in own)
        rate = max(turn.rows / turn.seconds for turn in own)
        table.add_row(way, f"{cpu * 1e6:.2f}", f"{rate:,.0f}")
    console.print(table)


if __name__ == "__main__":
    main()
