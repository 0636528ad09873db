"""Binlogs as entries, made up by hand or by Hypothesis, with a codec and a serializer to match.

Rows are kept beside their entries, and records are plain text, so that what comes out can be
compared to the letter and read when it differs.
"""

from hypothesis import strategies as st

from setl.channel.routes.routing import Route
from setl.codec.dts.relayed import HEADER, LAST, relay_position_of
from setl.model.change import DecodedRows, Op
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.relay.interceptor import Interceptor
from setl.relay.partitioning import PartitionBy, Partitioner
from setl.relay.sequence import Sequencer
from setl.relay.serializer import Message
from setl.systems.kafka.source.relay_repeats import RelayRepeats

ORIGIN = BinlogOrigin("srv-1", 7, 1_700_000_000)
START = Checkpoint(BinlogPosition("binlog.000007", 4, "", BinlogOrigin("srv-1")), generation=3)


def table(schema, name, key=(0,), kind=Kind.INTEGER, binary=True):
    return RowSchema(
        schema, name, (Column("id", kind, binary_order=binary), Column("v", Kind.TEXT)), key
    )


ORDERS = table("shop", "orders")
ITEMS = table("shop", "items")
LOG = table("shop", "log", key=())
NAMES = table("shop", "names", kind=Kind.TEXT, binary=False)
OTHER = table("other", "t")
MARK = table("retl", "retl_mark")
BUFFER = table("retl", "retl_buffer")
XDUAL = table("retl", "xdual")
GROUPS = {"items": "g", "log": None, "orders": None, "names": None}


class ShopIsMapped:
    """Routes the tables of schema ``shop``."""

    def __init__(self, *names):
        self._names = names or tuple(GROUPS)
        self.asked = []

    def route(self, schema, table):
        self.asked.append((schema, table))
        if schema != "shop" or table not in self._names:
            return ()
        return (Route(0, (schema, table), group=GROUPS.get(table)),)

    def shadow(self, schema, table):
        return None


class Binlog:
    """Entries one after another, each where a server would have put it."""

    def __init__(self):
        self.entries = []
        self.changes = {}
        self._file, self._offset = 7, 4

    def add(self, kind, size=30, **attributes):
        self._offset += size
        position = BinlogPosition(f"binlog.{self._file:06d}", self._offset, "g", ORIGIN)
        seconds = 1.7e9 + len(self.entries)
        self.entries.append(Entry(kind, position, seconds, **attributes))
        return self

    def begin(self, gtid="0-1-1"):
        return self.add(EntryKind.BEGIN, transaction=gtid)

    def commit(self):
        return self.add(EntryKind.COMMIT)

    def ddl(self, statement, schema="shop"):
        return self.add(EntryKind.DDL, schema=schema, statement=statement)

    def rows(self, schema, op, *images):
        payload = b"%d" % len(self.changes)
        self.changes[payload] = DecodedRows(schema, op, list(images))
        return self.add(
            EntryKind.ROWS,
            size=25 + len(images) * 3,
            schema=schema.schema,
            table=schema.table,
            payload=payload,
            transaction="0-1-1",
        )

    def insert(self, schema, *keys):
        return self.rows(schema, Op.INSERT, *[(None, (key, "new")) for key in keys])

    def update(self, schema, old, new):
        return self.rows(schema, Op.UPDATE, ((old, "old"), (new, "new")))

    def mark(self, number=1):
        return self.update(MARK, number, number)

    def rotate(self):
        self._file, self._offset = self._file + 1, 4
        position = BinlogPosition(f"binlog.{self._file:06d}", 4, "g", BinlogOrigin("srv-1"))
        self.entries.append(Entry(EntryKind.HEARTBEAT, position, 0.0))
        return self

    def idle(self):
        """A statement that changes nothing."""
        return self.add(EntryKind.HEARTBEAT)

    def behind(self, position):
        """What a source sends that is opened at a position."""
        return [e for e in self.entries if e.position.order > position.order]

    # ---- RowCodec

    def records(self, payload):
        return ((0, payload),)

    def decode(self, payload, context):
        return self.changes[payload]

    def schema(self, payload, context):
        return self.changes[payload].schema


def message(text):
    return Message(text.encode())


class AsText:
    """A serializer whose records can be read."""

    format = "dts"
    parts = 1

    def transaction(self, begin, opening, first):
        return AsTextTransaction(f"{begin} {first.transaction}")

    def heartbeat(self, ident, position, seconds):
        return message(f"HEARTBEAT {position} {seconds}")


class AsTextTransaction:
    def __init__(self, name):
        self._name = name

    def begin(self, ident, entry):
        return [message(f"BEGIN [{self._name}] {ident} {entry.position}")]

    def rows(self, first_id, entry, changes, first=0):
        return [
            [
                message(
                    f"{changes.op.name} {changes.schema.name} {before} {after}"
                    f" [{self._name}] {ident} {entry.position}"
                )
            ]
            for ident, (before, after) in enumerate(changes.images, first_id)
        ]

    def ddl(self, ident, entry):
        return [message(f"DDL {entry.statement} [{self._name}] {ident} {entry.position}")]

    def commit(self, ident, entry):
        return [message(f"COMMIT [{self._name}] {ident} {entry.position}")]


class AsRows(AsText):
    """As a format whose rows are of one record or several, and which has nothing but rows."""

    format = "rows"
    parts = 4

    def transaction(self, begin, opening, first):
        return AsRowsTransaction(f"{begin} {first.transaction}")


