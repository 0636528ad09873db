"""Joins rows records of one table and transaction to one entry, as they are read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from setl.codec.dts.runs import MOST_BYTES, MOST_RECORDS, run_of
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition


class Run:
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
        self.room = MOST_BYTES - len(value)

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
        """All of it as one entry at the place behind the last record."""
        schema, table = self.table
        count, payload = len(self.values), run_of(self.offsets, self.values)
        return Entry(EntryKind.ROWS, position, self.timestamp, schema, table, "", count, payload)
