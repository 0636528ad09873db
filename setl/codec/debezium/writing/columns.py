"""Each column's type and values as Debezium's connector for MySQL prints them by default.

Names of types: Debezium's documentation of its MySQL connector, "Data type mappings", with
``time.precision.mode=adaptive_time_microseconds``, ``bigint.unsigned.handling.mode=long`` and
``binary.handling.mode=bytes``.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple, cast

from setl.codec.binlog.tables.table_map import ColumnType
from setl.codec.binlog.values.value_number import shortest_float
from setl.codec.binlog_tables import BinlogColumn, characters, check_key_text
from setl.codec.debezium.writing.days import clock_micros, days_of, micros_of
from setl.codec.temporal import ZERO_DATETIME
from setl.model.change import Value
from setl.model.labels import LABELLED, is_marked, shown
from setl.model.schema import Kind

Json = Mapping[str, Any]
ToJson = Callable[[Value], str]

NULL: Final = "null"
MISFITS: Final = (ValueError, TypeError, AttributeError, LookupError, struct.error, OverflowError)
"""What a value of another kind than its column's raises when it is written."""

_POINT: Final = 1
_BIGINT: Final = 1 << 63
_MILLIS: Final = 3  # digits of a second that milliseconds have
_ZERO_TIMESTAMP: Final = '"1970-01-01T00:00:00Z"'
_UNSIGNED_64: Final = {"__debezium.source.column.type": "BIGINT UNSIGNED"}
"""As with the connector's ``datatype.propagate.source.type``: readers can put the sign right."""
_digits: Final = int.__repr__  # unlike str and %d, it takes integers only

_INTEGERS: Final[dict[int, tuple[str, str]]] = {
    ColumnType.TINY: ("int16", "int16"),
    ColumnType.SHORT: ("int16", "int32"),
    ColumnType.INT24: ("int32", "int32"),
    ColumnType.LONG: ("int32", "int64"),
    ColumnType.LONGLONG: ("int64", "int64"),
}
"""Types of numbers with a sign, and without."""


class DebeziumColumn(NamedTuple):
    """How one column is written.

    Attributes:
        schema: its type, as Kafka Connect describes it.
        write: gives the JSON of a value that is neither NULL nor absent. It raises one of
            `MISFITS` for a value that the format cannot hold.
    """

    schema: Json
    write: ToJson


def debezium_column(written: BinlogColumn, *, exact_decimals: bool = False) -> DebeziumColumn:
    """How one column is written.

    Args:
        written: the column.
        exact_decimals: whether a DECIMAL is text, and not bytes with its digits.
    """
    kind = written.column.kind
    if kind is Kind.DECIMAL and exact_decimals:
        schema, write = _STRING, _text
    else:
        schema, write = _FORMS[kind](written)
    return DebeziumColumn({**schema, "optional": written.nullable}, write)


def key_check(kind: Kind) -> Callable[[Value], None] | None:
    """What refuses a value of a key that is written like another one: two rows would be one.

    It raises ValueError. None for kinds that have no such values.
    """
    if kind in LABELLED:
        return _check_label
    if kind is Kind.TEXT:
        return check_key_text
    return _check_day if kind in (Kind.DATE, Kind.DATETIME) else None


def _check_label(value: Value) -> None:
    if is_marked(value):
        raise ValueError(f"the key has {shown(str(value))}, which is the text of another number")


def _check_day(value: Value) -> None:
    if days_of(str(value)[:10]) is None:
        raise ValueError(f"the key has the date {value}, which is written as 1970-01-01")


def _decimals(written: BinlogColumn) -> tuple[Json, ToJson]:
    parameters = {
        "scale": str(written.column.scale),
        "connect.decimal.precision": str(written.column.precision),
    }
    return _named("bytes", "org.apache.kafka.connect.data.Decimal", parameters), _decimal


def _floats(written: BinlogColumn) -> tuple[Json, ToJson]:
    return {"type": "float" if written.wire.type == ColumnType.FLOAT else "double"}, _float


def _bit_fields(written: BinlogColumn) -> tuple[Json, ToJson]:
    length = written.wire.length
    if length == 1:
        return {"type": "boolean"}, _bit
    return _named("bytes", "io.debezium.data.Bits", {"length": str(length)}), _bits(length)


def _datetimes(written: BinlogColumn) -> tuple[Json, ToJson]:
    millis = written.wire.length <= _MILLIS
    name = "Timestamp" if millis else "MicroTimestamp"
    write = _datetime(1_000 if millis else 1, written.nullable)
    return _named("int64", f"io.debezium.time.{name}"), write


def _labels(written: BinlogColumn) -> tuple[Json, ToJson]:
    name = "Enum" if written.column.kind is Kind.ENUM else "EnumSet"
    allowed = ",".join(map(_escaped, written.labels))
    return _named("string", f"io.debezium.data.{name}", {"allowed": allowed}), _text


def _binary(written: BinlogColumn) -> tuple[Json, ToJson]:
    if written.wire.type == ColumnType.VECTOR:
        items = {"type": "float", "optional": False}
        return {**_named("array", "io.debezium.data.FloatVector"), "items": items}, _vector
    return {"type": "bytes"}, _bytes


def _named(kind: str, name: str, parameters: Json | None = None) -> Json:
    schema: dict[str, Any] = {"type": kind, "name": name, "version": 1}
    if parameters:
        schema["parameters"] = parameters
    return schema


