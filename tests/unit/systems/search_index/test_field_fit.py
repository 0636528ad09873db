import pytest

from setl.model.document import Geometry
from setl.model.schema import COLUMN_KINDS, Column, Kind
from setl.systems.search_index.field_fit import Extent, misfit, whole_numbers
from setl.systems.search_index.mapping import (
    field_of,
    mapped_field,
    mapping_lines,
    takes_new_fields,
)

OWN = [
    Column("c", kind, unsigned=unsigned, precision=precision, scale=scale)
    for kind in COLUMN_KINDS
    for unsigned in (False, True)
    for precision, scale in ((0, 0), (65, 30))
]


@pytest.mark.parametrize("geometry", ["base64", "wkt"])
@pytest.mark.parametrize("column", OWN, ids=repr)
def test_what_setl_creates_takes_every_value(column, geometry):
    extent = Extent(whole_numbers(column), length=1 << 32)
    assert misfit(column, field_of(column, geometry), extent, geometry) is None


NOTHING_TOLD = Extent()


def judged(kind, field, extent=NOTHING_TOLD, geometry: Geometry = "base64", **column):
    if isinstance(field, str):
        field = {"type": field}
    return misfit(Column("c", kind, **column), field, extent, geometry)


INT, TINY = Extent((-(2**31), 2**31 - 1)), Extent((0, 255))


@pytest.mark.parametrize(
    ("kind", "field", "more"),
    [
        (Kind.INTEGER, "integer", {"extent": INT}),
        (Kind.INTEGER, "double", {"extent": INT}),
        (Kind.INTEGER, "keyword", {}),
        (Kind.INTEGER, "short", {"extent": TINY, "unsigned": True}),
        (Kind.YEAR, "short", {}),
        (Kind.BIT, "long", {"extent": TINY}),
        (Kind.FLOAT, "float", {"extent": Extent(single=True)}),
        (Kind.DECIMAL, "keyword", {}),
        (Kind.DECIMAL, {"type": "scaled_float", "scaling_factor": 100}, {"precision": 9,
                                                                        "scale": 2}),
        (Kind.DECIMAL, "long", {"precision": 18}),
        (Kind.TEXT, "wildcard", {}),
        (Kind.TEXT, "keyword", {"extent": Extent(length=400)}),
        (Kind.TEXT, {"type": "keyword", "ignore_above": 9}, {"extent": Extent(length=1 << 20)}),
        (Kind.DATE, "date", {}),
        (Kind.DATETIME, "date", {}),
        (Kind.DATE, {"type": "date", "format": "yyyy-MM-dd||epoch_millis"}, {}),
        (Kind.BINARY, "keyword", {"extent": Extent(length=100)}),
        (Kind.GEOMETRY, {"type": "geo_point", "ignore_malformed": True}, {"geometry": "wkt"}),
        (Kind.GEOMETRY, "text", {"geometry": "wkt"}),
    ],
)  # fmt: skip
def test_fields_that_fit(kind, field, more):
    assert judged(kind, field, **more) is None


