"""Avro's binary encoding, as far as DTS records use it, one function for each type.

Source: https://avro.apache.org/docs/1.11.1/specification/#binary-encoding. Numbers of whatever
width are written zig-zag (0, -1, 1, -2, ...) in groups of seven bits, lowest first; text and
bytes have their length in front; the branch of a union and the symbol of an enumeration are
numbers; an array or a map is one block, its number of items in front and a 0 behind.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

_DOUBLE: Final = struct.Struct("<d")

END: Final = b"\0"
"""Ends an array or a map; alone it is an empty one."""

NULL: Final = b"\0"
"""The branch null of a union where it stands first, as it does in all of the schema."""


def _varint(number: int) -> bytes:
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


# Lengths, counts and branches are small, and most of the time of writing one is in its loop.
_SMALL: Final = tuple([_varint(number << 1) for number in range(1 << 13)])
_SMALL_COUNT: Final = len(_SMALL)


def long_bytes(number: int) -> bytes:
    """An int or a long, of up to 64 bits with sign; also a branch, a symbol, a length."""
    if 0 <= number < _SMALL_COUNT:
        return _SMALL[number]
    return _varint(number << 1 if number >= 0 else ~(number << 1))


def double_bytes(number: float) -> bytes:
    """A double."""
    return _DOUBLE.pack(number)


def data_bytes(data: bytes) -> bytes:
    """A value of the type bytes."""
    return long_bytes(len(data)) + data


def text_bytes(text: str) -> bytes:
    """A string. Raises UnicodeEncodeError for halves of surrogate pairs."""
    return data_bytes(text.encode())


def block_bytes(items: Sequence[bytes]) -> bytes:
    """An array of these items, or a map of these pairs of key and value."""
    if not items:
        return END
    return b"".join((long_bytes(len(items)), *items, END))
