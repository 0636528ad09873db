"""Compressed transactions of MySQL, made byte by byte."""

import contextlib
import itertools
import random
import struct
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.clock import SystemClock
from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.transactions.author import Author, author_of
from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition, document_version
from setl.select.batching import BatchAssembler, BatchSettings
from tests.unit.codec.binlog_events import START, EventWriter, compressed, entries_of, names, stored

SERVER = "9d437549-9a4c-11ea-9659-9efc635af2ae"
INT = (3, b"")


def inner(*steps):
    """Events of one transaction as they stand in a payload."""
    writer = EventWriter(checksum=False)
    events = [writer.query("BEGIN")]
    for step in steps:
        events += step(writer)
    # They do not say where they end, since they stand nowhere.
    return [event[:13] + bytes(4) + event[17:] for event in [*events, writer.xid()]]


def row(value, kind=30, table="orders"):
    def step(writer):
        image = b"\0" + struct.pack("<i", value)
        return [
            writer.table_map([INT], optional=names("id"), table=table),
            writer.rows(kind, 1, [image, image] if kind == 31 else [image]),
        ]

    return step


def decoded(entries):
    codec = BinlogRowCodec()
    rows = [codec.decode(e.payload, e.context) for e in entries if e.kind is EntryKind.ROWS]
    return [(r.op.name, *(image for image in pair if image)) for r in rows for pair in r.images]


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("compression", [0, 255])
def test_a_compressed_transaction_is_read_as_any_other(checksum, compression):
    writer = EventWriter(checksum=checksum)
    steps = [row(1), row(2, table="items"), row(1, kind=31), row(2, kind=32)]
    events = [*writer.opening(), writer.gtid(5)]
    before = writer.offset
    events.append(writer.payload(inner(*steps), compression=compression))
    start = BinlogPosition("binlog.000007", 4, f"{SERVER}:1-4")
    entries, reader = entries_of(events, start, checksum=checksum)
    assert [e.kind.name for e in entries] == ["BEGIN", *["ROWS"] * 4, "COMMIT"]
    assert [e.table for e in entries[1:-1]] == ["orders", "items", "orders", "orders"]
    assert [e.rows for e in entries[1:-1]] == [1] * 4
    assert {e.transaction for e in entries} == {f"{SERVER}:5"}
    assert decoded(entries) == [
        ("INSERT", (1,)),
        ("INSERT", (2,)),
        ("UPDATE", (1,), (1,)),
        ("DELETE", (2,)),
    ]
    assert author_of(entries[0].payload) == Author(server_id=1, thread_id=7)
    offsets = [e.position.offset for e in entries]
    assert offsets == [*range(before + 1, before + 6), writer.offset]
    assert entries[-1].position.gtid == f"{SERVER}:1-5"
    assert reader.position == entries[-1].position


def test_compressed_and_plain_transactions_take_turns():
    writer = EventWriter()
    events = [*writer.opening()]
    for number in range(4):
        events.append(writer.gtid(number + 1))
        if number % 2:
            events.append(writer.payload(inner(row(number))))
        else:
            events += [writer.query("BEGIN"), *row(number)(writer), writer.xid()]
    entries, _ = entries_of(events)
    assert decoded(entries) == [("INSERT", (n,)) for n in range(4)]
    orders = [e.position.order for e in entries]
    assert orders == sorted(set(orders))
    contexts = {id(e.context) for e in entries if e.kind is EntryKind.ROWS}
    assert len(contexts) == 2  # with checksums and without


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 2**32))
def test_positions_inside_grow_and_reading_again_gives_the_same(sizes, seed):
    values = random.Random(seed)
    writer = EventWriter()
    events = [*writer.opening()]
    for number, size in enumerate(sizes, 1):
        events.append(writer.gtid(number))
        # Values that do not compress, so that there are bytes enough.
        steps = [row(values.randrange(-(2**31), 2**31)) for _ in range(size)]
        events.append(writer.payload(inner(*steps)))
    entries, _ = entries_of(events)
    versions = [document_version(1, e.position) for e in entries]
    assert versions == sorted(set(versions))
    again, _ = entries_of(events)
    assert again == entries


