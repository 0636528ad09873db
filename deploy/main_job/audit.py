"""An audit of a site's binlog: did anything come back to where it was written?

Independent of setl's own counting. Every row of the shop says which site wrote it. A
transaction with a mark was written by a pipeline and may hold only rows of the other site; a
transaction without one was written by the site's users and may hold only rows of its own. A
row that breaks this has travelled in a circle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from mysql_event_stream import BinlogClient

from main_job.sites import SCHEMA
from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows import BinlogRowCodec
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition
from setl_embedded import MariaDb


@dataclass
class Audit:
    """What a site's binlog says.

    Attributes:
        own_rows: row changes that the site's users wrote.
        replicated_rows: row changes that a pipeline wrote.
        echoes: row changes that came back.
        by_table: all row changes, by table.
    """

    own_rows: int = 0
    replicated_rows: int = 0
    echoes: int = 0
    by_table: Counter[str] = field(default_factory=Counter)


def audit(server: MariaDb, site: str, end: tuple[str, int]) -> Audit:
    """Read the whole binlog of a site up to `end` (file, offset)."""
    result = Audit()
    codec = BinlogRowCodec()
    first = _first_file(server)
    reader = BinlogHeaderReader(BinlogPosition(first, 4))
    marked = False
    with BinlogClient(
        host=server.host, port=server.port, user=server.user, password=server.password,
        server_id=4_000_000_000 + server.server_id, start_binlog_file=first,
        start_binlog_position=4,
    ) as client:  # fmt: skip
        client.connect()
        client.start()
        while True:
            for event in client.poll_batch(1024):
                if event.data is None:
                    continue
                for entry in reader.read(event.data, checksum=event.checksum_enabled):
                    if entry.kind is EntryKind.BEGIN:
                        marked = False
                    elif entry.kind is EntryKind.ROWS and entry.schema == "retl":
                        marked = marked or entry.table == "retl_mark"
                    elif entry.kind is EntryKind.ROWS and entry.schema == SCHEMA:
                        _count(codec, entry, site, marked=marked, result=result)
                    if entry.position.order >= _order(end):
                        return result


def _count(codec: BinlogRowCodec, entry: Entry, site: str, *, marked: bool, result: Audit) -> None:
    decoded = codec.decode(entry.payload, entry.context)
    place = decoded.schema.index.get("site")
    for before, after in decoded.images:
        row = after or before or ()
        writer = row[place] if place is not None else entry.table.rpartition("_")[2]
        result.by_table[entry.table] += 1
        if marked:
            result.replicated_rows += 1
        else:
            result.own_rows += 1
        if (writer == site) is marked:
            result.echoes += 1


def _first_file(server: MariaDb) -> str:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        return str(cursor.fetchone()[0])


def _order(end: tuple[str, int]) -> tuple[int, int]:
    return int(end[0].rpartition(".")[2]), end[1]


def binlog_end(server: MariaDb) -> tuple[str, int]:
    """Where a site's binlog ends now."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        file, offset = cursor.fetchone()[:2]
        return str(file), int(offset)
