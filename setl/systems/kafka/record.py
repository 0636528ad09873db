"""One record of a topic, with its headers as they stand in Kafka's bytes until somebody asks.

A relay writes a header beside each record, and the source of a pipeline needs no more of it than
to compare bytes, so a list of names and values is made only where one is read.

Source of the format: https://kafka.apache.org/documentation/#recordheader.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from setl.errors import DataError

_LONGEST: Final = 10  # bytes of a number

Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """A record as a consumer made by `setl.systems.kafka.client.connect` gives it.

    Attributes:
        partition: the number of its partition.
        offset: its offset.
        timestamp: when it was written, or taken by the broker, as the topic is set; in
            milliseconds, or whatever its writer took for that. Negative or None: not known.
        key: its key, None if it has none.
        value: its value, None for a tombstone.
        packed_headers: its headers as `pack_headers` writes them, b"" if it has none.
    """

    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    packed_headers: bytes = b""

    @property
    def headers(self) -> Headers:
        """Names and values of its headers, in order.

        Raises:
            DataError: the bytes make no sense.
        """
        try:
            return unpack_headers(self.packed_headers)
        except (ValueError, IndexError) as error:
            raise DataError(
                f"the headers of the record at offset {self.offset} cannot be read: {error}",
                hint="The broker delivers a damaged record",
            ).at(partition=self.partition, offset=self.offset) from error


def unpack_headers(packed: bytes) -> Headers:
    """Names and values out of a record's bytes, from their count on.

    Raises:
        ValueError: the bytes make no sense.
        IndexError: likewise.
    """
    headers = Headers()
    if not packed:
        return headers
    count, at = read_number(packed, 0)
    if count < 0:
        raise ValueError("fewer than no headers")
    for _ in range(count):
        name, at = read_data(packed, at)
        if name is None:
            raise ValueError("a header without a name")
        value, at = read_data(packed, at)
        headers.append((name.decode(), value))
    if at != len(packed):
        raise ValueError(f"a record ends at {at}, not at {len(packed)}")
    return headers


def pack_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """The other way round; b"" if there are none."""
    packed, count = bytearray(), 0
    for name, value in headers:
        _write_data(packed, name.encode())
        _write_data(packed, value)
        count += 1
    return _number(count) + bytes(packed) if count else b""


def read_data(data: bytes, at: int) -> tuple[bytes | None, int]:
    """The bytes behind their length at an offset, None for no such, and the offset behind them.

    Raises:
        ValueError: the length makes no sense, or the bytes end before.
        IndexError: likewise.
    """
    size, at = read_number(data, at)
    if size < 0:
        return None, at
    end = at + size
    if end > len(data):
        raise ValueError(f"{size} bytes at {at} go beyond the end")
    return data[at:end], end


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """A number at an offset, and the offset behind it; written as in Avro.

    Raises:
        ValueError: it has more than 64 bits.
        IndexError: the bytes end before.
    """
    number = shift = 0
    for place in range(at, at + _LONGEST):
        byte = data[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), place + 1
        shift += 7
    raise ValueError("a number of more than 64 bits")


def _write_data(packed: bytearray, data: bytes | None) -> None:
    packed += _number(-1 if data is None else len(data))
    packed += data or b""


def _number(number: int) -> bytes:
    left, written = number << 1 ^ number >> 63, bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
