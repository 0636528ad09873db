"""Reads the rows of one table with generated code, if its events are of the plain kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Final, Self

from setl.codec.binlog.event import CHECKSUM_BYTES
from setl.codec.binlog.rows.column_reading import DAMAGED
from setl.codec.binlog.rows.row_chunks import LOW_32_BITS, records_of
from setl.codec.binlog.rows.row_code import ColumnCode, images_text, scan_text
from setl.codec.scanning import Scanned
from setl.model.change import Row, Value
from setl.model.schema import RowSchema

_MOST_COLUMNS: Final = 500
_MAX_TEXTS: Final = 1024

_Scan = Callable[[bytes, int, int], tuple[list[Any], list[Row | int | None], list[int], int, int]]


class TableRows:
    """The images of one table, all of whose columns are present."""

    def __init__(self, columns: Sequence[ColumnCode]) -> None:
        self.columns = tuple(columns)
        made = _compiled(*images_text(self.columns))
        self.images: Callable[[bytes, int, int], list[Row]] = made["images"]
        """All images from one place to another; raises one of `DAMAGED`."""
        self.image: Callable[[bytes, int], Row] = made["image"]
        """The image at a position; raises one of `DAMAGED`, for text without a UTF-8 form too."""

    def row(self, data: bytes, at: int) -> Row:
        """The image at a position; raises one of `DAMAGED`."""
        try:
            return self.image(data, at)
        except DAMAGED:
            return self._read(data, at)

    def _read(self, data: bytes, at: int) -> Row:
        """As `row`, a column at a time: readers may know what the code does not."""
        width = (len(self.columns) + 7) // 8
        nulls = int.from_bytes(data[at : at + width], "little")
        at += width
        values: list[Value] = []
        for number, column in enumerate(self.columns):
            value: Value = None
            if not nulls >> number & 1:
                value, at = column.read(data, at)
            values.append(value)
        return tuple(values)

    @classmethod
    def of(cls, columns: Sequence[ColumnCode]) -> Self | None:
        """For these columns; None if they are so many that the code would be too long."""
        return cls(columns) if len(columns) <= _MOST_COLUMNS else None


class TableScanner:
    """A `RowScanner` for ROWS events of one table."""

    def __init__(
        self, rows: TableRows, schema: RowSchema, key: Sequence[int], *, checksum: bool
    ) -> None:
        """For a key, of at least one column, given by its columns' indexes."""
        self.schema = schema
        self.key = tuple(key)
        self.row = rows.row
        self._trailer = CHECKSUM_BYTES if checksum else 0
        self._scan: _Scan = _compiled(*scan_text(rows.columns, key))["scan"]

    def scan(self, payload: bytes, at: int, version: int) -> Scanned:
        """See `RowScanner.scan`."""
        keys, rows, ends, reached, last = self._scan(payload, at, self._trailer)
        if not keys:
            return Scanned((), (), (), reached)
        if reached < len(payload):
            last = _last_end(payload)
        if ends[0] == last:
            return Scanned(keys, rows, [version] * len(keys), reached)
        return Scanned(keys, rows, [version - (last - end & LOW_32_BITS) for end in ends], reached)


def _last_end(payload: bytes) -> int:
    """Where in the file the last event of a payload ends, as its header says."""
    older, first = records_of(payload)[0]
    return int.from_bytes(first[13:17], "little") + older & LOW_32_BITS


@lru_cache(maxsize=_MAX_TEXTS)
def _code(text: str) -> CodeType:
    # Kept, since it takes milliseconds, and each stream that is opened describes tables again.
    return compile(text, "<rows of a table>", "exec")


def _compiled(text: str, names: dict[str, Any]) -> dict[str, Any]:
    scope = {**names, "damaged": DAMAGED}
    exec(_code(text), scope)  # noqa: S102 - made of types and sizes, see `row_code`
    return scope
