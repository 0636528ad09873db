"""What a site's binlog says about every transaction: who wrote it, under which epoch.

Read without asking setl: the binlog is the one witness that cannot be wrong about what was
committed in which order.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pymysql
from mysql_event_stream import BinlogClient

from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.model.change import DecodedRows, Op, Row
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition
from setl_embedded import DatabaseServer

_READ_LIMIT = 120.0  # seconds for reading a whole binlog; it ends, so this is only for defects


@dataclass
class Transaction:
    """One transaction of a binlog, as far as drills care.

    Attributes:
        position: where it ends, ``file:offset``.
        marks: the rows of ``retl.retl_mark`` in it: ID, CHANNEL_ID, CHANNEL_INFO.
        fences: the rows of ``retl.setl_fence`` in it: pipeline and epoch.
        checkpoints: the rows of ``retl.setl_checkpoint`` in it: pipeline and epoch.
        rows: row changes by table and by the site that the row belongs to.
    """

    position: str = ""
    marks: list[tuple[int, int, str]] = field(default_factory=list)
    fences: list[tuple[str, int]] = field(default_factory=list)
    checkpoints: list[tuple[str, int]] = field(default_factory=list)
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def of_interest(self) -> bool:
        """Whether anything in it is looked at."""
        return bool(self.marks or self.fences or self.checkpoints or self.rows)


class KeyChange(NamedTuple):
    """A row change as far as a stream of them is compared: which row, and what happened to it.

    Attributes:
        table: without its schema.
        op: what happened.
        before: the row's id before, None for an insert.
        after: its id after, None for a delete.
    """

    table: str
    op: Op
    before: int | None
    after: int | None


def key_changes(rows: DecodedRows) -> Iterator[KeyChange]:
    """The changes of decoded rows of a drill's table."""
    key = rows.schema.index["id"]
    for before, after in rows.images:
        yield KeyChange(rows.schema.table, rows.op, _number(before, key), _number(after, key))


def _number(row: Row | None, columns: int) -> int | None:
    return None if row is None else int(str(row[columns]))


def read_changes(
    server: DatabaseServer, schema: str, begin: BinlogPosition, end: BinlogPosition
) -> Iterator[KeyChange]:
    """All row changes of a schema between two places of a site's binlog, in their order."""
    codec = BinlogRowCodec()
    for entry in entries_between(server, begin, end):
        if entry.kind is EntryKind.ROWS and entry.schema == schema:
            yield from key_changes(codec.decode(entry.payload, entry.context))


def binlog_begin(server: DatabaseServer) -> BinlogPosition:
    """Where the oldest binlog file that a site still has begins."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        return BinlogPosition(str(cursor.fetchone()[0]), 4)


def binlog_end(server: DatabaseServer) -> BinlogPosition:
    """Where a site's binlog ends now."""
    with server.connect() as connection, connection.cursor() as cursor:
        try:
            cursor.execute("SHOW BINARY LOG STATUS")
        except pymysql.err.ProgrammingError:  # MariaDB knows the older name only
            cursor.execute("SHOW MASTER STATUS")
        file, offset = cursor.fetchone()[:2]
        return BinlogPosition(str(file), int(offset))


def read_transactions(
    server: DatabaseServer, schema: str, begin: BinlogPosition, end: BinlogPosition
) -> Iterator[Transaction]:
    """The transactions between two places of a site's binlog that touch `schema` or ``retl``."""
    codec = BinlogRowCodec()
    current = Transaction()
    for entry in entries_between(server, begin, end):
        if entry.kind is EntryKind.BEGIN:
            current = Transaction()
        elif entry.kind is EntryKind.ROWS and _counts(entry, schema):
            _take(codec, entry, current)
        elif entry.kind is EntryKind.COMMIT and current.of_interest:
            current.position = str(entry.position)
            yield current
            current = Transaction()


def _counts(entry: Entry, schema: str) -> bool:
    """Whether rows are setl's own, or of a table of a drill; an online change copies all rows."""
    return entry.schema == "retl" or (entry.schema == schema and not entry.table.startswith("_"))


def entries_between(
    server: DatabaseServer, begin: BinlogPosition, end: BinlogPosition
) -> Iterator[Entry]:
    """All entries between two places of a server's binlog."""
    if begin.order >= end.order:
        return
    reader = BinlogHeaderReader(begin)
    deadline = time.monotonic() + _READ_LIMIT
    with BinlogClient(
        host=server.host, port=server.port, user=server.user, password=server.password,
        server_id=4_000_000_000 + server.server_id, start_binlog_file=begin.file,
        start_binlog_position=begin.offset,
    ) as client:  # fmt: skip
        client.connect()
        client.start()
        while time.monotonic() < deadline:
            for event in client.poll_batch(1024):
                if event.data is None:
                    continue
                yield from reader.read(event.data, checksum=event.checksum_enabled)
                if reader.position.order >= end.order:
                    return
    raise TimeoutError(f"{server.name}: the binlog did not reach {end} in {_READ_LIMIT:.0f} s")


def _take(codec: BinlogRowCodec, entry: Entry, current: Transaction) -> None:
    wanted = {"retl_mark", "setl_fence", "setl_checkpoint"}
    if entry.schema == "retl" and entry.table not in wanted:
        return
    decoded = codec.decode(entry.payload, entry.context)
    columns = {name.lower(): index for name, index in decoded.schema.index.items()}
    for before, after in decoded.images:
        row = after or before or ()
        if entry.schema != "retl":
            current.rows[entry.table, _site(row, columns, entry.table)] += 1
        elif entry.table == "retl_mark":
            current.marks.append(
                (
                    int(str(row[columns["id"]])),
                    int(str(row[columns["channel_id"]] or 0)),
                    str(row[columns["channel_info"]]),
                )
            )
        else:
            rows = current.fences if entry.table == "setl_fence" else current.checkpoints
            rows.append((str(row[columns["pipeline"]]), int(str(row[columns["epoch"]]))))


def _site(row: Row, columns: dict[str, int], table: str) -> str:
    """Who a row belongs to: its column `site`, or the end of the table's name."""
    return str(row[columns["site"]]) if "site" in columns else table.rpartition("_")[2]
