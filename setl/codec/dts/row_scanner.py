"""Finds rows of DTS records by their keys, without decoding all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from setl.codec.dts.described import NOTHING, described
from setl.codec.dts.front import MIDDLE, MORE, Alike, alike_front
from setl.codec.dts.image import ImageColumn
from setl.codec.dts.image_code import compiled, image_text
from setl.codec.dts.middle import NEVER, source_end
from setl.codec.dts.row_chunks import CHUNK_FRONT, LOW_32_BITS, MARK, last_low_offset
from setl.codec.dts.scan import MISREADS, Misread, positions_end, raw_at
from setl.codec.dts.table_identity import OPERATION_BYTES, TableIdentity, read_identity
from setl.codec.scanning import Scanned
from setl.model.change import Op, Row, Value
from setl.model.schema import RowSchema

_UNUSUAL: Final = Alike(-1, NEVER, 0, 0)  # no byte is -1, so no record is like it


class TableShape(NamedTuple):
    """A table as far as it is known.

    Attributes:
        identity: what its records say of it.
        schema: its columns as they are known now.
        listed: what its images begin with.
        columns: its columns.
    """

    identity: TableIdentity
    schema: RowSchema
    listed: bytes
    columns: tuple[ImageColumn, ...]


class DtsRowScanner:
    """A `RowScanner` for records of one table, as long as nothing new is learned of it.

    Of an update the keys are read; behind them both images are left unread. The second one is
    found by the bytes between the two, as long as these are in no value as well, so the first
    image is seldom gone over. Where a value lies otherwise than the schema says, or the bytes are
    damaged, `row` finds it.

    Attributes:
        schema: see `RowScanner`.
        key: see `RowScanner`.
        forms: of the columns' values, that it was made for.
    """

    def __init__(self, shape: TableShape, key: tuple[int, ...], *, logical_names: bool) -> None:
        """For a key, of at least one column, given by its columns' indexes."""
        self.schema = shape.schema
        self.key = key
        self._identity = shape.identity
        self._logical_names = logical_names
        self._columns = shape.columns
        self._reads = [column.known_read for column in shape.columns]
        self._origin = self._said = NEVER  # what the last record said, see `middle`
        self._described = NOTHING
        # What stands between the images of an update: the end of an array, and another's begin.
        self._between = b"\0" + shape.listed
        self.forms = forms = [column.form for column in shape.columns]
        single = len(key) == 1

        def made(wanted: Sequence[int], **more: bool) -> Any:
            text, names = image_text(forms, shape.listed, wanted, **more)
            return compiled(text, {**names, "learn": self._known_value})

        self._image: Callable[[bytes, int], tuple[Row, int]] = made(range(len(forms)))
        self._key_and_end: Callable[[bytes, int], tuple[Any, int]] = made(key, single=single)
        # The key, and how far it was read for that.
        self._key: Callable[[bytes, int], tuple[Any, int]] = made(key, single=single, early=True)

    def scan(self, payload: bytes, at: int, version: int) -> Scanned:  # noqa: C901, PLR0912, PLR0915 - see the loop
        """See `RowScanner.scan`."""
        keys: list[Any] = []
        rows: list[Row | int | None] = []
        offsets: list[int] = []  # of an offset, what stands before a record
        total, front = len(payload), CHUNK_FRONT.size
        key_and_end, key_of, between = self._key_and_end, self._key, self._between
        of_row = _key_of(self.key)
        begin, end, offset = at, total, 0
        # What is before the operation, as in the record before.
        mark, middle, _, text_end = _UNUSUAL
        common = b""
        try:
            # Once for each record: calls would cost more than what they would do.
            while at < total:
                if payload.startswith(MARK, at):
                    _, size, offset = CHUNK_FRONT.unpack_from(payload, at)
                    begin = at + front
                    end = begin + size
                if (
                    payload.startswith(middle, begin + MIDDLE)
                    and payload.startswith(common, begin + text_end)
                    and payload[begin] == mark
                    and payload[begin + 1] & payload[begin + 2] & payload[begin + 3] & MORE
                ):
                    cursor = begin + text_end + len(common)
                else:
                    cursor = self._origin_end(payload, begin)
                    mark, middle, _, text_end = alike_front(payload, begin) or _UNUSUAL
                    common = payload[begin + text_end : cursor]
                op = OPERATION_BYTES.get(payload[cursor])
                cursor += 1
                if op is None:
                    break
                if not payload.startswith(self._said, cursor):
                    self._identify(payload, begin, cursor)
                cursor += len(self._said)
                row: Row | int | None = None
                if op is Op.UPDATE:
                    key, behind = key_of(payload, cursor)
                    after = payload.find(between, behind, end) + 1
                    if not after or payload.find(between, after, end) >= 0:
                        # Bytes that occur once are those between the images, which are always
                        # there. A value may hold such bytes, too.
                        key, after = key_and_end(payload, cursor)
                    # Mostly the key stands in front, and nothing before it was changed.
                    alike = payload.startswith(payload[cursor:behind], after)
                    if not alike and key_of(payload, after)[0] != key:
                        break
                    row = cursor = after
                elif op is Op.DELETE:
                    key, cursor = key_and_end(payload, cursor)
                elif payload[cursor]:
                    break  # an insert with an image before it
                else:
                    row, cursor = self._image(payload, cursor + 1)
                    key = of_row(row)
                if cursor > end or end > total:
                    break  # cut off, and read on in the next record
                keys.append(key)
                rows.append(row)
                offsets.append(offset)
                at = begin = end
                end = total
        except MISREADS:
            pass
        if not keys:
            return Scanned((), (), (), at)
        last = offsets[-1] if at == total else last_low_offset(payload)
        versions = [version - (last - offset & LOW_32_BITS) for offset in offsets]
        return Scanned(keys, rows, versions, at)

    def row(self, payload: bytes, at: int) -> Row:
        """See `RowScanner.row`."""
        try:
            row, end = self._image(payload, at)
        except Misread as error:
            raise ValueError from error
        # A value may hold such bytes too; then decoding the record tells.
        if payload.startswith(MARK) and payload.find(MARK, at, end) >= 0:
            raise ValueError("an image goes on behind the end of its record")
        return row

    def _origin_end(self, payload: bytes, begin: int) -> int:
        """Where a record's operation is; its origin, behind its positions, is remembered."""
        at = positions_end(payload, begin)
        if not payload.startswith(self._origin, at):
            self._origin = payload[at : source_end(payload, at)]
        return at + len(self._origin)

    def _identify(self, payload: bytes, begin: int, at: int) -> None:
        """Remember what a record says of its table, behind its operation, if it is this one."""
        end = self._described.end_of_same(payload, at)
        if end < 0:
            offsets = positions_end(payload, begin)
            _, identity, end = read_identity(payload, offsets, logical_names=self._logical_names)
            if identity != self._identity:
                raise Misread
            self._described = described(payload, at, end)
        self._said = payload[at:end]

    def _known_value(self, data: bytes, at: int, index: int) -> tuple[Value, int]:
        """A value that is not of its column's form, if it fits the schema all the same."""
        raw, at = raw_at(data, at)
        if raw is None or raw == "NULL":
            return None, at
        if isinstance(raw, str):
            raise Misread
        column, read = self._columns[index], self._reads[index]
        try:
            value = read(raw)
        except (LookupError, OverflowError) as error:
            raise Misread from error
        if column.known_read is read:
            column.take_form(raw)  # for the next scanner
        return value, at


def _key_of(key: tuple[int, ...]) -> Callable[[Row], Any]:
    if len(key) == 1:
        offset = key[0]
        return lambda row: row[offset]
    return lambda row: tuple([row[i] for i in key])