def _integer(written: BinlogColumn) -> tuple[Json, ToJson]:
    unsigned = written.column.unsigned
    kind = _INTEGERS[written.wire.type][unsigned]
    if unsigned and written.wire.type == ColumnType.LONGLONG:
        return {"type": kind, "parameters": _UNSIGNED_64}, _wrapped
    return {"type": kind}, _number


def _number(value: Value) -> str:
    return _digits(cast("int", value))


def _wrapped(value: Value) -> str:
    """A BIGINT UNSIGNED as a number with a sign, which has its bits."""
    number = cast("int", value)
    return _digits(number if number < _BIGINT else number - 2 * _BIGINT)


def _decimal(value: Value) -> str:
    digits = int(cast("str", value).replace(".", ""))
    # As few bytes as hold it with its sign, as Java's BigInteger has it.
    bits = (digits if digits >= 0 else -digits - 1).bit_length()
    return _base64(digits.to_bytes(bits // 8 + 1, "big", signed=True))


def _float(value: Value) -> str:
    return float.__repr__(cast("float", value))


def _bit(value: Value) -> str:
    return "true" if value else "false"


def _bits(length: int) -> ToJson:
    size = (length + 7) // 8
    return lambda value: _base64(cast("int", value).to_bytes(size, "little"))


def _date(nullable: bool) -> ToJson:  # noqa: FBT001
    zero = NULL if nullable else "0"

    def write(value: Value) -> str:
        days = days_of(cast("str", value))
        return zero if days is None else _digits(days)

    return write


def _time(value: Value) -> str:
    return _digits(clock_micros(cast("str", value)))


def _datetime(unit: int, nullable: bool) -> ToJson:  # noqa: FBT001
    zero = NULL if nullable else "0"

    def write(value: Value) -> str:
        micros = micros_of(cast("str", value))
        return zero if micros is None else _digits(micros // unit)

    return write


def _timestamp(digits: int, nullable: bool) -> ToJson:  # noqa: FBT001
    zero = NULL if nullable else _ZERO_TIMESTAMP
    end = 19 + (digits + 1 if digits else 0)

    def write(value: Value) -> str:
        text = cast("str", value)
        return zero if text == ZERO_DATETIME else f'"{text[:10]}T{text[11:end]}Z"'

    return write


def _text(value: Value) -> str:
    text = cast("str", value)
    return encode_basestring(characters(text) if text[:1] >= "\ud800" else text)


def _bytes(value: Value) -> str:
    return _base64(cast("bytes", value))


def _base64(data: bytes) -> str:
    return f'"{b64encode(data).decode()}"'


def _vector(value: Value) -> str:
    data = cast("bytes", value)
    return (
        "["
        + ",".join([repr(shortest_float(x)) for x in struct.unpack(f"<{len(data) // 4}f", data)])
        + "]"
    )


def _geometry(value: Value) -> str:
    data = cast("bytes", value)
    srid = int.from_bytes(data[:4], "little")
    return f'{{"wkb":{_base64(data[4:])},"srid":{srid or NULL}}}'


def _point(value: Value) -> str:
    data = cast("bytes", value)
    # Behind the SRID: the order of bytes, the type, and both coordinates.
    x, y = struct.unpack_from("<dd" if data[4] else ">dd", data, 9)
    return f'{{"x":{x!r},"y":{y!r},{_geometry(value)[1:]}'


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace(",", "\\,")


def _field(name: str, kind: str, *, optional: bool) -> Json:
    return {"type": kind, "optional": optional, "field": name}


_WKB: Final = "wkb"
_SRID: Final = _field("srid", "int32", optional=True)
_GEOMETRIES: Final[tuple[tuple[Json, ToJson], ...]] = (
    (
        {
            **_named("struct", "io.debezium.data.geometry.Geometry"),
            "fields": [_field(_WKB, "bytes", optional=False), _SRID],
            "doc": "Geometry",
        },
        _geometry,
    ),
    (
        {
            **_named("struct", "io.debezium.data.geometry.Point"),
            "fields": [
                _field("x", "double", optional=False),
                _field("y", "double", optional=False),
                _field(_WKB, "bytes", optional=True),
                _SRID,
            ],
            "doc": "Geometry (POINT)",
        },
        _point,
    ),
)
_STRING: Final[Json] = {"type": "string"}
_FORMS: Final[dict[Kind, Callable[[BinlogColumn], tuple[Json, ToJson]]]] = {
    Kind.INTEGER: _integer,
    Kind.DECIMAL: _decimals,
    Kind.FLOAT: _floats,
    Kind.BIT: _bit_fields,
    Kind.YEAR: lambda _: (_named("int32", "io.debezium.time.Year"), _number),
    Kind.DATE: lambda written: (
        _named("int32", "io.debezium.time.Date"),
        _date(written.nullable),
    ),
    Kind.TIME: lambda _: (_named("int64", "io.debezium.time.MicroTime"), _time),
    Kind.DATETIME: _datetimes,
    Kind.TIMESTAMP: lambda written: (
        _named("string", "io.debezium.time.ZonedTimestamp"),
        _timestamp(written.wire.length, written.nullable),
    ),
    Kind.TEXT: lambda _: (_STRING, _text),
    Kind.JSON: lambda _: (_named("string", "io.debezium.data.Json"), _text),
    Kind.ENUM: _labels,
    Kind.SET: _labels,
    Kind.GEOMETRY: lambda written: _GEOMETRIES[written.geometry == _POINT],
    Kind.BINARY: _binary,
}
