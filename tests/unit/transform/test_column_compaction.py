"""Compaction by column, against compaction of the same changes row by row."""

import pickle
import struct
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from setl.codec.columns.column_rows import ColumnRows
from setl.codec.dts.row_chunks import joined
from setl.errors import DataError
from setl.transform.merging import merge
from setl.transform.packing import packed as packed_items
from setl.transform.partition import partitions_of, shuffle
from setl.transform.partition_compaction import compact
from setl.transform.work import WorkItem, codec_named
from tests.unit.codec.binlog_events import EventWriter, field, names, packed
from tests.unit.codec.binlog_tables import changes, table_of, written
from tests.unit.codec.binlog_tables import image as row_of
from tests.unit.codec.test_dts_by_hand import usual
from tests.unit.transform.test_compaction_ways import Stream, image, plan_of

TABLES = 600
VERSION = 1 << 50


def by_column(plan, least):
    return replace(plan, column_rows=least, takes_columns=True)


def said(plan, items):
    try:
        return compact(plan, items)
    except DataError as error:
        return str(error)


def by_both_ways(plan, items):
    """What is left by column and row by row, and which of the first is columns."""
    columns, rows = said(by_column(plan, 1), items), said(plan, items)
    assert repr(columns) == repr(rows)
    if isinstance(columns, str):
        return []
    return [isinstance(part.upserts, ColumnRows) for _, _, part in columns.survivors]


def oddness(table):
    """How often values make no sense: never those that only the rows' way reads in each image."""
    made = any(column.converted for column in table.layout.columns)
    return 0 if made else table.pick.choice([0, 0.01])


def item_of(table, events, name="orders"):
    # Of an event that is compressed, the position is its own, too.
    version = VERSION + table.writer.offset
    return WorkItem((0,), version, table.context, b"".join(events), ("shop", name))


def test_the_same_survives_of_random_tables():
    ways = Counter()
    for seed in range(TABLES):
        pick = Random(seed)
        table, items, keys = table_of(pick), [], range(1 + pick.randrange(12))
        for _ in range(1 + pick.randrange(4)):
            changed = changes(table, keys=keys, odd=oddness(table))
            items.append(item_of(table, written(table, changed)))
        through = VERSION + pick.randrange(table.writer.offset)
        plan = plan_of(isolates=pick.random() < 0.5, applied_through=through)
        ways.update(by_both_ways(plan, items))
    assert ways[True] > TABLES // 2


