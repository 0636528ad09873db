"""Streams of marked transactions, with a codec that knows their mark rows."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from setl.channel.routes.routing import Route
from setl.errors import DataError
from setl.model.batch import Batch
from setl.model.change import DecodedRows, Op
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition
from setl.model.schema import Column, Kind, RowSchema

OWN, OTHER = 11, 12
OWN_INFO = "otter-info"

MARK_SCHEMA = RowSchema(
    "retl",
    "retl_mark",
    (
        Column("ID", Kind.INTEGER),
        Column("Channel_Id", Kind.INTEGER),
        Column("CHANNEL_INFO", Kind.TEXT),
        Column("note", Kind.TEXT),
    ),
    (0,),
)
XDUAL_SCHEMA = RowSchema(
    "retl", "xdual", (Column("ID", Kind.INTEGER), Column("X", Kind.TIMESTAMP)), (0,)
)


def at(offset):
    return KafkaPosition("t", 0, offset)


def mark_row(channel_id, info=None):
    return (7, channel_id, info, "extra")


class ByPayload:
    """A row codec for payloads that were put into it; anything else was never to be decoded."""

    def __init__(self):
        self.known = {}

    def put(self, schema, op, before, after):
        payload = b"system row %d" % len(self.known)
        self.known[payload] = DecodedRows(schema, op, [(before, after)])
        return payload

    def records(self, payload):
        return ((0, payload),)

    def operation(self, payload):
        return None

    def joins(self, payload, offset):
        return False

    def likely_inserts(self, payload):
        return False

    def join(self, payloads):
        return b"".join(payload for _, payload in payloads)

    def decode(self, payload, context, *, keys_alone=False):
        if payload not in self.known:
            raise DataError(f"decoded a row that is not of a system table: {payload!r}")
        return self.known[payload]

    def row_form(self, payload, context):
        return None

    def likely_rows(self, payload, context, size):
        return 0

    def find_rows(self, form, payloads):
        raise TypeError("there is no form")

    def schema(self, payload, context):
        return self.decode(payload, context).schema


class ToOneTarget:
    """Routes the tables of schema ``shop`` to one target of the same name."""

    def __init__(self):
        self.asked = []

    def route(self, schema, table):
        self.asked.append((schema, table))
        return (Route(0, (schema, table)),) if schema == "shop" else ()

    def shadow(self, schema, table):
        return None


@dataclass
class Stream:
    """Entries at offsets 1, 2, 3, …; `expected` are the payloads that are to come out."""

    codec: ByPayload = field(default_factory=ByPayload)
    entries: list = field(default_factory=list)
    expected: list = field(default_factory=list)

    def add(self, kind, **attributes):
        position = at(len(self.entries) + 1)
        self.entries.append(Entry(kind, position, 1.7e9 + position.offset, **attributes))

    def begin(self):
        self.add(EntryKind.BEGIN)

    def commit(self):
        self.add(EntryKind.COMMIT)

    def mark(self, after, before=None, op=Op.UPDATE, table="retl_mark"):
        before = mark_row(0) if before is None else before
        payload = self.codec.put(MARK_SCHEMA, op, before, after)
        self.add(EntryKind.ROWS, schema="retl", table=table, rows=1, payload=payload)

    def heartbeat(self, number=1, text: str | None = "2026-03-01 10:00:00.250000"):
        payload = self.codec.put(XDUAL_SCHEMA, Op.UPDATE, (number, text), (number, text))
        self.add(EntryKind.ROWS, schema="retl", table="xdual", rows=1, payload=payload)

    def row(self, *, expected, schema="shop", table="orders", rows=1):
        payload = b"row %d" % (len(self.entries) + 1)
        self.add(EntryKind.ROWS, schema=schema, table=table, rows=rows, payload=payload)
        if expected:
            self.expected.append(payload)

    def batch(self, start=0, stop=None, checkpoint=None):
        entries = self.entries[start:stop]
        return Batch(1, 1, entries, checkpoint or Checkpoint(at(0)), len(entries), 0)


# What loaders write: (mark at the front, mark at the end that clears it, dropped?)
_LOADERS = {
    "setl, this channel": (mark_row(OWN, "3.17.0.f00d"), None, True),
    "setl, another channel": (mark_row(OTHER, "9.2.1.beef"), None, False),
    "Otter, this channel": (mark_row(OWN), mark_row(0), True),
    "Otter, this channel's info": (mark_row(77, OWN_INFO), mark_row(0), True),
    "Otter, another channel": (mark_row(OTHER), mark_row(0), False),
    "synced": (mark_row(None, "shop_Sync"), mark_row(0), True),
    "a user": (None, None, False),
}


@st.composite
def marked_streams(draw, most=7):
    """Transactions of several loaders, some of them without their begin or their commit.

    Both are never missing where nothing else could tell: between a dropped transaction that
    setl wrote and one of a user.
    """
    stream = Stream()
    open_drop = False  # a dropped transaction without end mark has not seen its commit
    for _ in range(draw(st.integers(1, most))):
        if draw(st.integers(0, 6)) == 0:
            _interlude(draw, stream)
            open_drop = False
            continue
        name = draw(st.sampled_from(sorted(_LOADERS)))
        first, last, dropped = _LOADERS[name]
        if draw(st.booleans()) or (open_drop and first is None):
            stream.begin()
        if first is not None:
            stream.mark(first)
        for _ in range(draw(st.integers(1, 6))):
            if draw(st.integers(0, 5)) == 0:
                stream.add(EntryKind.HEARTBEAT)
            mapped = draw(st.integers(0, 5)) > 0
            stream.row(expected=mapped and not dropped, schema="shop" if mapped else "other")
        if last is not None:
            stream.mark(last, before=first)
        committed = draw(st.booleans())
        if committed:
            stream.commit()
        open_drop = dropped and last is None and not committed
    return stream


def _interlude(draw, stream):
    """What stands between transactions, and ends one that is still open."""
    kind = draw(st.sampled_from(["ddl", "heartbeat transaction"]))
    if kind == "ddl":
        stream.add(EntryKind.DDL, schema="shop", statement="ALTER TABLE orders ADD x INT")
    else:
        stream.begin()
        stream.heartbeat()
        stream.commit()
