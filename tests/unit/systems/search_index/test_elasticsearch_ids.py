import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.names.document_ids import document_form, parse_id
from setl.errors import DataError
from setl.model.change import ABSENT
from setl.model.document import DocumentForm
from setl.systems.search_index.load.ids import document_id, document_ids, document_routing


def form(template, *key):
    return document_form(parse_id(template).of_table("s", "t"), None, key, location="tables[0]")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((7,), "7"),
        (("a,b\\",), "a,b\\"),
        ((b"\x00\xff",), "AP8="),
        ((1, "a"), "1,a"),
        (("a,b", "c\\"), "a,b,c\\\\"),
        (("a", "b,c"), "a,b\\,c"),
        (("", "a"), ",a"),
        ((1.5, "2026-01-01"), "1.5,2026-01-01"),
        ((-0.0,), "0.0"),
    ],
)
def test_ids_without_a_template(key, expected):
    assert document_id(key) == expected


@pytest.mark.parametrize(
    ("template", "names", "key", "expected"),
    [
        ("{shop_id}-{id}", ("shop_id", "id"), (3, 7), "3-7"),
        ("{ID}/{shop_id}", ("shop_id", "id"), (3, 7), "7/3"),
        ("{shop_id}-{id}", ("shop_id", "id"), (3, -7), "3-\\-7"),
        ("{table}_{id}", ("id",), ("a_b\\",), "t_a_b\\"),
        ("{schema}.{table}:{a}:{b}", ("a", "b"), ("x:y", "z"), "s.t:x:y:z"),
        ("{{{id}}}", ("id",), (5,), "{5}"),
    ],
)
def test_ids_by_a_template(template, names, key, expected):
    assert document_id(key, form(template, *names)) == expected


TEXTS = st.text(st.sampled_from("ab-:\\,"), max_size=4)


@pytest.mark.parametrize(
    "template", ["{a}-{b}-{c}", "{a}-:{b}:{c}", "{a},{b},{c}", "x-{a}-{b}ab{c}-"]
)
@given(one=st.tuples(TEXTS, TEXTS, TEXTS), other=st.tuples(TEXTS, TEXTS, TEXTS))
def test_different_keys_have_different_ids(template, one, other):
    of = form(template, "a", "b", "c")
    assert (document_id(one, of) == document_id(other, of)) == (one == other)
    assert (document_id(one) == document_id(other)) == (one == other)


@given(TEXTS, TEXTS, st.text("ab-", max_size=3), st.text("ab-", max_size=3))
def test_forms_that_are_reported_apart_partition_no_id(one, other, mine, theirs):
    a = DocumentForm((mine, theirs), (0,))
    b = DocumentForm((theirs, mine), (0,))
    if a.distinguishes(b):
        for key in (one, other):
            ids = {f.texts[0] + key + f.texts[1] for f in (a, b)}
            assert len(ids) == 2
        assert mine + one + theirs != theirs + other + mine


@pytest.mark.parametrize("key", [("",), (None,), (1, None), (ABSENT, 1), ("é" * 257,)])
def test_a_key_that_gives_no_id_is_refused(key):
    with pytest.raises(DataError):
        document_id(key)


KEYS = st.one_of(
    st.lists(st.tuples(st.integers(-(2**63), 2**64), st.integers(0, 9)), min_size=1),
    st.lists(st.tuples(st.integers(0, 9) | TEXTS, TEXTS), min_size=1),
)


@pytest.mark.parametrize("template", [None, "{b}-{a}", "100%/{a}/{b}", "{a}0{b}"])
@given(keys=KEYS)
def test_many_ids_are_those_of_each_key_alone(template, keys):
    of = template and form(template, "a", "b")
    try:
        alone = [document_id(key, of) for key in keys]
    except DataError:
        with pytest.raises(DataError):
            document_ids(list(zip(*keys, strict=True)), of)
    else:
        assert document_ids(list(zip(*keys, strict=True)), of) == alone


def test_many_ids_that_are_too_long_are_refused():
    of = form("x" * 511 + "{a}", "a")
    assert document_ids([[7]], of) == ["x" * 511 + "7"]
    with pytest.raises(DataError):
        document_ids([[7, 77]], of)


def test_routing():
    routed = DocumentForm(("", ""), (0,), routing=1)
    assert document_routing((1, "x"), routed) == "x"
    assert document_routing((1, 20), routed) == "20"
    # Elasticsearch takes an empty routing for none, and so must a delete.
    assert document_routing((1, ""), routed) is None
    assert document_routing((1, None), routed) is None
    assert document_routing((1,), None) is None
    with pytest.raises(DataError):
        document_routing((1, ABSENT), routed)


@pytest.mark.parametrize(("key", "said"), [("", 'id: "k{column}"'), ("x" * 513, "shorter columns")])
def test_a_key_that_is_no_id_has_a_hint(key, said):
    with pytest.raises(DataError, match="a document's id") as caught:
        document_id((key,))
    assert said in caught.value.hint
    assert "faulty_rows: dead_letter" in caught.value.hint
    assert document_id(("",), form("k{k}", "k")) == "k"