def test_a_restart_inside_goes_on_behind_what_was_applied():
    values = random.Random(1)
    writer = EventWriter()
    steps = [row(values.randrange(2**31)) for _ in range(20)]
    events = [*writer.opening(), writer.gtid(1), writer.payload(inner(*steps))]
    entries, _ = entries_of(events)
    for cut in range(1, 21):
        tracker = CheckpointTracker(Checkpoint(START))
        checkpoint = tracker.advance_all(entries[: cut + 1])
        stored = Checkpoint.from_json(checkpoint.to_json())
        assert stored.resume == START
        again, _ = entries_of(events, START)
        left = [e for e in again if e.kind is EntryKind.ROWS and not stored.covers(e)]
        assert left == entries[cut + 1 : -1]


def test_more_changes_than_bytes_are_refused():
    writer = EventWriter()
    steps = [row(1, kind=31)] * 20_000
    event = writer.payload(inner(*steps))
    assert len(event) < 20_000
    reader = BinlogHeaderReader(START)
    for opening in [*EventWriter().opening(), EventWriter().gtid(3)]:
        reader.read(opening, checksum=True)
    with pytest.raises(FatalError, match=r"more changes than that.*binlog_transaction_compression"):
        list(reader.read(event, checksum=True))


def test_a_large_transaction_comes_in_pieces():
    """200 MB come out of it, of which only some are held at a time."""
    writer, plain = EventWriter(), EventWriter(checksum=False)
    text = (15, struct.pack("<H", 60_000))
    images = [
        b"\0" + struct.pack("<iH", n, 50_000) + random.Random(n).randbytes(64).ljust(50_000)
        for n in range(50)
    ]
    table = plain.table_map([INT, text], optional=names("id", "v"))
    block = [plain.rows(30, 2, [image]) for image in images]
    events = [plain.query("BEGIN"), table, *block * 80, plain.xid()]
    event = writer.payload(events)
    del events
    reader = BinlogHeaderReader(START, hold_bytes=8 << 20)
    for opening in [*EventWriter().opening(), EventWriter().gtid(3)]:
        reader.read(opening, checksum=True)
    tracemalloc.start()
    counts = Counter(entry.kind.name for entry in reader.read(event, checksum=True))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts == {"BEGIN": 1, "ROWS": 4000, "COMMIT": 1}
    assert peak < 40 << 20


def test_frames_may_follow_each_other_and_say_their_size():
    events = inner(row(7), row(8))
    data = b"".join(events)
    writer = EventWriter()
    frame = compressed(data[:50]) + compressed(data[50:])
    stream = [*writer.opening(), writer.gtid(1), writer.payload(events, frame=frame)]
    assert decoded(entries_of(stream)[0]) == [("INSERT", (7,)), ("INSERT", (8,))]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"compression": 7}, "unknown way"),
        ({"frame": b"no frame at all"}, "damaged"),
        ({"frame": compressed(b"x" * 500)}, "an event of"),
        ({"size": 100_000}, "and not 100000"),
    ],
)
def test_damage_is_reported(change, said):
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(1), writer.payload(inner(row(7)), **change)]
    with pytest.raises(FatalError, match=said) as caught:
        entries_of(events)
    assert caught.value.where["position"].startswith("binlog.000007:")


@given(st.integers(0, 400), st.integers(0, 7), st.integers(0, 30))
def test_flipped_bits_give_an_error_or_entries(at, bit, cut):
    writer = EventWriter()
    *front, event = [*writer.opening(), writer.gtid(1), writer.payload(inner(row(7), row(9)))]
    damaged = bytearray(event)
    damaged[19 + at % (len(event) - 19)] ^= 1 << bit
    damaged = damaged[: len(damaged) - cut]
    damaged[9:13] = struct.pack("<I", len(damaged))
    with contextlib.suppress(FatalError):
        entries_of([*front, bytes(damaged)])


def test_a_payload_that_ends_inside_an_event():
    data = b"".join(inner(row(7)))
    writer = EventWriter()
    events = [
        *writer.opening(),
        writer.gtid(1),
        writer.payload([data], frame=compressed(data[:-3])),
    ]
    with pytest.raises(FatalError, match="ends inside an event"):
        entries_of(events)


def test_statements_inside_are_reported_as_anywhere():
    writer = EventWriter()
    step = [lambda w: [w.query("INSERT INTO t VALUES (1)")]]
    events = [*writer.opening(), writer.gtid(1), writer.payload(inner(*step))]
    entries, _ = entries_of(events)
    assert [entry.kind.name for entry in entries] == ["BEGIN", "STATEMENT", "COMMIT"]


