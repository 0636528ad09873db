"""Which documents a change asks for, and what becomes of them."""

from typing import Any

import pytest

from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.nesting import Documents, NestedTable
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.documents import DocumentKeys

ITEMS = RowSchema(
    "shop",
    "items",
    (Column("order_id", Kind.INTEGER), Column("no", Kind.INTEGER), Column("Shop", Kind.TEXT)),
    key=(0, 1),
)
ORDERS = RowSchema(
    "shop", "orders", (Column("shop", Kind.TEXT), Column("id", Kind.INTEGER)), key=(0, 1)
)
ON = (("order_id", "id"), ("shop", "shop"))
DOCUMENTS = Documents("shop", "orders", (NestedTable("items", "shop", "items", ON),))
ITEM = ("shop", "items")


class Source:
    """Has the orders (shop, id) that it is given."""

    def __init__(self, *orders):
        self.orders = orders
        self.asked = []
        self.seen = []

    def schema(self, documents, seen=None):
        self.seen.append(seen)
        rows = Column("items", Kind.ROWS, fields=ITEMS.columns)
        return RowSchema("shop", "orders", (*ORDERS.columns, rows), key=(0, 1))

    def read(self, documents, keys, schema) -> Any:
        self.asked += keys
        return [(shop, number, ()) for shop, number in self.orders if (number, shop) in keys]


def keys_of(table, *entries, source=None):
    source = source or Source()
    keys = DocumentKeys(DOCUMENTS, table, source)
    for version, (schema, op, images) in enumerate(entries, start=1):
        keys.add_many(DecodedRows(schema, op, images), version)
    return keys, source


def test_an_item_that_moves_asks_for_both_orders():
    update = (ITEMS, Op.UPDATE, [((1, 1, "a"), (2, 1, "a"))])
    keys, source = keys_of(ITEM, update, source=Source(("a", 2)))
    (result,) = keys.survivors()
    assert set(source.asked) == {(1, "a"), (2, "a")}
    assert (result.upserts, result.upsert_versions) == ([("a", 2, ())], [1])
    assert (result.deletes, result.delete_versions) == ([("a", 1)], [1])


def test_a_document_is_looked_up_once_under_its_newest_version():
    insert = (ITEMS, Op.INSERT, [(None, (1, n, "a")) for n in range(9)])
    delete = (ITEMS, Op.DELETE, [((1, 1, "a"), None)])
    keys, source = keys_of(ITEM, insert, insert, delete, source=Source(("a", 1)))
    (result,) = keys.survivors()
    assert source.asked == [(1, "a")]
    assert result.upsert_versions == [3]


def test_the_source_is_reported_which_columns_the_stream_has_by_now():
    wider = RowSchema("shop", "items", (*ITEMS.columns, Column("new", Kind.TEXT)), key=(0, 1))
    insert = (ITEMS, Op.INSERT, [(None, (1, 1, "a"))])
    keys, source = keys_of(ITEM, insert, (wider, Op.INSERT, [(None, (1, 2, "a", "x"))]))
    keys.survivors()
    assert source.seen == [wider]


def test_rows_that_belong_to_no_order_ask_for_nothing():
    keys, source = keys_of(ITEM, (ITEMS, Op.INSERT, [(None, (None, 1, "a"))]))
    assert keys.survivors() == []
    assert source.asked == []


def test_changes_of_the_order_itself():
    entries = ((ORDERS, Op.UPDATE, [(("a", 1), ("a", 5))]), (ORDERS, Op.INSERT, [(None, ("b", 1))]))
    keys, _ = keys_of(("shop", "orders"), *entries, source=Source(("a", 5), ("b", 1)))
    (result,) = keys.survivors()
    assert sorted(zip(result.upserts, result.upsert_versions, strict=True)) == [
        (("a", 5, ()), 1),
        (("b", 1, ()), 2),
    ]
    assert result.deletes == [("a", 1)]


def test_values_that_a_record_leaves_out_are_taken_from_its_other_image():
    update = (ITEMS, Op.UPDATE, [((1, 1, "a"), (2, 1, ABSENT))])
    keys, source = keys_of(ITEM, update)
    keys.survivors()
    assert set(source.asked) == {(1, "a"), (2, "a")}


def test_a_record_that_does_not_say_which_document_it_changes():
    with pytest.raises(DataError, match="which document its row belongs to"):
        keys_of(ITEM, (ITEMS, Op.DELETE, [((ABSENT, 1, "a"), None)]))
    other = RowSchema("shop", "items", ITEMS.columns[1:], key=(0,))
    with pytest.raises(DataError, match="lacks the column order_id"):
        keys_of(ITEM, (other, Op.DELETE, [((1, "a"), None)]))


def test_a_key_that_the_source_spells_otherwise_has_the_newest_version():
    class Folding(Source):
        def read(self, documents, keys, schema):
            return [("A", 1, ())]

    insert = (ITEMS, Op.INSERT, [(None, (1, 1, "a"))])
    keys, _ = keys_of(ITEM, insert, insert, source=Folding())
    (result,) = keys.survivors()
    assert (result.upserts, result.upsert_versions) == ([("A", 1, ())], [2])
    assert result.deletes == [("a", 1)]


def test_a_column_of_another_type_names_the_same_document():
    # The id of a document is text, so a delete of '1' would be one of the document 1.
    class Converting(Source):
        def read(self, documents, keys, schema):
            self.asked += keys
            return [("a", 1, ())]

    texts = RowSchema(
        "shop", "items", (Column("order_id", Kind.TEXT), *ITEMS.columns[1:]), key=(1,)
    )
    moves = (texts, Op.UPDATE, [(("2", 1, "a"), ("1", 1, "a"))])
    keys, _ = keys_of(ITEM, moves, source=Converting())
    (result,) = keys.survivors()
    assert (result.upserts, result.upsert_versions) == ([("a", 1, ())], [1])
    assert result.deletes == [("a", "2")]
    keys, source = keys_of(ITEM, (ITEMS, Op.INSERT, [(None, (1, 1, "a"))]), moves,
                           source=Converting())  # fmt: skip
    (result,) = keys.survivors()
    assert result.upsert_versions == [2]
    assert [str(number) for number, _ in source.asked].count("1") == 1
