"""Turns a server's answers into the values of rows.

Values arrive as the server's text (pymysql decodes nothing), which loses nothing, and become
what a codec makes of the same row in the binlog, as `setl.model.schema.Kind` says.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from pymysql.connections import Connection
from pymysql.converters import conversions
from pymysql.cursors import Cursor

from setl.codec.binlog.values.value_number import shortest_float
from setl.codec.charset import binary_label
from setl.errors import ConfigurationError, DataError
from setl.model.change import Row, Value
from setl.model.labels import LABELLED, of_numbers, print_alike, printed
from setl.model.logged_bytes import logged_length
from setl.model.schema import Column, Kind
from setl.systems.mysql.identifiers import identifier
from setl.systems.mysql.odd_utf8 import in_charset, read_odd_utf8
from setl.systems.mysql.values.lost_text import in_utf8, marked, may_be_lost, text_or_mark

RAW_VALUES: dict[Any, Any] = {
    key: convert for key, convert in conversions.items() if not isinstance(key, int)
}
"""For `conv` of pymysql: parameters are escaped as usual, results are left as they came."""

Decode = Callable[[Any], Value]


class AlteredTableError(ConfigurationError):
    """A value is not of the type that its column had when the table was described."""


_TEXTUAL: Final = LABELLED | {Kind.TEXT}
_WIDE: Final = frozenset({"ucs2", "utf16", "utf32"})


class _Undecoded:
    """A cursor whose results are the server's text, for `decoded`."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection: Any = connection
        self._decoders = self._connection.decoders
        self._encoding = self._connection.encoding

    def __enter__(self) -> Any:
        self._connection.decoders = {}
        read_odd_utf8(self._connection)
        return self._connection.cursor(Cursor)

    def __exit__(self, *_: object) -> None:
        self._connection.decoders = self._decoders
        self._connection.encoding = self._encoding


undecoded = _Undecoded


def select_list(columns: Sequence[Column]) -> str:
    """The columns as they have to be selected for `decoders` to understand them.

    For a statement with placeholders.
    """
    return ", ".join(_selected(column) for column in columns)


def decoders(columns: Sequence[Column]) -> tuple[Decode | None, ...]:
    """For each column, what makes a value of its text; None if the text is the value.

    NULL must not be passed to them: `decoded` takes care of that.
    """
    return tuple(map(_decoder, columns))


def _decoder(column: Column) -> Decode | None:
    if labels := _alike_labels(column):
        return _numbered(column.kind, labels)
    if _may_be_lost(column) and column.capacity is not None:
        of_server = in_charset(column.capacity.charset)
        found = marked(column.capacity.charset)
        return found if of_server is None else lambda text: of_server(found(text))
    if column.kind in _TEXTUAL and column.capacity and column.capacity.charset in _WIDE:
        return in_charset(column.capacity.charset)
    # Labels of the character set `binary` come as bytes.
    binary = column.kind in LABELLED and column.capacity and not column.capacity.charset
    return _label if binary else _DECODERS.get(column.kind)


def _alike_labels(column: Column) -> tuple[str, ...]:
    """The labels of a column of which some numbers print alike; else none."""
    held = column.capacity
    labels = held.labels if column.kind in LABELLED and held is not None else ()
    return labels if print_alike(labels) else ()


def _numbered(kind: Kind, labels: Sequence[str]) -> Decode:
    value_of = of_numbers(kind, labels)

    def read(answer: str | bytes) -> Value:
        number, _, text = _label(answer).partition(" ")
        if printed(kind, labels, int(number)) != text:
            raise LookupError(number)
        return value_of(int(number))

    return read


def _label(text: str | bytes) -> str:
    return text if isinstance(text, str) else binary_label(text)


def decoded(decode: Sequence[Decode | None], raw: Sequence[Any]) -> Row:
    """A row of a server's answer, given the `decoders` of its columns.

    Raises:
        AlteredTableError: a column has another type than it had.
    """
    try:
        return tuple(
            value if value is None or convert is None else convert(value)
            for convert, value in zip(decode, raw, strict=True)
        )
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise AlteredTableError(
            "a column has another type than it had when the table was looked at last",
            hint="Try it again: somebody has altered the table meanwhile",
        ) from error