def test_create_select_and_savepoints_inside():
    writer = EventWriter()
    steps = [
        lambda w: [w.query("CREATE TABLE t (id INT) START TRANSACTION")],
        row(1, table="t"),
        lambda w: [w.query("SAVEPOINT a")],
        row(2, table="t"),
        lambda w: [w.query("ROLLBACK TO a")],
    ]
    events = [*writer.opening(), writer.gtid(1), writer.payload(inner(*steps))]
    entries, _ = entries_of(events)
    assert [e.kind.name for e in entries] == ["BEGIN", "DDL", "ROWS", "COMMIT"]
    assert decoded(entries) == [("INSERT", (1,))]
    offsets = [e.position.offset for e in entries]
    assert all(a < b for a, b in itertools.pairwise(offsets))


def test_tagged_gtids():
    writer = EventWriter()
    events = [*writer.opening()]
    for number, tag in ((1, "nightly"), (2, "a" * 32)):
        events += [writer.tagged_gtid(number, tag), writer.query("BEGIN"), *row(1)(writer)]
        events.append(writer.xid())
    start = BinlogPosition("binlog.000007", 4, f"{SERVER}:1-4")
    entries, _ = entries_of(events, start)
    commits = [e for e in entries if e.kind is EntryKind.COMMIT]
    assert [e.transaction for e in commits] == [f"{SERVER}:nightly:1", f"{SERVER}:{'a' * 32}:2"]
    assert commits[-1].position.gtid == f"{SERVER}:1-4,{SERVER}:{'a' * 32}:2,{SERVER}:nightly:1"


def test_rows_of_a_server_mean_the_same_inside_a_payload():
    events, said = stored("every_type")
    start = BinlogPosition(said["start"]["file"], said["start"]["offset"])
    plain, _ = entries_of(events, start)
    rows = [e for e in plain if e.kind is EntryKind.ROWS]
    inside = [EventWriter(checksum=False).query("BEGIN")]
    for entry in rows:
        for event in (entry.context[1], entry.payload):
            size = struct.pack("<I", len(event) - 4)
            inside.append(event[:9] + size + bytes(4) + event[17:-4])
    inside.append(EventWriter(checksum=False).xid())
    front = [e for e in events if e[4] in (4, 15)]
    writer = EventWriter(file=start.file, offset=start.offset)
    wrapped = [*front[:2], writer.gtid(1), writer.payload(inside)]
    entries, _ = entries_of(wrapped, start)
    again = [e for e in entries if e.kind is EntryKind.ROWS]
    codec = BinlogRowCodec()
    assert len(again) == len(rows) > 0
    for entry, expected in zip(again, rows, strict=True):
        assert entry.rows == expected.rows
        assert codec.decode(entry.payload, entry.context) == codec.decode(
            expected.payload, expected.context
        )


def test_a_large_compressed_transaction_is_cut_into_batches():
    values, inner_events = random.Random(3), EventWriter(checksum=False)
    events = [inner_events.query("BEGIN")]
    table = inner_events.table_map([INT], optional=names("id"))
    for _ in range(400):
        images = [b"\0" + struct.pack("<i", values.randrange(2**31)) for _ in range(250)]
        events += [table, inner_events.rows(30, 1, images)]
    writer = EventWriter()
    stream = [*writer.opening(), writer.gtid(1), writer.payload([*events, inner_events.xid()])]
    entries, _ = entries_of(stream)
    assembler = BatchAssembler(1, Checkpoint(START), BatchSettings(rows=10_000), SystemClock())
    batches = assembler.add(entries)
    last = assembler.flush()
    batches += [last] if last else []
    assert sum(b.rows for b in batches) == 100_000
    assert len(batches) >= 8
    for batch in batches[:-1]:
        assert batch.checkpoint.resume == START
        left = [e for e in entries if e.kind is EntryKind.ROWS and not batch.checkpoint.covers(e)]
        done = sum(len(b.entries) for b in batches[: batches.index(batch) + 1])
        assert left == [e for e in entries[done:] if e.kind is EntryKind.ROWS]
    assert batches[-1].checkpoint.resume == entries[-1].position
