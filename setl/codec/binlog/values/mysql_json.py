"""MySQL's binary JSON as JSON text, written as the server writes it.

Format: ``sql-common/json_binary.h`` in the server. A document is a type byte and a value. An
array or object begins with the number of its elements and its size; then come, for objects,
offset and length of each key, then type and offset of each element, then what the offsets point
at. Offsets count from the number of elements, and take two bytes in small containers and four
in large ones. Numbers that fit stand where the offset would.

Spaces, escapes, the order of keys and the form of numbers are the server's.

Only MySQL writes it; JSON columns of MariaDB are text.
"""

from __future__ import annotations

import base64
import struct
from decimal import Decimal
from typing import Any, Final

from setl.codec.binlog.tables.table_map import ColumnType, WireColumn
from setl.codec.binlog.values.value_number import decimal_reader
from setl.codec.temporal import clock_text, date_text
from setl.model.json_text import ServerJson

_SMALL_OBJECT: Final = 0
_LARGE_OBJECT: Final = 1
_SMALL_ARRAY: Final = 2
_LARGE_ARRAY: Final = 3
_LITERAL: Final = 4
_STRING: Final = 12
_OPAQUE: Final = 15
_DOUBLE: Final = 11

_LITERALS: Final = ("null", "true", "false")
_INTEGERS: Final = {
    5: struct.Struct("<h"),
    6: struct.Struct("<H"),
    7: struct.Struct("<i"),
    8: struct.Struct("<I"),
    9: struct.Struct("<q"),
    10: struct.Struct("<Q"),
}
_INLINE_SMALL: Final = frozenset({_LITERAL, 5, 6})
_INLINE_LARGE: Final = frozenset({_LITERAL, 5, 6, 7, 8})
DEEPEST: Final = 101
"""Values inside each other that are read; MySQL's own limit is 100."""

# Of a floating-point number without an exponent: digits before the point, zeros right behind it.
_MOST_DIGITS: Final = 15
_MOST_ZEROS: Final = 14

_MANY: Final = 64  # numbers of an array, for which it pays

_UINT16: Final = struct.Struct("<H")
_UINT32: Final = struct.Struct("<I")

_ESCAPES: Final = {
    **{code: f"\\u{code:04x}" for code in range(0x20)},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
}


def json_text(data: bytes) -> str:
    """The document as JSON text, a `ServerJson` if it is one.

    Raises:
        ValueError: the bytes are no document.
    """
    try:
        document = _Document(data)
        text = document.value(data[0], 1, 0)
        return text if document.has_decimals else ServerJson(text)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"not MySQL's binary JSON: {error}") from error


