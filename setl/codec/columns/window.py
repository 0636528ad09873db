"""A payload's bytes as numbers at any position in it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]
"""Offsets of bytes in a payload, one for each of some rows."""

Mask = NDArray[np.bool_]
"""For each of some rows whether something holds."""


def either(mask: Mask, one: Positions | int, other: Positions | int) -> Positions:
    """The one where it holds, else the other."""
    return np.where(mask, one, other)  # pyright: ignore[reportCallIssue, reportArgumentType]


# What NULLs are read as, so that no byte of another value is taken for theirs: the zero of DECIMAL,
# DATETIME, TIME and of all types whose zero is zero bytes. No fixed value is longer.
_ZERO: Final = b"\x80" + bytes(63)
_LONGEST_NUMBER: Final = 8


class Window:
    """Numbers at positions of a payload, whatever their alignment.

    Reading at a position beyond the payload raises IndexError, but for its last few bytes, behind
    which there are zeros.
    """

    def __init__(self, payload: bytes) -> None:
        """Look at a copy of the payload with a zero value and some zero bytes behind it."""
        self.payload = payload
        self.size = len(payload)
        self.bytes: NDArray[np.uint8] = np.frombuffer(
            b"".join((payload, _ZERO, bytes(_LONGEST_NUMBER))), np.uint8
        )
        self._views: dict[str, NDArray[Any]] = {}

    @property
    def zero(self) -> int:
        """Position of a value that is zero for every type of a fixed size."""
        return self.size

    def view(self, dtype: str) -> NDArray[Any]:
        """A number of this type (as numpy names it, 8 bytes at most) at each position."""
        found = self._views.get(dtype)
        if found is None:
            # One number begins at each byte, so they overlap.
            found = np.ndarray((self.size + len(_ZERO),), np.dtype(dtype), self.bytes, 0, (1,))
            self._views[dtype] = found
        return found

    def big_endian(self, at: Positions, size: int) -> NDArray[np.uint64]:
        """Numbers of 1 to 8 bytes without a sign, the highest byte first."""
        if size == 1:
            return self.bytes[at].astype(np.uint64)
        if size == 2:
            return self.view(">u2")[at].astype(np.uint64)
        if size <= 4:
            return self.view(">u4")[at].astype(np.uint64) >> np.uint64(8 * (4 - size))
        return self.view(">u8")[at].astype(np.uint64) >> np.uint64(8 * (8 - size))

    def little_endian(self, at: Positions, size: int) -> NDArray[np.uint64]:
        """Numbers of 1 to 8 bytes without a sign, the lowest byte first."""
        if size == 1:
            return self.bytes[at].astype(np.uint64)
        if size == 2:
            return self.view("<u2")[at].astype(np.uint64)
        read = self.view("<u4" if size <= 4 else "<u8")[at].astype(np.uint64)
        return read if size in (4, 8) else read & np.uint64((1 << 8 * size) - 1)

    def lengths(self, at: Positions, prefix: int) -> Positions:
        """Bytes of values whose lengths stand in `prefix` bytes at these positions."""
        if prefix == 1:
            return self.bytes[at].astype(np.int64)
        if prefix == 2:
            return self.view("<u2")[at].astype(np.int64)
        return (self.view("<u4")[at] & np.uint32((1 << 8 * prefix) - 1)).astype(np.int64)
