"""Unpacks the records of Kafka's answers, a batch at a time.

kafka-python makes four calls and two objects for a record, and reads each of its numbers by a
function; that is more than is done with a record here afterwards. What it decides about batches
(their checksums, which transactions were given up, where reading goes on) is done as it does it.

Source of the format: https://kafka.apache.org/documentation/#recordbatch, version 2 of messages.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import chain, dropwhile
from typing import Any, Final

from kafka.errors import CorruptRecordError

from setl.systems.kafka.inflating import inflated
from setl.systems.kafka.record import Record, pack_headers, read_data, read_number

_CURRENT: Final = 2  # version of messages since Kafka 0.11
_READ_COMMITTED: Final = 1  # what the client is asked to show: nothing that was given up
_NONE: Final = 1  # the length -1, as it stands in the bytes
# A first byte → the number that it alone is; None if more bytes follow.
_SMALL: Final = tuple([byte >> 1 ^ -(byte & 1) if byte < 0x80 else None for byte in range(256)])
_tuple: Final[Any] = tuple
_new: Final[Any] = _tuple.__new__  # a third of the time of calling the class


def unpack_fast(consumer: Any) -> None:
    """Make a KafkaConsumer unpack records this way, to `Record`; before it reads anything.

    kafka-python has no way to be told. What is replaced is the class of its fetcher that unpacks
    the records of one answer, see also `setl.systems.kafka.aborted`.
    """
    fetcher = consumer._fetcher  # noqa: SLF001
    fetcher.PartitionRecords = fast(fetcher.PartitionRecords)


def fast(base: Any) -> Any:
    """A class like kafka-python's ``PartitionRecords``, faster."""

    def start(self: Any, fetch_offset: int, tp: Any, records: Any, **more: Any) -> None:
        base.__init__(self, fetch_offset, tp, records, **more)

        def is_before(record: Record) -> bool:
            # A batch is never divided, so the first may begin before the place.
            return record.offset < fetch_offset

        batches = _batches(self, tp, records)
        self.record_iterator = dropwhile(is_before, chain.from_iterable(batches))

    def take(self: Any, n: int | None = None) -> list[Record]:
        taken = base.take(self, n)
        if taken:
            # Where reading would go on. Records are unpacked ahead of that; what lies behind the
            # last one taken, and is shown to nobody, may have been passed already.
            self.next_fetch_offset = max(self.next_fetch_offset, taken[-1].offset + 1)
        return taken

    return type("FastRecords", (base,), {"__init__": start, "take": take})


def _batches(state: Any, tp: Any, records: Any) -> Generator[list[Record]]:
    """The records of an answer, a list for each batch.

    Raises:
        CorruptRecordError: a batch is damaged; the records before that were given out.
    """
    last = None
    while (batch := records.next_batch()) is not None:
        last = batch
        where = f"a batch of {tp.topic}[{tp.partition}] at offset {batch.base_offset}"
        if state.check_crcs and not batch.validate_crc():
            raise CorruptRecordError(f"{where} has another checksum than it says")
        if batch.magic == _CURRENT:
            state.leader_epoch = batch.leader_epoch
            state.bytes_read += batch.size_in_bytes
            if not _is_shown(state, batch):
                state.next_fetch_offset = batch.next_offset
                continue
        found: list[Record] = []
        failure: Exception | None = None
        try:
            if batch.magic == _CURRENT:
                _unpack(tp.partition, batch, found)
            else:
                _unpack_old(state, tp.partition, batch, found)
        except (ValueError, IndexError) as error:
            failure = error
        yield found
        if failure is not None:
            raise CorruptRecordError(f"{where} cannot be read: {failure}") from failure
    if last is not None and last.magic == _CURRENT:
        # The last records of a batch may have been removed.
        state.next_fetch_offset = last.next_offset
    state.drain()


