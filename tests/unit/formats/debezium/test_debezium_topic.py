"""Topics of Debezium: tombstones, what is seen of records, and what `setl check` says of them."""

import pytest

from setl.errors import FatalError
from setl.model.schema import Column, Kind
from tests.unit.formats.debezium.records import debezium, delete, heartbeat, insert, key, truncate
from tests.unit.systems.kafka.standalone import (
    checker,
    describe,
    entries_from,
    entries_of,
    kinds,
    message,
    messages,
)


def test_a_tombstone_behind_its_delete_is_passed_over():
    records = [delete(1), delete(2), (key(id=1), None), (key(id=2), None)]
    _, (entries, error) = entries_of("debezium", *records)
    assert error is None
    assert kinds(entries) == "RCHH"


def test_a_tombstone_without_its_delete_stops():
    made, (entries, error) = entries_of("debezium", *[insert(1)] * 100, (key(id=2), None))
    assert kinds(entries) == "RC"
    assert isinstance(error, FatalError)
    assert "orders[0]@100" in str(error)
    assert "cleanup.policy" in error.hint
    assert made.next == 100


def test_shortly_after_a_start_the_delete_may_stand_before_it():
    made = entries_from("debezium", start=6)
    assert not made.is_repeat(message(5, *delete(1)))
    # Of two connectors: d1 d2 | t1 t2.
    entries, error = made.of(messages((key(id=1), None), (key(id=2), None), first=6))
    assert (kinds(entries), error) == ("HH", None)


def test_an_update_is_seen_with_its_row():
    (seen,) = describe("debezium", key(id=1), debezium("u", {"id": 1}, {"id": 1}))
    assert (seen.operation, seen.timestamp) == ("UPDATE", 1_700_000_000.0)
    assert seen.change is not None
    assert seen.change.after is not None
    assert seen.change.after.as_integer("id") == 1


@pytest.mark.parametrize(
    ("record", "operation"),
    [
        ((key(id=1), None), "TOMBSTONE"),
        ((key(id=1), b'{"ts_ms":1}'), "HEARTBEAT"),
        (heartbeat(), "HEARTBEAT"),
        (truncate(), "DDL"),
    ],
)
def test_what_is_no_row(record, operation):
    (seen,) = describe("debezium", *record)
    assert (seen.operation, seen.change, seen.problem) == (operation, None, "")


@pytest.fixture
def findings(monkeypatch):
    check = checker(monkeypatch, "debezium")
    return lambda *values, **more: check(*((key(id=1), value) for value in values), **more)


def test_a_tombstone_can_be_read(findings):
    assert findings(debezium("c", after={"id": 1}), None) == [("ok", "")]


def test_a_type_that_cannot_be_read_is_found_if_its_table_is_mapped(findings):
    odd = {"after": {"id": 1}, "fields": {"id": "array"}}
    assert findings(debezium("c", **odd, table="other")) == []
    assert findings(debezium("c", **odd)) == [("error", "record-unreadable")]


def test_columns_are_compared_with_those_of_the_database(findings):
    row = {"id": 1, "d": 1.5, "b": "YQ==", "t": "2021-01-28 17:29:04"}
    fields = {"id": "int32", "d": "double", "b": "string", "t": "string"}
    record = debezium("c", after=row, fields=fields)
    known = (
        Column("id", Kind.INTEGER),
        Column("D", Kind.DECIMAL),
        Column("b", Kind.BINARY),
        Column("t", Kind.TIMESTAMP),
        Column("gone", Kind.TEXT),
    )
    inexact = ("error", "inexact-records")
    assert findings(record, columns=known) == [inexact, inexact, inexact, ("ok", "")]
    right = (Column("id", Kind.INTEGER), Column("d", Kind.FLOAT), Column("b", Kind.TEXT))
    assert findings(record, columns=right) == [("ok", "")]


def test_a_default_may_stand_for_null_until_a_null_is_seen(findings):
    fields = {"id": "int32", "v": ("int32", "", {}, 5)}
    five, null = (debezium("c", after={"id": 1, "v": v}, fields=fields) for v in (5, None))
    assert findings(five) == [("error", "null-or-default"), ("ok", "")]
    assert findings(null, five) == [("ok", "")]
