"""Errors about rows say where in the stream the rows are (I18)."""

from dataclasses import replace

import pytest

from setl.errors import DataError, TransientError
from setl.extract.extractor import RoutedRows
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition, KafkaPosition, document_version
from setl.run.loads.fault_positions import locate_fault, with_position
from tests.loading import ticket_for

POSITION = BinlogPosition("bin.000012", 4711)


def rows(*offsets):
    return [
        RoutedRows(Entry(EntryKind.ROWS, BinlogPosition("bin.000012", offset), 0.0), ())
        for offset in offsets
    ]


@pytest.mark.parametrize(
    ("position", "near"),
    [
        (POSITION, BinlogPosition("bin.000013", 4)),
        (KafkaPosition("orders", 2, 77), KafkaPosition("orders", 2, 99)),
    ],
)
def test_a_version_is_reported_as_a_position(position, near):
    ticket = replace(ticket_for("p"), at=near)
    error = DataError("too long", key="3", version=document_version(5, position))
    assert with_position(error, ticket).where == {"key": "3", "position": str(position)}
    locate_fault(error, rows(1, 2))
    assert error.where["position"] == str(position)


def test_rows_that_were_read_from_a_table_have_no_position():
    ticket = replace(ticket_for("p"), at=POSITION, from_tables=True)
    error = DataError("too long", version=document_version(0, POSITION))
    assert with_position(error, ticket).where == {}


def test_without_a_version_the_insert_partition_is_reported():
    error = DataError("an expression failed")
    locate_fault(error, rows(100, 300, 900))
    assert error.where["position"] == "from bin.000012:100 to bin.000012:900"
    error = DataError("an expression failed")
    locate_fault(error, rows(100))
    assert error.where["position"] == "bin.000012:100"
    error = TransientError("the target is gone")
    locate_fault(error, rows(100))
    assert error.where == {}
