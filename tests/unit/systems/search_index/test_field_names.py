"""Names that an index cannot have: the same words before the start and in the stream."""

from typing import Any

import pytest

from setl.channel.routes.routing import Route
from setl.channel.rules.spark_sql import bare_column
from setl.errors import ConfigurationError
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.finding import Report
from setl.systems.search_index.field_fit import Extent
from setl.systems.search_index.field_names import faulty_names, hint
from setl.systems.search_index.load.index import ensure_index
from setl.systems.search_index.preflight.arriving import Arriving, Field
from setl.systems.search_index.preflight.ids import report_odd_ids
from setl.systems.search_index.preflight.indexes import check_names

NONE = "has a name that no field can have"
ONCE = "would be a field and an object at once"
THERE = {
    "a": {"type": "long"},
    "doc": {"type": "object", "enabled": False},
    "o": {"properties": {"b": {"type": "long"}}},
}


@pytest.mark.parametrize(
    ("names", "there", "wrong"),
    [
        (["a", "a.b"], None, {"a": ONCE}),
        (["a.b"], THERE, {"a.b": ONCE}),
        (["doc.x.y", "o.c", "new.b"], THERE, {"doc.x.y": ONCE}),
        ([".x", "a..b", "b."], None, dict.fromkeys([".x", "a..b", "b."], NONE)),
        (["_id", "id", "_x"], None, {"_id": "has a name that indexes keep for themselves"}),
    ],
)  # fmt: skip
def test_names_that_no_index_has(names, there, wrong):
    assert dict(faulty_names(names, there)) == wrong


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.b", '{a_b: "`a.b`"}'),
        (".x", '{x: "`.x`"}'),
        ("_id", "{id: _id}"),
        (".", '{other: "`.`"}'),
    ],
)
def test_the_hint_is_one(name, shown):
    assert f"`columns: {shown}`" in hint(name, 3)
    written = shown.partition(": ")[2].rstrip("}").strip('"')
    assert bare_column(written) == name


class Indices:
    """One index with the fields of `THERE`."""

    def mappings(self, _):
        return {"i": {"mappings": {"properties": THERE}}}


@pytest.mark.parametrize("name", ["a.b", ".x", "_id"])
def test_a_column_that_comes_later_is_refused_with_the_same_words(name):
    client: Any = Indices()
    column = Column(name, Kind.INTEGER)
    with pytest.raises(ConfigurationError) as caught:
        ensure_index(client, "i", [column])
    (fault,) = faulty_names([name], THERE)
    assert str(caught.value) == f"the column {name!r} {fault.reason} (index i). {hint(name)}"
    report = Report("index i")
    schema = RowSchema("shop", "t", (column,), (0,))
    fields = (Field(column, Extent()), Field(Column("a", Kind.INTEGER), Extent()))
    check_names([Arriving(schema, Route(0, ("", "i")), fields)], report)
    (said,) = report.findings
    assert (said.code, said.level) == ("field-name", "error")


def test_check_reports_of_keys_that_may_be_no_id():
    report = Report("index i")
    columns = (Column("k", Kind.TEXT), Column("n", Kind.INTEGER))
    for key, route in (
        ((0,), Route(0, ("", "i"))),
        ((0, 1), Route(1, ("", "i"))),
        ((1,), Route(2, ("", "i"))),
    ):
        schema = RowSchema("shop", f"t{route.index}", columns, key)
        fields = tuple(Field(c, Extent(length=400 + 200 * len(key))) for c in columns)
        report_odd_ids([Arriving(schema, route, fields)], report)
    reported = [finding.what for finding in report.findings]
    assert "shop.t0 whose k is empty text" in reported[0]
    assert '`id: "k{k}"` in tables[0]' in reported[0]
    assert [text.split(" has more")[0] for text in reported[1:]] == [
        "a row of shop.t0 whose k", "a row of shop.t1 whose k, n", "a row of shop.t2 whose n"
    ]  # fmt: skip
