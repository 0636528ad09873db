from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT
from setl.model.schema import Column, Kind
from setl.printable import text_of_bytes
from setl.transform.typed_rows import (
    decimal_text,
    record_batch,
    result_column,
    rows_of,
    spark_schema,
    spark_type,
    timestamp_text,
)

COLUMNS = (
    Column("id", Kind.INTEGER),
    Column("big", Kind.INTEGER, unsigned=True),
    Column("price", Kind.DECIMAL, precision=12, scale=2),
    Column("huge", Kind.DECIMAL, precision=60, scale=2),
    Column("f", Kind.FLOAT),
    Column("name", Kind.TEXT),
    Column("at", Kind.DATETIME),
    Column("raw", Kind.BINARY),
    Column("bits", Kind.BIT),
    Column("y", Kind.YEAR),
)

prices = st.integers(-(10**12) + 1, 10**12 - 1).map(
    lambda n: decimal_text(Decimal(n).scaleb(-2).quantize(Decimal("0.01")))
)
rows = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1),
    prices,
    st.just("9" * 58 + ".99"),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.just("0000-00-00 00:00:00.000000"),
    st.binary(),
    st.integers(0, 2**64 - 1),
    st.integers(1901, 2155),
)


@settings(deadline=None)
@given(st.lists(st.tuples(rows, st.sets(st.integers(0, len(COLUMNS) - 1))), max_size=5))
def test_values_come_back_as_they_were(cases):
    holed = [tuple(None if i in nulls else v for i, v in enumerate(r)) for r, nulls in cases]
    back = rows_of(record_batch(COLUMNS, holed))
    # Spark has no unsigned integers, so these two come back as decimal text.
    expected = [
        tuple(str(v) if i in (1, 8) and v is not None else v for i, v in enumerate(r))
        for r in holed
    ]
    assert back == expected


def test_types_that_expressions_see():
    assert [f.dataType for f in spark_schema(COLUMNS).fields] == [
        LongType(),
        DecimalType(20, 0),
        DecimalType(12, 2),
        StringType(),
        DoubleType(),
        StringType(),
        StringType(),
        spark_type(Column("b", Kind.GEOMETRY)),
        DecimalType(20, 0),
        LongType(),
    ]


def test_absent_is_null_for_expressions():
    assert rows_of(record_batch((COLUMNS[0],), [(ABSENT,), (3,)])) == [(None,), (3,)]


def test_expressions_see_a_second_encoding_of_a_character_as_that_character():
    text = Column("v", Kind.TEXT)
    assert rows_of(record_batch((text,), [(text_of_bytes("ujis", "8FA2B7"),)])) == [("~",)]


def test_no_columns_still_counts_rows():
    assert rows_of(pa.RecordBatch.from_pylist([], schema=pa.schema([]))) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (COLUMNS[0], "x"),
        (COLUMNS[0], 2**63),
        (COLUMNS[2], "1.005"),
        (COLUMNS[2], "no number"),
        (COLUMNS[5], "\udce9"),
    ],
)
def test_a_value_of_another_form_is_an_error_with_its_column(column, value):
    with pytest.raises(DataError) as caught:
        record_batch((column,), [(value,)])
    assert caught.value.where == {"column": column.name}


@pytest.mark.parametrize(
    ("data_type", "kind"),
    [
        (IntegerType(), Kind.INTEGER),
        (BooleanType(), Kind.INTEGER),
        (DecimalType(9, 3), Kind.DECIMAL),
        (DoubleType(), Kind.FLOAT),
        (StringType(), Kind.TEXT),
        (DateType(), Kind.DATE),
        (TimestampType(), Kind.DATETIME),
    ],
)
def test_what_an_expression_fills(data_type, kind):
    assert result_column("c", data_type).kind is kind


def test_a_result_without_a_form_is_refused():
    with pytest.raises(ConfigurationError, match="gives array<int>"):
        result_column("c", ArrayType(IntegerType()))


def test_results_of_expressions():
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([True, False, None]),
            pa.array(
                [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")
            ),
            pa.array([Decimal("0E-7"), Decimal("-0.0000001"), None], pa.decimal128(18, 7)),
            pa.array([None, None, None], pa.null()),
        ],
        names=["b", "t", "d", "n"],
    )
    assert rows_of(batch) == [
        (1, "2026-01-02 03:04:05.000000", "0.0000000", None),
        (0, None, "-0.0000001", None),
        (None, None, None, None),
    ]


def test_decimal_text_has_neither_exponent_nor_negative_zero():
    assert decimal_text(Decimal("1E+5")) == "100000"
    assert decimal_text(Decimal("-0.00")) == "0.00"


def test_timestamp_text_has_six_digits():
    assert timestamp_text(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02 00:00:00.000000"
