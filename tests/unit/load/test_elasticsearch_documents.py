import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError
from setl.load.elasticsearch_documents import (
    document_id,
    render_actions,
    render_document,
    render_documents,
)
from setl.model.change import ABSENT, TargetChanges
from setl.model.schema import Column, Kind


def rendered(kind, value):
    text = render_document((Column("c", kind),), (value,))
    assert text.startswith('{"c":')
    return text[5:-1]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Kind.INTEGER, 2**64 - 1, "18446744073709551615"),
        (Kind.YEAR, 2026, "2026"),
        (Kind.BIT, 5, "5"),
        (Kind.FLOAT, 1e16, "1e+16"),
        (Kind.DECIMAL, "-0.10", '"-0.10"'),
        (Kind.TEXT, 'a"b\\c\n😀\x00', '"a\\"b\\\\c\\n😀\\u0000"'),
        (Kind.ENUM, "x", '"x"'),
        (Kind.SET, "a,b", '"a,b"'),
        (Kind.TIME, "-838:59:59.000000", '"-838:59:59.000000"'),
        (Kind.DATE, "2024-02-29", '"2024-02-29"'),
        (Kind.DATETIME, "2026-01-02 03:04:05.000006", '"2026-01-02T03:04:05.000006"'),
        (Kind.TIMESTAMP, "2026-01-02 03:04:05.000006", '"2026-01-02T03:04:05.000006Z"'),
        (Kind.BINARY, b"\x00\xff\xfe", '"AP/+"'),
        (Kind.GEOMETRY, b"", '""'),
        (Kind.JSON, '{"a": 1.0}', '{"a": 1.0}'),
        (Kind.JSON, "[1,\r\n2]", "[1,  2]"),
        (Kind.JSON, '"\\n"', '"\\n"'),
        (Kind.JSON, "12345678901234567890.123", "12345678901234567890.123"),
    ],
)
def test_values(kind, value, expected):
    assert rendered(kind, value) == expected


@pytest.mark.parametrize("kind", list(Kind))
def test_null_is_sent_as_null(kind):
    assert rendered(kind, None) == "null"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.FLOAT, float("nan")),
        (Kind.FLOAT, float("-inf")),
        (Kind.INTEGER, "1"),
        (Kind.DATE, "0000-00-00"),
        (Kind.DATE, "2025-02-29"),
        (Kind.DATE, "2026-00-00"),
        (Kind.DATETIME, "0000-00-00 00:00:00.000000"),
        (Kind.DATETIME, "2026-01-01"),
        (Kind.DATETIME, '2026-01-01 "},{"'),
        (Kind.TIMESTAMP, "0000-00-00 00:00:00.000000"),
        (Kind.TEXT, b"a"),
        (Kind.BINARY, "a"),
        (Kind.JSON, "{"),
        (Kind.JSON, "NaN"),
        (Kind.JSON, '{"a":1}\n{"index":{}}'),
        (Kind.JSON, ""),
    ],
)
def test_what_a_document_cannot_hold_is_refused_with_its_column(kind, value):
    with pytest.raises(DataError, match="column c holds a value that Elasticsearch cannot"):
        render_documents((Column("c", kind),), ((None,), (value,)))


def test_a_column_that_the_record_did_not_mention_is_refused():
    with pytest.raises(DataError, match="column c is missing"):
        render_document((Column("c", Kind.TEXT),), (ABSENT,))


def test_names_may_hold_anything():
    columns = (Column('a"%s', Kind.INTEGER), Column("100%", Kind.TEXT))
    assert json.loads(render_document(columns, (1, "%d"))) == {'a"%s': 1, "100%": "%d"}


@given(st.lists(st.tuples(st.integers(), st.none() | st.text()), min_size=1))
def test_many_rows_are_rendered_as_each_of_them_alone(rows):
    columns = (Column("i", Kind.INTEGER), Column("t", Kind.TEXT))
    together = render_documents(columns, rows)
    assert together == [render_document(columns, row) for row in rows]
    assert [json.loads(text) for text in together] == [{"i": i, "t": t} for i, t in rows]
    assert not any("\n" in text for text in together)


# -- ids -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((7,), "7"),
        (("a,b\\",), "a,b\\"),
        ((b"\x00\xff",), "AP8="),
        ((1, "a"), "1,a"),
        (("a,b", "c\\"), "a\\,b,c\\\\"),
        (("", "a"), ",a"),
        ((1.5, "2026-01-01"), "1.5,2026-01-01"),
    ],
)
def test_ids(key, expected):
    assert document_id(key) == expected


@given(
    st.tuples(st.text(max_size=9), st.text(max_size=9)),
    st.tuples(st.text(max_size=9), st.text(max_size=9)),
)
def test_different_keys_have_different_ids(one, other):
    assert (document_id(one) == document_id(other)) == (one == other)


@pytest.mark.parametrize("key", [("",), (None,), (1, None), (ABSENT, 1), ("é" * 257,)])
def test_a_key_that_gives_no_id_is_refused(key):
    with pytest.raises(DataError):
        document_id(key)


# -- actions -------------------------------------------------------------------------------

COLUMNS = (Column("id", Kind.INTEGER), Column("name", Kind.TEXT))
EXTERNAL = {"_index": "items", "version_type": "external_gte"}


def changes(upserts=(), deletes=(), columns=COLUMNS):
    return TargetChanges(
        ("", "items"),
        columns,
        (0,),
        list(upserts),
        list(deletes),
        [10 + i for i in range(len(upserts))],
        [20 + i for i in range(len(deletes))],
    )


def test_actions_carry_external_versions_and_deletes_come_first():
    actions = render_actions(changes([(1, "a"), (2, None)], [(3,)]))
    assert [[json.loads(line) for line in action.splitlines()] for action in actions] == [
        [{"delete": {"_id": "3", "version": 20, **EXTERNAL}}],
        [{"index": {"_id": "1", "version": 10, **EXTERNAL}}, {"id": 1, "name": "a"}],
        [{"index": {"_id": "2", "version": 11, **EXTERNAL}}, {"id": 2, "name": None}],
    ]
    assert all(action.endswith(b"\n") for action in actions)


def test_nothing_but_deletes_needs_no_documents():
    assert len(render_actions(changes([], [(1,), (2,)]))) == 2


@pytest.mark.parametrize(
    ("upserts", "deletes", "where"),
    [
        ([(1, "a"), (2, "caf\udce9")], [], {"index": "items", "column": "name", "key": "2"}),
        ([(1, "a"), (2, 5)], [], {"index": "items", "key": "2"}),
        ([(None, "a")], [], {"index": "items", "key": "None"}),
        ([], [(None,)], {"index": "items", "key": "None"}),
    ],
)
def test_a_row_that_is_refused_is_named(upserts, deletes, where):
    with pytest.raises(DataError) as caught:
        render_actions(changes(upserts, deletes))
    assert caught.value.where == where


def test_a_key_without_a_utf8_form_is_named_so_that_it_can_be_logged():
    columns = (Column("id", Kind.TEXT), Column("name", Kind.TEXT))
    with pytest.raises(DataError) as caught:
        render_actions(changes([], [("caf\udce9",)], columns))
    assert caught.value.where["key"] == "caf\\udce9"
