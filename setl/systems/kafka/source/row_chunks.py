"""Joins rows records of one table and transaction to one entry, as they are read.

Mostly records that follow each other; over records of other tables where the transaction is small,
see `OpenRowChunks`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter

from setl.codec.dts.row_chunks import MOST_BYTES, MOST_RECORDS, chunk_of
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition


class RowChunk:
    """A row's record, and those that follow it with rows of the same table.

    See `DtsHeaderReader.table_of_row`.

    Attributes:
        table: schema and name.
        timestamp: when its rows were committed.
        offsets: of its records.
        values: their bytes.
        room: bytes that may still be added; the last record may have more.
    """

    __slots__ = ("offsets", "room", "table", "timestamp", "values")

    def __init__(self, table: tuple[str, str], timestamp: float, offset: int, value: bytes) -> None:
        """Begin with a row's record.

        Args:
            table: schema and name.
            timestamp: when its rows were committed.
            offset: of the record.
            value: its bytes.
        """
        self.table = table
        self.timestamp = timestamp
        self.offsets = [offset]
        self.values = [value]
        self.room: int = MOST_BYTES - len(value)

    def takes(self, table: tuple[str, str], offset: int, value: bytes) -> bool:
        """Add the next record, a row of a table; entries are what batches are cut between.

        Returns:
            Whether it belongs here. If not, nothing is done.
        """
        if table != self.table or self.room <= 0 or len(self.values) >= MOST_RECORDS:
            return False
        self.offsets.append(offset)
        self.values.append(value)
        self.room -= len(value)
        return True

    def takes_of(self, offsets: Sequence[int], values: Sequence[bytes]) -> int:
        """Add the first of the next records, all with rows of this table; returns how many.

        As many as `takes` would take, one by one.
        """
        if self.room <= 0:
            return 0
        ends = list(accumulate(map(len, values)))
        until_full = bisect_left(ends, self.room) + 1
        count = min(len(values), MOST_RECORDS - len(self.values), until_full)
        if count:
            self.offsets += offsets[:count]
            self.values += values[:count]
            self.room -= ends[count - 1]
        return count

    def entry(self, position: KafkaPosition) -> Entry:
        """All of it as one entry at the position behind the last record."""
        schema, table = self.table
        count, payload = len(self.values), chunk_of(self.offsets, self.values)
        return Entry(EntryKind.ROWS, position, self.timestamp, schema, table, "", count, payload)

    @property
    def last(self) -> int:
        """Offset of the last record."""
        return self.offsets[-1]


@dataclass(frozen=True, slots=True)
class Mixing:
    """Which runs of a transaction may lie between each other.

    Attributes:
        rows: rows of a transaction up to which they may: no batch is cut in one that is as small.
        bytes: its bytes, likewise.
        of: whether tables of a schema may; others keep their place.
    """

    rows: int
    bytes: int
    of: Callable[[str], bool]


class OpenRowChunks:
    """The runs that are being joined, of one stretch of a transaction.

    Entries are in order, and a batch may end behind any of them. Behind one of several runs whose
    records lie between each other, a checkpoint would call records done that the next run holds.
    So there are several only in a transaction in which no batch ends, and which is seen from its
    BEGIN to its COMMIT at once. If it turns out otherwise, their records are put in order again.
    """

    def __init__(self, mixing: Mixing | None) -> None:
        """None are open; there is never more than one without `mixing`."""
        self._mixing = mixing
        self._runs: dict[tuple[str, str], RowChunk] = {}
        self._mixes = False
        self._rows = self._bytes = 0  # of the transaction, in runs that were taken

    def begin(self) -> None:
        """A BEGIN was read; nothing is open."""
        self._mixes = self._mixing is not None
        self._rows = self._bytes = 0

    def leave(self) -> None:
        """Something else was read that is no row; nothing is open."""
        self._mixes = False

    def only(self, run: RowChunk) -> RowChunk:
        """Open a run; none is open."""
        self._runs[run.table] = run
        return run

    def beside(
        self, run: RowChunk, table: tuple[str, str], offset: int, value: bytes
    ) -> RowChunk | None:
        """The run of a row that the last run does not take, with it; None if it ends them all."""
        mixing = self._mixing
        if mixing is None or not self._mixes or table == run.table:
            return None
        other = self._runs.get(table)
        if other is not None:
            return other if other.takes(table, offset, value) else None
        if not (mixing.of(table[0]) and mixing.of(run.table[0])):
            return None
        return self.only(RowChunk(table, run.timestamp, offset, value))

    def take(self, *, whole: bool = False) -> list[RowChunk]:
        """The runs, in the order in which they end; none are open then.

        Args:
            whole: whether the transaction ends with them.
        """
        chunks = list(self._runs.values())
        self._runs = {}
        self._rows += sum(len(run.values) for run in chunks)
        self._bytes += sum(MOST_BYTES - run.room for run in chunks)
        if len(chunks) > 1:
            mixing = self._mixing
            if (
                whole
                and mixing is not None
                and self._rows <= mixing.rows
                and self._bytes <= mixing.bytes
            ):
                chunks.sort(key=attrgetter("last"))
            else:
                self._mixes = False
                chunks = _in_order(chunks)
        return chunks


def _in_order(chunks: Sequence[RowChunk]) -> list[RowChunk]:
    """The same records as runs that follow each other."""
    records = [
        (offset, value, run)
        for run in chunks
        for offset, value in zip(run.offsets, run.values, strict=True)
    ]
    records.sort(key=lambda record: record[0])
    found: list[RowChunk] = []
    for offset, value, run in records:
        if not (found and found[-1].takes(run.table, offset, value)):
            found.append(RowChunk(run.table, run.timestamp, offset, value))
    return found
