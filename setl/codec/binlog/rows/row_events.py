"""The row events of a stream: their tables, and the runs that join them."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from setl.codec.binlog.event import (
    ARTIFICIAL_FLAG,
    CHECKED,
    CHECKSUM_BYTES,
    HEADER_BYTES,
    EventType,
    body_of,
    is_mariadb,
    major_version,
    without_checksums,
)
from setl.codec.binlog.rows.row_chunks import (
    END,
    END_AT,
    JOINED,
    LOW_32_BITS,
    KnownTable,
    OpenRowChunks,
    offset_behind,
)
from setl.codec.binlog.rows.row_estimate import RowEstimate
from setl.codec.binlog.rows.unlogged_columns import LAST_WHOLE, Generated
from setl.codec.binlog.rows.versioned import Versions, logged_versions, may_be_versioned
from setl.codec.binlog.tables.old_times import TimeDigits, logged_digits, old_times
from setl.codec.binlog.tables.row_schema import column_names
from setl.codec.binlog.tables.sequences import looks_like_sequence
from setl.codec.binlog.tables.table_map import TableMap, parse_table_map

MAX_TABLES: Final = 4096

# In front of each event a server sends the packet's size and number in four bytes, and a status.
# Then the header (see `EVENT_HEADER`, without the server's id); the body of both kinds of events
# that are read here begins with the id of a table.
_PACKET: Final = Struct("<IBIB4xIIH6s")
_FRONT: Final = 5
_SIZE: Final = 0xFF_FFFF
_TABLE_MAP: Final = int(EventType.TABLE_MAP)
_JOINED: Final = frozenset(map(int, JOINED))
_LEAST: Final = HEADER_BYTES + 8  # bytes of a row event
_SKIPPED: Final = frozenset((29, 160))  # the statement that the rows come from, if it is sent


class Taken(NamedTuple):
    """How far `RowEvents.take` came.

    Attributes:
        at: where in the bytes the next packet begins.
        offset: offset in the binlog file behind what was taken.
        ended: whether the runs have ended there, so that they are to be handed on before the rest.
    """

    at: int
    offset: int
    ended: bool


class RowEvents:
    """Tables by their ids, each described once, and the open runs.

    Attributes:
        chunks: the row events that are being joined.
    """

    def __init__(
        self,
        chunk_events: int,
        chunk_bytes: int,
        mixes: Callable[[str], bool],
        *,
        digits: TimeDigits,
        versions: Versions,
        generated: Generated,
    ) -> None:
        """No table is known.

        Args:
            chunk_events: see `OpenRowChunks`.
            chunk_bytes: likewise.
            mixes: likewise, by a table's schema.
            digits: asked for tables that may need it, see `setl.codec.binlog.tables.old_times`.
            versions: likewise, see `setl.codec.binlog.rows.versioned`.
            generated: likewise, see `setl.codec.binlog.rows.unlogged_columns`.
        """
        self.chunks = OpenRowChunks(chunk_events, chunk_bytes)
        self._mixes = mixes
        self._digits = digits
        self._versions = versions
        self._generated = generated
        self._leaves_out = False  # whether the server may leave generated columns out of images
        self._format = self._plain_format = b""
        self._mariadb = False
        self._tables: dict[bytes, KnownTable] = {}
        self._sequences: dict[bytes, KnownTable] = {}  # seemingly; in none of the other tables
        self._by_body: dict[bytes, KnownTable] = {}
        self._by_plain_body: dict[bytes, KnownTable] = {}  # of events without checksums

    def describe(self, format_description: bytes) -> None:
        """A file begins, or a stream: ids of tables before it mean nothing any more."""
        # The same server writes the same event into every file, but for a time of creation.
        if _timeless(format_description) != _timeless(self._format):
            self._format = _shared_format(format_description)
            self._plain_format = _shared_format(without_checksums(format_description))
            self._by_body.clear()
            self._by_plain_body.clear()
        self._tables.clear()
        self._sequences.clear()
        self._mariadb = is_mariadb(format_description)
        self._leaves_out = self._mariadb and major_version(format_description) > LAST_WHOLE

    def begin(self) -> None:
        """A transaction begins, whose statements send the maps of their tables again."""
        self.chunks.begin()
        if len(self._tables) >= MAX_TABLES:
            self._tables.clear()

    def table_of(self, event: bytes) -> KnownTable | None:
        """The table of a row event, None if there was no TABLE_MAP event for it."""
        return self._tables.get(event[HEADER_BYTES : HEADER_BYTES + 6])

    def seeming_sequence(self, event: bytes) -> KnownTable | None:
        """The table of a row event without `table_of`, if it looks like a sequence."""
        return self._sequences.get(event[HEADER_BYTES : HEADER_BYTES + 6])

    def learn(self, event: bytes, *, checksum: bool) -> None:
        """Take a TABLE_MAP event in.

        Raises:
            LookupError, ValueError: it is damaged.
        """
        body = body_of(event, checksum=checksum)
        by_body = self._by_body if checksum else self._by_plain_body
        table = by_body.get(body)
        if table is None:
            parsed = parse_table_map(body)
            described = self._format if checksum else self._plain_format
            context_parts = self._context_parts(parsed)
            context = _shared_context(described, event, body, context_parts, checksum=checksum)
            estimate, mixes = RowEstimate(parsed), self._mixes(parsed.schema)
            table = KnownTable(parsed.schema, parsed.table, context, estimate, checksum, mixes)
            if self._mariadb and looks_like_sequence(parsed):
                self._tables.pop(body[:6], None)
                self._sequences[body[:6]] = table
                return
            if len(by_body) >= MAX_TABLES:
                by_body.clear()
            by_body[body] = table
        self._sequences.pop(body[:6], None)
        self._tables[body[:6]] = table

    def _context_parts(self, table: TableMap) -> tuple[bytes, ...]:
        """See `logged_digits`, `logged_versions` and `Generated`.

        () where nothing has to be known.
        """
        seems_special = old_times(table.columns) or may_be_versioned(table)
        if not self._mariadb or not (seems_special or self._leaves_out):
            return ()
        names, _ = column_names(table)
        if not names:
            return ()
        digits = logged_digits(table, names, self._digits) if old_times(table.columns) else ""
        context_parts = digits.encode() if digits.strip("0") else b""
        versions = logged_versions(table, names, self._versions).encode()
        generated = self._generated(table.schema, table.table) if self._leaves_out else ()
        found = [context_parts, versions, "\0".join(sorted({*generated} & {*names})).encode()]
        while found and not found[-1]:
            found.pop()
        return tuple(found)

    def take(  # noqa: C901, PLR0912, PLR0915 - calls would double its cost
        self, data: bytes, at: int, offset: int, *, checksum: bool
    ) -> Taken:
        """Join the row events that stand in packets one behind the other to the open runs.

        Stops in front of the first packet that is anything else: another kind of event, a table
        that is not known, damage, a part of a packet. Then it is for whoever reads packets one by
        one to take it. Call it only inside a transaction.

        A table map that is known is not looked at but for its body. So it is taken only with a
        row event behind it, whose checksum fits. An event that does not say where in the file it
        ends gets the sum of what came, see `BinlogHeaderReader`.

        This loop sees every change of the source, and most of what the driver does for a change
        is here: so one step for both kinds of events, no calls but into C, and nothing kept in
        attributes before its end. An event costs half a microsecond, three to four times less than
        by `BinlogHeaderReader.read`.

        Args:
            data: bytes of a connection.
            at: where in them a packet begins.
            offset: offset in the binlog file of the event that it holds.
            checksum: whether events end with a checksum.
        """
        chunks = self.chunks
        unpack, pack, tables = _PACKET.unpack_from, END.pack, self._tables
        by_body = self._by_body if checksum else self._by_plain_body
        tail = CHECKSUM_BYTES if checksum else 0
        parts, most_events, most_bytes = chunks.parts, chunks.most_events, chunks.most_bytes
        count, size_of_runs, seconds_of_runs = chunks.count, chunks.size, chunks.seconds
        table, mixes = chunks.table, chunks.mixes
        append = None if table is None else parts[table].append
        over = mixes and table is not None and table.mixes  # whether other tables may come
        body: bytes | None = None  # of the TABLE_MAP event that said what `ident` is
        current, ident = table, b""
        whole, last = len(data), len(data) - _PACKET.size
        end, ended = -1, False
        reached = offset  # behind the last event, where only some say where they end
        ahead = -1  # where the table maps begin that no row event has come for yet
        while at <= last:
            packet, status, seconds, kind, size, behind, flags, table_id = unpack(data, at)
            begin = at + _FRONT
            stop = begin + size
            if stop > whole or packet & _SIZE != size + 1 or status:
                break
            if kind == _TABLE_MAP:
                if ahead < 0:
                    ahead = at
                seen = data[begin + HEADER_BYTES : stop - tail]
                if seen != body:
                    found = by_body.get(seen)
                    if found is None:
                        break
                    body, current, ident = seen, found, table_id
                    tables[table_id] = found
                reached = behind or reached + size
            elif kind in _JOINED:
                if table_id != ident:
                    found = tables.get(table_id)
                    if found is None:
                        break
                    body, current, ident = None, found, table_id
                if current is None or flags & ARTIFICIAL_FLAG or not _LEAST <= size <= most_bytes:
                    break
                if not count:
                    seconds_of_runs = seconds
                elif (
                    seconds != seconds_of_runs
                    or size_of_runs + size > most_bytes
                    or (current is not table and not (over and current.mixes))
                ):
                    ended = True
                    break
                event = data[begin:stop]
                if checksum and crc32(event) != CHECKED:
                    break
                if not behind:
                    behind = reached + size & LOW_32_BITS
                    if not behind:
                        break
                    position = pack(behind)
                    event = b"".join((event[:END_AT], position, event[END_AT + END.size :]))
                if append is None or current is not table:
                    table, append = current, parts.setdefault(current, []).append
                    over = mixes and table.mixes
                append(event)
                count += 1
                ahead = -1
                size_of_runs += size
                end = reached = behind
                if count >= most_events or size_of_runs >= most_bytes:
                    at, ended = stop, True
                    break
            elif kind in _SKIPPED:
                if ahead < 0:
                    ahead = at
                reached = behind or reached
            else:
                break
            at = stop
        if end >= 0:
            chunks.count, chunks.size, chunks.seconds, chunks.table = (
                count,
                size_of_runs,
                seconds_of_runs,
                table,
            )
            chunks.end = offset = offset_behind(offset, end)
        return Taken(at if ahead < 0 else ahead, offset, ended)


_formats: dict[bytes, bytes] = {}
_contexts: dict[tuple[bytes, bytes, tuple[bytes, ...], bool], tuple[bytes, ...]] = {}


def _shared_format(format_description: bytes) -> bytes:
    """The same object for all streams of this process to whom a server has said the same."""
    if len(_formats) >= MAX_TABLES:
        _formats.clear()
    return _formats.setdefault(_timeless(format_description), format_description)


def _shared_context(
    format_description: bytes,
    table_map: bytes,
    body: bytes,
    context_parts: tuple[bytes, ...],
    *,
    checksum: bool,
) -> tuple[bytes, ...]:
    """What decoding needs; likewise the same object for all.

    So pipelines that read one source decode a table with the same code, and one of them for all
    what each of them reads.

    Args:
        format_description: see `_shared_format`.
        table_map: the event.
        body: the part of it that says something of the table.
        context_parts: the digits of times in the old format, and the columns of a versioned table.
        checksum: whether events have one.
    """
    if len(_contexts) >= MAX_TABLES:
        _contexts.clear()
    return _contexts.setdefault(
        (format_description, body, context_parts, checksum),
        (format_description, table_map, *context_parts),
    )


def _timeless(format_description: bytes) -> bytes:
    """The event's body without time of creation and checksum."""
    body = format_description[HEADER_BYTES:-4]
    return body[:52] + body[56:]
