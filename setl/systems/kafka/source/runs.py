"""Joins rows records of one table and transaction to one entry, as they are read."""

from __future__ import annotations

from setl.codec.dts.runs import MOST_BYTES, MOST_RECORDS, joined
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition


class Run:
    """A row's record, and those that follow it with rows of the same table.

    See `DtsHeaderReader.table_of_row`.

    Attributes:
        table: schema and name.
        timestamp: when its rows were committed.
        records: offset and value of each.
        room: bytes that may still be added; the last record may have more.
    """

    __slots__ = ("records", "room", "table", "timestamp")

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
        self.records = [(offset, value)]
        self.room = MOST_BYTES - len(value)

    def takes(self, table: tuple[str, str], offset: int, value: bytes) -> bool:
        """Add the next record, a row of a table; entries are what batches are cut between.

        Returns:
            Whether it belongs here. If not, nothing is done.
        """
        records = self.records
        if table != self.table or self.room <= 0 or len(records) >= MOST_RECORDS:
            return False
        records.append((offset, value))
        self.room -= len(value)
        return True

    def entry(self, position: KafkaPosition) -> Entry:
        """All of it as one entry at the place behind the last record."""
        schema, table = self.table
        records = self.records
        payload = joined(records)
        return Entry(
            EntryKind.ROWS, position, self.timestamp, schema, table, "", len(records), payload
        )
