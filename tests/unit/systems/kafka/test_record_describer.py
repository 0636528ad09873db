"""What people see of records that stand alone."""

import pytest

from setl.systems.seen_record import UNREADABLE
from tests.unit.formats.records import FORMATS, records_of
from tests.unit.systems.kafka.standalone import describe

EACH_FORMAT = pytest.mark.parametrize("format_", FORMATS)


@EACH_FORMAT
def test_a_row(format_):
    (seen,) = describe(format_, *records_of(format_).insert(1))
    assert (str(seen.position), seen.operation, seen.timestamp) == (
        "orders[2]@7",
        "INSERT",
        1_700_000_000.0,
    )
    assert (seen.schema, seen.table, seen.written) == ("shop", "orders", 1_700_000_001.0)
    assert seen.change is not None
    assert seen.change.before is None
    assert seen.change.after is not None
    assert seen.change.after.as_integer("id") == 1
    assert seen.headers == (("h", b"v"),)


@EACH_FORMAT
def test_what_is_no_row(format_):
    made = records_of(format_)
    for record, operations in (
        (made.truncate(), {"DDL"}),
        (made.heartbeat(), {"HEARTBEAT", "QUERY"}),
    ):
        (seen,) = describe(format_, *record)
        assert seen.operation in operations
        assert (seen.change, seen.problem) == (None, "")


@EACH_FORMAT
def test_what_cannot_be_read_is_shown(format_):
    (seen,) = describe(format_, None, b"\0\0\0\0\1\2")
    assert seen.operation == UNREADABLE
    assert "not a" in seen.problem
    assert seen.payload == b"\0\0\0\0\1\2"
