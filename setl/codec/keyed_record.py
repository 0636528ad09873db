"""A record's key and value in one payload, since what identifies a row may stand in its key only.

The key's length comes first, in four bytes, the lowest first, and 1 more than it is: 0 is no key.
No such payload begins as joined records do (`setl.codec.dts.row_chunks.MARK`).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

_SIZE: Final = Struct("<I")


def keyed(key: bytes | None, value: bytes) -> bytes:
    """The payload of a record."""
    if key is None:
        return _SIZE.pack(0) + value
    return _SIZE.pack(len(key) + 1) + key + value


def key_and_value(payload: bytes) -> tuple[bytes | None, bytes]:
    """Inverse of `keyed`; raises ValueError for anything else."""
    if len(payload) < _SIZE.size:
        raise ValueError("a record that was cut off")
    (size,) = _SIZE.unpack_from(payload)
    begin, end = _SIZE.size, _SIZE.size + max(0, size - 1)
    if end > len(payload):
        raise ValueError("a record that was cut off")
    return (payload[begin:end] if size else None), payload[end:]
