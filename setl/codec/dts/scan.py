"""Walks through the bytes of a DTS record: skips what is not needed, reads the rest.

Source: https://avro.apache.org/docs/1.11.1/specification/#binary-encoding and
``schemas/Record.avsc``. A reader made from the schema builds an object for every value, which
costs more than everything else that is done with a row. Here only the form that writers use is
understood: counts without a size in front, arrays and maps in one block. `Misread` says that the
bytes are of another form or damaged; whoever meets it lets a full reader judge them (see
`setl.codec.dts.wire`). Text that is stepped over is not checked to be UTF-8.

Offsets are not checked against the end at each step: they only grow, and an index beyond the end
raises IndexError, so whoever has looked at the last byte knows that nothing was cut off.
"""

from __future__ import annotations

import re
import struct
from typing import Any, Final

from setl.codec.dts.wire import IMAGE_NAMES

_DOUBLE: Final = struct.Struct("<d")
_LONGEST: Final = 10  # bytes of a number
_NUMBER: Final = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
FRONT: Final = re.compile(rb"%b(%b)(%b)" % (_NUMBER, _NUMBER, _NUMBER)).match
"""Matches version, id and sourceTimestamp of a record; the last two are its groups."""

_MEMBERS: Final = ("year", "month", "day", "hour", "minute", "second", "millis")

ARRAY: Final = 4
"""The branch array of fields and images, as it stands in the bytes."""


class Misread(Exception):  # noqa: N818 - no error yet: a full reader decides
    """The bytes are damaged, or of a form that is not read by hand."""


MISREADS: Final = (Misread, IndexError, ValueError, struct.error)
"""What reading damaged bytes raises here."""


def long_at(data: bytes, at: int) -> tuple[int, int]:
    """The number at an offset, and the offset behind it."""
    byte = data[at]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at + 1
    number, shift = byte & 0x7F, 7
    for offset in range(at + 1, at + _LONGEST):
        byte = data[offset]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> 64:
                break
            return number >> 1 ^ -(number & 1), offset + 1
        shift += 7
    raise Misread


def extent_at(data: bytes, at: int) -> tuple[int, int]:
    """Where the text or bytes at an offset begin and end.

    Never beyond the end of the data.
    """
    size, begin = long_at(data, at)
    end = begin + size
    if size < 0 or end > len(data):
        raise Misread
    return begin, end


def data_at(data: bytes, at: int) -> tuple[bytes, int]:
    """The bytes at an offset, and the offset behind them."""
    begin, end = extent_at(data, at)
    return data[begin:end], end


def text_at(data: bytes, at: int) -> tuple[str, int]:
    """The text at an offset, and the offset behind it."""
    begin, end = extent_at(data, at)
    return data[begin:end].decode(), end


def text_end(data: bytes, at: int) -> int:
    """The offset behind the text or bytes at an offset.

    If they are cut off, it may be behind the end of the data.
    """
    size = data[at]
    # 0x81: more bytes of the length follow, or it is negative.
    return extent_at(data, at)[1] if size & 0x81 else at + 1 + (size >> 1)


def positions_end(data: bytes, at: int = 0) -> int:
    """The offset behind version, id, sourceTimestamp and both positions of a record.

    Raises:
        Misread: see the module.
    """
    match = FRONT(data, at)
    if match is None:
        raise Misread
    at = match.end()
    for _ in (0, 1):  # as `text_end`, without its calls: it is done for every record
        size = data[at]
        at = extent_at(data, at)[1] if size & 0x81 else at + 1 + (size >> 1)
    return at


def raw_at(data: bytes, at: int) -> tuple[dict[str, Any] | str | None, int]:
    """A value of an image as `setl.codec.dts.wire.read_common` gives it, and the offset behind."""
    branch = data[at]
    if branch == 0:
        return None, at + 1
    if branch == 24:  # EmptyObject
        symbol = data[at + 1]
        if symbol not in (0, 2):
            raise Misread
        return "NONE" if symbol else "NULL", at + 2
    if branch & 1 or branch > 24:
        raise Misread
    return _BRANCHES[branch >> 1](data, at + 1)


_Read = tuple[dict[str, Any], int]


def _integer(data: bytes, at: int) -> _Read:
    precision, at = long_at(data, at)
    text, at = text_at(data, at)
    return {"precision": precision, "integer": text}, at


def _character(data: bytes, at: int) -> _Read:
    charset, at = text_at(data, at)
    value, at = data_at(data, at)
    return {"charset": charset, "character": value}, at


def _digits(data: bytes, at: int) -> tuple[int, int, int]:
    precision, at = long_at(data, at)
    scale, at = long_at(data, at)
    return precision, scale, at


def _decimal(data: bytes, at: int) -> _Read:
    text, at = text_at(data, at)
    precision, scale, at = _digits(data, at)
    return {"decimal": text, "precision": precision, "scale": scale}, at


def _float(data: bytes, at: int) -> _Read:
    if at + 8 > len(data):
        raise Misread
    value = _DOUBLE.unpack_from(data, at)[0]
    precision, scale, at = _digits(data, at + 8)
    return {"float": value, "precision": precision, "scale": scale}, at


def _timestamp(data: bytes, at: int) -> _Read:
    seconds, at = long_at(data, at)
    micros, at = long_at(data, at)
    return {"timestamp": seconds, "millis": micros}, at


def moment_at(data: bytes, at: int) -> _Read:
    """The members of a DateTime, and the offset behind it."""
    parts: dict[str, Any] = {}
    for name in _MEMBERS:
        branch = data[at]
        if branch == 0:
            parts[name], at = None, at + 1
        elif branch == 2:
            parts[name], at = long_at(data, at + 1)
        else:
            raise Misread
    return parts, at


def _zoned(data: bytes, at: int) -> _Read:
    parts, at = moment_at(data, at)
    zone, at = text_at(data, at)
    return {"zoned": parts, "timezone": zone}, at


def _typed_data(member: str) -> Any:
    def read(data: bytes, at: int) -> _Read:
        kind, at = text_at(data, at)
        value, at = data_at(data, at)
        return {"type": kind, member: value}, at

    return read


def _typed_text(member: str) -> Any:
    def read(data: bytes, at: int) -> _Read:
        kind, at = text_at(data, at)
        value, at = text_at(data, at)
        return {"type": kind, member: value}, at

    return read


# In the order of the union.
_BRANCHES: Final[tuple[Any, ...]] = (
    None,
    _integer,
    _character,
    _decimal,
    _float,
    _timestamp,
    moment_at,
    _zoned,
    _typed_data(IMAGE_NAMES["BinaryGeometry"]["value"]),
    _typed_text(IMAGE_NAMES["TextGeometry"]["value"]),
    _typed_data(IMAGE_NAMES["BinaryObject"]["value"]),
    _typed_text(IMAGE_NAMES["TextObject"]["value"]),
)
