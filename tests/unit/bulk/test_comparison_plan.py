from dataclasses import replace
from typing import Any

import pytest

from setl.bulk.checksums import Form, Normal
from setl.bulk.comparison_plan import ComparedTable, common_form, plan_comparison, plan_ranges
from setl.channel.routes.routing import Route
from setl.model.schema import Capacity, Column, Kind, RowSchema
from setl.transform.columns import ColumnPlan

GENERAL, BIN, UNICODE_0900 = 45, 46, 255


def column(name, kind=Kind.INTEGER, of_type="int", **more):
    known = {k: more.pop(k) for k in ("scale_", "charset") if k in more}
    held = Capacity(of_type, scale=known.get("scale_"), charset=known.get("charset", ""))
    return Column(name, kind, capacity=held, **more)


def text(name, collation=BIN, charset="utf8mb4", of_type="varchar"):
    return column(name, Kind.TEXT, of_type, charset=charset, collation=collation)


def plan(
    source,
    target=None,
    key=(0,),
    target_key=None,
    orders=("mysql", "mysql"),
    begun=(),
    **route: Any,
):
    source = tuple(source)
    target = source if target is None else tuple(target)
    there = RowSchema("s", "t", source, tuple(key))
    here = RowSchema("s", "t", target, tuple(key if target_key is None else target_key))
    here = replace(here, begun=frozenset(begun))
    way = Route(0, ("s", "t"), **route)
    mapping = ColumnPlan.build(there, way)
    names = [c.name for c in mapping.columns]
    return plan_comparison(
        way, mapping, ComparedTable(there, orders[0]), ComparedTable(here, orders[1]), names
    )


ID, N = column("id"), column("n")


def test_a_plain_table():
    found = plan([ID, N, text("t")])
    assert found.by_checksums
    assert (found.source_cut, found.target_cut) == ((ID,), (ID,))
    assert [f.form.normal for f in found.source] == [Normal.NUMBER, Normal.NUMBER, Normal.TEXT]
    assert [f.form for f in found.source] == [f.form for f in found.target]


def test_columns_are_paired_by_the_mapping():
    renamed = [ID, column("amount"), text("t", charset="latin1")]
    found = plan([ID, N, text("t")], renamed, renames={"amount": "n"})
    assert [f.column.name for f in found.source] == ["id", "n", "t"]
    assert [f.column.name for f in found.target] == ["id", "amount", "t"]


def test_columns_that_only_the_target_has_do_not_count():
    found = plan([ID, N], [ID, N, column("more", Kind.BINARY, "vector")])
    assert found.by_checksums
    assert len(found.target) == 2


@pytest.mark.parametrize(
    ("route", "keys_may_move"),
    [
        ({"processor": "m:f"}, True),
        ({"where": "n > 1"}, False),
        ({"expressions": {"n": "n + 1"}}, False),
    ],
)
def test_what_spark_has_to_do_is_compared_by_rows(route, keys_may_move):
    found = plan([ID, N], **route)
    assert not found.by_checksums
    assert found.why
    assert (found.source_cut, found.whole) == ((ID,), "")
    assert found.keys_may_move == keys_may_move


def of_documents(*key, ordered, **route: Any):
    """The plan for an index whose fields ``f_…`` are in order if they are named."""
    there = RowSchema("s", "t", (*key, N), tuple(range(len(key))))
    names = {f"f_{c.name}": c.name for c in there.columns}
    way = Route(0, ("", "i"), renames=names, **route)

    def fields(columns):
        wanted = [replace(column, name=name) for column, name in columns]
        cut = next((i for i, c in enumerate(wanted) if c.name not in ordered), len(wanted))
        return wanted[:cut]

    return plan_ranges(way, ColumnPlan.build(there, way), there, fields)


def test_an_index_is_cut_by_the_fields_that_it_has_in_order():
    found = of_documents(ID, text("t"), ordered={"f_id", "f_t"})
    assert [c.name for c in found.source_cut] == ["id", "t"]
    assert [c.name for c in found.target_cut] == ["f_id", "f_t"]
    assert not found.by_checksums
    assert not found.whole
    found = of_documents(ID, text("t"), ordered={"f_id"})
    assert [c.name for c in found.target_cut] == ["f_id"]
    found = of_documents(ID, text("t"), ordered={"f_t"})
    assert (found.source_cut, found.whole) == ((), "the two sides do not sort their keys alike")
    assert of_documents(ID, ordered={"f_id"}, processor="m:f").keys_may_move
    assert of_documents(ID, ordered={"f_id"}, key=("n",)).whole
    assert of_documents(column("e", Kind.ENUM), ordered={"f_e"}).whole


def test_a_table_without_a_key():
    # Two rows that are equal would cancel each other out.
    there = RowSchema("s", "t", (ID, N))
    way = Route(0, ("s", "t"), key=("id",))
    mapping = ColumnPlan.build(there, way)
    found = plan_comparison(way, mapping, ComparedTable(there), ComparedTable(there), ["id", "n"])
    assert not found.by_checksums
    assert not found.source_cut


def test_the_target_needs_the_same_primary_key():
    # A range holds no NULL, and takes ages without an index.
    found = plan([ID, N], target_key=())
    assert not found.by_checksums
    assert not plan([ID, N], target_key=(1,)).by_checksums
    assert plan([ID, N], target_key=(0, 1)).source_cut == (ID,)


