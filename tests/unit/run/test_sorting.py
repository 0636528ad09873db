"""Entries become fewer items, which hold the same records of each table in the same order."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.routes.routing import Route
from setl.codec.dts.row_chunks import joined
from setl.extract.extractor import RoutedRows
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition, document_version
from setl.run.loads.sorting import Sorting
from setl.transform.work import TransformPlan, codec_named, single_items
from tests.unit.codec.binlog_events import EventWriter, entries_of
from tests.unit.codec.test_binlog_runs import row

CODEC = codec_named("binlog")
AT = partial(document_version, 1)
ROUTE = Route(index=3, target=("copy", "t"))
EVALUATED = Route(index=4, target=("copy", "t"), where="id > 1")


def sorting(codec="binlog", *, decides=False, evaluated=lambda *_: None):
    router: Any = SimpleNamespace(decides=decides)
    return Sorting(TransformPlan(codec, router), evaluated)


def plain(entries, **options):
    """The items that entries become, all of one route."""
    return sorting(**options).work([RoutedRows(e, (ROUTE,)) for e in entries], AT).plain


def rows_of(events, writer, **options):
    found, _ = entries_of(events, checksum=writer.checksum, **options)
    return [entry for entry in found if entry.kind is EntryKind.ROWS]


def read(transactions, writer=None, **options):
    """Entries of rows, from transactions of which each changes tables by number."""
    writer = writer or EventWriter()
    events = writer.opening()
    for number, tables in enumerate(transactions, 1):
        events += [writer.gtid(number), writer.query("BEGIN")]
        for position, table in enumerate(tables):
            events += row(writer, value=position, table=table)
        events.append(writer.xid())
    return rows_of(events, writer, **options)


def records(items):
    """Of each table, versions and bytes of its records, in the order of the items."""
    found = {}
    for item in items:
        singles = found.setdefault(item.table, [])
        singles += [(s.version, s.payload, s.context) for s in single_items(CODEC, [item])]
    return found


def one_by_one(entries):
    found = {}
    for entry in entries:
        at = document_version(1, entry.position)
        found.setdefault((entry.schema, entry.table), []).extend(
            (at - older, payload, entry.context) for older, payload in CODEC.records(entry.payload)
        )
    return found


@given(
    st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=6), min_size=1, max_size=12),
    st.sampled_from([1, 3, 1000]),
)
def test_the_records_of_each_table_are_the_same(transactions, chunk_events):
    entries = read(transactions, chunk_events=chunk_events)
    items = plain(entries)
    assert records(items) == one_by_one(entries)
    assert len(items) == len({entry.table for entry in entries})
    assert {item.routes for item in items} == {(ROUTE.index,)}


def test_routes_with_expressions_have_items_of_their_own():
    asked = []
    entries = read([[1, 2], [1]])
    routed = [RoutedRows(e, (ROUTE, EVALUATED)) for e in entries]
    work = sorting(evaluated=lambda *at: asked.append(at)).work(routed, AT)
    assert records(work.plain) == one_by_one(entries)
    assert asked == [((4, "shop", "t1"), EVALUATED), ((4, "shop", "t2"), EVALUATED)]
    (first,), (second,) = work.by_branch.values()
    assert records([first, second]) == one_by_one(entries)
    assert first.routes == second.routes == (EVALUATED.index,)


def test_what_both_sites_write_stores_its_order_among_tables():
    entries = read([[1, 2, 1]])
    items = plain(entries, decides=True)
    assert [item.table[1] for item in items] == ["t1", "t2", "t1"]


def test_items_stay_small_enough_to_be_dealt_out_evenly():
    writer = EventWriter()
    events = [*writer.opening(), writer.gtid(1), writer.query("BEGIN")]
    for _ in range(300):
        events += row(writer, text=b"x" * 280, count=3)
    events.append(writer.xid())
    entries = rows_of(events, writer)
    items = plain(entries)
    assert records(items) == one_by_one(entries)
    sizes = [len(item.payload) for item in items]
    assert len(sizes) > 3
    assert max(sizes) <= 64 * 1024
    assert min(sizes[:-1]) > 60 * 1024


def moved(entry, **position):
    return entry._replace(position=replace(entry.position, **position))


@pytest.mark.parametrize(
    "change",
    [
        lambda e: moved(e, file="binlog.000008"),
        lambda e: moved(e, offset=e.position.offset + 1),  # its event says another position
        lambda e: e._replace(context=(e.context[0], bytes(bytearray(e.context[1])))),
        lambda e: e._replace(payload=e.payload[:30]),
    ],
    ids=["file", "place", "table", "damage"],
)
def test_what_may_not_be_joined_is_left_alone(change):
    entries = read([[1], [1], [1], [1]])
    entries[2] = change(entries[2])
    items = plain(entries)
    assert len(items) == 3
    assert [item.payload for item in items][1] == entries[2].payload
    assert items[1].version == document_version(1, entries[2].position)


def test_records_of_a_subscription_are_joined_with_their_distances():
    def entry(offset, payload, topic="t"):
        position = KafkaPosition(topic, 0, offset)
        return Entry(EntryKind.ROWS, position, 0.0, "shop", "t1", rows=1, payload=payload)

    run = joined([(4, b"c"), (6, b"d")])
    entries = [entry(1, b"a"), entry(3, b"b"), entry(6, run), entry(9, b"e"), entry(1, b"f", "u")]
    first, other = plain(entries, codec="dts")
    codec, at = codec_named("dts"), AT
    assert [(s.version, s.payload) for s in single_items(codec, [first])] == [
        (at(KafkaPosition("t", 0, offset)), payload)
        for offset, payload in [(1, b"a"), (3, b"b"), (4, b"c"), (6, b"d"), (9, b"e")]
    ]
    assert other.payload == b"f"


def test_the_last_item_is_not_forgotten_and_none_is_empty():
    assert plain([]) == []
    entries = read([[1]])
    assert [item.payload for item in plain(entries)] == [entries[0].payload]