class AsRowsTransaction(AsTextTransaction):
    def begin(self, ident, entry):
        return []

    def rows(self, first_id, entry, changes, first=0):
        values = super().rows(first_id, entry, changes)
        moved = [a is not None and b is not None and a[0] != b[0] for a, b in changes.images]
        counts = [1 + (changes.op is Op.DELETE) + 2 * each for each in moved]
        return [
            [Message(b"%b part %d" % (message.value, part)) for part in range(count)]
            for (message,), count in zip(values, counts, strict=True)
        ]

    def ddl(self, ident, entry):
        return []

    def commit(self, ident, entry):
        return []


class Relay:
    """A sequencer and what it has given out, partition by partition."""

    def __init__(
        self,
        binlog,
        by: PartitionBy = "order",
        partitions=1,
        serializer: type[AsText] = AsText,
        start=START,
        last=None,
        mapped=(),
        statements=None,
    ):
        self.partitions = [[] for _ in range(partitions)]
        self.sequencer = Sequencer(
            start,
            last or [None] * partitions,
            interceptor=Interceptor(ShopIsMapped(*mapped), statements),
            partitioner=Partitioner(by, partitions),
            codec=binlog,
            serializer=serializer(),
        )
        self.heartbeats = []

    def take(self, entries):
        sequenced = self.sequencer.records(entries)
        self.heartbeats += sequenced.heartbeats
        self._keep(sequenced.records)
        return self

    def beat(self, seconds=5.0):
        self._keep(self.sequencer.heartbeat(seconds))
        return self

    def _keep(self, records):
        for record in records:
            self.partitions[record.partition].append(record)


def relayed(binlog, by: PartitionBy = "order", partitions=1, serializer=AsText, **options):
    return Relay(binlog, by, partitions, serializer, **options).take(binlog.entries)


def position(record):
    found = relay_position_of([(HEADER, record.position)])
    assert found is not None
    return found


def last_positions(partitions):
    return [position(records[-1]) if records else None for records in partitions]


def value_of(record):
    assert record.value is not None
    return record.value


def words(records):
    """What the records say, in short."""
    return [record.value.decode().partition(" [")[0] for record in records]


def ordinals(records):
    return ["end" if (o := position(r).ordinal) == LAST else o for r in records]


def as_read(records):
    """What a reader that drops by place keeps."""
    seen = RelayRepeats("t", 0)
    return [r for i, r in enumerate(records) if not seen.is_repeat(i, [(HEADER, r.position)])]


def without_heartbeats(records):
    return [r for r in records if not r.value.startswith(b"HEARTBEAT")]


# ---- made up by Hypothesis

_TABLES = [ORDERS, ORDERS, ITEMS, LOG, NAMES, OTHER, BUFFER, XDUAL]
_DDL = [
    ("ALTER TABLE orders ADD x INT", "shop"),
    ("ALTER TABLE t ADD x INT", "other"),
    ("DROP DATABASE gone", "gone"),
    ("CREATE TABLE retl_mark (id INT)", "retl"),
]


def _keys(schema):
    return st.sampled_from("aAbc") if schema is NAMES else st.integers(0, 5)


@st.composite
def _rows(draw, binlog):
    schema = draw(st.sampled_from(_TABLES))
    key = _keys(schema)
    match draw(st.sampled_from(list(Op))):
        case Op.INSERT:
            binlog.insert(schema, *draw(st.lists(key, min_size=1, max_size=4)))
        case Op.DELETE:
            gone = draw(st.lists(key, min_size=1, max_size=3))
            binlog.rows(schema, Op.DELETE, *[((k, "old"), None) for k in gone])
        case Op.UPDATE:
            pairs = draw(st.lists(st.tuples(key, key), min_size=1, max_size=4))
            images = [((a, "old"), (b, "new")) for a, b in pairs]
            binlog.rows(schema, Op.UPDATE, *images)


@st.composite
def _transaction(draw, binlog, *, begun, ended):
    if begun:
        binlog.begin(f"0-1-{len(binlog.entries)}")
    for _ in range(draw(st.integers(0, 2))):
        binlog.mark(draw(st.integers(1, 3)))
    for _ in range(draw(st.integers(0 if begun else 1, 4))):
        what = draw(st.integers(0, 9))
        if what == 0:
            binlog.idle()
        elif what == 1:
            binlog.mark(9)
        elif what == 2 and begun:
            binlog.ddl("CREATE TABLE orders (id INT)")
        else:
            draw(_rows(binlog))
    if ended:
        binlog.commit()


@st.composite
def binlogs(draw, most=6):
    """A binlog. Some transactions have no BEGIN, and some are ended by the next BEGIN only."""
    binlog = Binlog()
    closed = True
    for _ in range(draw(st.integers(0, most))):
        what = draw(st.integers(0, 9))
        if what == 0:
            binlog.ddl(*draw(st.sampled_from(_DDL)))  # in a transaction if one is open
        elif what == 1:
            binlog.rotate() if closed else binlog.commit()
            closed = True
        elif what == 2:
            binlog.idle()
        else:
            begun = what != 3 or not closed
            closed = draw(st.integers(0, 4)) > 0
            draw(_transaction(binlog, begun=begun, ended=closed))
    return binlog


def pieces(entries):
    """Ways to cut entries into pieces."""
    cuts = st.lists(st.integers(0, len(entries)), max_size=4)
    return cuts.map(
        lambda at: [
            entries[a:b] for a, b in zip([0, *sorted(at)], [*sorted(at), len(entries)], strict=True)
        ]
    )
