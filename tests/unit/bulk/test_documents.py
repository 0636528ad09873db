import json
from math import inf, nextafter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setl.bulk.exact_json import parsed
from setl.model.document import DocumentForm
from setl.model.schema import Column, Kind
from setl.systems.search_index.index_target import (
    DocumentShape,
    field_value,
    near,
    rounded,
)

SHAPE = DocumentShape(
    (Column("id", Kind.INTEGER), Column("f", Kind.FLOAT)), (0,), DocumentForm.of_key(1)
)


def hit(id_, source, **more):
    return {"_id": id_, "_source": source, **more}


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-2, 2))
@example(0.0, 0)
@example(-0.0, 1)
@example(5e-324, -1)
def test_a_double_that_lost_its_last_digits_is_still_the_same(value, steps):
    seen = value
    for _ in range(abs(steps)):
        seen = nextafter(seen, inf if steps > 0 else -inf)
    if seen in (inf, -inf):
        return
    (pair,) = SHAPE.pairs([(1, value)])
    found = SHAPE.pair_of(hit("1", {"id": 1, "f": seen}))
    assert found.compared in [pair.compared, *pair.alternatives]


@given(st.floats(1e-300, 1e300), st.floats(1e-11, 1.0))
def test_a_double_that_is_another_is_not(value, change):
    assert rounded(value * (1 + change)) not in near(value)


@given(st.floats(1e-290, 1e290))
def test_one_or_two_texts(value):
    assert 1 <= len(near(value)) <= 2


def test_null_missing_text_and_numbers():
    assert SHAPE.pair_of(hit("1", {"id": 1})) == SHAPE.pair_of(hit("1", {"id": 1, "f": None}))
    different = [None, "1.5", 1.5, "", True, {"a": 1}, [1.5]]
    forms = [field_value(value) for value in different]
    assert len(set(forms)) == len(forms)
    assert field_value({"a": 1, "b": 2}) == field_value({"b": 2, "a": 1})


@pytest.mark.parametrize(("there", "same"), [
    ('{"b": 2, "a": 12345678901234567.1}', True),
    ('{"a": 12345678901234568.0, "b": 2}', True),  # a proxy has read and written it
    ('{"a": 12345678901234567.2, "b": 2}', False),
])  # fmt: skip
def test_all_digits_of_a_number_in_json_count(there, same):
    shape = DocumentShape(
        (Column("id", Kind.INTEGER), Column("j", Kind.JSON)), (0,), DocumentForm.of_key(1)
    )
    (pair,) = shape.pairs([(1, '{"a": 12345678901234567.1, "b": 2}')])
    answer = f'{{"_id": "1", "_source": {{"id": 1, "j": {there}}}}}'.encode()
    found = shape.pair_of(parsed(answer))
    assert (found.compared in [pair.compared, *pair.alternatives]) is same


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], True, False])
def test_text_that_looks_like_a_json_value_is_another_value(value):
    shape = DocumentShape(
        (Column("id", Kind.INTEGER), Column("j", Kind.JSON)), (0,), DocumentForm.of_key(1)
    )
    text = json.dumps(value)
    both = [(1, text), (1, json.dumps(text))]
    for row, found in zip(both, (value, text), strict=True):
        wanted = [pair.compared for pair in shape.pairs([row])]
        assert shape.pair_of(hit("1", {"id": 1, "j": found})).compared in wanted
    one, other = shape.pairs(both)
    assert one.compared != other.compared


@pytest.mark.parametrize(
    ("id_", "key"),
    [
        ("7", (7,)), ("-7", (-7,)), ("0", (0,)), ("x", None), ("--7", None), ("007", None),
        ("-0", None), ("\u0667", None), ("7\n", None), ("", None), ("-", None),
    ],
)  # fmt: skip
def test_an_integer_key_is_the_id(id_, key):
    assert SHAPE.source_key(id_, None) == key


def test_a_composite_key_is_looked_up_by_its_fields():
    columns = (Column("a", Kind.INTEGER), Column("b", Kind.TEXT), Column("v", Kind.INTEGER))
    shape = DocumentShape(columns, (0, 1), DocumentForm.of_key(2))
    (wanted,) = shape.pairs([(1, "x", None)])
    found = shape.pair_of(hit("1,x", {"a": 1, "b": "x"}))
    assert wanted[:3] == found[:3]
    assert shape.source_key(wanted.key, wanted.lookup) == (1, "x")


def test_tables_that_partition_an_index_see_only_their_own_documents():
    shape = DocumentShape((Column("id", Kind.INTEGER),), (0,), DocumentForm(("order-", ""), (0,)))
    (wanted,) = shape.pairs([(5,)])
    assert wanted.key == "order-5"
    assert shape.includes("order-5")
    assert not shape.includes("invoice-5")
    # The id is not the key, so that the source's row is looked up by the field.
    found = shape.pair_of(hit("order-5", {"id": 5}))
    assert shape.source_key(found.key, found.lookup) == (5,)


def test_a_document_under_another_routing_is_another():
    columns = (Column("id", Kind.INTEGER), Column("shop", Kind.TEXT))
    shape = DocumentShape(columns, (0, 1), DocumentForm(("", ""), (0,), routing=1))
    (wanted,) = shape.pairs([(5, "b")])
    source = {"id": 5, "shop": "b"}
    assert shape.pair_of(hit("5", source, _routing="b"))[:3] == wanted[:3]
    assert shape.pair_of(hit("5", source, _routing="a")).key != wanted.key
    assert shape.id_and_routing(wanted.key) == ("5", "b")
    assert shape.source_key(wanted.key, wanted.lookup) == (5,)
    (unrouted,) = shape.pairs([(6, None)])
    assert shape.id_and_routing(unrouted.key) == ("6", None)


@pytest.mark.parametrize(
    ("column", "value", "field"),
    [
        (Column("k", Kind.DATETIME), "2026-01-02 03:04:05.000006", "2026-01-02T03:04:05.000006"),
        (Column("k", Kind.TIMESTAMP), "2026-01-02 03:04:05.000006", "2026-01-02T03:04:05.000006Z"),
        (Column("k", Kind.ENUM), "small", "small"),
        (Column("k", Kind.TEXT), "a,b", "a,b"),
    ],
)
def test_both_sides_know_the_key_of_the_row(column, value, field):
    shape = DocumentShape((column,), (0,), DocumentForm.of_key(1))
    (wanted,) = shape.pairs([(value,)])
    assert shape.source_key(wanted.key, wanted.lookup) == (value,)
    assert shape.pair_of(hit(value, {"k": field})).lookup == wanted.lookup


def test_a_document_whose_fields_say_another_key_than_its_id_does_not_know_it():
    shape = DocumentShape((Column("k", Kind.TEXT),), (0,), DocumentForm.of_key(1))
    for field in ("b", None, 5, ["a"]):
        assert shape.pair_of(hit("a", {"k": field})).lookup is None
    raw = DocumentShape((Column("k", Kind.BINARY),), (0,), DocumentForm.of_key(1))
    (wanted,) = raw.pairs([(b"\x00\xff",)])
    assert raw.source_key(wanted.key, wanted.lookup) == (b"\x00\xff",), "the row knows it"
    assert raw.pair_of(hit(wanted.key, {"k": "AP8="})).lookup is None
