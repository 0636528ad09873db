"""The Spark type of each column, and values to Spark and back.

User expressions are Spark SQL, so their columns need types that arithmetic and comparisons
work on; rows hold values in the form that `setl.model.schema.Kind` describes, so that no value
loses anything on its way. Values cross between the two a column at a time through Arrow.

Columns that no expression touches must not pass through here: they travel as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from setl.codec.charset import in_characters
from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, Row, Value
from setl.model.schema import Column, Kind
from setl.printable import printable

SPARK_DECIMAL_DIGITS = 38
"""Most digits that Spark's and Arrow's decimals hold; MySQL's go to 65."""

# 2**64 - 1 has 20 digits: BIGINT UNSIGNED and BIT(64) do not fit a signed 64-bit long.
_UNSIGNED = DecimalType(20, 0)

_SPARK: dict[Kind, DataType] = {
    Kind.INTEGER: LongType(),
    Kind.YEAR: LongType(),
    Kind.BIT: _UNSIGNED,
    Kind.FLOAT: DoubleType(),
    Kind.BINARY: BinaryType(),
    Kind.GEOMETRY: BinaryType(),
}

_RESULTS: tuple[tuple[tuple[type[DataType], ...], Kind], ...] = (
    ((ByteType, ShortType, IntegerType, LongType, BooleanType), Kind.INTEGER),
    ((DoubleType, FloatType), Kind.FLOAT),
    ((StringType, NullType), Kind.TEXT),
    ((BinaryType,), Kind.BINARY),
    ((DateType,), Kind.DATE),
    ((TimestampType, TimestampNTZType), Kind.DATETIME),
)


def spark_type(column: Column) -> DataType:
    """The Spark type in which expressions see a column.

    Dates and times stay text: Spark has no zero dates and no times beyond a day, and text in
    this form sorts as time does. Decimals with more digits than Spark has stay text too, and so
    do decimals whose digits are not known. Integers without a sign become decimals, since a
    column does not say how wide it is and the widest ones do not fit a long.
    """
    if column.kind is Kind.DECIMAL and 0 < column.precision <= SPARK_DECIMAL_DIGITS:
        return DecimalType(column.precision, column.scale)
    if column.kind is Kind.INTEGER and column.unsigned:
        return _UNSIGNED
    return _SPARK.get(column.kind, StringType())


def spark_schema(columns: Sequence[Column]) -> StructType:
    """The schema of a DataFrame over these columns, all of them nullable."""
    return StructType([StructField(c.name, spark_type(c)) for c in columns])


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """The Arrow form of `spark_schema`: what `record_batch` makes."""
    return pa.schema([pa.field(c.name, _arrow_type(spark_type(c))) for c in columns])


def record_batch(columns: Sequence[Column], rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as an Arrow batch whose types are those of `arrow_schema`.

    An absent value becomes null: an expression cannot see the difference.

    Raises:
        DataError: a value does not have the form its column's kind says.
    """
    schema = arrow_schema(columns)
    by_column: Sequence[Sequence[Value]] = (
        list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    )
    arrays = [
        _array(column, values, schema.field(i).type)
        for i, (column, values) in enumerate(zip(columns, by_column, strict=True))
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def result_column(name: str, data_type: DataType) -> Column:
    """The column that an expression of this Spark type fills.

    Raises:
        ConfigurationError: rows have no form for such values.
    """
    if isinstance(data_type, DecimalType):
        return Column(name, Kind.DECIMAL, precision=data_type.precision, scale=data_type.scale)
    for types, kind in _RESULTS:
        if isinstance(data_type, types):
            return Column(name, kind)
    raise ConfigurationError(
        f"the expression of column {name} gives {data_type.simpleString()}, "
        "which no column can hold",
        hint="Put to_json(...) around it, or cast it to a plain type",
        column=name,
    )


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """Values of an Arrow batch as rows, in the form of the columns `result_column` names.

    Timestamps are written in UTC, so the session's time zone must be UTC as well for text
    that Spark itself makes of a timestamp to agree with it.
    """
    values = [_values(batch.column(i)) for i in range(batch.num_columns)]
    return list(zip(*values, strict=True)) if values else [() for _ in range(batch.num_rows)]


def _arrow_type(data_type: DataType) -> pa.DataType:
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, LongType):
        return pa.int64()
    if isinstance(data_type, DoubleType):
        return pa.float64()
    return pa.binary() if isinstance(data_type, BinaryType) else pa.string()


def _array(column: Column, values: Sequence[Value], arrow_type: pa.DataType) -> pa.Array:
    present = [None if value is ABSENT else value for value in values]
    if column.kind is Kind.TEXT:
        present = list(map(in_characters, present))
    try:
        if column.kind is Kind.DECIMAL and pa.types.is_decimal(arrow_type):
            return pa.array(present, pa.string()).cast(arrow_type)
        return pa.array(present, arrow_type)
    except UnicodeEncodeError as error:
        odd = next((v for v in present if isinstance(v, str) and not _is_unicode(v)), "")
        raise DataError(
            f"column {column.name} holds text that has no UTF-8 form, which no expression can have:"
            f" {printable(odd)[:200]}",
            hint="Correct the text at the source, or let the column pass without an expression."
            " With `faulty_rows: dead_letter` such rows are put aside until then",
            column=column.name,
        ) from error
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"a value of column {column.name} is no {column.kind.value}: {error}",
            hint="The table's definition may have changed; check it against the source",
            column=column.name,
        ) from error


def _is_unicode(text: str) -> bool:
    return text.encode("utf-8", "ignore").decode() == text


def _values(array: pa.Array) -> list[Value]:
    kind = array.type
    values: list[Any] = array.to_pylist()
    if pa.types.is_boolean(kind):
        return [None if v is None else int(v) for v in values]
    if pa.types.is_decimal(kind):
        return [None if v is None else decimal_text(v) for v in values]
    if pa.types.is_timestamp(kind):
        return [None if v is None else timestamp_text(v) for v in values]
    if pa.types.is_date(kind):
        return [None if v is None else date_text(v) for v in values]
    return values


def decimal_text(value: Decimal) -> str:
    """A decimal as MySQL prints it: never with an exponent, and zero without a sign."""
    return format(value if value else abs(value), "f")


def timestamp_text(value: datetime) -> str:
    """A point in time as `Kind.DATETIME` text; a time zone, if any, must be UTC."""
    return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


def date_text(value: date) -> str:
    """A day as `Kind.DATE` text."""
    return value.isoformat()
