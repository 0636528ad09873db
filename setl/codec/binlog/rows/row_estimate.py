"""Estimates how many rows an event holds; the event does not say, and decoding costs too much."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final

from setl.codec.binlog.event import (
    COMPRESSED_ROWS,
    HEADER_BYTES,
    UPDATES,
    EventType,
    body_of,
    extra_data_end,
    has_checksums,
    packed_integer,
)
from setl.codec.binlog.inflation import images_bytes, inflated_rows
from setl.codec.binlog.tables.table_map import TableMap, parse_table_map, value_bytes

_SAMPLE_ROWS: Final = 8  # rows measured at the front of an event
_SAMPLE_EVERY: Final = 64  # events of one table between two measurements
_ONE: Final = 1.5  # rows of an event, from where on it is taken to hold more than one
_FIRST_COMPRESSED: Final = min(COMPRESSED_ROWS)
_UPDATES: Final = bytes(UPDATES)
_SIZE_AT: Final = 9
_kind_of = itemgetter(4)


class RowEstimate:
    """Learns the average size of a table's row images by measuring some of them.

    Exact for events of one image that was measured; otherwise off by as much as rows of the
    table differ in size.
    """

    def __init__(self, table: TableMap) -> None:
        self._values = tuple(value_bytes(column) for column in table.columns)
        self._average = 0.0
        self._next_sample = 0

    def rows(self, events: Sequence[bytes], size: int, *, checksum: bool) -> int:
        """Estimated row changes in ROWS events of one table, at least one for each.

        Args:
            events: the events; only one if it is compressed.
            size: their bytes.
            checksum: whether each ends with a checksum.

        Raises:
            ValueError, LookupError: it is compressed, and cannot be uncompressed.
        """
        first, count = events[0], len(events)
        kind = first[4]
        if kind >= _FIRST_COMPRESSED:
            return self._compressed_rows(first, checksum=checksum)
        # Header, table id and flags, and in version 2 an empty block of extra data.
        front = HEADER_BYTES + (10 if kind >= 30 else 8)
        if self._next_sample <= 0:
            self._next_sample = _SAMPLE_EVERY
            self._measure(first[:-4] if checksum else first, front, update=kind in UPDATES)
        self._next_sample -= count
        updates = count - len(bytes(map(_kind_of, events)).translate(None, _UPDATES))
        bitmaps = (len(self._values) + 7) // 8
        overhead = front + 1 + bitmaps + (4 if checksum else 0)
        images = (size - count * overhead - updates * bitmaps) / (self._average or 1.0)
        # Updates have two images of each row, the others one.
        each = images / (count + updates)
        # Events of one row each are told by their average better than by the sum of their bytes.
        if each < _ONE:
            return count
        if 0 < updates < count:
            return self._mixed(events, checksum=checksum)
        return round(each * count)

    def _mixed(self, events: Sequence[bytes], *, checksum: bool) -> int:
        """Of updates and others, some of them with several rows."""
        updates = [event for event in events if event[4] in UPDATES]
        others = [event for event in events if event[4] not in UPDATES]
        parts = ((part, sum(map(len, part))) for part in (updates, others))
        return sum(self.rows(part, size, checksum=checksum) for part, size in parts)

    def _compressed_rows(self, event: bytes, *, checksum: bool) -> int:
        if self._next_sample <= 0:
            plain = inflated_rows(event, checksum=checksum)
            return self.rows((plain,), len(plain), checksum=False)
        self._next_sample -= 1
        images = images_bytes(event) / (self._average or 1.0)
        return max(1, round(images / 2 if COMPRESSED_ROWS[event[4]] in UPDATES else images))

    def _measure(self, event: bytes, front: int, *, update: bool) -> None:
        try:
            at = extra_data_end(event, front - 2) if front > HEADER_BYTES + 8 else front
            sizes = self._image_sizes(event, at, update=update)
        except (LookupError, ValueError):
            # Decoding will say what is wrong with the event.
            return
        if sizes:
            sample = sum(sizes) / len(sizes)
            self._average = (self._average + sample) / 2 if self._average else sample

    def _image_sizes(self, event: bytes, at: int, *, update: bool) -> Sequence[int]:
        count, at = packed_integer(event, at)
        if count != len(self._values):
            raise ValueError(f"{count} columns where the table has {len(self._values)}")
        width = (count + 7) // 8
        columns = (1 << count) - 1  # MySQL may set the bits behind the last column's
        present = [int.from_bytes(event[at : at + width], "little") & columns]
        at += width
        if update:
            present.append(int.from_bytes(event[at : at + width], "little") & columns)
            at += width
        sizes: list[int] = []
        # Behind the first before image of partial updates come images of another form.
        most = 1 if event[4] == EventType.PARTIAL_UPDATE_ROWS else _SAMPLE_ROWS * 2
        while at < len(event) and len(sizes) < most:
            end = self._image_end(event, at, present[len(sizes) % len(present)])
            if end > len(event):
                raise IndexError("an image ends behind the event")
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


def likely_rows(context: tuple[bytes, ...], payload: bytes, size: int) -> float:
    """About how many rows so many bytes of events hold, if all of them are as the first one.

    Args:
        context: of the entries, see `Entry.context`.
        payload: the first events.
        size: bytes of all of them.

    Returns:
        0 if the first event, or what describes its table, makes no sense.
    """
    try:
        event = payload[: int.from_bytes(payload[_SIZE_AT : _SIZE_AT + 4], "little")]
        rows = _estimate(context).rows([event], len(event), checksum=has_checksums(context[0]))
    except (ValueError, LookupError):
        return 0
    return rows * size / len(event)


@lru_cache(maxsize=1024)
def _estimate(context: tuple[bytes, ...]) -> RowEstimate:
    body = body_of(context[1], checksum=has_checksums(context[0]))
    return RowEstimate(parse_table_map(body))
