"""The columns of a table as the schema of Debezium's records describes them.

Of a value whose meaning the schema does not tell, nothing is guessed: reading it is an error that
names the setting of the connector with which it would tell. So what other settings lose is lost
with a word, and not in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from setl.codec.debezium.reading import values
from setl.codec.debezium.reading.values import Read
from setl.errors import DataError
from setl.model.schema import Column, Kind

_SOURCE_TYPE: Final = "__debezium.source.column.type"
_SOURCE_LENGTH: Final = "__debezium.source.column.length"
_CONNECT: Final = "org.apache.kafka.connect.data."
_TIME: Final = "io.debezium.time."
_DATA: Final = "io.debezium.data."
_MILLISECONDS: Final = 3  # digits

_BYTES: Final = frozenset(
    {"BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "LONG VARBINARY"}
)
_DECIMALS: Final = ("DECIMAL", "NUMERIC", "DEC", "FIXED")
_DECIMAL_HINT: Final = "Set the connector's `decimal.handling.mode` to precise or string"
_BINARY_HINT: Final = "Set the connector's `binary.handling.mode` to bytes"
_CONVERTERS: Final = "Leave the converter of times out of the connector's `converters`"
_OTHERWISE: Final = "Leave the column out with the connector's `column.exclude.list`"
_DECLARED: Final = (
    "The connector knows the column as the CREATE or ALTER TABLE in the binlog declares it. Change"
    " it to DOUBLE or FLOAT at the source, and load the table again"
)
_TIME_HINT: Final = "Set the connector's `time.precision.mode` to adaptive_time_microseconds"


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """One column.

    Attributes:
        column: what it is.
        read: makes the value of what a record has, if that is not null.
        null: why null does not say that the value is NULL, "" if it does.
        hint: what to do about it.
    """

    column: Column
    read: Read
    null: str = ""
    hint: str = ""


class _Field(NamedTuple):
    """One field of a schema."""

    name: str
    type: str
    meaning: str
    parameters: Mapping[str, Any]

    @property
    def source(self) -> str:
        """The type of the source's column, "" if the connector does not propagate it."""
        return str(self.parameters.get(_SOURCE_TYPE, "")).upper()


def columns_of(fields: object) -> tuple[RecordColumn, ...]:
    """The columns of a row, from the fields of its schema.

    Raises:
        DataError: a column is of a type that is not read.
    """
    if not isinstance(fields, list):
        raise DataError("the schema of a record of Debezium lists no columns")
    return tuple([_column(_field(each)) for each in cast("list[object]", fields)])


def defaulted_columns(fields: object) -> list[str]:
    """The columns that take NULL and have another default.

    JsonConverter writes the default in place of NULL, by default.
    """
    listed = cast("list[object]", fields) if isinstance(fields, list) else []
    given = [cast("dict[str, Any]", each) for each in listed if isinstance(each, dict)]
    return [
        str(field.get("field"))
        for field in given
        if field.get("optional") and field.get("default") is not None
    ]


def _field(given: object) -> _Field:
    if isinstance(given, dict):
        field = cast("dict[str, Any]", given)
        name, type_ = field.get("field"), field.get("type")
        parameters: object = field.get("parameters") or {}
        if isinstance(name, str) and isinstance(type_, str) and isinstance(parameters, dict):
            meaning = str(field.get("name") or "")
            return _Field(name, type_, meaning, cast("dict[str, Any]", parameters))
    raise DataError("the schema of a record of Debezium cannot be understood")


def _column(field: _Field) -> RecordColumn:  # noqa: PLR0911 - a list of types
    if field.meaning:
        return _named(field)
    if field.type in ("int8", "int16", "int32", "int64"):
        return _integer(field)
    if field.type == "boolean":
        kind = Kind.INTEGER if field.source.startswith("TINYINT") else Kind.BIT
        return _plain(field, kind, values.truth)
    if field.type in ("float", "double"):
        if field.source.startswith(_DECIMALS):
            raise _refused(
                field, "a DECIMAL as a floating-point number, which rounds it", _DECIMAL_HINT
            )
        return _floating(field)
    if field.type == "string":
        if field.source.startswith(_DECIMALS):
            return _plain(field, Kind.DECIMAL, values.written_decimal)
        if field.source in _BYTES:
            raise _refused(field, "bytes as text, and not in which way", _BINARY_HINT)
        if field.source.startswith("TIMESTAMP"):
            raise _refused(field, "a TIMESTAMP as text, and not of which time zone", _CONVERTERS)
        return RecordColumn(Column(field.name, Kind.TEXT), values.text)
    if field.type == "bytes":
        return _plain(field, Kind.BINARY, values.binary)
    raise _refused(field, f"a value of the type {field.type}", _OTHERWISE)


def _integer(field: _Field) -> RecordColumn:
    unsigned = "UNSIGNED" in field.source
    read = values.unsigned_64 if unsigned and field.type == "int64" else values.whole
    column = Column(field.name, Kind.INTEGER, unsigned=unsigned, binary_order=True)
    return RecordColumn(column, read)


