"""Keys of documents: routing counts as a part of them, and tables keep theirs apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.routes.routing import Route
from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, DecodedRows, Op, TargetChanges
from setl.model.document import DocumentForm
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.columns import ColumnPlan, identity_indexes
from setl.transform.compaction import Compactor
from setl.transform.merging import merge
from setl.transform.placement import split
from setl.transform.projection import project

COLUMNS = (Column("id", Kind.INTEGER), Column("name", Kind.TEXT), Column("shop", Kind.TEXT))
SCHEMA = RowSchema("s", "t", COLUMNS, key=(0,))
ROUTE = Route(0, ("", "items"), routing="Shop")


def survivors(*changes, key=()):
    compactor = Compactor(key, ROUTE.routing)
    for version, (op, before, after) in enumerate(changes, 1):
        compactor.add_many(DecodedRows(SCHEMA, op, [(before, after)]), version)
    return compactor.survivors()


def test_the_routing_column_is_the_last_of_the_key():
    assert identity_indexes(SCHEMA, (), "SHOP") == (0, 2)
    assert identity_indexes(SCHEMA, ("shop", "id"), "shop") == (2, 0)
    with pytest.raises(ConfigurationError, match="no column city, named under `routing`"):
        identity_indexes(SCHEMA, (), "city")
    plan = ColumnPlan.build(SCHEMA, Route(0, ("", "i"), routing="shop", exclude=("name",)))
    assert plan.key == (0, 1)
    with pytest.raises(ConfigurationError, match="key column shop"):
        ColumnPlan.build(SCHEMA, Route(0, ("", "i"), routing="shop", exclude=("shop",)))


def test_a_row_that_is_routed_again_is_deleted_where_it_was():
    (part,) = survivors((Op.INSERT, None, (1, "x", "a")), (Op.UPDATE, (1, "x", "a"), (1, "x", "b")))
    (changes,) = project([(ROUTE, SCHEMA, part)])
    assert (changes.deletes, changes.delete_versions) == ([(1, "a")], [2])
    assert (changes.upserts, changes.upsert_versions) == ([(1, "x", "b")], [2])
    assert changes.document == DocumentForm(("", ""), (0,), routing=1)


def test_null_routes_nowhere_and_is_no_missing_key():
    (part,) = survivors((Op.INSERT, None, (1, "x", None)), key=("id",))
    assert part.upserts == [(1, "x", None)]


def test_a_record_that_does_not_say_where_the_document_was():
    with pytest.raises(DataError, match="shop absent"):
        survivors((Op.UPDATE, (1, "x", ABSENT), (1, "x", "b")))
    with pytest.raises(DataError, match="shop absent"):
        survivors((Op.UPDATE, (1, ABSENT, ABSENT), (1, ABSENT, "b")))
    with pytest.raises(DataError, match="shop absent"):
        survivors((Op.DELETE, (1, "x", ABSENT), None))


def test_half_a_row_is_no_document():
    (part,) = survivors((Op.UPDATE, (1, ABSENT, "a"), (1, ABSENT, "a")))
    with pytest.raises(DataError, match="mentions only the columns id, shop") as caught:
        project([(ROUTE, part.schema, part)])
    assert caught.value.where["key"] == "1, a"


SHOPS = st.sampled_from(["a", "b", None])
STEPS = st.lists(st.tuples(st.integers(1, 3), SHOPS, st.booleans()), max_size=12)


@given(STEPS)
def test_compacted_routing_is_what_replaying_leaves(steps):
    """Documents by (id, routing), as if each shard were an index of its own."""
    rows, changes, replayed = {}, [], {}
    for id_, shop, delete in steps:
        before, after = rows.get(id_), (id_, "x", shop)
        if delete and before:
            changes.append((Op.DELETE, before, None))
            replayed.pop((id_, before[2]))
            del rows[id_]
        elif not delete:
            changes.append((Op.UPDATE if before else Op.INSERT, before, after))
            if before:
                replayed.pop((id_, before[2]))
            replayed[id_, shop] = rows[id_] = after
    compacted = {}
    for part in survivors(*changes):
        for key in part.deletes:
            assert compacted.get(key) is None
        compacted |= {(row[0], row[2]): row for row in part.upserts}
    assert compacted == replayed


def changes_of(document, *rows, columns=COLUMNS):
    versions = [1] * len(rows)
    return TargetChanges(("", "items"), columns, (0,), list(rows), [], versions, [],
                         document=document)  # fmt: skip


def test_tables_that_partition_an_index_do_not_partition_keys():
    orders, invoices = (DocumentForm((text, ""), (0,)) for text in ("order-", "invoice-"))
    merged = merge([changes_of(orders, (1, "x", "a")), changes_of(invoices, (1, "y", "a"))])
    assert [(part.document, part.upserts) for part in merged] == [
        (orders, [(1, "x", "a")]),
        (invoices, [(1, "y", "a")]),
    ]
    same = merge([changes_of(orders, (1, "x", "a")), changes_of(orders, (1, "y", "a"))])
    assert [len(part.upserts) for part in same] == [1]


def test_the_form_goes_with_every_part_of_the_changes():
    rows = [(i, "x", "a") for i in range(20)]
    parts = split(changes_of(DocumentForm(("o", ""), (0,)), *rows), None, 4)
    assert len(parts) > 1
    assert {part.document for part in parts.values()} == {DocumentForm(("o", ""), (0,))}
    assert sorted(row for part in parts.values() for row in part.upserts) == rows
