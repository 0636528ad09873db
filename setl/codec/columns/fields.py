"""Memory that is filled a column at a time, and read a row at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setl.codec.columns.window import Mask, Positions
from setl.errors import DataError


class UnfitValuesError(DataError):
    """Values of a column have no form that all rows of a table have: they are read one by one."""


@dataclass(frozen=True, slots=True)
class Field:
    """Some bytes of each of some rows, which lie one row behind the other.

    Attributes:
        memory: of all rows.
        offset: where the bytes of the first row begin.
        stride: bytes from one row to the next.
        count: of rows.
    """

    memory: NDArray[np.uint8]
    offset: int
    stride: int
    count: int

    def behind(self, offset: int) -> Field:
        """The bytes that are so many behind."""
        return replace(self, offset=self.offset + offset)

    def put(self, offset: int, dtype: str, values: Any) -> None:
        """Store a number in each row, or one number in all; `dtype` as numpy names it."""
        view = np.ndarray(
            (self.count,), np.dtype(dtype), self.memory, self.offset + offset, (self.stride,)
        )
        view[...] = values

    def put_at(
        self, offsets: Positions, dtype: str, values: Any, where: Mask | None = None
    ) -> None:
        """Store a number at another offset in each row, or in those where `where` holds."""
        size = np.dtype(dtype).itemsize
        view = np.ndarray((len(self.memory) - size + 1,), np.dtype(dtype), self.memory, 0, (1,))
        at = np.arange(self.offset, self.offset + self.count * self.stride, self.stride)
        at = at + offsets
        if where is None:
            view[at] = values
        else:
            view[at[where]] = values[where] if isinstance(values, np.ndarray) else values
