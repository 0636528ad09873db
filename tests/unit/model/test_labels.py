"""No two numbers of an ENUM or SET are one value of a row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.model.labels import (
    is_marked,
    is_numbered,
    of_numbers,
    print_alike,
    printed,
    shown,
    to_numbers,
)
from setl.model.schema import Capacity, Column, Kind

LABELS = st.lists(
    st.sampled_from(["", "a", "b", "A", "é", "0", "1", "3", "a b"]), min_size=1, max_size=6
)


@pytest.mark.parametrize("kind", [Kind.ENUM, Kind.SET])
@given(labels=LABELS)
def test_different_numbers_are_different_values(kind, labels):
    numbers = range(len(labels) + 1 if kind is Kind.ENUM else 1 << len(labels))
    value_of, number_of = of_numbers(kind, labels), to_numbers(kind, labels)
    values = [value_of(number) for number in numbers]
    assert len(set(values)) == len(values)
    assert [number_of(value) for value in values] == [*numbers]
    assert any(map(is_marked, values)) == print_alike(labels)


@given(labels=LABELS, others=LABELS, number=st.integers(0, 6))
def test_a_number_is_never_another_label_where_it_goes(labels, others, number):
    if number > len(labels):
        return
    value = of_numbers(Kind.ENUM, labels)(number)
    try:
        there = to_numbers(Kind.ENUM, others)(value)
    except LookupError:
        return
    assert printed(Kind.ENUM, others, there) == printed(Kind.ENUM, labels, number)
    assert of_numbers(Kind.ENUM, others)(there) == value


def test_of_what_prints_alike_the_server_finds_one():
    enum = of_numbers(Kind.ENUM, ("", "a", "a"))
    assert [enum(1), enum(2)] == ["", "a"]
    assert [is_marked(enum(0)), is_marked(enum(3))] == [True, True]
    assert "number 3" in shown(enum(3))
    bits = of_numbers(Kind.SET, ("", "x"))
    assert [bits(0), bits(2), bits(3)] == ["", "x", ",x"]
    assert is_marked(bits(1))
    assert [printed(Kind.SET, ("", "x"), n) for n in range(4)] == ["", "", "x", "x"]


@pytest.mark.parametrize("kind", [Kind.ENUM, Kind.SET])
def test_a_number_without_a_label(kind):
    with pytest.raises(LookupError):
        of_numbers(kind, ("a", "b"))(5)


@pytest.mark.parametrize(
    ("held", "numbered"),
    [
        (Capacity("enum", labels=("a", "b")), False),
        (Capacity("enum", labels=("a", "A"), alike=True), True),
        (Capacity("enum", labels=("a", "")), True),
        (Capacity("set", labels=("x", "y", "x")), True),
        (Capacity("enum"), False),  # the labels are not known
        (Capacity("varchar"), False),
        (None, False),
    ],
)
def test_where_text_may_find_another_label(held, numbered):
    assert is_numbered(Column("c", Kind.ENUM, capacity=held)) is numbered
