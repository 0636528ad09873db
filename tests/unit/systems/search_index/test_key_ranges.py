"""Ranges of a source's key as queries: each document is in one of them, whatever it holds."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.bulk.chunks import Chunk
from setl.model.schema import Capacity, Column, Kind
from setl.systems.search_index.key_ranges import chunk_query, ordered_field

BIN, AI_CI, LATIN1_BIN = 46, 255, 47
LONG, KEYWORD = {"type": "long"}, {"type": "keyword"}
TEXT = {"type": "text", "fields": {"raw": {"type": "text"}, "keyword": KEYWORD}}
A, B = Column("a", Kind.INTEGER), Column("b", Kind.TEXT)


def finds(query: Any, document: dict[str, Any]) -> bool:
    """What Elasticsearch says of a document: any of a field's values may be in a range."""
    ((what, content),) = query.items()
    if what == "bool":
        return (
            all(finds(each, document) for each in content.get("filter", ()))
            and not any(finds(each, document) for each in content.get("must_not", ()))
            and sum(finds(each, document) for each in content.get("should", ()))
            >= content.get("minimum_should_match", 0)
        )
    assert what == "range"
    ((name, limits),) = content.items()
    values = document.get(name, [])
    return any(
        value > limits.get("gt", value - 1 if isinstance(value, int) else "")
        and value >= limits.get("gte", value)
        and value <= limits.get("lte", value)
        for value in (values if isinstance(values, list) else [values])
    )


numbers, texts = st.integers(-3, 3), st.sampled_from(["a", "b", "bb", "c"])
keys = st.tuples(numbers, texts)
fields = st.fixed_dictionaries(
    {}, optional={"a": numbers | st.lists(numbers), "b": texts | st.lists(texts)}
)


@given(st.lists(keys), st.lists(fields))
def test_each_document_is_in_a_range_whatever_it_holds_and_whatever_the_order(limits, documents):
    chunks = [Chunk(low, high) for low, high in pairwise([None, *limits, None])]
    for document in documents:
        assert any(finds(chunk_query([A, B], chunk), document) for chunk in chunks)


@given(st.lists(keys, unique=True), st.lists(keys))
def test_keys_in_the_sources_order_are_in_one_range_that_has_them(limits, documents):
    chunks = [Chunk(low, high) for low, high in pairwise([None, *sorted(limits), None])]
    for key in documents:
        there = [
            c for c in chunks if finds(chunk_query([A, B], c), dict(zip("ab", key, strict=True)))
        ]
        (chunk,) = there
        assert chunk.low is None or chunk.low < key
        assert chunk.high is None or key <= chunk.high


@pytest.mark.parametrize(
    ("properties", "column", "name"),
    [
        ({"k": LONG}, Column("id", Kind.INTEGER), "k"),
        ({"k": {"type": "integer"}}, Column("id", Kind.YEAR), "k"),
        ({"k": {**LONG, "index": False}}, Column("id", Kind.INTEGER), None),
        ({"k": KEYWORD}, Column("id", Kind.INTEGER), None),  # 10 is less than 9 there
        ({"k": LONG}, Column("id", Kind.INTEGER, unsigned=True, capacity=Capacity("int")), "k"),
        ({"k": LONG}, Column("id", Kind.INTEGER, unsigned=True, capacity=Capacity("bigint")), None),
        ({"k": {"type": "unsigned_long"}}, Column("id", Kind.INTEGER, unsigned=True), "k"),
        ({"k": TEXT}, Column("id", Kind.TEXT, collation=BIN), "k.keyword"),
        ({"k": KEYWORD}, Column("id", Kind.TEXT, collation=BIN), "k"),
        ({"k": TEXT}, Column("id", Kind.TEXT, collation=AI_CI), None),
        ({"k": TEXT}, Column("id", Kind.TEXT, collation=LATIN1_BIN), None),
        ({"k": {"type": "text"}}, Column("id", Kind.TEXT, collation=BIN), None),
        ({"k": {**KEYWORD, "normalizer": "lower"}}, Column("id", Kind.TEXT, collation=BIN), None),
        ({"k": {"type": "date"}}, Column("id", Kind.DATE), "k"),
        ({"k": {"type": "date"}}, Column("id", Kind.DATETIME), "k"),
        ({"k": {"type": "double"}}, Column("id", Kind.DECIMAL), None),
        ({"k": {"type": "binary"}}, Column("id", Kind.BINARY), None),
        ({}, Column("id", Kind.INTEGER), None),
        ({"o": {"properties": {"k": LONG}}}, Column("id", Kind.INTEGER), None),
    ],
)  # fmt: skip
def test_which_field_has_the_sources_order(properties, column, name):
    found = ordered_field(properties, "k", column)
    assert (found and found.name) == name


def test_times_are_those_of_the_index():
    query = chunk_query([Column("at", Kind.DATETIME)], Chunk(("2026-01-02 03:04:05.678900",), None))
    beyond = {"gt": "2026-01-02T03:04:05.678Z", "format": "strict_date_optional_time"}
    assert query["bool"]["filter"] == [{"range": {"at": beyond}}]
    query = chunk_query([Column("at", Kind.DATE)], Chunk(None, ("0000-00-00",)))
    assert query["bool"]["must_not"][0]["range"]["at"]["gt"] == "0001-01-01T00:00:00.000Z"
