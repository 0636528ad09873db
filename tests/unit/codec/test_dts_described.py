"""Records that describe their table as another one did are told without reading all of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.dts.avro_bytes import block_bytes, long_bytes, text_bytes
from setl.codec.dts.described import NOTHING, described
from setl.codec.dts.scan import MISREADS
from setl.codec.dts.table_identity import read_identity

ORIGIN = text_bytes("0") + long_bytes(0) + text_bytes("8.0")
INSERT = b"\0"
AT = len(ORIGIN + INSERT)
KEYS = ("pk_uk_info", '{"PRIMARY":["id"]}')
COLUMNS = (("id", 8), ("größe", 253))


def middle(tags, *, name: str | None = "shop.orders", times=None, columns=COLUMNS):
    listed = [text_bytes(name) + long_bytes(number) for name, number in columns]
    return (
        ORIGIN
        + INSERT
        + (long_bytes(1) + text_bytes(name) if name is not None else b"\0")
        + (b"\0" if times is None else long_bytes(1) + block_bytes([*map(long_bytes, times)]))
        + block_bytes([text_bytes(key) + text_bytes(value) for key, value in tags])
        + long_bytes(2)
        + block_bytes(listed)
        + b"\0\0 images"
    )


def identity(data):
    """Table and place of the images; None if it cannot be read."""
    try:
        return read_identity(data, 0, logical_names=True)[1:]
    except MISREADS:
        return None


def whole(data):
    """Table and place of the images of a record that can be read."""
    found = identity(data)
    assert found is not None
    return found


def known(data):
    return described(data, AT, whole(data)[1])


@pytest.mark.parametrize(
    "tags",
    [
        [KEYS],
        [KEYS, ("time", "1700000000001")],
        [("time", "17"), KEYS, ("thread", "")],
        [("time", "17"), KEYS, ("time", "18"), ("x" * 63, "y" * 63)],
    ],
)
def test_other_tags_are_stepped_over(tags):
    data = middle(tags)
    same = known(middle([KEYS, ("time", "1700000000000"), ("server", "11")])).end_of_same(data, AT)
    assert same == whole(data)[1]


@pytest.mark.parametrize(
    "data",
    [
        middle([]),
        middle([("pk_uk_info", '{"PRIMARY":["no"]}')]),
        middle([KEYS, ("pk_uk_info", "{}")]),
        middle([KEYS, ("l_tb_name", "orders")]),
        middle([KEYS, ("l_db_name", "shop")]),
        middle([KEYS], name="shop.items"),
        middle([KEYS], name="shop.orders2"),
        middle([KEYS], name=None),
        middle([KEYS], columns=COLUMNS[:1]),
        middle([KEYS], columns=(*COLUMNS, ("c", 3))),
        middle([KEYS], columns=(("id", 3), COLUMNS[1])),
    ],
)
def test_another_table_is_another(data):
    assert known(middle([KEYS])).end_of_same(data, AT) == -1


@pytest.mark.parametrize(
    "data",
    [
        middle([KEYS, ("t", "größe")]),
        middle([KEYS, ("t", "x" * 64)]),
        middle([KEYS], times=[1]),
        middle([KEYS], name=None),
    ],
)
def test_what_is_unusual_is_read_in_full(data):
    assert identity(data) is not None
    assert known(data) is NOTHING
    assert NOTHING.end_of_same(data, AT) == -1
    assert known(middle([KEYS])).end_of_same(data, AT) == -1


_WORDS = st.one_of(
    st.sampled_from([KEYS[0], KEYS[1], "l_tb_name", "l_db_name", "", "t", "größe", "x" * 70]),
    st.text(st.characters(codec="utf-8"), max_size=6),
)
_MIDDLES = st.builds(
    middle,
    st.lists(st.one_of(st.just(KEYS), st.tuples(_WORDS, _WORDS)), max_size=4),
    name=st.sampled_from(["shop.orders", "shop.orders", "shop.items", None]),
    times=st.sampled_from([None, None, [], [1, 2]]),
    columns=st.sampled_from([COLUMNS, COLUMNS, COLUMNS[:1], ()]),
)
_DAMAGE = st.tuples(st.integers(0, 400), st.sampled_from([0, 0, 1, 2, 4, 0x80, 0xFF]))


@settings(max_examples=1500, deadline=None)
@given(_MIDDLES, _MIDDLES, st.lists(_DAMAGE, max_size=2), st.integers(0, 40))
def test_what_is_reported_so_is_what_reading_reports(first, second, damage, cut):
    """Also of bytes that are damaged, or cut off."""
    value = bytearray(second)
    for position, bits in damage:
        value[position % len(value)] ^= bits
    data = bytes(value[: len(value) - max(0, cut - 20)])
    end = known(first).end_of_same(data, AT)
    if end >= 0 and data.startswith(ORIGIN + INSERT):
        assert identity(data) == (whole(first)[0], end)
