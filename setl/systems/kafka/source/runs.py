"""Joins rows records of one table and transaction to one entry, as they are read."""

from __future__ import annotations

from setl.codec.dts.runs import MOST_BYTES, MOST_RECORDS, joined
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition


class Run:
    """A row's record, and those that follow it with rows of the same table, so far none.

    See `DtsHeaderReader.table_of_row`.
    """

    __slots__ = ("_records", "_size", "_table", "timestamp")

    def __init__(self, table: tuple[str, str], timestamp: float) -> None:
        """For rows of a table, by schema and name, that were committed at one time."""
        self._table = table
        self.timestamp = timestamp
        self._records: list[tuple[int, bytes]] = []
        self._size = 0

    def takes(self, table: tuple[str, str]) -> bool:
        """Whether a row of a table may be added: entries are what batches are cut between."""
        return (
            table == self._table and self._size < MOST_BYTES and len(self._records) < MOST_RECORDS
        )

    def add(self, offset: int, value: bytes) -> None:
        """The next record belongs to it."""
        self._records.append((offset, value))
        self._size += len(value)

    @property
    def last(self) -> tuple[int, bytes]:
        """Offset and value of the last record."""
        return self._records[-1]

    def entry(self, position: KafkaPosition) -> Entry:
        """All of it, at least one record, as one entry at the place behind the last record."""
        schema, table = self._table
        records = self._records
        payload = joined(records)
        return Entry(
            EntryKind.ROWS, position, self.timestamp, schema, table, "", len(records), payload
        )
