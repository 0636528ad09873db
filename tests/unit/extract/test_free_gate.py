"""What rows of the free gate ask for."""

from typing import Any

import pytest

from setl.extract.free_gate import GateRow, gate_rows
from setl.model.change import DecodedRows, Op
from setl.model.load_request import FREE_GATE
from setl.model.schema import Column, Kind, RowSchema
from setl.run.table_loads.gate_requests import gate_requests

COLUMNS = ("ID", "TABLE_ID", "FULL_NAME", "TYPE", "PK_DATA")
SCHEMA = RowSchema(
    "retl", "retl_buffer", tuple(Column(name, Kind.TEXT) for name in COLUMNS), key=(0,)
)


def asked(*rows, op=Op.INSERT):
    images: list[Any] = [(None, row) if op is not Op.DELETE else (row, None) for row in rows]
    return gate_rows(DecodedRows(SCHEMA, op, images))


def test_rows_with_one_and_with_several_values():
    rows = (1, 0, "shop.items", "U", "7"), (2, 5, "shop.parts", "d", "7\x01a b\x01")
    assert asked(*rows) == (
        [GateRow("shop.items", ("7",)), GateRow("shop.parts", ("7", "a b", ""))],
        [],
    )


def test_rows_that_are_deleted_there_ask_for_nothing():
    assert asked((1, 0, "shop.items", "U", "7"), op=Op.DELETE) == ([], [])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ((1, 7, None, "U", "7"), "row 1: FULL_NAME"),
        ((1, 0, "items", "U", "7"), "FULL_NAME is 'items'"),
        ((1, 0, "shop.", "U", "7"), "FULL_NAME"),
        ((1, 0, "shop.items", "X", "7"), "TYPE is 'X'"),
        ((1, 0, "shop.items", "U", ""), "PK_DATA is empty"),
    ],
)
def test_what_is_wrong_is_said(row, problem):
    wanted, (said,) = asked(row)
    assert wanted == []
    assert problem in said


def test_requests_are_of_one_table_each_and_name_a_row_once():
    rows = [GateRow("s.a", ("1",)), GateRow("s.b", ("x", "y")), GateRow("s.a", ("1",))]
    first, second = gate_requests([*rows, GateRow("s.a", ("2",))], 5.0)
    assert (first.tables, first.keys, first.key) == (("s.a",), (("1",), ("2",)), ())
    assert (second.tables, second.keys, second.reason) == (("s.b",), (("x", "y"),), FREE_GATE)