def test_tasks_get_and_keep_the_same_of_random_tables():
    ways = Counter()
    for seed in range(TABLES // 2):
        pick = Random(seed)
        table, keys, pieces = table_of(pick), range(1 + pick.randrange(12)), []
        for _ in range(1 + pick.randrange(3)):
            changed = changes(table, keys=keys, odd=oddness(table))
            item = item_of(table, written(table, changed))
            pieces.append(packed_items([item]))
        buckets, plan = pick.choice([1, 2, 3]), plan_of(isolates=True)
        by_both = []
        for least in (1, None):
            shuffled = [shuffle(by_column(plan, least), p, buckets) for p in pieces]
            tasks = {}
            for bucket, blob in (each for part in shuffled for each in part):
                tasks.setdefault(bucket, []).extend(pickle.loads(blob).changes)
            left = [(bucket, merge(parts)) for bucket, parts in sorted(tasks.items())]
            by_both.append(left)
            ways.update((least, type(c.upserts)) for _, parts in left for c in parts)
        assert repr(by_both[0]) == repr(by_both[1]), seed
    assert ways[1, ColumnRows] > TABLES // 4
    assert not ways[None, ColumnRows]


@pytest.mark.parametrize("excluded", [(), ["t"], ["t", "d"]])
def test_columns_that_do_not_pass_are_left_out_of_rows(excluded):
    stream = Stream()
    item = stream.item([stream.event(30, [image(1, None), image(2, 5)])])
    plan = plan_of({"exclude": list(excluded)} if excluded else {})
    parts = [
        partitions_of(by_column(plan, least), packed_items([item]), buckets)
        for least in (1, None)
        for buckets in (1, 3)
    ]
    found = [
        sorted(row for part in by.values() for change in part.changes for row in change.upserts)
        for by in parts
    ]
    assert found == [[row[: 4 - len(excluded)] if excluded != ["t"] else (*row[:2], row[3])
                      for row in [(1, None, "x", "1.05"), (2, 5, "x", "1.05")]]] * 4  # fmt: skip


def test_tables_keep_their_order_and_small_ones_go_row_by_row():
    streams, items = [Stream() for _ in range(3)], []
    for number, count in enumerate((2, 9, 3)):
        streams[number].define(table=f"t{number}")
        event = streams[number].event(30, [image(key, 1) for key in range(count)])
        item = streams[number].item([event])
        items.append(item._replace(table=("shop", f"t{number}"), routes=(number,)))
    plan = plan_of(*({"from": f"shop.t{number}"} for number in range(3)))
    left = compact(by_column(plan, 3), items)
    found = [
        (route.index, len(part.upserts), isinstance(part.upserts, ColumnRows))
        for route, _, part in left.survivors
    ]
    assert found == [(0, 2, False), (1, 9, True), (2, 3, True)]
    assert left.rows == 14


@pytest.mark.parametrize(
    "change", ["exchanged keys", "other definition", "part of an image", "two routes", "decoded"]
)
def test_what_is_not_plain_goes_row_by_row(change):
    stream = Stream()
    plan = plan_of() if change != "two routes" else plan_of({"from": "shop.orders"}, {"key": ["n"]})
    items = [stream.item([stream.event(30, [image(1, 1), image(2, 2)])])]
    match change:
        case "exchanged keys":
            moves = [image(1, 1), image(2, 1), image(2, 2), image(1, 2)]
            items.append(stream.item([stream.event(31, moves)]))
        case "other definition":
            stream.define(renamed=True)
            items.append(stream.item([stream.event(30, [image(3, 1)])]))
        case "part of an image":
            row = b"\0" + struct.pack("<i", 1)
            items.append(stream.item([stream.event(32, [row], present=b"\1")]))
        case "two routes":
            items = [item._replace(routes=(0, 1)) for item in items]
        case _:
            decoded = codec_named("binlog").decode(items[0].payload, stream.context)
            items.append(items[0]._replace(decoded=decoded))
    assert not any(by_both_ways(replace(plan, isolates=True), items))


def test_rows_that_move_leave_their_keys():
    stream = Stream()
    up = [image(3, 1), image(4, 1), image(2, 1), image(3, 1), image(1, 1), image(2, 1)]
    events = [
        stream.event(30, [image(key, 1) for key in (1, 2, 3)]),
        stream.event(31, up),
        stream.event(31, [image(4, 1), image(9, 5)]),
        stream.event(32, [image(9, 5)]),
        stream.event(30, [image(1, 7)]),
    ]
    item = stream.item(events)
    assert by_both_ways(plan_of(), [item]) == [True]
    left = compact(by_column(plan_of(), 1), [item])
    ((_, _, part),) = left.survivors
    assert [row[:2] for row in part.upserts] == [(3, 1), (2, 1), (1, 7)]
    assert part.deletes == [(4,), (9,)]
    assert left.rows == 9


def test_the_same_survives_of_rows_that_move():
    ways = Counter()
    for seed in range(TABLES // 2):
        pick = Random(seed)
        table, items = table_of(pick, most=3), []
        for _ in range(1 + pick.randrange(3)):
            changed = []
            for _ in range(1 + pick.randrange(4)):
                kind, keys = pick.choice((23, 24, 24, 25)), pick.sample(range(9), 2)
                changed.append((kind, [row_of(table, key=key, odd=0) for key in keys]))
            items.append(item_of(table, written(table, changed)))
        ways.update(by_both_ways(plan_of(isolates=pick.random() < 0.5), items))
    assert ways[True] > TABLES // 4


@pytest.mark.parametrize("mapping", [{"columns": {"n": "n + 1"}}, {"where": "n > 1"}])
def test_what_is_given_to_spark_is_rows(mapping):
    stream = Stream()
    item = stream.item([stream.event(30, [image(1, 1), image(2, 2)])])
    ((_, _, part),) = compact(by_column(plan_of(mapping), 1), [item]).survivors
    assert part.upserts == [(1, 1, "x", "1.05"), (2, 2, "x", "1.05")]


def test_an_item_that_ends_inside_an_event_does_not_take_the_next_ones_bytes():
    stream = Stream()
    first, second = (stream.event(30, [image(key, 1) for key in range(3)]) for _ in range(2))
    whole = stream.item([first, second])
    cut = len(first) + 30
    items = [
        whole._replace(payload=whole.payload[:cut]),
        whole._replace(payload=whole.payload[cut:]),
    ]
    assert not any(by_both_ways(plan_of(isolates=True), items))


@pytest.mark.parametrize("collation", [45, 8])
def test_text_keys_are_one_if_their_bytes_are(collation):
    writer = EventWriter()
    optional = names("t") + field(8, b"\0") + field(2, packed(collation))
    context = (
        writer.format_description(),
        writer.table_map([(15, b"\x14\0")], optional=optional, nullable=0),
    )
    keys = [b"a", b"A", b"a ", b"a", b"\xc3\xa9", b"e\xcc\x81", b"\xff", b"", b"\xff"]
    event = writer.rows(30, 1, [b"\0" + bytes([len(key)]) + key for key in keys])
    item = WorkItem((0,), VERSION + writer.offset, context, event, ("shop", "orders"))
    assert by_both_ways(plan_of(), [item]) == [True]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ((5, b"\x08"), [struct.pack("<d", v) for v in (0.0, -0.0, 1.5)]),
        ((246, b"\4\2"), [b"\x80\0", b"\x7f\xff", b"\x81\0"]),
    ],
)
def test_numbers_with_two_zeros_are_compared_as_values(kind, values):
    writer = EventWriter()
    optional = names("t") + field(8, b"\0")
    context = (writer.format_description(), writer.table_map([kind], optional=optional, nullable=0))
    event = writer.rows(30, 1, [b"\0" + value for value in values])
    item = WorkItem((0,), VERSION + writer.offset, context, event, ("shop", "orders"))
    assert by_both_ways(plan_of(), [item]) == [True]
    ((_, _, part),) = compact(plan_of(), [item]).survivors
    assert len(part.upserts) == 2


def dts_item(records, version=VERSION):
    payload = joined([(number, value) for number, value in enumerate(records)])
    return WorkItem((0,), version, (), payload, ("shop", "orders"))


def dts_plan(**options):
    return replace(plan_of({"key": ["id"]}, **options), codec="dts")


@pytest.mark.parametrize("seed", range(40))
def test_the_same_survives_of_dts_records(seed):
    pick, records = Random(seed), []
    for _ in range(pick.randrange(1, 60)):
        operation = pick.choice(["INSERT", "UPDATE", "DELETE"])
        key = 2 * pick.randrange(5) + 1
        # Some rows move to another key.
        before = pick.choice([key, key, key, 2 * pick.randrange(5) + 1])
        records.append(usual(operation, key, before))
    middle = pick.randrange(len(records))
    items = [dts_item(records[:middle]), dts_item(records[middle:], VERSION + 100)]
    taken = by_both_ways(dts_plan(), [item for item in items if item.payload])
    assert all(taken)
