"""Makes binlog events byte by byte, as MySQL or MariaDB write them, and reads stored ones."""

import json
import struct
import uuid
import zlib
from pathlib import Path

from setl.codec.binlog.header import BinlogHeaderReader
from setl.model.position import BinlogPosition

DATA = Path(__file__).parent.parent / "data" / "binlog"
START = BinlogPosition("binlog.000007", 4)
MYSQL_TYPES, MARIADB_TYPES = 41, 171


class EventWriter:
    """Writes one binlog file after another; each method gives the raw event."""

    def __init__(self, *, mariadb=False, checksum=True, file="binlog.000007", offset=4):
        self.mariadb = mariadb
        self.checksum = checksum
        self.file = file
        self.offset = offset
        self.seconds = 1_700_000_000

    def event(self, kind, body, *, flags=0, artificial=False, checksum=None, server_id=1):
        checked = self.checksum if checksum is None else checksum
        size = 19 + len(body) + (4 if checked else 0)
        if not artificial:
            self.offset += size
        position = 0 if artificial else self.offset
        header = struct.pack(
            "<IBIIIH", self.seconds, kind, server_id, size, position & 0xFFFFFFFF, flags
        )
        data = header + body
        return data + struct.pack("<I", zlib.crc32(data)) if checked else data

    def format_description(self, created=0, artificial=False):
        count = MARIADB_TYPES if self.mariadb else MYSQL_TYPES
        version = b"10.11.19-MariaDB-log" if self.mariadb else b"8.4.3"
        body = struct.pack("<H50sIB", 4, version, created, 19) + b"\x0d" * count
        body += bytes([1 if self.checksum else 0])
        # This event has a checksum whether or not the others have one.
        return self.event(15, body, artificial=artificial, checksum=True)

    def rotate(self, file, offset=4, *, artificial=False):
        body = struct.pack("<Q", offset) + file.encode()
        event = self.event(4, body, artificial=artificial, flags=0x20 if artificial else 0)
        self.file, self.offset = file, offset
        return event

    def opening(self):
        """What a server sends first: where it is, and the format."""
        return [
            self.rotate(self.file, self.offset, artificial=True),
            self.format_description(artificial=True),
        ]

    def gtid(self, number, server="9d437549-9a4c-11ea-9659-9efc635af2ae"):
        return self.event(
            33, b"\1" + uuid.UUID(server).bytes + struct.pack("<q", number) + b"\0" * 17
        )

    def anonymous_gtid(self):
        return self.event(34, b"\1" + b"\0" * 41)

    def mariadb_gtid(self, sequence, domain=0, server=1, flags=0):
        return self.event(
            162, struct.pack("<QIB", sequence, domain, flags) + b"\0" * 6, server_id=server
        )

    def gtid_list(self, *gtids, artificial=False):
        body = struct.pack("<I", len(gtids) | 0x10000000)
        for domain, server, sequence in gtids:
            body += struct.pack("<IIQ", domain, server, sequence)
        return self.event(163, body, artificial=artificial)

    def previous_gtids(self, **intervals):
        return self.event(35, self.previous_gtids_body(intervals))

    @staticmethod
    def previous_gtids_body(intervals, form=0):
        body = struct.pack("<Q", len(intervals) | form << 56)
        for server, pairs in intervals.items():
            body += uuid.UUID(server).bytes + struct.pack("<Q", len(pairs))
            for first, end in pairs:
                body += struct.pack("<QQ", first, end)
        return body

    def query(self, text, schema="shop", collation=45):
        data = text if isinstance(text, bytes) else text.encode()
        status = b"\0" + b"\0" * 4 + b"\1" + b"\0" * 8 + b"\6\3std"
        status += b"\4" + struct.pack("<HHH", collation, collation, 8)
        body = struct.pack("<IIBHH", 7, 0, len(schema), 0, len(status))
        return self.event(2, body + status + schema.encode() + b"\0" + data)

    def xid(self, number=1):
        return self.event(16, struct.pack("<Q", number))

    def xa_prepare(self):
        return self.event(38, b"\0" + struct.pack("<III", 1, 1, 0) + b"a")

    def table_map(self, columns, *, schema="shop", table="orders", table_id=9, optional=b""):
        """`columns` are (type, metadata bytes) pairs."""
        body = struct.pack("<IHH", table_id, 0, 1)
        body += bytes([len(schema.encode())]) + schema.encode() + b"\0"
        body += bytes([len(table.encode())]) + table.encode() + b"\0"
        metadata = b"".join(m for _, m in columns)
        body += packed(len(columns)) + bytes(t for t, _ in columns)
        body += packed(len(metadata)) + metadata + b"\xff" * ((len(columns) + 7) // 8)
        return self.event(19, body + optional)

    def rows(self, kind, count, images, *, table_id=9, present=None, extra=b""):
        """`images` are the bytes of each image: bitmap of NULLs, then values."""
        width = (count + 7) // 8
        full = ((1 << count) - 1).to_bytes(width, "little")
        body = struct.pack("<IHH", table_id, 0, 1)
        if kind >= 30:
            body += struct.pack("<H", 2 + len(extra)) + extra
        body += packed(count) + (full if present is None else present)
        if kind in (24, 31):
            body += full if present is None else present
        return self.event(kind, body + b"".join(images))


def packed(number):
    if number < 251:
        return bytes([number])
    return (
        b"\xfc" + struct.pack("<H", number)
        if number < 1 << 16
        else b"\xfd" + struct.pack("<I", number)[:3]
    )


def field(kind, data):
    """One field of optional metadata."""
    return bytes([kind]) + packed(len(data)) + data


def names(*columns):
    return field(4, b"".join(packed(len(c.encode())) + c.encode() for c in columns))


def labels(kind, *columns, charset="utf-8"):
    data = b""
    for values in columns:
        data += packed(len(values))
        for value in values:
            encoded = value.encode(charset)
            data += packed(len(encoded)) + encoded
    return field(kind, data)


def entries_of(events, start=START, *, checksum=True, **options):
    """All entries of a stream, and the reader that made them."""
    reader = BinlogHeaderReader(start, **options)
    entries = []
    for event in events:
        entries.extend(reader.read(event, checksum=checksum))
    return entries, reader


def stored(name):
    """Events captured from a server, and what SELECT said about the rows."""
    data = (DATA / f"{name}.bin").read_bytes()
    events = []
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        events.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return events, json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
