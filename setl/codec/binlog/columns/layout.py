"""How the rows of one table lie in its row events, worked out once for each table.

An image of a row is a bitmap of its NULLs, a bit for each column, then the values that are not
NULL, one behind the other. A value is of a fixed size or has its length in front of it, so where a
value lies depends only on the columns before it that may be NULL or have a length. Source:
https://dev.mysql.com/doc/dev/mysql-server/latest/classbinary__log_1_1Rows__event.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from setl.codec.binlog.event import has_checksums, is_mariadb
from setl.codec.binlog.rows.versioned import ends_of_rows
from setl.codec.binlog.tables.hidden import visible_schema
from setl.codec.binlog.tables.old_times import old_times
from setl.codec.binlog.tables.row_schema import ColumnDetail, described_table
from setl.codec.binlog.tables.table_map import ColumnType, WireColumn, value_bytes
from setl.model.schema import Kind, RowSchema

# MySQL's binary JSON, and what MariaDB has compressed.
_CONVERTED: Final = frozenset(
    {
        ColumnType.JSON,
        ColumnType.MARIADB_BLOB_COMPRESSED,
        ColumnType.MARIADB_VARCHAR_COMPRESSED,
    }
)

_MAX_LAYOUTS: Final = 1024


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How the values of one column lie in an image, and what they are.

    Attributes:
        wire: its type on the wire.
        detail: its kind, character set and labels.
        nullable: whether it may be NULL.
        size: bytes of a value; -n if its length stands in n bytes in front of it.
    """

    wire: WireColumn
    detail: ColumnDetail
    nullable: bool
    size: int

    @property
    def kind(self) -> Kind:
        """How rows hold its values."""
        return self.detail.column.kind

    @property
    def unsigned(self) -> bool:
        """Whether it is an integer without a sign."""
        return self.detail.column.unsigned

    @property
    def converted(self) -> bool:
        """Whether a value is made of its bytes, so that some bytes are none."""
        return self.wire.type in _CONVERTED


class Step(NamedTuple):
    """A part of the way over an image: some bytes, then a value that may be shorter or absent.

    Attributes:
        skip: bytes in front of the value.
        column: index of its column.
        size: see `ColumnLayout.size`.
        nullable: whether it may be absent.
    """

    skip: int
    column: int
    size: int
    nullable: bool


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How the images of a table lie in its events.

    Attributes:
        context: what described the table, see `Entry.context`.
        schema: the columns of its rows.
        columns: how each of them lies in an image.
        checksum: whether events end with a checksum.
        width: bytes of a bitmap with a bit for each column.
        steps: the way over an image that may have NULLs.
        tail: bytes behind the last of `steps`.
        whole_steps: the way over an image without NULLs: for each value with a length the bytes in
            front of that length, and the bytes that it takes.
        whole_tail: bytes behind the last of `whole_steps`.
    """

    context: tuple[bytes, ...]
    schema: RowSchema
    columns: tuple[ColumnLayout, ...]
    checksum: bool
    width: int
    steps: tuple[Step, ...]
    tail: int
    whole_steps: tuple[tuple[int, int], ...]
    whole_tail: int

    @property
    def count(self) -> bytes:
        """The number of columns as events have it."""
        count = len(self.columns)
        return bytes([count]) if count < 251 else b"\xfc" + count.to_bytes(2, "little")


@lru_cache(_MAX_LAYOUTS)
def row_layout(context: tuple[bytes, ...]) -> RowLayout | None:
    """The layout of a table, from the context of its entries (see `Entry.context`).

    Returns:
        None if its rows are read one by one: hidden columns and versions are left out of them, and
        times in old formats have lengths that nothing says.

    Raises:
        DataError: the table's description cannot be understood.
        ConfigurationError: it does not name the columns.
    """
    table = described_table(context)
    hidden = visible_schema(table, context[0]) is not table.schema
    versioned = is_mariadb(context[0]) and ends_of_rows(table)
    if hidden or versioned or old_times(table.columns):
        return None
    columns = tuple(
        ColumnLayout(wire, detail, bool(table.nullable >> i & 1), value_bytes(wire))
        for i, (wire, detail) in enumerate(zip(table.columns, table.details, strict=True))
    )
    width = (len(columns) + 7) // 8
    steps, tail = _steps(columns, width, nulls=True)
    whole_steps, whole_tail = _steps(columns, width, nulls=False)
    return RowLayout(
        context,
        table.schema,
        columns,
        has_checksums(context[0]),
        width,
        tuple(steps),
        tail,
        tuple((step.skip, -step.size) for step in whole_steps),
        whole_tail,
    )


def _steps(columns: Sequence[ColumnLayout], width: int, *, nulls: bool) -> tuple[list[Step], int]:
    """The way over an image from its beginning, and the bytes behind its last step."""
    steps: list[Step] = []
    ahead = width
    for i, column in enumerate(columns):
        nullable = nulls and column.nullable
        if nullable or column.size < 0:
            steps.append(Step(ahead, i, column.size, nullable))
            ahead = 0
        else:
            ahead += column.size
    return steps, ahead
