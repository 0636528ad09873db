"""Reads row images one by one, a value at a time: for few rows, and for odd ones.

Many rows are read by column, see `setl.codec.binlog.columns`, which has to say the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from setl.codec.binlog.values.value_number import Reader
from setl.model.change import Row, Value


def read_image(readers: Sequence[Reader], data: bytes, at: int) -> tuple[Row, int]:
    """The image at a position, and where it ends.

    Args:
        readers: of the columns that it has.
        data: the bytes.
        at: where it begins, with a bit for each of these columns that says whether it is NULL.

    Raises:
        ValueError, LookupError, struct.error, zlib.error: see `setl.codec.row_codec.DAMAGED`.
    """
    width = (len(readers) + 7) // 8
    nulls = int.from_bytes(data[at : at + width], "little")
    at += width
    row: list[Value] = []
    append = row.append
    if not nulls:
        for read in readers:
            value, at = read(data, at)
            append(value)
        return tuple(row), at
    for read in readers:
        if nulls & 1:
            append(None)
        else:
            value, at = read(data, at)
            append(value)
        nulls >>= 1
    return tuple(row), at
