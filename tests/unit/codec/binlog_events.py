"""Makes binlog events byte by byte, as MySQL or MariaDB write them, and reads stored ones."""

import json
import struct
import uuid
import zlib
from pathlib import Path

import pyarrow as pa

from setl.codec.binlog.event import packed_integer
from setl.codec.binlog.header import BinlogHeaderReader
from setl.model.position import BinlogPosition

DATA = Path(__file__).parent.parent / "data" / "binlog"
START = BinlogPosition("binlog.000007", 4)
MYSQL_TYPES, MARIADB_TYPES = 41, 171
# Bytes in front of an event's body that has them, as a FORMAT_DESCRIPTION lists them.
FRONTS = {2: 13, 4: 8, 19: 8, 23: 8, 24: 8, 25: 8, 30: 10, 31: 10, 32: 10, 33: 42, 34: 42, 39: 10}
MARIADB_FRONTS = {
    33: 0, 34: 0, 161: 4, 162: 19, 163: 4, 165: 13,
    166: 8, 167: 8, 168: 8, 169: 10, 170: 10, 171: 10,
}  # fmt: skip
SIGNABLE = {0, 1, 2, 3, 4, 5, 8, 9, 13, 246}
SERVER = "9d437549-9a4c-11ea-9659-9efc635af2ae"
INT = (3, b"")
VARCHAR = (15, struct.pack("<H", 300))


