"""Reads by hand the table of a row's record and the kind of change."""

from __future__ import annotations

from typing import Final, NamedTuple

from setl.codec.dts.described import KEYS_TAG
from setl.codec.dts.header import row_name
from setl.codec.dts.middle import read_middle
from setl.codec.dts.scan import Misread
from setl.codec.dts.wire import operation_byte
from setl.model.change import Op

OPERATIONS: Final = {
    "INSERT": Op.INSERT,
    "INIT": Op.INSERT,
    "UPDATE": Op.UPDATE,
    "DELETE": Op.DELETE,
}
"""Operations of rows."""

OPERATION_BYTES: Final = {operation_byte(name): op for name, op in OPERATIONS.items()}
"""The same by the byte that stands for each in a record."""


class TableIdentity(NamedTuple):
    """What records say of a table; with another one, it is another state of the table at least.

    Attributes:
        name: schema and table.
        keys: the tag that describes its keys, "" without.
        columns: name and MySQL type number of each.
    """

    name: tuple[str, str]
    keys: str
    columns: tuple[tuple[str, int], ...]


def read_identity(data: bytes, at: int, *, logical_names: bool) -> tuple[Op, TableIdentity, int]:
    """Operation, table and where the images begin, from the offset behind the places on.

    Raises as `setl.codec.dts.middle.read_middle`; Misread also for a record that has no row.
    """
    operation, name, tags, columns, end = read_middle(data, at)
    op = OPERATIONS.get(operation)
    if op is None:
        raise Misread
    table = row_name(name, tags if logical_names else {})
    return op, TableIdentity(table, tags.get(KEYS_TAG, ""), columns), end
