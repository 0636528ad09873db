"""Row events joined to runs are the same row events, however they are read and cut."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.rows.row_chunks import FIRST_BYTES, MOST_BYTES, offset_behind, records_of
from setl.codec.row_codec import single_entries
from setl.errors import FatalError
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition, document_version
from tests.unit.codec.binlog_events import START, EventWriter, entries_of, names

# What MariaDB from 11.7 on does not say the places of.
WITHOUT_POSITION = (2, 19, 23, 24, 25, 30, 31, 32, 39, *range(165, 172))
INT, VARCHAR = (3, b""), (15, struct.pack("<H", 300))
CODEC = BinlogRowCodec()


def image(value, text=b""):
    return b"\0" + struct.pack("<iH", value, len(text)) + text


def table_map(writer, table=9):
    return writer.table_map(
        [INT, VARCHAR], table=f"t{table}", table_id=table, optional=names("id", "v")
    )


def rows(writer, kind=30, value=1, *, table=9, text=b"", count=1):
    images = [image(value + n, text) for n in range(count)]
    if kind in (24, 31, 39):
        images = [each for pair in zip(images, images, strict=True) for each in pair]
    return writer.rows(kind, 2, images, table_id=table)


def row(writer, value=1, **options):
    """A statement of its own."""
    return [table_map(writer, options.get("table", 9)), rows(writer, value=value, **options)]


def transaction(writer, *steps):
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN")]
    for step in steps:
        events += step(writer)
    return [*events, writer.xid()]


def packets(events):
    """The bytes that a server sends for events."""
    return b"".join(struct.pack("<I", len(e) + 1) + b"\0" + e for e in events)


def entries_from(data, sizes, *, checksum=True, start=START, **options):
    """Entries read from bytes that arrive in pieces, by the fast way where it takes them."""
    reader, entries, stored, at, fast = BinlogHeaderReader(start, **options), [], b"", 0, 0
    sizes = iter(sizes)
    while at < len(data) or stored:
        size = next(sizes, len(data))
        stored, at = stored + data[at : at + size], at + size
        position = 0
        while True:
            begun = position
            position, found = reader.read_rows(stored, position, checksum=checksum)
            entries += found
            fast += position - begun
            if len(stored) - position < 4:
                break
            end = position + 4 + int.from_bytes(stored[position : position + 3], "little")
            if end > len(stored):
                break
            event, position = stored[position + 5 : end], end
            entries += reader.read(event, checksum=checksum)
        stored = stored[position:]
        assert at < len(data) or not stored, "the last packet was not read"
    return entries, reader, fast


def single(entries):
    """Entries of one record each, without numbers of rows, which are estimates."""
    found = []
    for entry in entries:
        apart = single_entries(CODEC, entry) if entry.kind is EntryKind.ROWS else (entry,)
        found += [each._replace(rows=0) for each in apart]
    return found


def runs(entries):
    """How many records each rows entry holds."""
    return [len(CODEC.records(e.payload)) for e in entries if e.kind is EntryKind.ROWS]


def both(events, **options):
    """Entries by both ways of reading, which have to be the same."""
    one_by_one, _ = entries_of(events, **options)
    fast, _, _ = entries_from(packets(events), [], **options)
    assert fast == one_by_one
    return fast


def in_stream_order(entries):
    """The same entries, those of a transaction in the order of their places."""
    found, rows_of_one = [], []
    for entry in entries:
        if entry.kind is EntryKind.ROWS:
            rows_of_one.append(entry)
        else:
            found += [*sorted(rows_of_one, key=lambda e: e.position.order), entry]
            rows_of_one = []
    return found + rows_of_one


def mixing(schema):
    """All but tables of setl's own."""
    return schema != "retl"


def test_row_events_of_a_table_become_one_entry():
    writer = EventWriter()
    events = transaction(writer, *[lambda w, n=n: row(w, n, kind=31) for n in range(100)])
    begin, run, commit = both(events, chunk_events=1000)
    assert (begin.kind, commit.kind) == (EntryKind.BEGIN, EntryKind.COMMIT)
    assert run.payload == b"".join(e for e in events if e[4] == 31)
    assert run.rows == 100
    assert run.position.offset == writer.offset - len(events[-1])
    assert run.context[0] == events[1]
    ages = [older for older, _ in CODEC.records(run.payload)]
    size = len(events[-2]) + len(events[-3])
    assert ages == [size * n for n in reversed(range(100))]


def lone(writer, kind=30):
    return [table_map(writer), rows(writer, kind)]


def later(writer):
    writer.seconds += 1
    return row(writer, 2)


def altered(writer, at, value):
    """A row event with another byte or two in its header, and a checksum that fits them."""
    event = bytearray(rows(writer))
    event[at : at + len(value)] = value
    if writer.checksum:
        event[-4:] = struct.pack("<I", zlib.crc32(event[:-4]))
    return [table_map(writer), bytes(event)]