def _is_shown(state: Any, batch: Any) -> bool:
    """Whether a batch's records are for readers: neither given up nor marks of transactions."""
    if state.isolation_level == _READ_COMMITTED and batch.has_producer_id():
        state._consume_aborted_transactions_up_to(batch.last_offset)  # noqa: SLF001
        if state._contains_abort_marker(batch):  # noqa: SLF001
            state.aborted_producer_ids.discard(batch.producer_id)
        elif state._is_batch_aborted(batch):  # noqa: SLF001
            return False
    return not batch.is_control_batch


def _unpack_old(state: Any, partition: int, batch: Any, found: list[Record]) -> None:
    """Add the records of a batch as brokers before 0.11 wrote them, which has no headers.

    Raises:
        ValueError: the bytes make no sense, or hold too much.
    """
    if batch.compression_type:
        # kafka-python would want a library for each codec, and knows no limit.
        at = batch.KEY_OFFSET_V1 if batch.magic else batch.KEY_OFFSET_V0
        _, packed = batch._read_key_value(at)  # noqa: SLF001
        batch._buffer = memoryview(inflated(batch.compression_type, packed or b""))  # noqa: SLF001
        batch._decompressed = True  # noqa: SLF001
    for record in batch:
        if state.check_crcs and not record.validate_crc():
            raise ValueError(f"the record at {record.offset} has another checksum than it says")
        state.bytes_read += record.size_in_bytes
        packed = pack_headers(record.headers)
        found.append(
            Record(partition, record.offset, record.timestamp, record.key, record.value, packed)
        )


def _unpack(  # noqa: C901, PLR0912, PLR0915 - one loop: calls would cost a third more
    partition: int, batch: Any, found: list[Record]
) -> None:
    """Add the records of a batch.

    Numbers are mostly of one byte or two, and are read in place then.

    Raises:
        ValueError: the bytes make no sense.
        IndexError: likewise.
    """
    data = bytes(batch._buffer)  # noqa: SLF001
    at: int = batch._pos  # noqa: SLF001
    if batch.compression_type:
        data, at = inflated(batch.compression_type, data[at:]), 0
    base: int = batch.base_offset
    first: int = batch.first_timestamp
    appended: int = batch.max_timestamp if batch.timestamp_type else 0
    small, behind = _SMALL, len(data)
    for _ in range(batch.records_count):
        size = small[low := data[at]]
        if size is not None:
            at += 1
        elif (high := data[at + 1]) < 0x80:
            number = low & 0x7F | high << 7
            size = number >> 1 ^ -(number & 1)
            at += 2
        else:
            size, at = read_number(data, at)
        end = at + size
        at += 1  # attributes: none are defined
        delta = small[low := data[at]]
        if delta is not None:
            at += 1
        elif (high := data[at + 1]) < 0x80:
            number = low & 0x7F | high << 7
            delta = number >> 1 ^ -(number & 1)
            at += 2
        else:
            delta, at = read_number(data, at)
        offset = small[low := data[at]]
        if offset is not None:
            at += 1
        elif (high := data[at + 1]) < 0x80:
            number = low & 0x7F | high << 7
            offset = number >> 1 ^ -(number & 1)
            at += 2
        else:
            offset, at = read_number(data, at)
        key: bytes | None = None
        if data[at] == _NONE:
            at += 1
        else:
            key, at = read_data(data, at)
        low = data[at]
        if low > 0x7F and (high := data[at + 1]) < 0x80 and not low & 1:
            at += 2
            stop = at + ((low & 0x7F | high << 7) >> 1)
            value = data[at:stop]
            at = stop
        else:
            value, at = read_data(data, at)
        packed = data[at:end]
        if packed == b"\0":
            packed = b""
        if not at < end <= behind:
            raise ValueError(f"a record ends at {at}, not at {end}")
        at = end
        found.append(
            _new(Record, (partition, base + offset, appended or first + delta, key, value, packed))
        )
    if at != behind:
        raise ValueError(f"{behind - at} bytes are left behind its records")
