"""Reads text, bytes, ENUM, SET and JSON out of a row (see `value_number` for readers)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Final

from setl.codec.binlog.tables.table_map import WireColumn, value_bytes
from setl.codec.binlog.values.mysql_json import json_text
from setl.codec.binlog.values.value_number import Reader
from setl.model.change import Value
from setl.model.labels import of_numbers
from setl.model.schema import Kind

PREFIXED: Final = frozenset({Kind.TEXT, Kind.BINARY, Kind.JSON, Kind.GEOMETRY})
"""Kinds whose values have their length in front of them."""

_ZLIB: Final = 8  # MariaDB's only way to compress a column
_RAW_DEFLATE: Final = 8  # the bit that says there is no zlib header


def piece_reader(column: WireColumn, convert: Callable[[bytes], Value]) -> Reader:
    """A value with its length in front of it, passed through `convert`."""
    width = -value_bytes(column)
    if width == 1:

        def read_short(data: bytes, at: int) -> tuple[Value, int]:
            start = at + 1
            end = start + data[at]
            return convert(data[start:end]), end

        return read_short

    def read(data: bytes, at: int) -> tuple[Value, int]:
        start = at + width
        end = start + int.from_bytes(data[at:start], "little")
        return convert(data[start:end]), end

    return read


def padded(length: int) -> Callable[[bytes], Value]:
    """Restores the zero bytes that a BINARY(n) loses at its end."""

    def pad(data: bytes) -> Value:
        return data.ljust(length, b"\0")

    return pad


def label_reader(column: WireColumn, kind: Kind, labels: Sequence[str]) -> Reader:
    """ENUM, the number of a label, and SET, a bit for each; see `setl.model.labels`."""
    size, value_of = column.length, of_numbers(kind, labels)

    def read(data: bytes, at: int) -> tuple[Value, int]:
        return value_of(int.from_bytes(data[at : at + size], "little")), at + size

    return read


def json_value(data: bytes) -> Value:
    """MySQL's binary JSON as text; empty where the server wrote none, which reads as null."""
    return json_text(data) if data else "null"


def decompressed(convert: Callable[[bytes], Value]) -> Callable[[bytes], Value]:
    """Undoes MariaDB's column compression, then converts.

    The first byte is 0 in front of plain data; else it holds the method in its upper half,
    whether the zlib header is missing, and how many bytes of the plain size follow. Source:
    ``field_comp.cc`` in MariaDB.
    """

    def convert_plain(data: bytes) -> Value:
        if not data:
            return convert(data)
        front = data[0]
        if not front:
            return convert(data[1:])
        if front >> 4 != _ZLIB:
            raise ValueError(f"a column is compressed in an unknown way ({front:#04x})")
        start = 1 + (front & 7)
        window = -zlib.MAX_WBITS if front & _RAW_DEFLATE else zlib.MAX_WBITS
        size = int.from_bytes(data[1:start], "big")
        # The size limits what damaged bytes may grow to.
        plain = zlib.decompressobj(window).decompress(data[start:], size + 1)
        if len(plain) != size:
            raise ValueError(f"a compressed column holds other than the {size} bytes it says")
        return convert(plain)

    return convert_plain
