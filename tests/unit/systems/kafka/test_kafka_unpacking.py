"""Records of Kafka's answers, unpacked here and by kafka-python."""

from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.protocol.consumer.offsets import IsolationLevel
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.structs import TopicPartition

from setl.errors import DataError
from setl.systems.kafka import unpacking
from setl.systems.kafka.record import pack_headers
from setl.systems.kafka.unpacking import fast, unpack_fast

PARTITION = TopicPartition("orders", 3)
THEIRS = Fetcher.PartitionRecords
OURS = fast(THEIRS)

_DATA = st.none() | st.binary(max_size=200) | st.integers(0, 20_000).map(lambda n: b"v" * n)
_HEADERS = st.lists(st.tuples(st.text(max_size=90), st.none() | st.binary(max_size=90)), max_size=3)
_RECORDS = st.lists(
    st.tuples(st.integers(0, 2**41), st.none() | st.binary(max_size=90), _DATA, _HEADERS),
    min_size=1,
    max_size=4,
)


def batch(records, base=0, *, magic=2, compression=0, producer=-1, control=False, appended=False):
    """The bytes of one batch."""
    builder = MemoryRecordsBuilder(
        magic, compression, 1 << 24,
        **({"transactional": True, "producer_id": producer, "producer_epoch": 0,
            "base_sequence": 0} if producer >= 0 else {}),
    )  # fmt: skip
    for timestamp, key, value, headers in records:
        assert builder.append(timestamp, key, value, headers) is not None
    builder.close()
    data = bytearray(builder.buffer())
    data[:8] = base.to_bytes(8)
    if magic == 2:
        data[22] |= 0x20 * control | 0x08 * appended
    return bytes(data)


def seen(record):
    """What is asked of a record, by whoever it was unpacked."""
    return (record.offset, record.partition, record.timestamp, record.key, record.value,
            record.headers)  # fmt: skip


def unpacked(kind, data, start=0, **more):
    """What a class makes of an answer: its records, and what it says of the place after it."""
    drained = []
    records = kind(
        start, PARTITION, MemoryRecords(data), on_drain=drained.append,
        **{"check_crcs": False, **more},
    )  # fmt: skip
    found = []
    while records and (part := records.take(3)):
        found += [(*seen(record), records.leader_epoch) for record in part]
        found.append(records.next_fetch_offset)  # by which it is told whether a jump came between
    return found, records.next_fetch_offset, len(drained), records.bytes_read > 0


@given(st.lists(_RECORDS, min_size=1, max_size=3), st.booleans(), st.sampled_from([0, 1]))
def test_records_are_what_kafka_python_makes_of_them(batches, appended, compression):
    data, base = b"", 7
    for records in batches:
        data += batch(records, base, appended=appended, compression=compression)
        base += len(records) + 5  # offsets have gaps
    assert unpacked(OURS, data) == unpacked(THEIRS, data)
    assert unpacked(OURS, data, start=9) == unpacked(THEIRS, data, start=9)


def test_old_messages_are_read_as_well():
    data = batch([(5, b"k", b"v", []), (6, None, None, [])], magic=1)
    found, _, _, _ = unpacked(OURS, data, check_crcs=True)
    assert [(r[0], r[3], r[4]) for r in found[:2]] == [(0, b"k", b"v"), (1, None, None)]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_may_be_compressed(magic):
    records = [(5, b"k", b"v" * 900, []), (6, None, b"w", [])]
    data = batch(records, magic=magic, compression=1)
    found, _, _, _ = unpacked(OURS, data)
    assert [(r[3], r[4]) for r in found[:2]] == [(b"k", b"v" * 900), (None, b"w")]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_small_batch_does_not_grow_without_end(magic, monkeypatch):
    data = batch([(5, b"k", bytes(1 << 20), [])], magic=magic, compression=1)
    assert len(data) < 10_000
    monkeypatch.setattr(unpacking, "inflated", partial(unpacking.inflated, most=100_000))
    with pytest.raises(CorruptRecordError, match="holds more than 100000 bytes"):
        unpacked(OURS, data)


