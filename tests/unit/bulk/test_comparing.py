import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.bulk.comparing import digest, forms, key_text, key_values
from setl.model.schema import Column, Kind
from setl.printable import text_of_bytes

values = st.one_of(
    st.none(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
)


def form(kind, value):
    return forms([Column("c", kind)])[0](value)


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (Kind.DECIMAL, "1.5", "1.50"),
        (Kind.DECIMAL, "-0.00", "0"),
        (Kind.DECIMAL, "5.00", 5),
        (Kind.DECIMAL, "100", "100.0"),
        (Kind.DECIMAL, "9" * 60 + ".10", "9" * 60 + ".1"),
        (Kind.INTEGER, 7, "7"),
        (Kind.INTEGER, 7, 7.0),
        (Kind.BIT, 1, "1"),
        (Kind.FLOAT, 2, 2.0),
        (Kind.FLOAT, "0.1", 0.1),
        (Kind.DATETIME, "2026-01-02", "2026-01-02 00:00:00.000000"),
        (Kind.TEXT, 7, "7"),
        (Kind.BINARY, "é", "é".encode()),
        (Kind.JSON, '{"a": 1, "b": [1,2]}', '{"b":[1, 2],"a":1}'),
        (Kind.JSON, "[1.10, -0.00, 1e2, 1.5E-7]", "[1.1, -0.0, 100.0, 0.00000015]"),
        (Kind.JSON, "[0.12345678901234567890]", "[0.1234567890123456789]"),
        (Kind.JSON, "[1e400]", "[10E399]"),
    ],
)
def test_the_same_value_under_two_types(kind, one, other):
    assert form(kind, one) == form(kind, other)
    assert digest([form(kind, one)]) == digest([form(kind, other)])


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (Kind.DECIMAL, "1.5", "1.501"),
        (Kind.DECIMAL, "0.1", "-0.1"),
        (Kind.INTEGER, 10, 100),
        (Kind.INTEGER, 2**64 - 1, 2**64 - 2),
        (Kind.DATETIME, "2026-01-02 03:04:05.000000", "2026-01-02 03:04:05.000001"),
        (Kind.TIME, "-00:00:01.000000", "00:00:01.000000"),
        (Kind.TEXT, "a", "a "),
        (Kind.TEXT, "a", "A"),
        (Kind.TEXT, "é", "e\u0301"),
        (Kind.TEXT, "𝄞", "𝄟"),
        (Kind.BINARY, b"a", b"a\0"),
        (Kind.FLOAT, 0.1, 0.1 + 2**-56),
        (Kind.JSON, "[1,2]", "[2,1]"),
        (Kind.JSON, '"1"', "1"),
        (Kind.JSON, "[0.1234567890123456789]", "[0.1234567890123456788]"),
        (Kind.JSON, "[0.1]", "[0.1000000000000000055]"),
        (Kind.JSON, '{"a": 12345678901234567.1}', '{"a": 12345678901234567.2}'),
        (Kind.JSON, "[1e400]", "[1e401]"),
        (Kind.JSON, "[0.0]", "[-0.0]"),
        (Kind.JSON, "[100]", "[1e2]"),
        (Kind.JSON, '["1e400"]', "[1e400]"),
        (Kind.JSON, '{"a": 1, "a": 2}', '{"a": 2}'),
        (Kind.JSON, '{"a": 1, "a": 2}', '{"a": 2, "a": 1}'),
        (Kind.JSON, "[" * 9999 + "]" * 9999, "[" * 9998 + "]" * 9998),
    ],
)
def test_two_values_that_are_not_the_same(kind, one, other):
    assert digest([form(kind, one)]) != digest([form(kind, other)])


def test_null_is_not_the_empty_text_nor_the_word():
    assert len({digest([None]), digest([""]), digest(["None"]), digest(["NULL"])}) == 4


def test_where_a_value_ends_counts():
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["a', 'b"]) != digest(["a", "b"])


@given(st.lists(values, min_size=1, max_size=4), st.lists(values, min_size=1, max_size=4))
def test_digests_are_equal_for_equal_rows_only(one, other):
    assert digest(one) == digest(list(one))
    assert (digest(one) == digest(other)) == (repr(one) == repr(other))


key_parts = st.one_of(st.integers(), st.text(st.characters(exclude_categories=["Cs"])), st.binary())


@given(st.lists(key_parts, min_size=1, max_size=3).map(tuple))
def test_key_text_can_be_read_back(key):
    assert key_values(key_text(key)) == key


@given(
    st.lists(key_parts, min_size=1, max_size=3).map(tuple),
    st.lists(key_parts, min_size=1, max_size=3).map(tuple),
)
def test_different_keys_have_different_text(one, other):
    assert (key_text(one) == key_text(other)) == (one == other)


def test_key_text_for_people():
    assert key_text((42,)) == "42"
    assert key_text(("ä ",)) == '"ä "'
    assert key_text((42, "x")) == '[42, "x"]'
    assert key_text((b"\x00\xff",)) == '{"hex": "00ff"}'
    odd = text_of_bytes("big5", "A15A")
    assert key_text((odd,)) == '{"text": "A15A", "charset": "big5"}'


@pytest.mark.parametrize("odd", [text_of_bytes("big5", "A15A"), "\ud800", "a\udcff\n", "\ud800:x"])
def test_every_key_has_a_text_in_utf_8(odd):
    for key in ((odd,), (odd, "ä\ufffe", 1)):
        assert key_values(key_text(key).encode().decode()) == key
