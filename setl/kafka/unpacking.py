"""Unpacks the records of Kafka's answers in one loop.

kafka-python makes four calls and two objects for a record, and reads each of its numbers by a
function; that is more than is done with a record here afterwards. What it decides about batches
(their checksums, which transactions were given up, where reading goes on) is done as it does it.

Source of the format: https://kafka.apache.org/documentation/#recordbatch, version 2 of messages.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from kafka.consumer.fetcher import ConsumerRecord  # pyright: ignore[reportMissingTypeStubs]
from kafka.errors import CorruptRecordError

_CURRENT: Final = 2  # version of messages since Kafka 0.11
_READ_COMMITTED: Final = 1  # what the client is asked to show: nothing that was given up
_LONGEST: Final = 10  # bytes of a number
_NONE: Final = 1  # the length -1, as it stands in the bytes
# A first byte → the number that it alone is; None if more bytes follow.
_SMALL: Final = tuple([byte >> 1 ^ -(byte & 1) if byte < 0x80 else None for byte in range(256)])
_tuple: Final[Any] = tuple
_new: Final[Any] = _tuple.__new__  # a third of the time of calling the class


def unpack_fast(consumer: Any) -> None:
    """Make a KafkaConsumer unpack records this way; before it reads anything.

    kafka-python has no way to be told. What is replaced is the class of its fetcher that unpacks
    the records of one answer, see also `setl.kafka.aborted`.
    """
    fetcher = consumer._fetcher  # noqa: SLF001
    fetcher.PartitionRecords = fast(fetcher.PartitionRecords)


def fast(base: Any) -> Any:
    """A class like kafka-python's ``PartitionRecords``, faster."""

    def unpacked(
        self: Any, tp: Any, records: Any, key_deserializer: Any, value_deserializer: Any
    ) -> Generator[Any]:
        if key_deserializer is not None or value_deserializer is not None:
            yield from base._unpack_records(  # noqa: SLF001
                self, tp, records, key_deserializer, value_deserializer
            )
            return
        last = None
        while (batch := records.next_batch()) is not None:
            last = batch
            if self.check_crcs and not batch.validate_crc():
                raise CorruptRecordError(
                    f"a batch of {tp.topic}[{tp.partition}] at offset {batch.base_offset} has"
                    " another checksum than it says"
                )
            if batch.magic != _CURRENT:
                for record in batch:
                    if self.check_crcs and not record.validate_crc():
                        raise CorruptRecordError(
                            f"the record of {tp.topic}[{tp.partition}] at offset {record.offset}"
                            " has another checksum than it says"
                        )
                    self.next_fetch_offset = record.offset + 1
                    self.bytes_read += record.size_in_bytes
                    yield ConsumerRecord(
                        tp.topic, tp.partition, -1, record.offset, record.timestamp,
                        record.timestamp_type, record.key, record.value, record.headers,
                        record.checksum, _size(record.key), _size(record.value), -1,
                    )  # fmt: skip
                continue
            self.leader_epoch = batch.leader_epoch
            self.bytes_read += batch.size_in_bytes
            if not _is_shown(self, batch):
                self.next_fetch_offset = batch.next_offset
                continue
            try:
                yield from _records(self, tp, batch)
            except (ValueError, IndexError) as error:
                raise CorruptRecordError(
                    f"a batch of {tp.topic}[{tp.partition}] at offset {batch.base_offset} cannot be"
                    f" read: {error}"
                ) from error
        if last is not None and last.magic == _CURRENT:
            # The last records of a batch may have been removed.
            self.next_fetch_offset = last.next_offset
        self.drain()

    return type("FastRecords", (base,), {"_unpack_records": unpacked})


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _is_shown(state: Any, batch: Any) -> bool:
    """Whether a batch's records are for readers: neither given up nor marks of transactions."""
    if state.isolation_level == _READ_COMMITTED and batch.has_producer_id():
        state._consume_aborted_transactions_up_to(batch.last_offset)  # noqa: SLF001
        if state._contains_abort_marker(batch):  # noqa: SLF001
            state.aborted_producer_ids.discard(batch.producer_id)
        elif state._is_batch_aborted(batch):  # noqa: SLF001
            return False
    return not batch.is_control_batch


def _records(state: Any, tp: Any, batch: Any) -> Generator[Any]:
    """The records of one batch, each a ConsumerRecord.

    Raises:
        ValueError: the bytes make no sense.
        IndexError: likewise.
    """
    batch._maybe_uncompress()  # noqa: SLF001
    data, at = bytes(batch._buffer), batch._pos  # noqa: SLF001
    topic, partition, epoch = tp.topic, tp.partition, batch.leader_epoch
    base, first, kind = batch.base_offset, batch.first_timestamp, batch.timestamp_type
    appended = batch.max_timestamp if kind else 0
    small = _SMALL
    for _ in range(batch.records_count):
        # The hot loop: numbers are mostly of one byte, and cost no call then.
        size = small[data[at]]
        size, at = (size, at + 1) if size is not None else _number(data, at)
        end = at + size
        at += 1  # attributes: none are defined
        delta = small[data[at]]
        delta, at = (delta, at + 1) if delta is not None else _number(data, at)
        offset = small[data[at]]
        offset, at = (offset, at + 1) if offset is not None else _number(data, at)
        offset += base
        if data[at] == _NONE:
            key = None
            at += 1
        else:
            key, at = _data(data, at)
        value, at = _data(data, at)
        count = small[data[at]]
        count, at = (count, at + 1) if count is not None else _number(data, at)
        headers: list[tuple[str, bytes | None]] = []
        if count:
            at = _headers(data, at, count, headers)
        if at != end:
            raise ValueError(f"a record ends at {at}, not at {end}")
        state.next_fetch_offset = offset + 1
        yield _new(
            ConsumerRecord,
            (topic, partition, epoch, offset, appended or first + delta, kind, key, value,
             headers, None, -1, -1, -1),
        )  # fmt: skip
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes are left behind its records")


def _headers(data: bytes, at: int, count: int, headers: list[tuple[str, bytes | None]]) -> int:
    """Add so many headers to a list; gives the offset behind them."""
    if count < 0:
        raise ValueError("fewer than no headers")
    for _ in range(count):
        name, at = _data(data, at)
        if name is None:
            raise ValueError("a header without a name")
        value, at = _data(data, at)
        headers.append((name.decode(), value))
    return at


def _data(data: bytes, at: int) -> tuple[bytes | None, int]:
    """The bytes behind their length at an offset, None for no such, and the offset behind them."""
    size = data[at]
    at += 1
    if size > 0x7F:
        low = data[at]
        if low > 0x7F or size & 1:
            size, at = _number(data, at - 1)
        else:
            size = (size & 0x7F | low << 7) >> 1
            at += 1
    elif size & 1:
        size = -1
    else:
        size >>= 1
    if size < 0:
        return None, at
    end = at + size
    return data[at:end], end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number at an offset, and the offset behind it; written as in Avro."""
    number = shift = 0
    for place in range(at, at + _LONGEST):
        byte = data[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), place + 1
        shift += 7
    raise ValueError("a number of more than 64 bits")
