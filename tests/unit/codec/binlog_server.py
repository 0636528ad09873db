"""Reads raw events from a running server, and asks it what its rows hold."""

import struct
from contextlib import contextmanager

from mysql_event_stream import BinlogClient

from setl.codec.binlog.header import BinlogHeaderReader
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.model.schema import Kind
from setl.systems.mysql.values.row_values import has_two_digits, whole_year
from tests.mysql_servers import binlog_status


def end_of(connection):
    """Where the server's binlog ends now."""
    return BinlogPosition(*binlog_status(connection))


def raw_events(server, start, end, server_id=4711):
    """(event, checksum) of everything between two positions."""
    client = BinlogClient(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        server_id=server_id,
        start_binlog_file=start.file,
        start_binlog_position=start.offset,
        read_timeout_s=20,
        allow_public_key_retrieval=True,
    )
    client.connect()
    client.start()
    events = []
    file = start.file
    try:
        while True:
            for result in client.poll_batch(256):
                if result.data is None:
                    continue
                events.append((result.data, result.checksum_enabled))
                if result.data[4] == 4:
                    file = result.data[27 : -4 if result.checksum_enabled else None].decode()
                    continue
                (offset,) = struct.unpack_from("<I", result.data, 13)
                if file == end.file and offset >= end.offset:
                    return events
    finally:
        client.close()


def entries_between(server, start, end, **options):
    """All entries between two positions."""
    reader = BinlogHeaderReader(start, **options)
    entries = []
    for event, checksum in raw_events(server, start, end):
        entries.extend(reader.read(event, checksum=checksum))
    return entries


def decoded(codec, entries):
    """(entry, decoded rows) of each rows entry."""
    return [(e, codec.decode(e.payload, e.context)) for e in entries if e.kind is EntryKind.ROWS]


@contextmanager
def utc_text(server):
    """A cursor that gives every value as the server writes it, times in UTC."""
    with server.connect(conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        yield cursor


def selected(cursor, table, schema):
    """Rows of a table in the form that a codec gives them, ordered by the first column."""
    columns = []
    for column in schema.columns:
        name = f"`{column.name}`"
        if column.kind in (Kind.BINARY, Kind.GEOMETRY):
            name = f"HEX({name})"
        elif column.kind is Kind.BIT:
            name = f"CAST({name} AS UNSIGNED)"
        elif column.kind is Kind.FLOAT:
            name = f"CAST({name} AS DOUBLE)"
        elif has_two_digits(column):
            name = whole_year(name)
        columns.append(name)
    cursor.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1")
    return [
        tuple(as_value(c.kind, v) for c, v in zip(schema.columns, row, strict=True))
        for row in cursor.fetchall()
    ]


def as_value(kind, text):
    """A value that the server wrote as text, in the form of its kind."""
    if text is None:
        return None
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    if kind in (Kind.INTEGER, Kind.BIT, Kind.YEAR):
        return int(text)
    if kind is Kind.FLOAT:
        return float(text)
    if kind in (Kind.BINARY, Kind.GEOMETRY):
        return bytes.fromhex(text)
    if kind in (Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP):
        whole, _, fraction = text.partition(".")
        return f"{whole}.{fraction:0<6}"
    return text


def comparable(schema, row):
    """A row whose FLOAT values are widened as SELECT widens them; their names begin with f."""
    return tuple(
        struct.unpack("<f", struct.pack("<f", value))[0]
        if isinstance(value, float) and column.name.startswith("f")
        else value
        for column, value in zip(schema.columns, row, strict=True)
    )
