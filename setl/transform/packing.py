"""Work items as bytes, for their way from the driver to a task.

On this way they go through a file, the JVM and two sockets, and each of these copies them more than
once. Records of DTS are long and mostly say the same: names and types of columns, tags, where a
transaction began. So what is large is compressed, by an algorithm that takes less time than a copy
saved. Where that makes little difference, as for rows of a binlog, it stays as it is.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

import pyarrow as pa

from setl.transform.work import WorkItem

_WORTH: Final = 64 * 1024  # bytes below which nothing is gained
_GAIN: Final = 2  # times as small, or it is not worth unpacking
_SAMPLE: Final = 16 * 1024  # bytes by which that is told
_FRONT: Final = Struct("<4sQ")  # mark, bytes when unpacked
_MARK: Final = b"LZ4\0"  # no pickle begins so
_CODEC: Final[Any] = pa.Codec("lz4_raw")


def packed(items: Sequence[WorkItem]) -> bytes:
    """Work items as `unpacked` takes them."""
    plain = pickle.dumps(items, protocol=5)
    size = len(plain)
    if size < _WORTH or not _shrinks(memoryview(plain)[size // 2 :][:_SAMPLE]):
        return plain
    return _FRONT.pack(_MARK, size) + _CODEC.compress(plain, asbytes=True)


def unpacked(content: bytes) -> list[WorkItem]:
    """The work items that were packed, or pickled."""
    plain: Any = content
    if content.startswith(_MARK):
        _, size = _FRONT.unpack_from(content)
        plain = _CODEC.decompress(memoryview(content)[_FRONT.size :], size)
    return pickle.loads(plain)  # noqa: S301 - made by our own driver


def _shrinks(sample: memoryview) -> bool:
    return len(_CODEC.compress(sample)) * _GAIN <= len(sample)
