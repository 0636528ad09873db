"""How many rows an event holds, about: nothing in the event says, and decoding is too dear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.codec.binlog.event import (
    COMPRESSED_ROWS,
    HEADER_BYTES,
    UPDATES,
    EventType,
    packed_integer,
)
from setl.codec.binlog.inflation import images_bytes, inflated_rows
from setl.codec.binlog.table_map import TableMap, value_bytes

_SAMPLE_ROWS: Final = 8  # rows measured at the front of an event
_SAMPLE_EVERY: Final = 64  # events of one table between two measurements
_FIRST_COMPRESSED: Final = min(COMPRESSED_ROWS)


class RowEstimate:
    """Learns the average size of a table's row images by measuring some of them.

    Exact for events of one image that was measured; otherwise off by as much as rows of the
    table differ in size.
    """

    def __init__(self, table: TableMap) -> None:
        self._values = tuple(value_bytes(column) for column in table.columns)
        self._average = 0.0
        self._next_sample = 0

    def rows(self, event: bytes, event_type: int, *, checksum: bool) -> int:
        """Estimated row changes in a ROWS event, at least 1.

        Raises:
            ValueError, LookupError: it is compressed, and cannot be uncompressed.
        """
        if event_type >= _FIRST_COMPRESSED:
            return self._compressed_rows(event, checksum=checksum)
        size = len(event) - (4 if checksum else 0)
        update = event_type in UPDATES
        # Header, table id and flags, and in version 2 an empty block of extra data.
        front = HEADER_BYTES + (10 if event_type >= 30 else 8)
        if self._next_sample == 0:
            self._next_sample = _SAMPLE_EVERY
            self._measure(event[:size], front, update=update)
        self._next_sample -= 1
        bitmaps = (len(self._values) + 7) // 8 * (2 if update else 1)
        images = (size - front - 1 - bitmaps) / (self._average or 1.0)
        return max(1, round(images / 2 if update else images))

    def _compressed_rows(self, event: bytes, *, checksum: bool) -> int:
        if self._next_sample == 0:
            plain = inflated_rows(event, checksum=checksum)
            return self.rows(plain, plain[4], checksum=False)
        self._next_sample -= 1
        images = images_bytes(event) / (self._average or 1.0)
        return max(1, round(images / 2 if COMPRESSED_ROWS[event[4]] in UPDATES else images))

    def _measure(self, event: bytes, front: int, *, update: bool) -> None:
        at = front
        if at > HEADER_BYTES + 8:
            # The block's size stands in its first two bytes and includes them.
            at += int.from_bytes(event[at - 2 : at], "little") - 2
        try:
            sizes = self._image_sizes(event, at, update=update)
        except (IndexError, KeyError):
            # Decoding will say what is wrong with the event.
            return
        if sizes:
            sample = sum(sizes) / len(sizes)
            self._average = (self._average + sample) / 2 if self._average else sample

    def _image_sizes(self, event: bytes, at: int, *, update: bool) -> Sequence[int]:
        count, at = packed_integer(event, at)
        width = (count + 7) // 8
        present = [int.from_bytes(event[at : at + width], "little")]
        at += width
        if update:
            present.append(int.from_bytes(event[at : at + width], "little"))
            at += width
        sizes: list[int] = []
        # Behind the first before image of partial updates come images of another form.
        most = 1 if event[4] == EventType.PARTIAL_UPDATE_ROWS else _SAMPLE_ROWS * 2
        while at < len(event) and len(sizes) < most:
            end = self._image_end(event, at, present[len(sizes) % len(present)])
            sizes.append(end - at)
            at = end
        return sizes

    def _image_end(self, event: bytes, at: int, present: int) -> int:
        width = (present.bit_count() + 7) // 8
        nulls = int.from_bytes(event[at : at + width], "little")
        at += width
        for size in self._values:
            if present & 1:
                if not nulls & 1:
                    at += (
                        size
                        if size >= 0
                        else int.from_bytes(event[at : at - size], "little") - size
                    )
                nulls >>= 1
            present >>= 1
        return at
