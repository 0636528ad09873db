"""Each column's type and values as Canal prints them: all values are text.

What Canal does: `LogEventConvert` and `RowsLogBuffer` in its source. Names of types are those of
MySQL 8, without display widths, since a binlog has none.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final, NamedTuple, cast

from setl.codec.binlog.tables.table_map import ColumnType
from setl.codec.binlog_tables import BinlogColumn, characters
from setl.model.change import Value
from setl.model.labels import to_numbers
from setl.model.schema import Kind

ToText = Callable[[Value], str]

MISFITS: Final = (ValueError, TypeError, AttributeError, LookupError)
"""What a value of another kind than its column's raises when it is written."""

# Numbers of java.sql.Types.
_BIT: Final = -7
_BLOB: Final = 2004
_CHAR: Final = 1
_CLOB: Final = 2005
_DATE: Final = 91
_DECIMAL: Final = 3
_DOUBLE: Final = 8
_INTEGER: Final = 4
_REAL: Final = 7
_TIME: Final = 92
_TIMESTAMP: Final = 93
_VARCHAR: Final = 12

# Name, and the type of numbers with a sign and without: Canal takes the next larger one.
_INTEGERS: Final[dict[int, tuple[str, int, int]]] = {
    ColumnType.TINY: ("tinyint", -6, 5),
    ColumnType.SHORT: ("smallint", 5, _INTEGER),
    ColumnType.INT24: ("mediumint", _INTEGER, _INTEGER),
    ColumnType.LONG: ("int", _INTEGER, -5),
    ColumnType.LONGLONG: ("bigint", -5, _DECIMAL),
}
_SIZES: Final = ("tiny", "", "medium", "long")  # of a TEXT or BLOB, by the bytes of its length
_SPATIAL: Final = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geomcollection",
)  # fmt: skip
_MOMENTS: Final = {
    Kind.TIME: ("time", _TIME),
    Kind.DATETIME: ("datetime", _TIMESTAMP),
    Kind.TIMESTAMP: ("timestamp", _TIMESTAMP),
}
_BYTES_OF_CHARACTERS: Final = {
    "utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4, "gb18030": 4, "utf8mb3": 3, "utf8": 3,
    "ujis": 3, "eucjpms": 3, "ucs2": 2, "gbk": 2, "gb2312": 2, "big5": 2, "sjis": 2, "cp932": 2,
    "euckr": 2,
}  # fmt: skip
_STRINGS: Final = frozenset({ColumnType.STRING, ColumnType.VARCHAR, ColumnType.VAR_STRING})
_QUOTED: Final = str.maketrans({"'": "''", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
"""How servers print characters of labels in a column's type, whatever the `sql_mode`."""
_PLAIN: Final = (Decimal("1e-3"), Decimal("1e7"))
"""Java prints numbers of this size without an exponent."""


class CanalColumn(NamedTuple):
    """How one column is written.

    Attributes:
        mysql_type: its type as MySQL names it.
        sql_type: its number in `java.sql.Types`.
        write: gives the text of a value that is neither NULL nor absent. It raises one of
            `MISFITS` for a value that the format cannot hold.
    """

    mysql_type: str
    sql_type: int
    write: ToText


def canal_column(written: BinlogColumn) -> CanalColumn:
    """How one column is written."""
    form = _FORMS[written.column.kind]
    return form if isinstance(form, CanalColumn) else form(written)


def _integers(written: BinlogColumn) -> CanalColumn:
    name, signed, unsigned = _INTEGERS[written.wire.type]
    if written.column.unsigned:
        return CanalColumn(f"{name} unsigned", unsigned, _number)
    return CanalColumn(name, signed, _number)


def _decimals(written: BinlogColumn) -> CanalColumn:
    column = written.column
    return CanalColumn(f"decimal({column.precision},{column.scale})", _DECIMAL, _text)


def _floats(written: BinlogColumn) -> CanalColumn:
    if written.wire.type == ColumnType.FLOAT:
        return CanalColumn("float", _REAL, _float)
    return CanalColumn("double", _DOUBLE, _float)


def _moments(written: BinlogColumn) -> CanalColumn:
    name, number = _MOMENTS[written.column.kind]
    digits = written.wire.length
    return CanalColumn(f"{name}({digits})" if digits else name, number, _moment(digits))


def _labels(written: BinlogColumn) -> CanalColumn:
    kind = written.column.kind
    labels = ",".join([f"'{label.translate(_QUOTED)}'" for label in written.labels])
    number_of = to_numbers(kind, written.labels)

    def write(value: Value) -> str:
        return str(number_of(value))

    return CanalColumn(f"{kind.value}({labels})", _INTEGER if kind is Kind.ENUM else _BIT, write)


def _binaries(written: BinlogColumn) -> CanalColumn:
    return CanalColumn(_binary_name(written), _BLOB, _bytes)


def _binary_name(written: BinlogColumn) -> str:
    wire = written.wire
    if wire.type in _STRINGS:
        return f"{'' if wire.type == ColumnType.STRING else 'var'}binary({wire.length})"
    return "vector" if wire.type == ColumnType.VECTOR else f"{_SIZES[wire.length - 1]}blob"


def _textual(written: BinlogColumn) -> CanalColumn:
    wire = written.wire
    if wire.type in _STRINGS:
        length = wire.length // _BYTES_OF_CHARACTERS.get(written.charset, 1)
        if wire.type == ColumnType.STRING:
            return CanalColumn(f"char({length})", _CHAR, _text)
        return CanalColumn(f"varchar({length})", _VARCHAR, _text)
    size = _SIZES[wire.length - 1] if 0 < wire.length <= len(_SIZES) else ""
    return CanalColumn(f"{size}text", _CLOB, _text)


def _year(value: Value) -> str:
    return f"{cast('int', value):04d}"


def _number(value: Value) -> str:
    return int.__repr__(cast("int", value))


def _text(value: Value) -> str:
    text = cast("str", value)
    return characters(text) if text[:1] >= "\ud800" else text


def _bytes(value: Value) -> str:
    """Bytes as characters of ISO-8859-1, one each."""
    return cast("bytes", value).decode("latin-1")


def _moment(digits: int) -> ToText:
    if digits == 6:
        return _text

    def write(value: Value) -> str:
        whole, _, fraction = cast("str", value).partition(".")
        return f"{whole}.{fraction[:digits]}" if digits else whole

    return write


def _float(value: Value) -> str:
    """A number as Java prints it: with an exponent if it is very large or small."""
    text = float.__repr__(cast("float", value))
    number = Decimal(text)
    low, high = _PLAIN
    if not number or low <= abs(number) < high:
        return text if "e" not in text else f"{number:f}"
    sign, digits, exponent = number.as_tuple()
    figures = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + cast("int", exponent)
    return f"{'-' if sign else ''}{figures[0]}.{figures[1:] or '0'}E{power}"


_FORMS: Final[dict[Kind, CanalColumn | Callable[[BinlogColumn], CanalColumn]]] = {
    Kind.INTEGER: _integers,
    Kind.DECIMAL: _decimals,
    Kind.FLOAT: _floats,
    Kind.BIT: lambda written: CanalColumn(f"bit({written.wire.length})", _BIT, _number),
    Kind.YEAR: CanalColumn("year", _VARCHAR, _year),
    Kind.DATE: CanalColumn("date", _DATE, _text),
    **dict.fromkeys(_MOMENTS, _moments),
    Kind.TEXT: _textual,
    Kind.JSON: CanalColumn("json", _VARCHAR, _text),
    Kind.ENUM: _labels,
    Kind.SET: _labels,
    Kind.GEOMETRY: lambda written: CanalColumn(_SPATIAL[written.geometry], _BLOB, _bytes),
    Kind.BINARY: _binaries,
}