def _floating(field: _Field) -> RecordColumn:
    single = field.type == "float"
    if single and field.source.startswith("REAL"):
        raise _refused(field, "a REAL, which has eight bytes, as a number of four", _DECLARED)
    column = Column(field.name, Kind.FLOAT, width=4 if single else 8)
    # The connector fails to convert any number of a FLOAT4, and writes null instead.
    null = "may be any number of a FLOAT4" if field.source.startswith("FLOAT4") else ""
    return RecordColumn(column, values.floating, null, _DECLARED if null else "")


def _named(field: _Field) -> RecordColumn:
    meaning = field.meaning
    if meaning in (f"{_DATA}Enum", f"{_DATA}EnumSet"):
        kind = Kind.ENUM if meaning == f"{_DATA}Enum" else Kind.SET
        allowed = str(field.parameters.get("allowed", ""))
        return _plain(field, kind, values.label_reader(kind, allowed))
    if meaning == f"{_CONNECT}Decimal":
        return _decimal(field)
    plain = _PLAIN.get(meaning)
    if plain is not None:
        kind, read = plain
        return _plain(field, kind, read)
    if meaning == f"{_TIME}IsoTime":
        column = Column(field.name, Kind.TIME, binary_order=True)
        null = "may be a TIME that is negative or longer than a day"
        return RecordColumn(column, values.iso_time, null, _TIME_HINT)
    if meaning in (f"{_CONNECT}Timestamp", f"{_CONNECT}Time"):
        return _milliseconds(field)
    if meaning == f"{_TIME}NanoTimestamp":
        raise _refused(field, "nanoseconds, which only reach from 1677 to 2262", _TIME_HINT)
    hint = _TIME_HINT if meaning.startswith(_TIME) else _OTHERWISE
    raise _refused(field, f"a value of the type {meaning}", hint)


def _decimal(field: _Field) -> RecordColumn:
    try:
        scale = int(field.parameters.get("scale", ""))
        precision = int(field.parameters.get("connect.decimal.precision", 0))
    except (TypeError, ValueError):
        raise _refused(field, "a Decimal without its scale", _OTHERWISE) from None
    if "UNSIGNED" in field.source and field.source.startswith("BIGINT"):
        column = Column(field.name, Kind.INTEGER, unsigned=True, binary_order=True)
        read = values.decimal_reader(0, 0)
        return RecordColumn(column, lambda value: int(str(read(value))))
    if scale < 0:
        raise _refused(field, "a Decimal of a negative scale", _OTHERWISE)
    column = Column(field.name, Kind.DECIMAL, precision=precision, scale=scale, binary_order=True)
    return RecordColumn(column, values.decimal_reader(scale, precision))


def _milliseconds(field: _Field) -> RecordColumn:
    """Types of Kafka Connect, which end at milliseconds; TIME is a time of day there."""
    try:
        digits = int(field.parameters.get(_SOURCE_LENGTH, 0)) if field.source else 6
    except (TypeError, ValueError):
        digits = 6
    if digits > _MILLISECONDS:
        raise _refused(field, "milliseconds of what may have microseconds", _TIME_HINT)
    if field.meaning == f"{_CONNECT}Timestamp":
        return _plain(field, Kind.DATETIME, values.moment_reader(1000))
    column = Column(field.name, Kind.TIME, binary_order=True)
    null = "may be a TIME that is negative or longer than a day"
    return RecordColumn(column, values.time_reader(1000), null, _TIME_HINT)


def _plain(field: _Field, kind: Kind, read: Read) -> RecordColumn:
    width = -1 if kind is Kind.BINARY else 0
    return RecordColumn(Column(field.name, kind, binary_order=True, width=width), read)


_PLAIN: Final[dict[str, tuple[Kind, Read]]] = {
    f"{_CONNECT}Date": (Kind.DATE, values.date),
    f"{_TIME}Date": (Kind.DATE, values.date),
    f"{_TIME}Timestamp": (Kind.DATETIME, values.moment_reader(1000)),
    f"{_TIME}MicroTimestamp": (Kind.DATETIME, values.moment_reader(1_000_000)),
    f"{_TIME}Time": (Kind.TIME, values.time_reader(1000)),
    f"{_TIME}MicroTime": (Kind.TIME, values.time_reader(1_000_000)),
    f"{_TIME}NanoTime": (Kind.TIME, values.time_reader(1_000_000_000)),
    f"{_TIME}ZonedTimestamp": (Kind.TIMESTAMP, values.zoned),
    f"{_TIME}IsoDate": (Kind.DATE, values.iso_date),
    f"{_TIME}IsoTimestamp": (Kind.DATETIME, values.iso_moment),
    f"{_TIME}Year": (Kind.YEAR, values.year),
    f"{_DATA}Bits": (Kind.BIT, values.bits),
    f"{_DATA}Uuid": (Kind.TEXT, values.text),
    f"{_DATA}Json": (Kind.JSON, values.text),
    f"{_DATA}FloatVector": (Kind.BINARY, values.vector),
    f"{_DATA}geometry.Geometry": (Kind.GEOMETRY, values.geometry),
    f"{_DATA}geometry.Point": (Kind.GEOMETRY, values.geometry),
}


def _refused(field: _Field, what: str, hint: str) -> DataError:
    return DataError(
        f"records of Debezium write {what}", hint=hint, column=field.name, type=field.source
    )
