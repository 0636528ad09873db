"""What each binlog event is and where it belongs, without decoding rows (DESIGN §4)."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from setl.codec.binlog.event import (
    ARTIFICIAL_FLAG,
    EVENT_HEADER,
    HEADER_BYTES,
    IGNORABLE_FLAG,
    ROWS,
    SKIPPED,
    EventType,
)
from setl.codec.binlog.gtid import ExecutedGtids, MariadbGtids, MysqlGtids
from setl.codec.binlog.query import parse_query
from setl.codec.binlog.refused import REFUSED
from setl.codec.binlog.row_estimate import RowEstimate
from setl.codec.binlog.table_map import parse_table_map, table_map_body
from setl.codec.binlog.transaction import OpenTransaction
from setl.codec.statement import Statement, StatementKind, parse_statement
from setl.errors import FatalError, TransientError
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogOrigin, BinlogPosition

_MARIADB_STANDALONE: Final = 1  # the event after this GTID is a group of its own: DDL
_TABLES_KEPT: Final = 4096

_HELD_BYTES: Final = 32 * 1024 * 1024
_COMMON: Final = {
    "BEGIN": Statement(StatementKind.BEGIN),
    "COMMIT": Statement(StatementKind.COMMIT),
}

_Reader = Callable[[bytes, bool, int], Sequence[Entry]]


class _Table(NamedTuple):
    """What is kept of a TABLE_MAP event."""

    schema: str
    table: str
    context: tuple[bytes, ...]
    estimate: RowEstimate


class BinlogHeaderReader:
    """Reads the events of one binlog stream in order; one object for each stream.

    A row event is understood only through the TABLE_MAP event before it, and that only through
    the FORMAT_DESCRIPTION event at the front of the file; both travel with each rows entry as
    its context, as the same objects for all entries of a table, so that they are pickled once
    for each batch.

    Entries of a transaction come out together with its end, see `OpenTransaction`.

    Positions carry the executed GTIDs if they were known at the start, or from the first file
    on whose beginning was read; until then they carry "".

    Positions also carry which file they are of, if the start names at least the server: the
    file's FORMAT_DESCRIPTION event says when it was begun, and is sent first, wherever in the
    file a stream starts.
    """

    def __init__(self, start: BinlogPosition, *, hold_bytes: int = _HELD_BYTES) -> None:
        """Begin at `start`: the first event given to `read` is the first one sent from there.

        Args:
            start: a transaction boundary. If its origin says when the file was begun, a stream
                that begins with another file is refused.
            hold_bytes: bytes of one transaction beyond which its rows come out before its end.
        """
        self._file = start.file
        self._offset = start.offset
        self._gtids: ExecutedGtids | None = _gtids_from(start.gtid)
        self._executed = start.gtid
        self._origin = start.origin
        self._transaction = ""
        self._open = False
        self._held = OpenTransaction(hold_bytes)
        self._format = b""
        self._tables: dict[bytes, _Table] = {}
        self._by_body: dict[bytes, _Table] = {}
        self._readers: dict[int, _Reader] = {
            EventType.TABLE_MAP: self._table_map,
            EventType.MARIADB_GTID: self._mariadb_gtid,
            EventType.GTID: self._mysql_gtid,
            EventType.ANONYMOUS_GTID: self._mysql_gtid,
            EventType.QUERY: self._query,
            EventType.XID: self._commit,
            EventType.XA_PREPARE: self._commit,
            EventType.ROTATE: self._rotate,
            EventType.FORMAT_DESCRIPTION: self._format_description,
            EventType.PREVIOUS_GTIDS: self._previous_gtids,
            EventType.MARIADB_GTID_LIST: self._gtid_list,
            **dict.fromkeys(ROWS, self._rows_event),
        }

    @property
    def position(self) -> BinlogPosition:
        """The place after the last event read, which may lie inside a transaction."""
        return BinlogPosition(self._file, self._offset, self._executed, self._origin)

    def read(self, event: bytes, *, checksum: bool) -> Sequence[Entry]:
        """Take the next event in.

        Args:
            event: the raw event with its header.
            checksum: whether its last four bytes are a checksum.

        Returns:
            The entries that are complete with it, in order; most events complete none.

        Raises:
            FatalError: the event cannot be replicated, or is damaged.
            TransientError: the stream comes from another file than the start's.
        """
        try:
            seconds, kind, _, size, next_offset, flags = EVENT_HEADER.unpack_from(event)
            if size != len(event):
                raise self._damaged(kind, f"{len(event)} bytes instead of {size}")
            if next_offset and not flags & ARTIFICIAL_FLAG:
                # Offsets have 32 bits in the event, and a transaction beyond 4 GiB wraps them.
                end = self._offset + size
                self._offset = end if end & 0xFFFF_FFFF == next_offset else next_offset
            reader = self._readers.get(kind)
            if reader is not None:
                return reader(event, checksum, seconds)
        except (struct.error, LookupError, ValueError) as error:
            raise self._damaged(event[4] if len(event) > 4 else 0, str(error)) from error
        if kind not in SKIPPED and not flags & IGNORABLE_FLAG:
            raise self._refusal(kind)
        return ()

    # ---- rows

    def _rows_event(self, event: bytes, checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        table = self._tables.get(event[HEADER_BYTES : HEADER_BYTES + 6])
        if table is None:
            if event[HEADER_BYTES : HEADER_BYTES + 4] == b"\xff\xff\xff\x00":
                return ()  # only says that the statement is over
            raise self._damaged(event[4], "no TABLE_MAP event came before it")
        return self._emit(
            Entry(
                EntryKind.ROWS,
                BinlogPosition(self._file, self._offset, self._executed, self._origin),
                float(seconds),
                table.schema,
                table.table,
                self._transaction,
                table.estimate.rows(event, event[4], checksum=checksum),
                event,
                table.context,
                "",
            )
        )

    def _table_map(self, event: bytes, checksum: bool, _: int) -> Sequence[Entry]:  # noqa: FBT001
        body = table_map_body(event, checksum=checksum)
        table = self._by_body.get(body)
        if table is None:
            parsed = parse_table_map(body)
            table = _Table(parsed.schema, parsed.table, (self._format, event), RowEstimate(parsed))
            if len(self._by_body) >= _TABLES_KEPT:
                self._by_body.clear()
            self._by_body[body] = table
        self._tables[body[:6]] = table
        return ()

    def _format_description(self, event: bytes, _checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        if self._origin is not None:
            self._identify(event, self._origin, seconds)
        # The same server writes the same event into every file, but for a time of creation.
        if _timeless(event) != _timeless(self._format):
            self._format = event
            self._by_body.clear()
        self._tables.clear()
        return ()

    def _identify(self, format_description: bytes, known: BinlogOrigin, created: int) -> None:
        """Learn which file it is, or see that it is the one that was meant."""
        (writer,) = struct.unpack_from("<I", format_description, 5)
        self._origin = BinlogOrigin(known.server, writer, created)
        if known.created and self._origin != known:
            raise TransientError(
                f"{self._file} is not the file of this name that was read before",
                hint="The source was replaced or reset meanwhile; the place is looked up again",
                position=self.position,
            )

    # ---- transactions

    def _mariadb_gtid(self, event: bytes, _checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        sequence, domain, flags = struct.unpack_from("<QIB", event, HEADER_BYTES)
        (server,) = struct.unpack_from("<I", event, 5)
        self._transaction = f"{domain}-{server}-{sequence}"
        return () if flags & _MARIADB_STANDALONE else self._begin(seconds)

    def _mysql_gtid(self, event: bytes, _checksum: bool, _seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        if event[4] == EventType.ANONYMOUS_GTID:
            self._transaction = ""
            return ()
        server = uuid.UUID(bytes=event[HEADER_BYTES + 1 : HEADER_BYTES + 17])
        (number,) = struct.unpack_from("<q", event, HEADER_BYTES + 17)
        self._transaction = f"{server}:{number}"
        return ()

    def _begin(self, seconds: int) -> Sequence[Entry]:
        if not self._open:
            self._open = True
            if len(self._tables) >= _TABLES_KEPT:
                self._tables.clear()  # each statement sends the maps of its tables again
            self._held.begin(
                Entry(EntryKind.BEGIN, self.position, float(seconds), transaction=self._transaction)
            )
        return ()

    def _emit(self, entry: Entry) -> Sequence[Entry]:
        return self._held.add(entry) if self._open else (entry,)

    def _commit(self, _event: bytes, _checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        opened = self._open
        end = self._end(EntryKind.COMMIT, seconds)
        return self._held.commit(end) if opened else (end,)

    def _rollback(self, seconds: int, text: str) -> Sequence[Entry]:
        begin = self._held.rollback() if self._open else []
        if begin is None:
            raise self._taken_back(text)
        return [*begin, self._end(EntryKind.COMMIT, seconds)]

    def _rollback_to(self, name: str, text: str) -> Sequence[Entry]:
        if self._open and not self._held.rollback_to(name):
            raise self._taken_back(text)
        return ()

    def _end(self, kind: EntryKind, seconds: int) -> Entry:
        """The entry of something that ends a transaction; it may be all of it."""
        transaction = self._transaction
        if transaction and self._gtids is not None:
            self._gtids.add(transaction)
            self._executed = str(self._gtids)
        self._transaction = ""
        self._open = False
        return Entry(kind, self.position, float(seconds), transaction=transaction)

    # ---- statements

    def _query(self, event: bytes, checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        schema, text = parse_query(event, checksum=checksum)
        statement = _COMMON.get(text) or parse_statement(text, schema)
        entries: Sequence[Entry] = ()
        match statement.kind:
            case StatementKind.BEGIN | StatementKind.XA_START:
                entries = self._begin(seconds)
            case StatementKind.COMMIT | StatementKind.XA_COMMIT:
                entries = self._commit(event, checksum, seconds)
            case StatementKind.ROLLBACK:
                entries = self._rollback(seconds, text)
            case StatementKind.SAVEPOINT:
                self._held.savepoint(statement.name)
            case StatementKind.ROLLBACK_TO_SAVEPOINT:
                entries = self._rollback_to(statement.name, text)
            case StatementKind.DDL:
                entries = self._ddl(statement, schema, text, seconds)
            case StatementKind.ROWS:
                raise self._statement_format(schema, text)
            case StatementKind.XA_ROLLBACK:
                raise self._taken_back(text)
            case StatementKind.OTHER if not self._open:
                entries = (self._end(EntryKind.HEARTBEAT, seconds),)
            case _:
                pass
        return entries

    def _ddl(self, statement: Statement, schema: str, text: str, seconds: int) -> Sequence[Entry]:
        if statement.tables:
            schema, table = statement.tables[0]
        else:
            table = ""
        # CREATE TABLE ... SELECT stands inside a transaction, whose rows follow.
        transaction = self._transaction
        if not self._open:
            self._end(EntryKind.DDL, seconds)
        position = self.position
        if self._open:
            # No GTIDs name a place inside a transaction; those before it would lead to its
            # beginning, and a server says of this place that the transaction is executed.
            position = BinlogPosition(position.file, position.offset, "", position.origin)
        return self._emit(
            Entry(
                EntryKind.DDL,
                position,
                float(seconds),
                schema,
                table,
                transaction,
                statement=text,
            )
        )

    # ---- files

    def _rotate(self, event: bytes, checksum: bool, seconds: int) -> Sequence[Entry]:  # noqa: FBT001
        (offset,) = struct.unpack_from("<Q", event, HEADER_BYTES)
        end = len(event) - 4 if checksum else len(event)
        file = event[HEADER_BYTES + 8 : end].decode("ascii")
        moved = file != self._file
        self._file, self._offset = file, offset
        if not moved:
            return ()
        if self._origin is not None:
            self._origin = BinlogOrigin(self._origin.server)
        if self._open and self._held.rollback() is None:
            raise self._taken_back("the file ends inside a transaction")
        # Transactions do not go on in another file: this one was lost with the server.
        self._open = False
        self._transaction = ""
        # The position has to leave the old file even if nothing follows for long, since the
        # server may purge it.
        return (Entry(EntryKind.HEARTBEAT, self.position, float(seconds)),)

    def _previous_gtids(self, event: bytes, _checksum: bool, _: int) -> Sequence[Entry]:  # noqa: FBT001
        return self._know(MysqlGtids.from_previous_event(event[HEADER_BYTES:]))

    def _gtid_list(self, event: bytes, _checksum: bool, _: int) -> Sequence[Entry]:  # noqa: FBT001
        (next_offset,) = struct.unpack_from("<I", event, 13)
        if not next_offset:
            return ()  # made up for this connection
        return self._know(MariadbGtids.from_list_event(event[HEADER_BYTES:]))

    def _know(self, gtids: ExecutedGtids | None) -> Sequence[Entry]:
        self._gtids = gtids
        self._executed = "" if gtids is None else str(gtids)
        return ()

    # ---- refusals

    def _statement_format(self, schema: str, text: str) -> FatalError:
        return FatalError(
            f"the source logged a statement instead of its rows: {text[:80]!r}",
            hint="SET GLOBAL binlog_format='ROW' on the source, let no session choose otherwise, "
            "then load the table again or move the position past it",
            position=self.position,
            schema=schema,
        )

    def _taken_back(self, text: str) -> FatalError:
        return FatalError(
            f"the source took back rows that were read already: {text[:80]}",
            hint="Compare source and target, then move the position past it",
            position=self.position,
            transaction=self._transaction,
        )

    def _refusal(self, kind: int) -> FatalError:
        name, hint = REFUSED.get(
            kind, ("events of a type that is not known", "This server's version is too new")
        )
        return FatalError(
            f"the binlog holds {name} (event type {kind})", hint=hint, position=self.position
        )

    def _damaged(self, kind: int, reason: str) -> FatalError:
        return FatalError(
            f"an event of type {kind} in the binlog is damaged: {reason}",
            hint="Check the binlog with mysqlbinlog --verify-binlog-checksum on the source",
            position=self.position,
        )


def _gtids_from(text: str) -> ExecutedGtids | None:
    if not text:
        return None
    return MysqlGtids(text) if ":" in text else MariadbGtids(text)


def _timeless(format_description: bytes) -> bytes:
    """The event's body without time of creation and checksum."""
    body = format_description[HEADER_BYTES:-4]
    return body[:52] + body[56:]
