"""Reads what each binlog event is and where it belongs, without decoding rows."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from setl.codec.binlog.event import (
    ARTIFICIAL_FLAG,
    EVENT_HEADER,
    HEADER_BYTES,
    IGNORABLE_FLAG,
    ROWS,
    SKIPPED,
    EventType,
    body_of,
    is_mariadb,
    layout_fault,
    rotated_to,
)
from setl.codec.binlog.inflation import inflated_query
from setl.codec.binlog.payload import payload_events
from setl.codec.binlog.refused import (
    damaged,
    refused,
    too_dense,
    unknown_layout,
)
from setl.codec.binlog.rows.row_chunks import (
    MOST_BYTES,
    RowChunk,
    may_join,
    offset_behind,
    with_position,
)
from setl.codec.binlog.rows.row_events import RowEvents
from setl.codec.binlog.rows.seeming_sequences import HeldRows, IsTable
from setl.codec.binlog.rows.unlogged_columns import Generated
from setl.codec.binlog.rows.versioned import Versions
from setl.codec.binlog.statements.query import as_query
from setl.codec.binlog.statements.stream_statements import StreamStatements
from setl.codec.binlog.tables.old_times import TimeDigits
from setl.codec.binlog.transactions.gtid import MariadbGtids, MysqlGtids
from setl.codec.binlog.transactions.gtid_event import gtid_of, is_announcement
from setl.codec.binlog.transactions.prepared import (
    Earlier,
    Matters,
    PreparedTransactions,
    everything,
    unknown,
)
from setl.codec.binlog.transactions.stream_position import StreamPosition
from setl.codec.binlog.transactions.transaction_bounds import TransactionBounds
from setl.errors import FatalError
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition

_MARIADB_STANDALONE: Final = 1  # the event after this GTID is a group of its own: DDL
_MARIADB_DDL: Final = 32
_MARIADB_XA: Final = 64  # what follows this GTID ends with an XA_PREPARE event

_HELD_BYTES: Final = 32 * 1024 * 1024
_INSIDE: Final = (
    EventType.TABLE_MAP,
    EventType.QUERY,
    EventType.EXECUTE_LOAD_QUERY,
    EventType.XID,
    EventType.XA_PREPARE,
)
# What may stand between two events of a run.
_WITHIN_CHUNK: Final = ROWS | SKIPPED | {EventType.TABLE_MAP}
# Inside a transaction MariaDB from 11.7 on leaves out where they end (`binlog_legacy_event_pos`).
_WITHOUT_POSITION: Final = ROWS | {
    EventType.TABLE_MAP,
    EventType.QUERY,
    EventType.MARIADB_QUERY_COMPRESSED,
}
# Numbered inside a compressed transaction, so that each of their entries has a position.
_PLACED: Final = ROWS | {EventType.QUERY, EventType.EXECUTE_LOAD_QUERY}

_Reader = Callable[[bytes, bool, int], Iterable[Entry]]


class BinlogHeaderReader:
    """Reads the events of one binlog stream in order; one object for each stream.

    A row event is understood only through the TABLE_MAP event before it, and that only through
    the FORMAT_DESCRIPTION event at the front of the file; both travel with each rows entry as
    its context, as the same objects for all entries of a table, so that they are pickled once
    for each batch.

    Entries of a transaction come out together with its end, see `TransactionBounds`. Row events
    of a table in it may be one entry, see `setl.codec.binlog.rows.row_chunks`.

    A transaction that is compressed as a whole is one event, and events inside it have no
    place in the file. Their entries count up from its first byte: they are in order, come before
    what follows, and are the same whenever it is read. Nobody reads from there, since reading
    begins in front of a transaction; its COMMIT lies behind the event.

    MariaDB from 11.7 on does not say either where events inside a transaction end. There the sizes
    of the events that come are added up from the transaction's begin: no more than the true
    place, since annotations are not sent, and again the same whenever it is read.

    What positions carry, see `StreamPosition`.
    """

    def __init__(
        self,
        start: BinlogPosition,
        *,
        hold_bytes: int = _HELD_BYTES,
        chunk_events: int = 1,
        chunk_bytes: int = MOST_BYTES,
        mixes: Callable[[str], bool] = lambda _: False,
        is_whole: Callable[[BinlogPosition], bool] = lambda _: True,
        folds_names: bool = False,
        matters: Matters = everything,
        earlier: Earlier = unknown,
        is_table: IsTable = lambda _, __: None,
        digits: TimeDigits = lambda _, __: {},
        versions: Versions = lambda _, __: None,
        generated: Generated = lambda _, __: (),
    ) -> None:
        """Begin at `start`: the first event given to `read` is the first one sent from there.

        Args:
            start: a transaction boundary. If its origin says when the file was begun, a stream
                that begins with another file is refused.
            hold_bytes: bytes of one transaction beyond which its rows come out before its end.
            chunk_events: row events that may be joined to one entry, see `rows.chunks`;
                each has an entry of its own if it is 1.
            chunk_bytes: bytes that such an entry may have.
            mixes: whether row events of a schema's tables may be joined over those of other tables,
                where the transaction is small.
            is_whole: whether the end of the transaction that begins at a position is in its file;
                asked before rows of one come out early, on MariaDB, which leaves a transaction
                cut that it was writing when it died.
            folds_names: whether the server keeps names of tables in lower case, however statements
                write them.
            matters: asked about the tables of an XA transaction that is prepared: if none of its
                rows goes anywhere, a rollback of it is skipped.
            earlier: asked about one that was prepared in front of the start and is rolled back.
            is_table: whether a name is a table's, asked where a sequence looks like one.
            digits: of times in MariaDB's old format, see `setl.codec.binlog.tables.old_times`.
            versions: of MariaDB's versioned tables, see `setl.codec.binlog.rows.versioned`.
            generated: columns of MariaDB's tables, see `setl.codec.binlog.rows.unlogged_columns`.
        """
        self._position = StreamPosition(start)
        self._bounds = TransactionBounds(self._position, hold_bytes, is_whole)
        self._rows = RowEvents(
            chunk_events, chunk_bytes, mixes, digits=digits, versions=versions, generated=generated
        )
        self._sequences = HeldRows(is_table)
        self._prepared = PreparedTransactions(matters, earlier)
        self._statements = StreamStatements(
            self._position, self._bounds, self._prepared, self._begin, folds_names=folds_names
        )
        self._readers: dict[int, _Reader] = {
            EventType.TABLE_MAP: self._table_map,
            EventType.MARIADB_GTID: self._mariadb_gtid,
            EventType.GTID: self._mysql_gtid,
            EventType.GTID_TAGGED: self._mysql_gtid,
            EventType.ANONYMOUS_GTID: self._mysql_gtid,
            EventType.QUERY: self._query,
            EventType.MARIADB_QUERY_COMPRESSED: self._compressed_query,
            EventType.EXECUTE_LOAD_QUERY: self._load_query,
            EventType.TRANSACTION_PAYLOAD: self._compressed_transaction,
            EventType.XID: self._commit,
            EventType.XA_PREPARE: self._xa_prepare,
            EventType.ROTATE: self._rotate,
            EventType.FORMAT_DESCRIPTION: self._format_description,
            EventType.PREVIOUS_GTIDS: self._previous_gtids,
            EventType.MARIADB_GTID_LIST: self._gtid_list,
            EventType.MARIADB_BINLOG_CHECKPOINT: self._skip,
            **dict.fromkeys(ROWS, self._rows_event),
        }
        self._inner = {kind: self._readers[kind] for kind in (*ROWS, *_INSIDE)}

    @property
    def position(self) -> BinlogPosition:
        """The position after the last event read, which may lie inside a transaction."""
        return self._position.position

    @property
    def boundary(self) -> BinlogPosition | None:
        """The position after the last event read, None inside a transaction."""
        return None if self._bounds.begun else self.position

    @property
    def inside(self) -> bool:
        """Whether the last event read lies inside a transaction."""
        return self._bounds.begun

    def read(self, event: bytes, *, checksum: bool) -> Iterable[Entry]:
        """Take the next event in.

        Args:
            event: the raw event with its header.
            checksum: whether its last four bytes are a checksum.

        Returns:
            The entries that are complete with it, in order; most events complete none. Those of
            a compressed transaction are uncompressed as they are taken, and all of them have
            to be taken before the next event is read.

        Raises:
            FatalError: the event cannot be replicated, or is damaged; also while entries are
                taken.
            TransientError: the stream comes from another file than the start's.
        """
        try:
            seconds, kind, _, size, next_offset, flags = EVENT_HEADER.unpack_from(event)
            if size != len(event):
                raise self._damaged(kind, f"{len(event)} bytes instead of {size}")
            if kind == EventType.MARIADB_GTID:
                self._bounds.gtid_at = self._position.offset
            if next_offset and not flags & ARTIFICIAL_FLAG:
                self._position.offset = offset_behind(self._position.offset, next_offset)
            elif self._bounds.is_open and not next_offset and kind in _WITHOUT_POSITION:
                self._position.offset += size
            before = () if kind in _WITHIN_CHUNK else self._end_chunks(whole=kind == EventType.XID)
            reader = self._readers.get(kind)
            if reader is not None:
                found = reader(event, checksum, seconds)
                return [*before, *found] if before else found
        except (struct.error, LookupError, ValueError) as error:
            raise self._damaged(event[4] if len(event) > 4 else 0, str(error)) from error
        if kind not in SKIPPED and not flags & IGNORABLE_FLAG:
            raise refused(kind, self.position)
        return ()

    def read_rows(self, data: bytes, at: int, *, checksum: bool) -> tuple[int, list[Entry]]:
        """Take in row events from a connection's bytes, at a tenth of the cost of `read`.

        Args:
            data: packets of a server, one behind the other, the last one perhaps in part.
            at: where in them one begins.
            checksum: as for `read`.

        Returns:
            Where the first packet begins that `read` has to be given the event of, if it is one,
            and the entries that are complete.
        """
        entries: list[Entry] = []
        if not self._bounds.is_open:
            return at, entries
        while True:
            at, self._position.offset, ended = self._rows.take(
                data, at, self._position.offset, checksum=checksum
            )
            if not ended:
                return at, entries
            entries += self._end_chunks()

    def _compressed_transaction(self, event: bytes, checksum: bool, _: int) -> Iterator[Entry]:  # noqa: FBT001
        end = self._position.offset
        self._position.offset = end - len(event)
        self._bounds.inner_end = end
        try:
            for inner in self._one_transaction(payload_events(event, checksum=checksum)):
                seconds, kind, _, _, _, flags = EVENT_HEADER.unpack_from(inner)
                if kind in _PLACED:
                    self._position.offset += 1
                    if self._position.offset >= end:
                        raise too_dense(len(event), self.position, self._bounds.transaction)
                reader = self._inner.get(kind)
                if reader is not None:
                    yield from reader(inner, False, seconds)  # noqa: FBT003 - no checksum
                elif kind not in SKIPPED and not flags & IGNORABLE_FLAG:
                    raise refused(kind, self.position)
        except (struct.error, LookupError, ValueError, OSError) as error:
            raise self._damaged(event[4], str(error)) from error
        self._position.offset, self._bounds.inner_end = end, 0

    def _one_transaction(self, events: Iterable[bytes]) -> Iterator[bytes]:
        """The events, each of which is read before the next; raises ValueError if they are less."""
        number = 0
        for number, event in enumerate(events, 1):
            if not self._bounds.is_open and (number > 1 or event[4] != EventType.QUERY):
                raise ValueError("an event in it stands outside of its transaction")
            yield event
        if self._bounds.is_open or number < 2:
            raise ValueError("its transaction does not end in it")

    # ---- rows

    def _rows_event(self, event: bytes, _checksum: bool, _: int) -> Sequence[Entry]:  # noqa: FBT001
        table = self._rows.table_of(event)
        if table is None:
            if event[HEADER_BYTES : HEADER_BYTES + 4] == b"\xff\xff\xff\x00":
                return ()  # only says that the statement is over
            table = self._rows.seeming_sequence(event)
            if table is None:
                raise self._damaged(event[4], "no TABLE_MAP event came before it")
            if self._sequences.take(event, table):
                return ()
        if self._bounds.is_open and not self._bounds.inner_end:
            event = with_position(event, self._position.offset)
        chunks = self._rows.chunks
        joins = self._bounds.is_open and not self._bounds.inner_end and may_join(event)
        before = () if joins and chunks.takes(event, table) else self._end_chunks()
        full = chunks.add(event, table, self._position.offset)
        return before if joins and not full else [*before, *self._end_chunks()]

    def _end_chunks(self, *, whole: bool = False) -> Sequence[Entry]:
        """Hand on the row events that were joined, if there are any.

        Args:
            whole: whether their transaction ends with them.
        """
        chunks = self._rows.chunks
        if not chunks.count:
            return ()
        seconds = float(chunks.seconds)
        found = [self._rows_entry(run, seconds) for run in chunks.by_table()]
        small = chunks.is_small(sum(entry.rows for entry in found))
        if len(found) > 1 and not (whole and small):
            found = [self._rows_entry(run, seconds) for run in chunks.in_order()]
        chunks.clear()
        return [ready for entry in found for ready in self._bounds.emit(entry)]

    def _rows_entry(self, run: RowChunk, seconds: float) -> Entry:
        table, events, end = run
        self._prepared.rows(table.schema, table.table)
        payload = events[0] if len(events) == 1 else b"".join(events)
        return Entry(
            EntryKind.ROWS,
            self._position.at(end),
            seconds,
            table.schema,
            table.table,
            self._bounds.transaction,
            table.estimate.rows(events, len(payload), checksum=table.checksum),
            payload,
            table.context,
        )

    def _table_map(self, event: bytes, checksum: bool, _: int) -> Sequence[Entry]:  # noqa: FBT001
        self._rows.learn(event, checksum=checksum)
        return ()

    def _format_description(self, event: bytes, _checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        fault = layout_fault(event)
        if fault:
            raise unknown_layout(fault, self.position)
        self._position.identify(event, seconds)
        self._statements.mariadb = is_mariadb(event)
        self._rows.describe(event)
        return ()

    # ---- transactions

    def _mariadb_gtid(self, event: bytes, _checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        sequence, domain, flags = struct.unpack_from("<QIB", event, HEADER_BYTES)
        (server,) = struct.unpack_from("<I", event, 5)
        self._bounds.name(f"{domain}-{server}-{sequence}")
        self._sequences.begin(ddl=bool(flags & (_MARIADB_STANDALONE | _MARIADB_DDL)))
        if flags & _MARIADB_STANDALONE:
            self._bounds.announced = is_announcement(event)
            return ()
        return self._begin(event, seconds, xa=bool(flags & _MARIADB_XA))

    def _mysql_gtid(self, event: bytes, _checksum: bool, _seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        self._bounds.name(gtid_of(event))
        return ()

    def _begin(self, event: bytes, seconds: int, *, xa: bool) -> Sequence[Entry]:
        if not self._bounds.is_open:
            self._prepared.begin(xa=xa)
            self._rows.begin()
            self._bounds.begin(event, seconds)
        return ()

    def _commit(self, event: bytes, _checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        if not self._sequences:
            return self._bounds.commit(seconds)
        before: list[Entry] = []
        end = self._position.offset - len(event)
        for rows, table in self._sequences.release(others=self._bounds.has_rows):
            self._rows.chunks.add(with_position(rows, end), table, end)
            before += self._end_chunks()
        return [*before, *self._bounds.commit(seconds)]

    def _xa_prepare(self, event: bytes, checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        self._prepared.prepare(event)
        return self._commit(event, checksum, seconds)

    # ---- statements

    def _compressed_query(self, event: bytes, checksum: bool, seconds: int) -> Iterable[Entry]:  # noqa: FBT001
        return self._query(inflated_query(event, checksum=checksum), False, seconds)  # noqa: FBT003

    def _query(self, event: bytes, checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        return self._statements.read(event, seconds, checksum=checksum)

    def _load_query(self, event: bytes, checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        return self._query(as_query(event), checksum, seconds)

    # ---- files

    def _rotate(self, event: bytes, checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        file, offset = rotated_to(event, checksum=checksum)
        if not self._position.go_to(file, offset):
            return ()
        self._bounds.break_off()
        # The position has to leave the old file even if nothing follows for long, since the
        # server may purge it.
        return self._skip(event, checksum, seconds)

    def _previous_gtids(self, event: bytes, checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        self._position.know_more(MysqlGtids.from_previous_event(body_of(event, checksum=checksum)))
        return self._skip(event, checksum, seconds)

    def _gtid_list(self, event: bytes, checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        (next_offset,) = struct.unpack_from("<I", event, 13)
        if not next_offset:
            return ()  # made up for this connection
        self._position.know(MariadbGtids.from_list_event(body_of(event, checksum=checksum)))
        return self._skip(event, checksum, seconds)

    def _skip(self, _event: bytes, _checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        # The binlog may end behind this event for long. Who waits for its end waits for this
        # position.
        if self._bounds.begun:
            return ()
        return (Entry(EntryKind.HEARTBEAT, self.position, float(seconds)),)

    def _damaged(self, kind: int, reason: str) -> FatalError:
        return damaged(kind, reason, self.position)
