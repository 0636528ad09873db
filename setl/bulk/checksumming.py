"""Asks both servers for the checksums of chunks, several at once, and says which chunks differ."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from setl.bulk.checksums import Checksum, ChecksummedTable, Formed
from setl.bulk.chunks import Chunk
from setl.model.schema import Column

CONNECTIONS = 2
"""Connections of each side."""


class SummedTable(NamedTuple):
    """One side.

    Attributes:
        table: its table.
        formed: see `ChecksummedTable.checksums`.
        cut: likewise.
    """

    table: ChecksummedTable
    formed: Sequence[Formed]
    cut: Sequence[Column]


@dataclass(slots=True)
class Summed:
    """What both servers say of some chunks.

    Attributes:
        equal_rows: rows of one side in the chunks whose checksums are equal; the other has as many.
        differing: the chunks whose checksums differ, in order.
    """

    equal_rows: int = 0
    differing: list[Chunk] = field(default_factory=list[Chunk])


def compare_checksums(
    source: SummedTable,
    target: SummedTable,
    chunks: Sequence[Chunk],
    seen: Callable[[int], None],
) -> Summed:
    """Compare chunks by their checksums; both servers work at the same time.

    Args:
        source: one side.
        target: the other side.
        chunks: what to compare.
        seen: is told numbers of rows that a server has looked at, one call at a time.

    Raises:
        SetlError: a server cannot be asked; the first error of all.
    """
    work = _Work(chunks, seen)
    count = max(1, min(CONNECTIONS, len(chunks)))
    with ThreadPoolExecutor(2 * count, thread_name_prefix="checksums") as pool:
        asked = [
            pool.submit(work.carry_out, side, index)
            for _ in range(count)
            for index, side in enumerate((source, target))
        ]
    _raise_first(asked)
    found = Summed()
    for chunk, there, here in zip(chunks, *work.sums, strict=True):
        if there == here:
            found.equal_rows += there.rows
        else:
            found.differing.append(chunk)
    return found


def _raise_first(asked: Sequence[Future[None]]) -> None:
    errors = [error for one in asked if (error := one.exception()) is not None]
    if errors:
        raise errors[0]


class _Work:
    """The chunks that are still to be asked about, for threads of both sides."""

    def __init__(self, chunks: Sequence[Chunk], seen: Callable[[int], None]) -> None:
        self.sums = tuple([Checksum(0, ())] * len(chunks) for _ in range(2))
        self._chunks = chunks
        self._left = tuple(list(range(len(chunks)))[::-1] for _ in range(2))
        self._seen = seen
        self._lock = threading.Lock()

    def carry_out(self, side: SummedTable, index: int) -> None:
        """Ask one side about chunks until none is left."""
        try:
            with side.table.checksums(side.formed, side.cut) as checksum:
                while (number := self._next(index)) is not None:
                    found = self.sums[index][number] = checksum(self._chunks[number])
                    with self._lock:
                        self._seen(found.rows)
        except BaseException:
            self._stop()
            raise

    def _next(self, index: int) -> int | None:
        with self._lock:
            left = self._left[index]
            return left.pop() if left else None

    def _stop(self) -> None:
        """Nothing more is asked: what the others find is of no use."""
        with self._lock:
            for left in self._left:
                left.clear()
