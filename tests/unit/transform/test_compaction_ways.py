"""Compaction of row events by column, against compaction of the same changes row by row."""

import struct
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.channel.file import Pipeline
from setl.channel.routes.routing import Router
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import DataError
from setl.model.faulty import RawRecord
from setl.transform.partition_compaction import compact
from setl.transform.work import TransformPlan, WorkItem, codec_named
from tests.unit.codec.binlog_events import EventWriter, field, names, packed

ADDRESS = {"type": "mysql", "host": "a", "user": "u", "password": "p"}
COLUMNS = [(3, b""), (3, b""), (15, b"\x14\0"), (246, b"\x0c\2")]


def plan_of(*mappings, **options):
    mappings = mappings or ({},)
    given = {"name": "p", "source": ADDRESS, "target": {**ADDRESS, "host": "b"}}
    tables = [{"from": "shop.orders", "to": f"x.t{n}", **m} for n, m in enumerate(mappings)]
    return TransformPlan("binlog", Router(Pipeline(**given, tables=cast("Any", tables))), **options)


class Stream:
    """Row events of one table, as work items; another definition of it may follow."""

    def __init__(self):
        self.writer = EventWriter()
        self.format = self.writer.format_description()
        self.define()

    def define(self, *, renamed=False, table="orders"):
        optional = names("id", "n" if not renamed else "m", "t", "d") + field(8, b"\0")
        optional += field(1, b"\0") + field(2, packed(45))
        self.context = (self.format, self.writer.table_map(COLUMNS, optional=optional, table=table))

    def event(self, kind, images, present=None):
        return self.writer.rows(kind, 4, images, present=present)

    def item(self, events, routes=(0,), **options):
        version = (1 << 50) + self.writer.offset
        return WorkItem(
            routes, version, self.context, b"".join(events), ("shop", "orders"), **options
        )


def image(key, n, text: str | bytes = "x", *, price=b"\x80\0\0\0\1\x05"):
    nulls = (n is None) << 1
    data = bytes([nulls]) + struct.pack("<i", key)
    data += b"" if n is None else struct.pack("<i", n)
    return data + bytes([len(text)]) + (text if isinstance(text, bytes) else text.encode()) + price


def by_both_ways(plan, items):
    ways = []
    for least in (1, None):
        try:
            ways.append(compact(replace(plan, column_rows=least), items))
        except DataError as error:
            ways.append(str(error))
    return ways


def same(by_column, by_row):
    assert repr(by_column) == repr(by_row)


keys = st.integers(0, 5)
numbers = st.none() | st.integers(0, 3)
ROW = st.tuples(keys, numbers)
CHANGE = st.one_of(
    st.tuples(st.just(30), st.lists(ROW, min_size=1, max_size=3)),
    st.tuples(st.just(32), st.lists(ROW, min_size=1, max_size=3)),
    st.tuples(st.just(31), st.lists(st.tuples(keys, numbers, numbers), min_size=1, max_size=3)),
    st.tuples(st.just("moves"), st.lists(st.tuples(ROW, ROW), min_size=1, max_size=3)),
    st.tuples(st.just("keys only"), st.lists(keys, min_size=1, max_size=2)),
)


def event_of(stream, kind, rows):
    if kind == "moves":
        return stream.event(31, [image(*row) for pair in rows for row in pair])
    if kind == "keys only":
        return stream.event(32, [b"\0" + struct.pack("<i", key) for key in rows], present=b"\1")
    if kind == 31:
        return stream.event(31, [image(k, n) for k, old, new in rows for n in (old, new)])
    return stream.event(kind, [image(*row) for row in rows])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(CHANGE, min_size=1, max_size=4), max_size=8),
    st.sampled_from([{}, {"key": ["n"]}, {"key": ["n", "id"]}, {"exclude": ["t"]}]),
    st.booleans(),
    st.sets(st.integers(0, 7)),
    st.integers(0, 2000),
)
def test_the_same_survives_either_way(runs, mapping, isolates, redefined, through):
    stream, items = Stream(), []
    for number, run in enumerate(runs):
        if number in redefined:
            stream.define(renamed="key" not in mapping and number % 2 == 1)
        items.append(stream.item([event_of(stream, *change) for change in run]))
    plan = plan_of(mapping, isolates=isolates, applied_through=(1 << 50) + through)
    by_column, by_row = by_both_ways(plan, items)
    if isinstance(by_column, str):
        same(by_column, by_row)
        return
    same(
        [(r, s, part) for r, s, part in by_column.survivors if part.upserts or part.deletes],
        [(r, s, part) for r, s, part in by_row.survivors if part.upserts or part.deletes],
    )
    same(by_column[1:], by_row[1:])


