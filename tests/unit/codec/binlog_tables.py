"""Tables of random columns with random rows, as row events have them.

Made from a seed and not by hypothesis: a row of bytes costs it milliseconds, and thousands of
tables are wanted.
"""

from itertools import pairwise
from random import Random
from typing import NamedTuple
from zlib import compress

from setl.codec.binlog.columns.form import binlog_form
from setl.codec.binlog.columns.labels import lacks_labels
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.tables.table_map import value_bytes
from setl.codec.row_codec import DAMAGED
from tests.unit.codec.binlog_events import SIGNABLE, EventWriter, field, names, packed

# Type and metadata of a column, as a TABLE_MAP event has them.
COLUMN_TYPES = [
    (1, b""),  # TINYINT
    (2, b""),
    (3, b""),
    (8, b""),
    (9, b""),  # MEDIUMINT
    (4, b"\4"),  # FLOAT
    (5, b"\x08"),
    (13, b""),  # YEAR
    (10, b""),  # DATE
    *[(18, bytes([digits])) for digits in range(7)],  # DATETIME
    *[(17, bytes([digits])) for digits in range(7)],  # TIMESTAMP
    *[(19, bytes([digits])) for digits in range(7)],  # TIME
    *[
        (246, bytes([p, s]))
        for p, s in [(1, 0), (9, 2), (12, 2), (30, 4), (10, 5), (65, 30), (4, 4)]
    ],
    (15, b"\x14\0"),  # VARCHAR with one byte of length
    (15, b"\x14\4"),  # with two
    (254, b"\xfe\x14"),  # CHAR or BINARY
    *[(252, bytes([width])) for width in (1, 2, 3, 4)],
    (16, b"\3\2"),  # BIT(19)
    (254, b"\xf7\1"),  # ENUM
    (254, b"\xf8\1"),  # SET
    (245, b"\4"),  # MySQL's JSON
    *[(140, bytes([width])) for width in (1, 2)],  # MariaDB's compressed columns
    (141, b"\x14\4"),
]
JSON, COMPRESSED = 245, {140, 141}
LABELLED = {(254, b"\xf7\1"): 6, (254, b"\xf8\1"): 5}
CHARACTER = {15, 252, 253, 254}
VECTOR, GEOMETRY = 242, 255
UTF8, LATIN1, BINARY = 45, 8, 63
DATE, TIMESTAMP, DATETIME, TIME, DECIMAL = 10, 17, 18, 19, 246
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
LETTERS = "aZ 09'\\\n\0éß紙🧀"


class RandomTable(NamedTuple):
    """A table whose first column is an INT, its key."""

    pick: Random
    writer: EventWriter
    context: tuple
    columns: list  # (wire, nullable) of each
    codec: BinlogRowCodec

    @property
    def schema(self):
        return self.codec.schema(b"", self.context)

    @property
    def form(self):
        found = binlog_form(self.context)
        assert found is not None
        return found

    @property
    def layout(self):
        return self.form.layout

    def images(self, events):
        """What the decoder of rows makes of events, each image in turn."""
        found = []
        for event in events:
            for pair in self.codec.decode(event, self.context).images:
                found += [image for image in pair if image is not None]
        return found


def table_of(pick, *, types=COLUMN_TYPES, most=12):
    """A table with some of these types of columns."""
    mariadb = pick.random() < 0.5
    other = {JSON} if mariadb else COMPRESSED
    chosen = [
        kind for kind in pick.choices(types, k=pick.randrange(most + 1)) if kind[0] not in other
    ]
    chosen = [(3, b""), *chosen]
    nullable = pick.getrandbits(len(chosen)) & ~1
    writer = EventWriter(mariadb=mariadb, checksum=pick.random() < 0.5, filled=pick.random() < 0.5)
    optional = names(*[f"c{n}" for n in range(len(chosen))]) + field(8, b"\0")
    signable = (sum(kind in SIGNABLE for kind, _ in chosen) + 7) // 8
    optional += field(1, pick.randbytes(signable))
    # Each family counts one more type among those with a character set.
    character = CHARACTER | COMPRESSED | {GEOMETRY if writer.mariadb else VECTOR}
    collated = [kind for kind in chosen if kind[0] in character and kind not in LABELLED]
    if collated:
        collations = [pick.choice([UTF8, UTF8, LATIN1, BINARY]) for _ in collated]
        optional += field(3, b"".join(map(packed, collations)))
    optional += field(10, packed(UTF8))
    for kind in (5, 6):
        count = sum(LABELLED.get(t) == kind for t in chosen)
        optional += field(kind, (packed(3) + b"\1a\1b\2cd") * count) if count else b""
    event = writer.table_map(chosen, optional=optional, nullable=nullable)
    context = (writer.format_description(), event)
    codec = BinlogRowCodec()
    codec.schema(b"", context)
    wires = codec._decoders[context].wire.columns
    columns = [(wire, bool(nullable >> i & 1)) for i, wire in enumerate(wires)]
    return RandomTable(pick, writer, context, columns, codec)