def test_checksums_are_looked_at_where_asked():
    data = bytearray(batch([(5, b"k", b"value", [])]))
    assert unpacked(OURS, bytes(data), check_crcs=True) == unpacked(THEIRS, bytes(data))
    data[-3] ^= 1
    with pytest.raises(CorruptRecordError):
        unpacked(OURS, bytes(data), check_crcs=True)


def test_given_up_transactions_and_marks_are_no_records():
    one = [(5, None, b"a", [])]
    end = [(5, b"\0\0\0\0", b"\0\0\0\0\0\0", [])]  # the mark of one that was given up
    data = (
        batch(one, 0, producer=1) + batch(one, 1, producer=2) + batch(end, 2, producer=1,
        control=True) + batch(one, 3, producer=1) + batch(one, 4)
    )  # fmt: skip
    aborted = [SimpleNamespace(producer_id=1, first_offset=0)]
    shown = {}
    for kind in (OURS, THEIRS):
        found = unpacked(
            kind, data, aborted_transactions=aborted, isolation_level=IsolationLevel.READ_COMMITTED
        )
        shown[kind] = [r[0] for r in found[0] if isinstance(r, tuple)], found[1]
    assert shown[OURS] == shown[THEIRS] == ([1, 3, 4], 5)
    all_of_it = unpacked(OURS, data)[0]
    assert [r[0] for r in all_of_it if isinstance(r, tuple)] == [0, 1, 3, 4]


def test_a_mark_was_passed_though_what_follows_is_damaged():
    end = [(5, b"\0\0\0\1", b"\0\0\0\0\0\0", [])]
    damaged = bytearray(batch([(5, None, b"a", [])], 1))
    damaged[61] ^= 0x10
    data = batch(end, 0, producer=1, control=True) + bytes(damaged)
    for kind in (OURS, THEIRS):
        records = kind(0, PARTITION, MemoryRecords(data), check_crcs=False)
        with pytest.raises(CorruptRecordError):
            records.take(3)
        assert records.next_fetch_offset == 1


@given(st.integers(61, 400), st.integers(0, 7))
def test_damaged_batches_are_refused_or_read(place, bit):
    records = [(5, b"key", b"v" * 90, [("setl", b"x" * 30)]), (6, None, b"w" * 150, [])]
    data = bytearray(batch(records))
    data[61 + (place - 61) % (len(data) - 61)] ^= 1 << bit
    outcomes = []
    for kind in (OURS, THEIRS):
        try:
            outcomes.append(unpacked(kind, bytes(data))[0])
        except (CorruptRecordError, DataError):  # the latter of headers, which ours reads last
            outcomes.append(None)
    assert outcomes[0] == outcomes[1]


@given(_HEADERS)
def test_headers_are_packed_as_they_stand_in_a_record(headers):
    data = batch([(5, b"k", b"value", headers)])
    (record,) = OURS(0, PARTITION, MemoryRecords(data), check_crcs=True).take(2)
    assert record.packed_headers == pack_headers(headers)
    assert record.headers == headers


def test_records_are_unpacked_no_further_than_they_are_taken():
    one = [(5, None, b"a", []), (6, None, b"b", [])]
    records = OURS(0, PARTITION, MemoryRecords(batch(one) + batch(one, 2)), check_crcs=False)
    places = []
    while records and (part := records.take(1)):
        places.append((part[0].offset, records.next_fetch_offset))
    assert places == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_a_consumer_is_made_to_unpack_so():
    fetcher = SimpleNamespace(PartitionRecords=THEIRS)
    unpack_fast(SimpleNamespace(_fetcher=fetcher))
    assert issubclass(fetcher.PartitionRecords, THEIRS)
    assert fetcher.PartitionRecords is not THEIRS