@pytest.mark.parametrize(
    ("kind", "field", "more", "reason"),
    [
        (Kind.INTEGER, "integer", {}, "goes from -9223372036854775808"),
        (Kind.INTEGER, "unsigned_long", {}, "goes from"),
        (Kind.INTEGER, "long", {"unsigned": True}, "to 18446744073709551615"),
        (Kind.INTEGER, "date", {}, "does not take integer values"),
        (Kind.INTEGER, "boolean", {}, "does not take"),
        (Kind.FLOAT, "long", {}, "drops digits"),
        (Kind.DECIMAL, "long", {"precision": 9, "scale": 2}, "drops digits"),
        (Kind.DECIMAL, "long", {"precision": 19}, "not take all"),
        (Kind.DECIMAL, "long", {}, "not take all"),
        (Kind.DECIMAL, {"type": "double", "coerce": False}, {}, "coerce"),
        (Kind.DECIMAL, "boolean", {}, "does not take"),
        (Kind.TEXT, "long", {}, "is long, which does not take text values"),
        (Kind.TEXT, "date", {}, "does not take"),
        (Kind.TIME, "date", {}, "does not take"),
        (Kind.ENUM, {"properties": {}}, {}, "is object"),
        (Kind.DATE, {"type": "date", "format": "epoch_second"}, {}, "setl writes 2026-01-02"),
        (Kind.DATETIME, {"type": "date", "format": "yyyy-MM-dd HH:mm:ss"}, {}, "2026-01-02T"),
        (Kind.TIMESTAMP, "long", {}, "does not take"),
        (Kind.BINARY, "long", {}, "does not take"),
        (Kind.GEOMETRY, "geo_shape", {}, "does not take"),
        (Kind.GEOMETRY, "binary", {"geometry": "wkt"}, "no well-known text"),
        (Kind.JSON, "keyword", {}, "does not take"),
        (Kind.TEXT, {"type": "alias", "path": "x"}, {}, "is alias"),
    ],
)
def test_fields_that_would_refuse_or_alter(kind, field, more, reason):
    found = judged(kind, field, **more)
    assert found is not None
    assert found.refused
    assert reason in found.reason


@pytest.mark.parametrize(
    ("kind", "field", "more", "reason"),
    [
        (Kind.INTEGER, "double", {}, "beyond 9007199254740992 inexactly"),
        (Kind.INTEGER, "float", {"extent": INT}, "inexactly"),
        (Kind.FLOAT, "float", {}, "inexactly"),
        (Kind.DECIMAL, "float", {"precision": 9, "scale": 2}, "distinguishes only 6 digits"),
        (Kind.DECIMAL, {"type": "scaled_float", "scaling_factor": 10}, {"precision": 9,
                                                                       "scale": 2}, "rounds"),
        (Kind.TEXT, "keyword", {"extent": Extent(length=1 << 16)}, "32,766 bytes"),
        (Kind.TEXT, {"type": "text", "fields": {"raw": {"type": "keyword"}}},
         {"extent": Extent(length=1 << 16)}, "32,766 bytes"),
        (Kind.DATE, "date_nanos", {}, "1970 and 2262"),
        (Kind.JSON, "flattened", {}, "no objects"),
        (Kind.JSON, "flat_object", {}, "no objects"),
        (Kind.JSON, {"properties": {}}, {}, "differ in type"),
        (Kind.GEOMETRY, "geo_shape", {"geometry": "wkt"}, "without ignore_malformed"),
        (Kind.TEXT, {"type": "date", "ignore_malformed": True}, {}, "left out of the search"),
        (Kind.TEXT, "sparse_vector", {}, "setl does not know"),
    ],
)  # fmt: skip
def test_fields_that_search_less_exactly(kind, field, more, reason):
    found = judged(kind, field, **more)
    assert found is not None
    assert not found.refused
    assert reason in found.reason


def test_fields_in_a_mapping():
    properties = {"a": {"type": "long"}, "o": {"properties": {"x": {"type": "text"}}}}
    assert mapped_field(properties, "a") == {"type": "long"}
    assert mapped_field(properties, "o.x") == {"type": "text"}
    assert mapped_field(properties, "o.y") is mapped_field(properties, "a.x") is None


@pytest.mark.parametrize(
    ("dynamic", "may"),
    [(None, True), (True, True), ("true", True), ("runtime", True), (False, False),
     ("false", False), ("strict", False)],
)  # fmt: skip
def test_who_may_add_fields(dynamic, may):
    assert takes_new_fields({} if dynamic is None else {"dynamic": dynamic}) is may


def test_a_mapping_for_people():
    columns = (Column("id", Kind.INTEGER), Column("price", Kind.DECIMAL), Column("j", Kind.JSON))
    fields = {column.name: field_of(column) for column in columns}
    assert mapping_lines({"properties": fields, "dynamic": "strict"}) == [
        "id     long",
        "price  double, .exact keyword",
        "j      object, enabled false",
        'dynamic: "strict"',
    ]