def artificial(writer):
    return altered(writer, 17, b"\x20")


def nowhere(writer):
    return altered(writer, 13, bytes(4))


def squeezed(writer):
    plain = EventWriter(checksum=False)
    return [table_map(writer), writer.squeezed(rows(plain, 23))]


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (row, [3]),
        (lambda w: [w.event(29, b"\0SELECT 1"), *row(w)], [3]),
        (lambda w: [w.event(160, b"UPDATE t9"), *row(w)], [3]),
        (lambda w: row(w, table=8), [1, 1, 1]),
        (lambda w: row(w, kind=32), [3]),
        (later, [1, 2]),
        (lambda w: [w.query("SAVEPOINT a")], [1, 1]),
        (lambda w: [w.query("SAVEPOINT a"), *row(w, 7), w.query("ROLLBACK TO a")], [1, 1]),
        (lambda w: [w.query("CREATE TABLE t (id INT) START TRANSACTION")], [1, 1]),
        (lambda w: [w.xid(), w.gtid(2), w.query("BEGIN")], [1, 1]),
        (artificial, [1, 1, 1]),
        (nowhere, [3]),
        (squeezed, [1, 1, 1]),
        (lambda w: lone(w, 39), [1, 1, 1]),
        (lambda w: row(w, text=b"x" * 250), [1, 1, 1]),
    ],
)
def test_what_ends_a_run(between, expected):
    writer = EventWriter()
    events = transaction(writer, row, between, row)
    entries = both(events, chunk_events=1000, chunk_bytes=300)
    assert runs(entries) == expected
    assert single(entries) == single(entries_of(events)[0])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"chunk_events": 4}, [4, 4, 2]),
        ({"chunk_events": 1}, [1] * 10),
        ({"chunk_events": 99, "chunk_bytes": 42 * 3}, [3, 3, 3, 1]),
        ({"chunk_events": 99, "chunk_bytes": 42 * 3 - 1}, [2] * 5),
        ({"chunk_events": 99, "chunk_bytes": 1}, [1] * 10),
    ],
)
def test_a_run_has_a_most(options, expected):
    events = transaction(EventWriter(), *[row] * 10)
    assert len(events[-2]) == 42
    assert runs(both(events, **options)) == expected


def test_a_reader_begins_with_short_runs_so_that_its_first_batch_is_small():
    events = transaction(EventWriter(), *[lambda w: row(w, text=b"x" * 200)] * 9000)
    sizes = [
        len(entry.payload)
        for entry in both(events, chunk_events=9999)
        if entry.kind is EntryKind.ROWS
    ]
    for number, size in enumerate(sizes[:-1]):
        most = min(MOST_BYTES, max(FIRST_BYTES, sum(sizes[:number]) // 4))
        assert most - 300 < size <= most
    assert max(sizes) > MOST_BYTES - 300


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"chunk_events": 99}, [(9, 3), (8, 3)]),
        ({"chunk_events": 7}, [(9, 3), (8, 3)]),
        ({"chunk_events": 6}, [(9, 1), (8, 1)] * 3),
        ({"chunk_events": 99, "chunk_bytes": 42 * 5}, [(9, 1), (8, 1)] * 3),
        ({"chunk_events": 99, "mixes": lambda _: False}, [(9, 1), (8, 1)] * 3),
    ],
)
def test_a_small_transaction_has_one_run_for_each_of_its_tables(options, expected):
    events = transaction(EventWriter(), *[row, lambda w: row(w, table=8)] * 3)
    entries = both(events, **{"mixes": mixing, **options})
    found = [e for e in entries if e.kind is EntryKind.ROWS]
    assert [(int(e.table[1:]), len(CODEC.records(e.payload))) for e in found] == expected
    assert in_stream_order(single(entries)) == single(entries_of(events)[0])


@pytest.mark.parametrize(("most", "expected"), [(5, [1, 4, 1]), (6, [4, 2])])
def test_a_transaction_is_small_by_its_rows(most, expected):
    """A batch is cut by rows, and an event may hold several."""
    events = transaction(EventWriter(), row, lambda w: row(w, table=8, count=4), row)
    entries = both(events, mixes=mixing, chunk_events=most)
    assert [e.rows for e in entries if e.kind is EntryKind.ROWS] == expected


