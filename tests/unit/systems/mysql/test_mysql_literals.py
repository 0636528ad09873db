import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError
from setl.model.change import ABSENT
from setl.model.schema import COLUMN_KINDS, Capacity, Column, Kind
from setl.printable import text_of_bytes
from setl.systems.mysql.values.literals import encode, render_columns


def render_rows(columns, rows, *, for_key):
    return render_columns(columns, list(zip(*rows, strict=True)), for_key=for_key)


def literal(kind, value, *, for_key=False):
    (row,) = render_rows((Column("c", kind),), ((value,),), for_key=for_key)
    return row[1:-1]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Kind.INTEGER, -(2**63), "-9223372036854775808"),
        (Kind.INTEGER, True, "1"),
        (Kind.YEAR, 0, "0"),
        (Kind.BIT, 2**64 - 1, "18446744073709551615"),
        (Kind.FLOAT, -0.1, "-0.1e0"),
        (Kind.FLOAT, -0.0, "-0.0e0"),
        (Kind.FLOAT, 5e-324, "5e-324"),
        (Kind.DECIMAL, "12.50", "'12.50'"),
        (Kind.TEXT, "", "''"),
        (Kind.TEXT, "it's", r"'it\'s'"),
        (Kind.TEXT, "\\'", r"'\\\''"),
        (Kind.TEXT, "a\\", r"'a\\'"),
        (Kind.TEXT, "\0\n😀%s", "'\0\n😀%s'"),
        (Kind.JSON, '{"a":"\\n"}', '\'{"a":"\\\\n"}\''),
        (Kind.DATETIME, "0000-00-00 00:00:00", "'0000-00-00 00:00:00'"),
        (Kind.BINARY, b"", "x''"),
        (Kind.BINARY, b"\x00'\xff", "x'0027ff'"),
        (Kind.GEOMETRY, b"\x01", "x'01'"),
    ],
)
def test_literals(kind, value, expected):
    assert literal(kind, value) == expected


ODD = text_of_bytes("big5", "A4A4C840")
BIG5 = Column("c", Kind.TEXT, capacity=Capacity("varchar", charset="big5"))


def test_text_without_a_utf_8_form_is_written_as_its_bytes():
    values = (("中", None, ODD, "it's"),)
    rows = render_columns((BIG5,), values, for_key=False, by_bytes=True)
    assert rows == ["('中')", "(NULL)", "(_big5 x'A4A4C840')", r"('it\'s')"]
    assert render_columns((BIG5,), ((ODD,),), for_key=True, by_bytes=True) == [
        "(_big5 x'A4A4C840')"
    ]
    # LOAD DATA would take that for text, so nobody gets it who has not asked.
    assert render_columns((BIG5,), ((ODD,),), for_key=False) == [f"('{ODD}')"]


@pytest.mark.parametrize("charset", ["gbk", "utf8mb4", ""])
def test_bytes_of_another_character_set_are_refused(charset):
    column = Column("c", Kind.TEXT, capacity=Capacity("varchar", charset=charset))
    (row,) = render_columns((column,), ((ODD,),), for_key=False, by_bytes=True)
    with pytest.raises(DataError, match=r"no character in big5.*: 0xA4A4C840") as caught:
        encode((column,), ((ODD,),), row)
    assert "the same character set" in caught.value.hint


def test_utf8_of_three_and_of_four_bytes_is_one_character_set():
    half = text_of_bytes("utf8mb3", "EDA080")
    for charset in ("utf8", "utf8mb3", "utf8mb4"):
        column = Column("c", Kind.TEXT, capacity=Capacity("varchar", charset=charset))
        (row,) = render_columns((column,), ((half,),), for_key=False, by_bytes=True)
        assert row == f"(_{charset} x'EDA080')"


@pytest.mark.parametrize("for_key", [False, True])
def test_the_year_0000_is_text_to_a_year(for_key):
    column = Column("c", Kind.YEAR, capacity=Capacity("year"))
    rows = render_rows((column,), ((0,), (1901,)), for_key=for_key)
    assert rows == ["('0000')", "(1901)"]
    column = Column("c", Kind.YEAR, capacity=Capacity("int"))
    assert render_rows((column,), ((0,),), for_key=for_key) == ["(0)"]


@pytest.mark.parametrize("kind", COLUMN_KINDS)
def test_null_is_null_in_a_row_and_refused_in_a_key(kind):
    assert literal(kind, None) == "NULL"
    with pytest.raises(DataError, match="column c is NULL"):
        literal(kind, None, for_key=True)


def test_decimals_in_keys_are_numbers():
    assert literal(Kind.DECIMAL, "-12.50", for_key=True) == "-12.50"


@pytest.mark.parametrize("value", ["1 OR 1=1", "1.", ".5", "1e3", "", "NaN", "\u0661", "1\n"])
def test_a_key_that_is_no_decimal_never_gets_into_a_statement(value):
    with pytest.raises(DataError, match="no decimal"):
        literal(Kind.DECIMAL, value, for_key=True)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.INTEGER, "1"),
        (Kind.INTEGER, 1.0),
        (Kind.INTEGER, "0); DROP TABLE t; --"),
        (Kind.FLOAT, float("nan")),
        (Kind.FLOAT, float("inf")),
        (Kind.FLOAT, float("-inf")),
        (Kind.FLOAT, "1.0"),
        (Kind.TEXT, 1),
        (Kind.TEXT, b"a"),
        (Kind.BINARY, "a"),
        (Kind.DECIMAL, 1.5),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_column(kind, value):
    columns = (Column("a", Kind.INTEGER), Column("b", kind))
    with pytest.raises(DataError, match="column b holds a"):
        render_rows(columns, ((1, None), (2, value)), for_key=False)


@pytest.mark.parametrize("kind", COLUMN_KINDS)
def test_a_column_that_the_record_did_not_mention_is_refused(kind):
    with pytest.raises(DataError, match="column c is missing"):
        render_rows((Column("c", kind),), ((None,), (ABSENT,)), for_key=False)


def test_rows_keep_their_order_and_columns_mix_nulls_and_escapes():
    columns = (Column("i", Kind.INTEGER), Column("t", Kind.TEXT), Column("u", Kind.TEXT))
    rows = ((1, None, "a"), (None, "b'", "c"), (3, "d", "e"))
    assert render_rows(columns, rows, for_key=False) == [
        "(1,NULL,'a')",
        r"(NULL,'b\'','c')",
        "(3,'d','e')",
    ]


def test_text_without_a_utf8_form_is_refused_with_its_column():
    columns = (Column("i", Kind.INTEGER), Column("t", Kind.TEXT))
    with pytest.raises(DataError, match="column t holds text"):
        encode(columns, ((1, 2), ("ok", "caf\udce9")), "… caf\udce9")


@given(st.lists(st.text(), min_size=1))
def test_a_text_ends_where_its_quote_ends(texts):
    rendered = render_rows((Column("t", Kind.TEXT),), [(t,) for t in texts], for_key=False)
    for text, row in zip(texts, rendered, strict=True):
        assert row.startswith("('")
        assert row.endswith("')")
        inside, read = iter(row[2:-2]), []
        for character in inside:
            assert character != "'"
            read.append(next(inside) if character == "\\" else character)
        assert "".join(read) == text