@pytest.mark.parametrize(("collation", "cut"), [(UNICODE_0900, False), (GENERAL, True)])
def test_a_target_whose_key_has_the_beginning_of_a_text(collation, cut):
    found = plan([text("t", collation), N], begun={0})
    assert bool(found.source_cut) == cut


def test_a_key_in_another_order_is_cut_by_what_agrees():
    a, b, c = column("a"), column("b"), column("c")
    assert plan([a, b, c], key=(0, 1, 2), target_key=(0, 2, 1)).source_cut == (a,)
    assert plan([a, b, c], key=(0, 1, 2)).source_cut == (a, b, c)


@pytest.mark.parametrize(
    ("one", "other", "orders", "cut"),
    [
        (text("k", BIN), text("k", BIN), ("mysql", "mariadb"), True),
        (text("k", GENERAL), text("k", GENERAL), ("mysql", "mariadb"), True),
        (text("k", GENERAL), text("k", BIN), ("mysql", "mysql"), False),
        (text("k", UNICODE_0900), text("k", UNICODE_0900), ("mysql", "mysql"), True),
        (text("k", UNICODE_0900), text("k", UNICODE_0900), ("mysql", "mariadb"), False),
        (text("k", GENERAL), text("k", UNICODE_0900), ("mysql", "mysql"), False),
        (text("k", 0), text("k", 0), ("mysql", "mysql"), False),
        (column("k"), column("k", of_type="bigint"), ("", ""), True),
        (column("k"), column("k", Kind.DECIMAL, "decimal"), ("", ""), False),
        (column("k", Kind.ENUM, "enum"), column("k", Kind.ENUM, "enum"), ("", ""), False),
        (column("k", Kind.FLOAT, "double"), column("k", Kind.FLOAT, "double"), ("", ""), False),
        (column("k", Kind.BINARY, "binary"), column("k", Kind.BINARY, "binary"), ("", ""), True),
        (column("k", Kind.DATE, "date"), column("k", Kind.DATE, "date"), ("", ""), True),
    ],
)
def test_keys_are_cut_where_both_sort_alike(one, other, orders, cut):
    found = plan([one, N], [other, N], orders=orders)
    assert bool(found.source_cut) == cut
    assert found.by_checksums == cut


DECIMAL = column("c", Kind.DECIMAL, "decimal", precision=9, scale=2, scale_=2)
FLOAT, DOUBLE = column("c", Kind.FLOAT, "float"), column("c", Kind.FLOAT, "double")
JSON = column("c", Kind.JSON, "json")


@pytest.mark.parametrize(
    ("one", "other", "form"),
    [
        (N, column("c", Kind.BIT, "bit"), Form(Normal.NUMBER)),
        (N, column("c", Kind.YEAR, "year"), Form(Normal.NUMBER)),
        (DECIMAL, DECIMAL, Form(Normal.DECIMAL, 9, 2)),
        (DECIMAL, replace(DECIMAL, precision=14, scale=4), Form(Normal.DECIMAL, 14, 4)),
        (DECIMAL, replace(DECIMAL, precision=65, scale=0), None),
        (DECIMAL, N, Form(Normal.DECIMAL, 22, 2)),
        (DECIMAL, column("c", Kind.BIT, "bit"), None),
        (FLOAT, FLOAT, Form(Normal.FLOATING)),
        (DOUBLE, DOUBLE, Form(Normal.FLOATING)),
        (FLOAT, DOUBLE, None),
        (text("c"), text("c", charset="latin1"), Form(Normal.TEXT)),
        (text("c"), column("c", Kind.ENUM, "enum"), Form(Normal.TEXT)),
        (text("c"), column("c", Kind.SET, "set"), Form(Normal.TEXT)),
        (JSON, JSON, Form(Normal.TEXT)),
        (JSON, text("c", of_type="longtext"), None),
        (text("c"), column("c", Kind.BINARY, "blob"), None),
        (column("c", Kind.BINARY, "blob"), column("c", Kind.BINARY, "binary"), Form(Normal.BYTES)),
        (column("c", Kind.BINARY, "vector"), column("c", Kind.BINARY, "vector"), None),
        (column("c", Kind.GEOMETRY, "point"), column("c", Kind.GEOMETRY, "geometry"),
         Form(Normal.BYTES)),
        (column("c", Kind.TIME, "time", scale_=2), column("c", Kind.TIME, "time", scale_=6),
         Form(Normal.CLOCK, scale=6)),
        (column("c", Kind.DATETIME, "datetime", scale_=0),
         column("c", Kind.TIMESTAMP, "timestamp", scale_=3), Form(Normal.MOMENT, scale=3)),
        (column("c", Kind.DATE, "date"), column("c", Kind.DATETIME, "datetime"), None),
        (column("c", Kind.DATE, "date"), column("c", Kind.DATE, "date"), Form(Normal.DATE)),
        (Column("c", Kind.INTEGER), N, None),
    ],
)  # fmt: skip
def test_forms_in_common(one, other, form):
    assert common_form(one, other) == form
    assert common_form(other, one) == form


def test_a_column_without_a_form_in_common_leaves_the_ranges():
    found = plan([ID, JSON], [ID, text("c", of_type="longtext")])
    assert not found.by_checksums
    assert "c" in found.why
    assert found.source_cut == (ID,)
