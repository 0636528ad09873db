"""What people see of records that stand alone."""

import pytest

from setl.channel.file import KafkaSource
from setl.systems.kafka.record import Record
from setl.systems.kafka.record_describer import StandaloneDescriber
from setl.systems.seen_record import UNREADABLE
from tests.unit.codec.json_records import canal, debezium, key


def describe(format_, value, record_key=None):
    config = KafkaSource(type="kafka", format=format_, brokers=["k:9092"], topic="orders")
    record = Record(2, 7, 1_700_000_001_000, record_key, value, (("h", b"v"),))
    return StandaloneDescriber(config).describe(record)


def test_a_row():
    (seen,) = describe("debezium", debezium("u", {"id": 1}, {"id": 1}), key(id=1))
    assert (str(seen.position), seen.operation, seen.timestamp) == (
        "orders[2]@7",
        "UPDATE",
        1_700_000_000.0,
    )
    assert (seen.schema, seen.table, seen.written) == ("shop", "orders", 1_700_000_001.0)
    assert seen.change is not None
    assert seen.change.after is not None
    assert seen.change.after.as_integer("id") == 1
    assert seen.headers == (("h", b"v"),)


def test_each_row_of_a_message():
    seen = describe("canal", canal("DELETE", [{"id": "1"}, {"id": "2"}]))
    rows = [each.change.before for each in seen if each.change is not None]
    assert [row and row.as_integer("id") for row in rows] == [1, 2]


@pytest.mark.parametrize(
    ("value", "operation"),
    [(None, "TOMBSTONE"), (b'{"ts_ms":1}', "HEARTBEAT"), (debezium("t"), "DDL")],
)
def test_what_is_no_row(value, operation):
    (seen,) = describe("debezium", value, key(id=1))
    assert (seen.operation, seen.change, seen.problem) == (operation, None, "")


@pytest.mark.parametrize("format_", ["debezium", "canal"])
def test_what_cannot_be_read_is_shown(format_):
    (seen,) = describe(format_, b"\0\0\0\0\1\2")
    assert seen.operation == UNREADABLE
    assert "not a" in seen.problem
    assert seen.payload == b"\0\0\0\0\1\2"