class EventWriter:
    """Writes one binlog file after another; each method gives the raw event."""

    def __init__(
        self,
        *,
        mariadb=False,
        checksum=True,
        file="binlog.000007",
        offset=4,
        without_position=(),
        filled=False,
    ):
        """What servers do differently can be chosen.

        Args:
            without_position: kinds of events that do not say where they end, as MariaDB from 11.7
                on.
            filled: whether the bits behind the last column's are set in bitmaps of columns, as
                MySQL 9.7 does.
        """
        self.filled = filled
        self.mariadb = mariadb
        self.without_position = without_position
        self.checksum = checksum
        self.file = file
        self.offset = offset
        self.seconds = 1_700_000_000

    def event(self, kind, body, *, flags=0, artificial=False, checksum=None, server_id=1):
        checked = self.checksum if checksum is None else checksum
        size = 19 + len(body) + (4 if checked else 0)
        if not artificial:
            self.offset += size
        position = 0 if artificial or kind in self.without_position else self.offset
        header = struct.pack(
            "<IBIIIH", self.seconds, kind, server_id, size, position & 0xFFFFFFFF, flags
        )
        data = header + body
        return data + struct.pack("<I", zlib.crc32(data)) if checked else data

    def format_description(self, created=0, artificial=False):
        count = MARIADB_TYPES if self.mariadb else MYSQL_TYPES
        version = b"10.11.19-MariaDB-log" if self.mariadb else b"8.4.3"
        fronts = bytearray(count)
        for kind, size in (FRONTS | (MARIADB_FRONTS if self.mariadb else {})).items():
            fronts[kind - 1] = size
        fronts[14] = 57 + count  # of this event itself
        body = struct.pack("<H50sIB", 4, version, created, 19) + fronts
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

    def tagged_gtid(self, number, tag, server="9d437549-9a4c-11ea-9659-9efc635af2ae"):
        fields = [b"\0\0", b"\2" + b"".join(map(variable, uuid.UUID(server).bytes))]
        fields += [b"\4" + variable(number << 1), b"\6" + variable(len(tag)) + tag.encode()]
        fields += [b"\x08" + variable(1), b"\x0a" + variable(2), b"\x0c" + variable(1 << 50)]
        body = b"\0" + b"".join(fields)
        return self.event(42, b"\2" + variable(len(body) + 2) + body)

    def squeezed(self, event, *, server_id=1):
        """MariaDB's compressed form of a QUERY or ROWS event that was written without checksum."""
        kind = event[4]
        if kind == 2:
            at = 19 + 13 + struct.unpack_from("<H", event, 30)[0] + event[27] + 1
        else:
            at = 27 + (struct.unpack_from("<H", event, 27)[0] if kind >= 30 else 0)
            at += 1 + (event[at] + 7) // 8 * (2 if kind in (24, 31) else 1)
        plain = event[at:]
        width = 1 if len(plain) < 256 else 2 if len(plain) < 1 << 16 else 3
        front = bytes([0x80 | width]) + len(plain).to_bytes(width, "big")
        kinds = {2: 165, 23: 166, 24: 167, 25: 168, 30: 169, 31: 170, 32: 171}
        return self.event(
            kinds[kind], event[19:at] + front + zlib.compress(plain), server_id=server_id
        )

    def payload(self, events, *, compression=0, frame=None, size=None):
        """`events` were written without checksums, by another writer."""
        data = b"".join(events)
        stored = data if compression == 255 else frame or compressed(data)
        body = field(2, packed(compression))
        if compression != 255:
            body += field(3, packed(len(data)))
        body += field(1, packed(len(stored) if size is None else size)) + b"\0"
        return self.event(40, body + stored)

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

    def table_map(
        self, columns, *, schema="shop", table="orders", table_id=9, optional=b"", nullable=-1
    ):
        """`columns` are (type, metadata bytes) pairs; `nullable` has a bit for each.

        Optional metadata that does not say which numbers have a sign gets that they all have one.
        """
        signable = sum(kind in SIGNABLE for kind, _ in columns)
        if optional and signable and 1 not in field_kinds(optional):
            optional = field(1, bytes((signable + 7) // 8)) + optional
        body = struct.pack("<IHH", table_id, 0, 1)
        body += bytes([len(schema.encode())]) + schema.encode() + b"\0"
        body += bytes([len(table.encode())]) + table.encode() + b"\0"
        metadata = b"".join(m for _, m in columns)
        body += packed(len(columns)) + bytes(t for t, _ in columns)
        width = (len(columns) + 7) // 8
        bits = nullable & (1 << 8 * width) - 1
        body += packed(len(metadata)) + metadata + bits.to_bytes(width, "little")
        return self.event(19, body + optional)

    def rows(self, kind, count, images, *, table_id=9, present=None, extra=b""):
        """`images` are the bytes of each image: bitmap of NULLs, then values."""
        width = (count + 7) // 8
        full = ((1 << count) - 1).to_bytes(width, "little")
        behind = (1 << 8 * width) - (1 << count) if self.filled else 0
        present = full if present is None else present
        present = (int.from_bytes(present, "little") | behind).to_bytes(width, "little")
        body = struct.pack("<IHH", table_id, 0, 1)
        if kind >= 30:
            body += struct.pack("<H", 2 + len(extra)) + extra
        body += packed(count) + present
        if kind in (24, 31, 39):
            body += present
        return self.event(kind, body + b"".join(images))


def variable(number):
    """An integer of MySQL's serialization library."""
    for more in range(8):
        if number < 1 << 7 * (more + 1):
            return (number << more + 1 | (1 << more) - 1).to_bytes(more + 1, "little")
    return b"\xff" + number.to_bytes(8, "little")


def compressed(data):
    """One zstd frame that does not say how much comes out of it, as MySQL writes them."""
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()


def packed(number):
    if number < 251:
        return bytes([number])
    for front, width in ((b"\xfc", 2), (b"\xfd", 3)):
        if number < 1 << 8 * width:
            return front + number.to_bytes(width, "little")
    return b"\xfe" + struct.pack("<Q", number)


def field(kind, data):
    """One field of optional metadata."""
    return bytes([kind]) + packed(len(data)) + data


def field_kinds(optional):
    """The kinds of the fields of optional metadata, which may end too early."""
    found, at = set(), 0
    while at + 1 < len(optional):
        found.add(optional[at])
        size, at = packed_integer(optional, at + 1)
        at += size
    return found


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


def mysql_transaction(writer, number, *steps):
    """Steps make events, so that these are written in order."""
    events = [writer.gtid(number), writer.query("BEGIN")]
    for step in steps:
        events += step(writer)
    return [*events, writer.xid()]


def one_row(writer, kind=30, value=1, **table):
    image = b"\0" + struct.pack("<i", value)
    return [
        writer.table_map([INT], optional=names("id"), **table),
        writer.rows(kind, 1, [image, image] if kind in (24, 31) else [image]),
    ]


def one_deleted(writer):
    return one_row(writer, kind=32)


def statement(text):
    return lambda writer: [writer.query(text)]


def kinds(entries):
    return [entry.kind.name for entry in entries]
