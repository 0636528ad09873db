from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.schema import Kind
from setl.relay.partitioning import Partitioned, Partitioner, completed
from tests.unit.relay.relay_streams import ITEMS, LOG, NAMES, ORDERS, table


def inserts(schema, *keys):
    return DecodedRows(schema, Op.INSERT, [(None, (key, "v")) for key in keys])


def updates(schema, *images):
    return DecodedRows(schema, Op.UPDATE, list(images))


def by_name(name, partitions=7):
    return crc32(repr((name,)).encode()) % partitions


def test_order_stores_everything_together():
    partitioner = Partitioner("order", 3)
    for schema in (ORDERS, LOG):
        assert partitioner.partition(inserts(schema, 1, 2), None) == Partitioned([0, 0], {})


def test_tables_are_dealt_out_by_name_or_group():
    partitioner = Partitioner("table", 7)
    assert partitioner.partition(inserts(ORDERS, 1, 2), None).to == [by_name("shop.orders")] * 2
    assert partitioner.partition(inserts(ITEMS, 1), "g").to == [by_name("g")]


def test_keys_are_dealt_out_by_value_whatever_the_table():
    partitioner = Partitioner("key", 7)
    expected = [crc32(repr((key,)).encode()) % 7 for key in range(50)]
    assert set(expected) == set(range(7))
    for schema in (ORDERS, table("shop", "orders_2")):
        assert partitioner.partition(inserts(schema, *range(50)), None).to == expected
    deleted = DecodedRows(ORDERS, Op.DELETE, [((key, "v"), None) for key in range(50)])
    assert partitioner.partition(deleted, None).to == expected


@pytest.mark.parametrize(
    ("schema", "group", "name"),
    [
        (LOG, None, "shop.log"),  # no key
        (ITEMS, "g", "g"),
        (NAMES, None, "shop.names"),  # 'a' and 'A' may be one key
        (table("shop", "floats", kind=Kind.FLOAT), None, "shop.floats"),
        (table("shop", "blobs", kind=Kind.BINARY, binary=False), None, "shop.blobs"),  # a prefix
    ],
)
def test_keys_that_do_not_tell_rows_apart_leave_the_table_together(schema, group, name):
    dealt = Partitioner("key", 7).partition(inserts(schema, *"abcdefgh"), group)
    assert dealt.to == [by_name(name)] * 8


def test_text_that_compares_by_bytes_is_a_key():
    names = table("shop", "codes", kind=Kind.TEXT, binary=True)
    assert len(set(Partitioner("key", 7).partition(inserts(names, *"abcdefgh"), None).to)) > 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_moved_rows_are_those_whose_partition_changes(pairs):
    partitioner = Partitioner("key", 3)
    images = [((old, "v"), (new, "w")) for old, new in pairs]
    to, moved = partitioner.partition(updates(ORDERS, *images), None)
    former = partitioner.partition(inserts(ORDERS, *[old for old, _ in pairs]), None).to
    assert to == partitioner.partition(inserts(ORDERS, *[new for _, new in pairs]), None).to
    assert moved == {i: f for i, (f, t) in enumerate(zip(former, to, strict=True)) if f != t}


def test_an_image_that_leaves_out_the_unchanged_key_is_understood():
    partitioner = Partitioner("key", 7)
    images = [((5, "v"), (ABSENT, "w"))]
    home = partitioner.partition(inserts(ORDERS, 5), None).to
    assert partitioner.partition(updates(ORDERS, *images), None) == Partitioned(home, {})
    with pytest.raises(DataError, match=r"without its key .*binlog_row_image"):
        partitioner.partition(inserts(ORDERS, ABSENT), None)


def test_an_after_image_is_completed():
    assert completed((1, "v", 3), (2, ABSENT, ABSENT)) == (2, "v", 3)
    assert completed((1, "v"), (2, "w")) == (2, "w")


def test_a_table_that_changes_is_looked_at_again():
    partitioner = Partitioner("key", 7)
    assert partitioner.partition(inserts(table("shop", "t", key=()), 1), None).to == [
        by_name("shop.t")
    ]
    keyed = inserts(table("shop", "t"), *range(20))
    assert len(set(partitioner.partition(keyed, None).to)) > 1