def test_rows_of_a_hot_key_are_not_decoded(monkeypatch):
    stream = Stream()
    events = [stream.event(31, [image(1, n), image(1, n + 1)]) for n in range(50)]
    monkeypatch.setattr(BinlogRowCodec, "decode", lambda *_: pytest.fail("decoded"))
    compacted = compact(plan_of(column_rows=1), [stream.item(events)])
    ((_, _, part),) = compacted.survivors
    assert part.upserts == [(1, 50, "x", "1.05")]
    assert compacted.rows == 50


def test_versions_are_those_of_the_events():
    stream = Stream()
    events, ends = [], []
    for key in range(3):
        events.append(stream.event(30, [image(key, 1)]))
        ends.append((1 << 50) + stream.writer.offset)
    ((_, _, part),) = compact(plan_of(), [stream.item(events)]).survivors
    assert part.upsert_versions == ends


def test_redelivered_changes_of_a_run_are_counted_one_by_one():
    stream = Stream()
    events = [stream.event(30, [image(0, 1), image(1, 1)])]
    middle = (1 << 50) + stream.writer.offset
    events.append(stream.event(30, [image(2, 1)]))
    item = stream.item(events)
    for through, expected in [(middle - 1, 0), (middle, 2), (item.version, 3)]:
        assert compact(plan_of(applied_through=through), [item]).redelivered == expected


@pytest.mark.parametrize("isolates", [True, False])
def test_a_row_that_cannot_be_decoded_is_what_it_was(isolates):
    stream = Stream()
    events = [
        stream.event(31, [image(1, 1), image(1, 2)]),
        stream.event(31, [image(1, 2), image(1, 3)[:-2]]),
        stream.event(31, [image(2, 1), image(2, 2)]),
    ]
    item = stream.item(events)
    plan = plan_of(isolates=isolates)
    if not isolates:
        with pytest.raises(DataError, match="cannot be decoded") as caught:
            compact(plan, [item])
        assert caught.value.where["column"] == "d"
        return
    compacted = compact(plan, [item])
    ((_, fault),) = compacted.faulty
    assert isinstance(fault.content, RawRecord)
    assert fault.content.payload == events[1]
    same(
        [part.upserts for _, _, part in compacted.survivors],
        [[(1, 2, "x", "1.05"), (2, 2, "x", "1.05")]],
    )


def test_a_row_that_is_overwritten_need_not_be_decoded():
    stream = Stream()
    events = [
        stream.event(31, [image(1, 1), image(1, 2, b"\xff\xfe")]),
        stream.event(31, [image(1, 2, b"\xff\xfe"), image(1, 3)]),
    ]
    compacted = compact(plan_of(isolates=True), [stream.item(events)])
    assert compacted.faulty == []
    assert [part.upserts for _, _, part in compacted.survivors] == [[(1, 3, "x", "1.05")]]


def test_tables_that_go_two_ways_are_decoded_for_both():
    stream = Stream()
    plan = plan_of({"from": "shop.orders"}, {"key": ["n"]})
    item = stream.item([stream.event(31, [image(1, 7), image(1, 8)])], routes=(0, 1))
    same(*by_both_ways(plan, [item]))
    by_route = {route.index: part for route, _, part in compact(plan, [item]).survivors}
    assert (by_route[0].deletes, by_route[1].deletes) == ([], [(7,)])


def test_rows_that_are_decoded_already_are_taken_as_they_are():
    stream = Stream()
    event = stream.event(30, [image(1, 1)])
    decoded = codec_named("binlog").decode(event, stream.context)
    item = stream.item([b""])._replace(decoded=decoded)
    ((_, _, part),) = compact(plan_of(), [item]).survivors
    assert part.upserts == [(1, 1, "x", "1.05")]


def test_a_compressed_value_that_makes_no_sense_is_the_fault_of_its_record():
    writer = EventWriter(mariadb=True)
    optional = names("id", "t") + field(8, b"\0") + field(2, packed(45))
    table_map = writer.table_map([(3, b""), (140, b"\2")], optional=optional)
    context = (writer.format_description(), table_map)
    broken = b"\x81\x05nonsense"
    rows = [b"\0" + struct.pack("<iH", 1, len(t)) + t for t in (b"\0ok", broken)]
    event = writer.rows(24, 2, rows)
    item = WorkItem((0,), 1 << 50, context, event, ("shop", "orders"))
    ((_, fault),) = compact(plan_of(isolates=True), [item]).faulty
    assert "cannot be decoded" in str(fault.error)


@pytest.mark.parametrize("isolates", [True, False])
def test_null_in_a_key_that_a_mapping_names_is_found(isolates):
    stream = Stream()
    item = stream.item([stream.event(30, [image(1, None), image(2, 5)])])
    plan = plan_of({"key": ["n"]}, isolates=isolates)
    if not isolates:
        with pytest.raises(DataError, match="null in a column that its mapping names"):
            compact(plan, [item])
        return
    compacted = compact(plan, [item])
    assert len(compacted.faulty) == 1
    assert [part.upserts for _, _, part in compacted.survivors] == [[(2, 5, "x", "1.05")]]