class _Document:
    """The bytes of a document, and how many more values they can hold.

    Offsets in damaged bytes may lead in circles; every value of a good document has bytes of
    its own, so there cannot be more values than bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._values_left = len(data)
        self.has_decimals = False

    def value(self, kind: int, at: int, depth: int) -> str:
        data = self._data
        self._values_left -= 1
        if self._values_left < 0 or depth > DEEPEST:
            raise ValueError("binary JSON is nested too deeply or in circles")
        if kind <= _LARGE_ARRAY:
            text = self._container(kind, at, depth)
        elif kind == _STRING:
            start, length = _variable_length(data, at)
            text = quoted(_slice(data, start, length).decode("utf-8"))
        elif kind == _LITERAL:
            text = _LITERALS[data[at]]
        elif kind in _INTEGERS:
            text = str(_INTEGERS[kind].unpack_from(data, at)[0])
        elif kind == _DOUBLE:
            text = double_text(struct.unpack_from("<d", data, at)[0])
        elif kind == _OPAQUE:
            self.has_decimals = self.has_decimals or data[at] == ColumnType.NEWDECIMAL
            start, length = _variable_length(data, at + 1)
            text = _opaque(data[at], _slice(data, start, length))
        else:
            raise ValueError(f"unknown type {kind} in binary JSON")
        return text

    def _container(self, kind: int, start: int, depth: int) -> str:
        data = self._data
        large = kind in (_LARGE_OBJECT, _LARGE_ARRAY)
        number, width = (_UINT32, 4) if large else (_UINT16, 2)
        inline = _INLINE_LARGE if large else _INLINE_SMALL
        is_object = kind in (_SMALL_OBJECT, _LARGE_OBJECT)
        (count,) = number.unpack_from(data, start)
        keys_at = start + 2 * width
        entries_at = keys_at + count * (width + 2) if is_object else keys_at
        if not is_object and count and (found := self._doubles(entries_at, count, start, width)):
            return f"[{found}]"
        parts: list[str] = []
        for i in range(count):
            entry = entries_at + i * (width + 1)
            element = data[entry]
            at = entry + 1 if element in inline else start + number.unpack_from(data, entry + 1)[0]
            text = self.value(element, at, depth + 1)
            if is_object:
                key = keys_at + i * (width + 2)
                key_start = start + number.unpack_from(data, key)[0]
                (length,) = _UINT16.unpack_from(data, key + width)
                text = f"{quoted(_slice(data, key_start, length).decode('utf-8'))}: {text}"
            parts.append(text)
        joined = ", ".join(parts)
        return f"{{{joined}}}" if is_object else f"[{joined}]"

    def _doubles(self, entries_at: int, count: int, start: int, width: int) -> str:
        """The numbers of an array, if it has nothing else than DOUBLE, one behind the other."""
        size = 1 + width
        entries = _slice(self._data, entries_at, count * size)
        if entries[::size] != bytes((_DOUBLE,)) * count:
            return ""
        offsets = struct.unpack("<" + ("xI" if width == 4 else "xH") * count, entries)
        first = offsets[0]
        if offsets != tuple(range(first, first + 8 * count, 8)):
            return ""
        self._values_left -= count
        numbers = _slice(self._data, start + first, 8 * count)
        return _many_doubles(numbers) if count >= _MANY else _some_doubles(numbers)


def _some_doubles(data: bytes) -> str:
    values: tuple[float, ...] = struct.unpack(f"<{len(data) // 8}d", data)
    return ", ".join(map(double_text, values))


def _many_doubles(data: bytes) -> str:
    """As `_some_doubles`, in a fifth of the time."""
    import pyarrow as pa  # noqa: PLC0415 - it takes a third of a second, and few need it
    from pyarrow import compute  # noqa: PLC0415

    count, functions = len(data) // 8, compute
    of_arrow: Any = pa
    values = of_arrow.Array.from_buffers(pa.float64(), count, [None, pa.py_buffer(data)])
    texts = functions.cast(values, pa.string())
    one = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), texts)
    joined = str(functions.binary_join(one, ", ")[0].as_py())
    if joined.count(".") == count and "e" not in joined:
        return joined
    # It writes whole numbers without a point, and more of the others with an exponent.
    return ", ".join(
        [
            text if "." in text and "e" not in text else double_text(float(text))
            for text in joined.split(", ")
        ]
    )


def _variable_length(data: bytes, at: int) -> tuple[int, int]:
    """A length in groups of 7 bits, lowest first, and where what it measures begins."""
    length = 0
    for i in range(5):
        byte = data[at + i]
        length |= (byte & 0x7F) << 7 * i
        if not byte & 0x80:
            return at + i + 1, length
    raise ValueError("a length in binary JSON does not end")


def quoted(text: str) -> str:
    """A JSON string as MySQL writes it: characters outside ASCII stay as they are."""
    return f'"{text.translate(_ESCAPES)}"'


def double_text(value: float) -> str:
    """As the server's ``my_gcvt`` writes it: what is compared with its answers must look the same.

    It writes the fewest digits that mean the value. It leaves the exponent out where at most 14
    zeros follow the point, and at most 15 digits precede it, or more if others follow it.
    """
    if 1e-4 <= abs(value) < 10**_MOST_DIGITS:
        return repr(value)  # the same, and faster
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent) if value else 1  # digits before it
    if point < -_MOST_ZEROS or point > max(_MOST_DIGITS, len(text) - 1):
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        number = f"{text[0]}{fraction}e{point - 1}"
    elif point > 0:
        number = f"{text[:point]:0<{point}}.{text[point:] or '0'}"
    else:
        number = f"0.{'0' * -point}{text}"
    return f"-{number}" if sign else number


def _opaque(kind: int, data: bytes) -> str:
    """A value that JSON has no type for; MySQL prints decimals as numbers, the rest as text."""
    if kind == ColumnType.NEWDECIMAL:
        column = WireColumn(ColumnType.NEWDECIMAL, data[0], data[1])
        return str(decimal_reader(column)(data, 2)[0])
    if kind in (ColumnType.DATE, ColumnType.DATETIME, ColumnType.TIMESTAMP, ColumnType.TIME):
        return quoted(_moment(kind, int.from_bytes(_slice(data, 0, 8), "little", signed=True)))
    encoded = base64.b64encode(data).decode("ascii")
    return quoted(f"base64:type{kind}:{encoded}")


def _moment(kind: int, packed: int) -> str:
    """A date or time in the server's packed form: bit fields above 24 bits of microseconds."""
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    micros = packed & 0xFF_FFFF
    moment = packed >> 24
    if kind == ColumnType.TIME:
        clock = clock_text(moment >> 12 & 0x3FF, moment >> 6 & 63, moment & 63)
        return f"{sign}{clock}.{micros:06d}"
    year, month = divmod(moment >> 22, 13)
    date = date_text(year, month, moment >> 17 & 31)
    if kind == ColumnType.DATE:
        return date
    return f"{date} {clock_text(moment >> 12 & 31, moment >> 6 & 63, moment & 63)}.{micros:06d}"


def _slice(data: bytes, start: int, length: int) -> bytes:
    piece = data[start : start + length]
    if len(piece) != length:
        raise IndexError("it ends too early")
    return piece