@pytest.mark.parametrize(
    "step",
    [
        later,
        lambda w: [w.query("SAVEPOINT a"), *row(w, 3)],
        lambda w: [w.query("COMMIT"), w.gtid(2), w.query("BEGIN"), *row(w)],
        lambda w: row(w, table=8, text=b"x" * 300),
    ],
)
def test_what_may_be_cut_is_in_order(step):
    steps = [row, lambda w: row(w, table=8), row, step, row, lambda w: row(w, table=8), row, later]
    entries = both(
        transaction(EventWriter(), *steps), mixes=mixing, chunk_events=99, chunk_bytes=300
    )
    assert single(entries) == in_stream_order(single(entries))


def test_rows_of_setls_own_tables_keep_their_position():
    """Such as the mark, by whose place a transaction is known for a channel's own."""

    def mark(writer):
        own = writer.table_map([INT, VARCHAR], schema="retl", table="retl_mark", table_id=7)
        return [own, rows(writer, table=7)]

    steps = [mark, row, lambda w: row(w, table=8), row, mark, row, lambda w: row(w, table=8), row]
    entries = both(transaction(EventWriter(), *steps), mixes=mixing, chunk_events=99)
    tables = [e.table for e in entries if e.kind is EntryKind.ROWS]
    assert tables == ["retl_mark", *("t9", "t8", "t9"), "retl_mark", *("t9", "t8", "t9")]


def test_rows_behind_a_savepoint_go_with_it_and_no_others():
    writer = EventWriter()
    steps = [
        lambda w: row(w, 1),
        lambda w: row(w, 2),
        lambda w: [w.query("SAVEPOINT a"), *row(w, 3), *row(w, 4)],
        lambda w: [w.query("SAVEPOINT b"), *row(w, 5), w.query("ROLLBACK TO b"), *row(w, 6)],
        lambda w: [w.query("ROLLBACK TO a"), *row(w, 7)],
    ]
    entries = both(transaction(writer, *steps), chunk_events=1000)
    stored = [
        struct.unpack_from("<i", e.payload, len(e.payload) - 10)[0] for e in single(entries)[1:-1]
    ]
    assert stored == [1, 2, 7]


def test_a_run_is_bounded_by_what_may_be_held():
    events = transaction(EventWriter(), *[row] * 10)
    reader = BinlogHeaderReader(START, chunk_events=3, hold_bytes=1)
    found = [len(list(reader.read(event, checksum=True))) for event in events]
    # BEGIN and the first run together, then two runs; the rest with the COMMIT.
    assert [n for n in found if n] == [2, 1, 1, 2]


STEP = st.one_of(
    st.builds(
        lambda table, kind, count, size: (
            lambda w: row(w, 1, table=table, kind=kind, count=count, text=b"x" * size)
        ),
        st.integers(1, 2),
        st.sampled_from((30, 31, 32, 23, 24, 25)),
        st.integers(1, 3),
        st.integers(0, 60),
    ),
    st.builds(lambda n: lambda w: [e for _ in range(n) for e in row(w)], st.integers(2, 12)),
    st.just(lambda w: [table_map(w), *(rows(w, value=n) for n in range(3))]),
    st.just(later),
    st.just(nowhere),
    st.just(squeezed),
    st.just(lambda w: lone(w, 39)),
    st.just(lambda w: [w.query("SAVEPOINT a"), *row(w, 7), w.query("ROLLBACK TO a")]),
    st.just(lambda w: [w.query("SAVEPOINT b"), *row(w, 8)]),
    st.just(lambda w: [w.event(29, b"\0why")]),
    st.just(lambda w: [w.xid(), w.gtid(2), w.query("BEGIN")]),
    st.just(lambda w: [w.query("ROLLBACK"), w.gtid(2), w.query("BEGIN")]),
    st.just(
        lambda w: [w.xid(), w.rotate("binlog.000008"), w.format_description(), w.query("BEGIN")]
    ),
)


@given(
    st.lists(STEP, max_size=12),
    st.integers(1, 6),
    st.integers(40, 400),
    st.lists(st.integers(1, 300), max_size=30),
    st.booleans(),
    st.sampled_from((4, (1 << 32) - 300, (1 << 33) - 90)),
    st.booleans(),
    st.booleans(),
)
def test_joined_events_are_the_events_that_were_joined(
    steps, events, size, pieces, checksum, offset, without_position, mixes
):
    writer, start = EventWriter(checksum=checksum, offset=offset), START
    writer.without_position = WITHOUT_POSITION if without_position else ()
    start = BinlogPosition(START.file, offset)
    stream = transaction(writer, lambda _: [table_map(writer)], *steps)
    expected, _ = entries_of(stream, start, checksum=checksum)
    options = {"chunk_events": events, "chunk_bytes": size, "mixes": lambda _: mixes}
    joined, reader = entries_of(stream, start, checksum=checksum, **options)
    found = single(joined)
    assert (in_stream_order(found) if mixes else found) == single(expected)
    fast, other, _ = entries_from(
        packets(stream), pieces, checksum=checksum, start=start, **options
    )
    assert fast == joined
    assert other.position == reader.position
    for entry in joined:
        if entry.kind is EntryKind.ROWS and offset == 4:
            version = document_version(1, entry.position)
            versions = [version - older for older, _ in CODEC.records(entry.payload)]
            apart = single_entries(CODEC, entry)
            assert versions == [document_version(1, each.position) for each in apart]