def value(pick, wire, *, odd=0.05):
    """The bytes of a value: mostly one that a server may have written."""
    size = value_bytes(wire)
    strange = pick.random() < odd
    if size < 0:
        text = "".join(pick.choices(LETTERS, k=pick.randrange(7))).encode()
        if wire.type == JSON:
            text = pick.choice([b"", b"\4\0", b"\5\xfe\xff", bytes([12, len(text)]) + text])
        elif wire.type in COMPRESSED:
            packed_text = bytes([0x81, len(text)]) + compress(text)
            text = pick.choice([b"", b"\0" + text, packed_text])
        if strange:
            text += pick.randbytes(pick.randrange(3)) + b"x" * pick.choice([0, 0, 249, 250, 70_000])
        most = {-1: 255, -2: 65_535}.get(size, len(text))
        return min(len(text), most).to_bytes(-size, "little") + text[:most]
    if strange:
        return pick.randbytes(size)
    if wire.type in (247, 248):
        return pick.randrange(4).to_bytes(size, "little")
    if wire.type in (DATE, TIMESTAMP, DATETIME, TIME):
        return moment(pick, wire, size)
    if wire.type == DECIMAL:
        digits = pick.choice([0, 1, 10**wire.length - 1, pick.randrange(10**wire.length)])
        return decimal(digits, pick.random() < 0.5, wire.length - wire.scale, wire.scale)
    return pick.choice([bytes(size), b"\xff" * size, pick.randbytes(size), pick.randbytes(size)])


def moment(pick, wire, size):
    day, month, year = pick.randrange(32), pick.randrange(13), pick.randrange(10_000)
    if wire.type == DATE:
        return (year << 9 | month << 5 | day).to_bytes(3, "little")
    fraction, wide = pick.randrange(10**wire.length), (wire.length + 1) // 2
    if wire.length % 2:
        fraction *= 10
    below = pick.randrange(60) << 6 | pick.randrange(60)
    if wire.type == DATETIME:
        head = (year * 13 + month) << 22 | day << 17 | pick.randrange(24) << 12 | below
        return (head + (1 << 39)).to_bytes(5, "big") + fraction.to_bytes(wide, "big")
    if wire.type == TIMESTAMP:
        seconds = pick.choice([0, 0, 1, 86_399, (1 << 32) - 1, pick.getrandbits(32)])
        fraction *= pick.randrange(2)
        return seconds.to_bytes(4, "big") + fraction.to_bytes(wide, "big")
    raw = ((pick.randrange(839) << 12 | below) << 8 * wide | fraction) * pick.choice([1, -1])
    return (raw + (1 << 8 * size - 1)).to_bytes(size, "big")


def decimal(digits, negative, whole, scale):
    """A DECIMAL as servers lay it out, see `decimal_reader`."""
    text = f"{digits:0{whole + scale}d}"
    bounds = [0, *range(whole % 9, whole, 9), whole, *range(whole + 9, whole + scale, 9)]
    bounds = [*dict.fromkeys([*bounds, whole + scale])]
    parts = [text[a:b] for a, b in pairwise(bounds)]
    data = b"".join(int(part).to_bytes(DIGIT_BYTES[len(part)], "big") for part in parts)
    data = bytes([data[0] ^ 0x80]) + data[1:]
    return bytes(byte ^ 0xFF for byte in data) if negative else data


def image(table, *, key=None, odd=0.05):
    pick, nulls, data = table.pick, 0, b""
    often = pick.choice([0, 0.2, 0.9])
    for i, (wire, nullable) in enumerate(table.columns):
        if nullable and pick.random() < often:
            nulls |= 1 << i
        elif i == 0 and key is not None:
            data += key.to_bytes(4, "little")
        else:
            data += value(pick, wire, odd=odd)
    bitmap = bytearray(nulls.to_bytes((len(table.columns) + 7) // 8, "little"))
    if pick.random() < 0.5:  # a server may set the bits of no column
        bitmap[-1] |= 256 - (1 << (len(table.columns) % 8 or 8)) & 255
    return bytes(bitmap) + data


def changes(table, *, kinds=(23, 24, 25, 30, 31, 32), most=8, keys=None, odd=0.05):
    """Random changes: of each event its kind and its images.

    Args:
        keys: of these; an update leaves its key alone then.
    """
    pick, found = table.pick, []
    for _ in range(1 + pick.randrange(most)):
        kind = pick.choice(kinds)
        images = []
        for _ in range(1 + pick.randrange(4)):
            key = None if keys is None else pick.choice(keys)
            sides = 2 if kind in (24, 31) else 1
            images += [image(table, key=key, odd=odd) for _ in range(sides)]
        found.append((kind, images))
    return found


def written(table, changed):
    """The events of such changes; a MariaDB has some of them compressed."""
    events, count = [], len(table.columns)
    for kind, images in changed:
        pick, writer = table.pick, table.writer
        extra = pick.randbytes(pick.randrange(3)) if kind >= 30 else b""
        if writer.mariadb and pick.random() < 0.2:
            plain = EventWriter(mariadb=True, checksum=False, filled=writer.filled)
            events.append(writer.squeezed(plain.rows(kind, count, images, extra=extra)))
        else:
            events.append(writer.rows(kind, count, images, extra=extra))
    return events


def has_readable_values(rows):
    """Whether all rows can be decoded, of columns whose bytes add up."""
    if lacks_labels(rows.values):
        return False
    try:
        rows.values.convert()
    except DAMAGED:
        return False
    return True