def _selected(column: Column) -> str:
    name = identifier(column.name)
    if _alike_labels(column):
        # With the text, since the labels may have changed since the table was described.
        return f"CONCAT(CAST({name} AS UNSIGNED), ' ', {in_utf8(name)})"
    if _may_be_lost(column) and column.capacity is not None:
        return text_or_mark(name, column.capacity)
    if column.kind is Kind.BINARY and (length := logged_length(column)):
        return f"CAST({name} AS BINARY({length}))"
    if has_two_digits(column):
        return whole_year(name)
    if column.kind is not Kind.FLOAT:
        return name
    # Both ways to print it, see `floating`. As text, MySQL gives a product 22 characters at most,
    # which may be a digit too few, or two; as JSON it has them all.
    return f"CONCAT({name}, ' ', JSON_ARRAY({name} * 1e0))"


def _may_be_lost(column: Column) -> bool:
    return column.kind in _TEXTUAL and may_be_lost(column.capacity)


def has_two_digits(column: Column) -> bool:
    """Whether it is a YEAR(2), which MariaDB shows without the century."""
    held = column.capacity
    return held is not None and held.type == "year" and held.length == 2


def whole_year(name: str) -> str:
    """SQL for the year that a YEAR(2) holds: 1901 and 2001 look alike, and so do 0000 and 2000."""
    return f"IF(YEAR({name}) = 1900, 0, YEAR({name}))"


def floating(text: str) -> float:
    """A FLOAT or DOUBLE, printed by the server as it is and once more as a double.

    A FLOAT (4 bytes) is printed with six digits, which may be too few, and as a double with all
    the digits that widening adds to it. Where the two differ it is one, and gets the value that
    codecs give it. A DOUBLE reads the same both ways.
    """
    narrow, _, wide = text.partition(" ")
    value = float(wide.strip("[]"))
    if float(narrow) == value or not is_float(value):
        return value
    return shortest_float(value)


def is_float(value: float) -> bool:
    """Whether four bytes hold this number exactly."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0] == value
    except OverflowError:
        return False


def is_longer_than_single(value: float) -> bool:
    """Whether a number is neither a four-byte one nor the shortest way to write one."""
    try:
        (narrowed,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        # Rounding up to the next digit goes beyond the largest one, which the server refuses.
        return abs(value) > 3.4028236e38
    return narrowed != value and all(float(f"{narrowed:.{n}g}") != value for n in (6, 7, 8, 9))


def decimal(text: str) -> str:
    """A DECIMAL's text without the zeros that ZEROFILL puts before it."""
    if text[0] == "0" and len(text) > 1 and text[1] != ".":
        stripped = text.lstrip("0")
        return stripped if stripped and stripped[0] != "." else f"0{stripped}"
    return text


def datetime(text: str) -> str:
    """DATETIME or TIMESTAMP with six digits after the point, however many the column has."""
    return f"{text}.000000" if len(text) == 19 else text.ljust(26, "0")


def time(text: str) -> str:
    """TIME with six digits after the point; it may have a sign and three digits of hours."""
    whole, point, fraction = text.partition(".")
    return f"{whole}.{fraction:0<6}" if point else f"{text}.000000"


def bit(raw: bytes) -> int:
    """A BIT column's bytes as a number."""
    return int.from_bytes(raw, "big")


def document(text: str) -> str:
    """JSON as it came; DataError if it did not come.

    MySQL answers with empty text, and no error, where the text is longer than max_allowed_packet.
    It may have taken the value all the same: it writes a space behind each comma.
    """
    if not text:
        raise DataError(
            "the text of a JSON value is longer than max_allowed_packet, so the server that has it"
            " answers with none",
            hint="Raise max_allowed_packet of that server",
        )
    return text


_DECODERS: dict[Kind, Decode] = {
    Kind.JSON: document,
    Kind.INTEGER: int,
    Kind.YEAR: int,
    Kind.FLOAT: floating,
    Kind.DECIMAL: decimal,
    Kind.DATETIME: datetime,
    Kind.TIMESTAMP: datetime,
    Kind.TIME: time,
    Kind.BIT: bit,
}