@pytest.mark.parametrize("without_position", [(), WITHOUT_POSITION])
def test_most_bytes_are_read_the_fast_way(without_position):
    events = transaction(EventWriter(without_position=without_position), *[row] * 100)
    data = packets(events)
    _, _, fast = entries_from(data, [], chunk_events=1000)
    assert fast > 0.9 * len(data)


@given(st.data())
def test_damage_is_never_joined(data):
    """A byte that changed under way is left to who reads one by one, and says so."""
    writer = EventWriter()
    events = transaction(writer, *[lambda w, n=n: row(w, n) for n in range(6)])
    readable, _ = entries_of(events)
    stream = bytearray(packets(events))
    first = len(packets(events[:5]))  # behind the first TABLE_MAP, which has to be known
    at = data.draw(st.integers(first, len(stream) - 1))
    stream[at] ^= 1 << data.draw(st.integers(0, 7))
    reader, position = BinlogHeaderReader(START, chunk_events=1000), 0
    for event in events[:5]:
        assert not list(reader.read(event, checksum=True))
        position += len(event) + 5
    reader.read_rows(bytes(stream), position, checksum=True)
    held = [e for e in single(reader.read(events[-1], checksum=True)) if e.kind is EntryKind.ROWS]
    assert [e.payload for e in held] == [e.payload for e in readable[1 : 1 + len(held)]]


def test_rows_of_an_unknown_table_are_left_to_be_refused():
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN"), rows(writer)]
    with pytest.raises(FatalError, match="no TABLE_MAP"):
        entries_from(packets(events), [], chunk_events=1000)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_events_come_as_they_are(payload):
    assert b"".join(part for _, part in records_of(payload)) == payload


def test_half_an_event_behind_whole_ones_stays_for_who_decodes():
    writer = EventWriter()
    events = [rows(writer), rows(writer)]
    found = records_of(events[0] + events[1][:30])
    assert [part for _, part in found] == [events[0], events[1][:30]]


def test_rows_of_events_of_several_kinds_are_counted():
    kinds = [(30, 3), (31, 20), (32, 1), (31, 4), (30, 9)]
    steps = [lambda w, k=kind, n=count: row(w, kind=k, count=n) for kind, count in kinds]
    (run,) = [
        e
        for e in both(transaction(EventWriter(), *steps), chunk_events=99)
        if e.kind is EntryKind.ROWS
    ]
    assert run.rows == sum(count for _, count in kinds)


def test_shares_of_rows_add_up():
    events = transaction(EventWriter(), *[lambda w, n=n: row(w, count=n) for n in (1, 5, 40)])
    (run,) = [e for e in both(events, chunk_events=99) if e.kind is EntryKind.ROWS]
    apart = [e.rows for e in single_entries(CODEC, run)]
    assert sum(apart) == run.rows == 46
    assert apart[0] < apart[1] < apart[2]


@pytest.mark.parametrize(
    ("offset", "end", "expected"),
    [
        (4, 300, 300),
        ((1 << 32) - 10, 90, (1 << 32) + 90),
        ((5 << 32) + 1000, 900_000_000, (5 << 32) + 900_000_000),
        (1000, 120, 120),
        (7, 7, 7),
    ],
)
def test_positions_with_32_bits(offset, end, expected):
    assert offset_behind(offset, end) == expected


@pytest.mark.parametrize("kind", [23, 30])
def test_new_rows_alone_are_reported_without_decoding(kind):
    writer = EventWriter()
    events = transaction(writer, *[lambda w, n=n: row(w, n, kind=kind) for n in range(9)])
    _, run, _ = both(events, chunk_events=1000)
    assert len(CODEC.records(run.payload)) == 9
    assert CODEC.likely_inserts(run.payload)
    # Of an event that is cut off, what comes first is still told; it is refused elsewhere.
    assert not CODEC.likely_inserts(run.payload + run.payload[:18])
    assert not CODEC.likely_inserts(b"")


@pytest.mark.parametrize("kind", [24, 25, 31, 32])
def test_a_payload_with_one_other_change_is_not_of_new_rows_alone(kind):
    writer = EventWriter()
    steps = [lambda w, n=n: row(w, n, kind=kind if n == 5 else 30) for n in range(9)]
    _, run, _ = both(transaction(writer, *steps), chunk_events=1000)
    assert len(CODEC.records(run.payload)) == 9
    assert not CODEC.likely_inserts(run.payload)
