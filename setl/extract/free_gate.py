"""Otter's free gate: rows of ``retl.retl_buffer`` name rows that are to be sent again.

See https://github.com/alibaba/otter/wiki for the table: FULL_NAME is ``schema.table``, PK_DATA has
the values of the primary key, in the order of the key, separated by the character 1. TABLE_ID is a
number that only Otter's manager knows.
"""

from __future__ import annotations

from typing import NamedTuple

from setl.model.change import DecodedRows, Op, Row, Value

SEPARATOR = "\x01"
_TYPES = frozenset({"I", "U", "D"})


class GateRow(NamedTuple):
    """A row that is to be sent again.

    Attributes:
        table: ``schema.table`` at the source.
        key: values of its key, as text.
    """

    table: str
    key: Row


def gate_rows(decoded: DecodedRows) -> tuple[list[GateRow], list[str]]:
    """What rows written to the free gate ask for, and what is wrong with those that ask nothing.

    Rows that are deleted there ask for nothing, and nothing is wrong with them.
    """
    if decoded.op is Op.DELETE:
        return [], []
    indexes = decoded.schema.folded
    wanted: list[GateRow] = []
    wrong: list[str] = []
    for _, after in decoded.images:
        if after is None:
            continue
        values = {name: after[indexes[name]] if name in indexes else None for name in _COLUMNS}
        number, name, kind, key = (_text(values[column]) for column in _COLUMNS)
        problem = _problem(name, kind, key)
        if problem:
            wrong.append(f"row {number}: {problem}")
        else:
            wanted.append(GateRow(name, tuple(key.split(SEPARATOR))))
    return wanted, wrong


_COLUMNS = ("id", "full_name", "type", "pk_data")


def _problem(name: str, kind: str, key: str) -> str:
    if name.count(".") < 1 or name.startswith(".") or name.endswith("."):
        return f"FULL_NAME is {name!r}, and no schema.table"
    if kind.upper() not in _TYPES:
        return f"TYPE is {kind!r}, and neither I, U nor D"
    return "" if key else "PK_DATA is empty"


def _text(value: Value) -> str:
    return "" if value is None or not isinstance(value, str | int) else str(value).strip(" ")
