"""Joins rows records of one table and transaction to one entry, as they are read."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from setl.codec.dts.runs import MOST_BYTES, MOST_RECORDS, joined
from setl.model.entry import Entry
from setl.model.position import KafkaPosition


class Run:
    """A rows record, and those that go on with it; see `DtsHeaderReader.continues`."""

    def __init__(self, first: Entry, offset: int) -> None:
        """Begin with the entry of the first record, which lies at `offset`."""
        self._first = first
        self._records = [(offset, first.payload)]
        self._size = len(first.payload)

    @property
    def has_room(self) -> bool:
        """Whether another record may be added: entries are what batches are cut between."""
        return self._size < MOST_BYTES and len(self._records) < MOST_RECORDS

    def add(self, offset: int, value: bytes) -> None:
        """The next record goes on with it."""
        self._records.append((offset, value))
        self._size += len(value)

    def entry(self) -> Entry:
        """All of it as one entry, whose position is that of the last record."""
        first, records = self._first, self._records
        if len(records) == 1:
            return first
        offset, value = records[-1]
        position = first.position
        if isinstance(position, KafkaPosition):
            position = replace(position, offset=offset + 1, record=crc32(value))
        return first._replace(position=position, rows=len(records), payload=joined(records))
