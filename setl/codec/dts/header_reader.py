"""Reads the headers of one partition in order, mostly by comparing them with those before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from setl.codec.dts.front import MIDDLE, MORE, Front, alike_front, front_of, read_bare
from setl.codec.dts.header import (
    FULL_LOAD,
    MAX_NAMES,
    MOCK_BYTES,
    TABLE_TAG_BYTES,
    read_header,
    timed,
)
from setl.codec.dts.middle import tags_end
from setl.codec.dts.scan import FRONT, MISREADS, extent_at, text_end
from setl.codec.dts.wire import operation_byte
from setl.errors import FatalError
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition

# What stands before a table's name.
_NAMED: Final = 2
_CHANGES: Final = frozenset(map(operation_byte, ("INSERT", "UPDATE", "DELETE")))

# Rows of one table in a row after which it is worth looking where their tags end.
_WORTH: Final = 4

# Offsets after which a full load without transactions may resume, so that the checkpoint moves
# on though no COMMIT comes. Multiples, so that reading again finds the same boundaries.
_LOADED_TOGETHER: Final = 512


class DtsHeaderReader:
    """Reads the headers of one partition in order, and refuses what cannot be replicated.

    `read_header` looks at one record alone. A ROLLBACK or ABORT takes back rows that were
    delivered before it, and those may be applied already.

    Rows of a full load come without BEGIN and COMMIT, for hours. They were read from a table, so
    they belong to no transaction, neither to one that stands open before them nor to what
    follows. `boundary` says so where the stream does not, and now and then among them.

    Attributes:
        boundary: whether a transaction ends between the record that was read last and the one
            before it, though no record says so.
        grows: whether the record that `table_of_row` was asked of last is of the transaction and
            second of the one before, with the same ``safeSourcePosition`` and a larger id.
    """

    def __init__(self, *, logical_names: bool = True) -> None:
        """Start between two transactions; see `row_name` for the names."""
        self.boundary = False
        self.grows = False
        self._logical_names = logical_names
        self._rows = 0  # since the last boundary
        self._begun = False  # whether a BEGIN stands before them
        self._loading = False  # whether the record before is a row of a full load
        self._loaded = 0  # which of those that are loaded together it is one of
        self._same: _Same | None = None  # what a row behind the one before begins with
        self._ident = b""  # of the record before, the highest byte first
        self._tables: dict[bytes, tuple[str, str]] = {}  # by ``objectName`` as it stands
        self._table: tuple[str, str] = ("", "")  # of the last row that was told by `table_of_row`
        self._named = b""  # what such a row has from ``objectName`` to the tags
        self._alike = 0  # rows of that table in a row that did not have that

    def read(self, value: bytes, position: KafkaPosition) -> Entry:
        """The next record's entry; see `read_header`.

        Raises:
            DataError: the bytes are no DTS record.
            FatalError: a transaction ends with ROLLBACK or ABORT after rows.
        """
        front = _front(value)
        entry = None if front is None else _bare(value, position, front)
        if entry is None:
            entry = read_header(value, position, logical_names=self._logical_names)
        self.boundary = False
        loaded = entry.statement == FULL_LOAD and entry.kind is EntryKind.ROWS and not self._begun
        if loaded or self._loading:
            self._full_load(entry, loaded=loaded)
        self._same = None
        if entry.kind is EntryKind.ROWS:
            self._rows += 1
            if not entry.statement and front is not None:
                self._remember(value, front)
                self._remember_table(value, front, entry)
        elif entry.kind is not EntryKind.HEARTBEAT:
            if entry.kind is EntryKind.COMMIT and entry.statement and self._rows:
                raise FatalError(
                    f"the source took back ({entry.statement}) a transaction of {self._rows} rows "
                    "that it had already delivered",
                    hint="`setl stop` the channel, move on with `setl position reset PIPELINE --to"
                    f" {position.offset}`, and start it. Then compare with `setl verify --repair`",
                    position=position,
                )
            self._rows = 0
            self._begun = entry.kind is EntryKind.BEGIN
            if self._begun and front is not None:
                self._remember(value, front)
        return entry

    # Calls would cost more than what they would do.
    def table_of_row(self, value: bytes) -> tuple[str, str] | None:  # noqa: C901, PLR0911, PLR0912
        """Schema and table of the next record, if it is a row like the one before.

        That is one of the same transaction and second, and of a table of which a row was read
        before; it then counts as read. The one before may also be the transaction's BEGIN. So its
        kind and its time are known, and nobody needs an entry of it alone. None for anything else:
        `read` has to say what it is. Rows of full loads, and of tables with logical names, are
        never told so.

        This is what is done with nearly every record of a topic: bytes are compared, 1 µs. Where
        rows of one table follow each other, so are all bytes up to the end of the tags.
        """
        self.grows = False
        same = self._same
        if same is None or len(value) <= MOCK_BYTES:
            return None
        front = FRONT(value)
        if front is None:
            return None
        ident, seconds = front.groups()
        if seconds != same.seconds:
            return None
        try:
            at = text_end(value, front.end())
            # A full reader refuses what is not UTF-8; the lengths of usual positions are ASCII,
            # too.
            if not value[front.end() : at].isascii():
                return None
            if value.startswith(same.position, at):
                at += len(same.position)
                # Numbers have their lowest byte first.
                number = ident[::-1]
                self.grows = len(number) == len(self._ident) and number > self._ident
                self._ident = number
            else:
                safe, at = at, text_end(value, at)
                if not value[safe:at].isascii() or not value.startswith(same.origin, at):
                    return None
                at += len(same.origin)
            if value[at] not in _CHANGES or value[at + 1] != _NAMED:
                return None
            named = self._named
            if named and value.startswith(named, at + 1):
                self._rows += 1
                return self._table
            end = text_end(value, at + 2)
            table = self._tables.get(value[at + 1 : end])
            if table is None or (self._logical_names and TABLE_TAG_BYTES in value):
                return None
            if table is self._table:
                self._alike += 1
                if self._alike % _WORTH == 0:
                    self._named = value[at + 1 : tags_end(value, end)]
            else:
                self._table, self._named, self._alike = table, b"", 0
        except MISREADS:
            return None
        self._rows += 1
        return table

    # Calls would cost more than what they would do.
    def rows_alike(self, values: Sequence[bytes], begin: int, end: int) -> int:
        """How many of the next records are like the one before, which then count as read.

        The one before was told by `table_of_row`. What is alike is of its table as well, and
        ids grow from record to record, see `grows`. 0 may mean that only `table_of_row` tells.

        Of each, nearly all bytes up to the end of the tags are compared at once, 0.4 µs: ids
        differ in their three lowest bytes, positions in their digits.

        Args:
            values: records, in stream order.
            begin: index of the next one; the one before it was read last.
            end: index up to which they are looked at.
        """
        same, named, last = self._same, self._named, values[begin - 1]
        alike = alike_front(last)
        if same is None or not named or alike is None:
            return 0
        version, middle, text, behind = alike
        operation = behind + len(same.position)
        rest = same.position + last[operation : operation + 1] + named
        if not (
            last.startswith(rest, behind)
            and last[operation] in _CHANGES
            and text + len(rest) > MOCK_BYTES
        ):
            return 0
        at, low = begin, last[3] << 16 | last[2] << 8 | last[1]
        while at < end:
            value = values[at]
            if not (
                value.startswith(middle, MIDDLE)
                and value[0] == version
                and value[text:behind].isascii()
                and value.startswith(rest, behind)
            ):
                break
            first, second, third = value[1], value[2], value[3]
            ident = third << 16 | second << 8 | first
            if not first & second & third & MORE or ident <= low:
                break
            low = ident
            at += 1
        if at > begin:
            self._rows += at - begin
            self._ident = front_of(values[at - 1]).ident[::-1]
            self.grows = True
        return at - begin

    # Calls would cost more than what they would do.
    def tables_ahead(self, values: Sequence[bytes], begin: int, end: int) -> list[tuple[str, str]]:
        """Tables of the next records that `table_of_row` would tell, which then count as read.

        The one before was told by it. These are rows of any table of which a row was read before,
        and their ids grow from record to record, see `grows`. It ends where one table comes
        several times in a row, since `rows_alike` is quicker there, and where only `table_of_row`
        tells. Of each record the front is compared as there, so it takes half as long as
        `table_of_row`.

        Args:
            values: records, in stream order.
            begin: index of the next one; the one before it was read last.
            end: index up to which they are looked at.
        """
        found: list[tuple[str, str]] = []
        same, last = self._same, values[begin - 1]
        alike = alike_front(last)
        if same is None or alike is None:
            return found
        version, middle, text, behind = alike
        position, operation, tables = same.position, behind + len(same.position), self._tables
        looks_for_tag = self._logical_names
        low, before, streak = last[3] << 16 | last[2] << 8 | last[1], None, 1
        try:
            for at in range(begin, end):
                value = values[at]
                if not (
                    value.startswith(middle, MIDDLE)
                    and value[0] == version
                    and value[text:behind].isascii()
                    and value.startswith(position, behind)
                    and value[operation] in _CHANGES
                    and value[operation + 1] == _NAMED
                    and len(value) > MOCK_BYTES
                ):
                    break
                table = tables.get(value[operation + 1 : text_end(value, operation + 2)])
                if table is None or (looks_for_tag and TABLE_TAG_BYTES in value):
                    break
                first, second, third = value[1], value[2], value[3]
                ident = third << 16 | second << 8 | first
                if not first & second & third & MORE or ident <= low:
                    break
                low = ident
                found.append(table)
                streak = streak + 1 if table is before else 1
                if streak == _WORTH:
                    break
                before = table
        except MISREADS:
            pass  # `table_of_row` is asked of that one
        if found:
            self._rows += len(found)
            self._ident = front_of(values[begin + len(found) - 1]).ident[::-1]
            self.grows = True
        return found

    def _remember(self, value: bytes, front: Front) -> None:
        """Remember what the records of rows behind this one begin with."""
        _, seconds, _, safe, origin, end = front
        self._same = _Same(seconds, value[safe:end], value[origin:end])
        self._ident = front.ident[::-1]

    def _remember_table(self, value: bytes, front: Front, entry: Entry) -> None:
        """Remember the table of a row by its name as it stands, if nothing else names it."""
        # A value of a row may hold the tag, too.
        if self._logical_names and TABLE_TAG_BYTES in value:
            return
        try:
            name = value[front.operation + 1 : extent_at(value, front.operation + 2)[1]]
        except MISREADS:
            return
        if len(self._tables) >= MAX_NAMES:
            self._tables.clear()
        self._tables[name] = entry.schema, entry.table

    def _full_load(self, entry: Entry, *, loaded: bool) -> None:
        """Take in the first or a further row of a full load, or what follows the last one."""
        together = _together(entry)
        if self._loading and loaded:
            self.boundary = self._loaded != together
        else:
            # Rows that no COMMIT has ended are of a transaction that has ended all the same.
            self.boundary = self._rows > 0
        if self.boundary:
            self._rows = 0
        self._loading, self._loaded = loaded, together


class _Same(NamedTuple):
    """Bytes that the records of a transaction's rows have in common.

    Attributes:
        seconds: ``sourceTimestamp``.
        position: ``safeSourcePosition`` and `origin`, if they have that in common, too.
        origin: ``sourceTxid`` and ``source``, which the operation follows.
    """

    seconds: bytes
    position: bytes
    origin: bytes


def _front(value: bytes) -> Front | None:
    """The front of a record, None if it is unusual."""
    try:
        return front_of(value)
    except MISREADS:
        return None


def _bare(value: bytes, position: KafkaPosition, front: Front) -> Entry | None:
    """The entry of a BEGIN or COMMIT, None if it has to be read in full."""
    if len(value) <= MOCK_BYTES:
        return None
    try:
        bare = read_bare(value, front)
    except MISREADS:
        return None
    if bare is None:
        return None
    kind = EntryKind.BEGIN if bare.begins else EntryKind.COMMIT
    seconds = bare.seconds
    return Entry(kind, timed(position, seconds), float(seconds), transaction=bare.gtid)


def _together(entry: Entry) -> int:
    """The same number for records of a full load between which there is no boundary."""
    return (entry.position.order[1] - 1) // _LOADED_TOGETHER
