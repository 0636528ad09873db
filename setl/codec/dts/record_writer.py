"""Writes the transactions of a binlog as DTS records, as a subscription would.

Layout: ``schemas/Record.avsc``; what stands in its members: Alibaba's description of the data
formats of a change tracking instance. A record is the concatenation of its members, so whatever
many records share is written once: for a stream (`DtsRecordWriter`), for a transaction
(`TransactionRecords`), for a table (`setl.codec.dts.table_form.TableForm`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from setl.codec.dts.avro_bytes import END, NULL, block_bytes, long_bytes, text_bytes
from setl.codec.dts.table_form import TableForm, object_name
from setl.model.change import DecodedRows, Op
from setl.model.position import BinlogPosition, binlog_file_number

# Symbols of the enumeration Operation.
_ROWS: Final = {Op.INSERT: long_bytes(0), Op.UPDATE: long_bytes(1), Op.DELETE: long_bytes(2)}
_DDL: Final = long_bytes(3)
_BEGIN: Final = long_bytes(4)
_COMMIT: Final = long_bytes(5)
_HEARTBEAT: Final = long_bytes(8)

_VERSION: Final = long_bytes(0)
_MYSQL: Final = long_bytes(0)  # symbol of SourceType
_TEXT: Final = long_bytes(1)  # the branch string, of objectName and images
_NO_PROCESS_TIMESTAMPS: Final = NULL
_NO_TRANSACTION: Final = "0"  # sourceTxid of MySQL

# Keys of tags.
_GTID: Final = text_bytes("GTID")
_THREAD_ID: Final = text_bytes("thread_id")
_SERVER_ID: Final = text_bytes("server_id")
_READ_AT: Final = text_bytes("readerThroughoutTime")


@dataclass(frozen=True, slots=True)
class TransactionFacts:
    """What all records of one transaction say.

    Attributes:
        begin: where it begins: who starts there gets all of it.
        read_ms: when it was read from the binlog, in milliseconds since 1970.
        gtid: its GTID, "" if it has none.
        thread_id: the connection that wrote it, if the binlog tells.
        server_id: the server that wrote it.
    """

    begin: BinlogPosition
    read_ms: int
    gtid: str = ""
    thread_id: int | None = None
    server_id: int | None = None


class DtsRecordWriter:
    """Writes the records of one binlog stream; it has no state."""

    def __init__(self, server_version: str, *, born: bool = True) -> None:
        """Prepare for a stream.

        Args:
            server_version: as the source server tells it, such as ``8.0.28``.
            born: whether records end with ``bornTimestamp``, in seconds. Without it they are
                those of the older schema with 14 members.
        """
        self._source = _MYSQL + text_bytes(server_version)
        self._born = born

    def transaction(self, facts: TransactionFacts) -> TransactionRecords:
        """A writer for the records of one transaction, or of a DDL statement."""
        origin = (
            text_bytes(position_text(facts.begin))
            + text_bytes(facts.gtid or _NO_TRANSACTION)
            + self._source
        )
        return TransactionRecords(facts, origin, self._end(facts.read_ms))

    def heartbeat(
        self, ident: int, *, seconds: int, position: BinlogPosition, read_ms: int
    ) -> bytes:
        """A record that says no more than that everything before `position` was sent.

        Args:
            ident: the record's id.
            seconds: the source's time, in seconds since 1970.
            position: a position between transactions.
            read_ms: the time here, in milliseconds since 1970.
        """
        other_position = text_bytes(position_text(position))
        front = _VERSION + long_bytes(ident) + long_bytes(seconds) + other_position + other_position
        transaction = text_bytes(_NO_TRANSACTION) + self._source
        return front + transaction + _HEARTBEAT + _bare([]) + self._end(read_ms)

    def _end(self, milliseconds: int) -> bytes:
        return long_bytes(milliseconds // 1000) if self._born else b""


class TransactionRecords:
    """Writes the records of one transaction; made by `DtsRecordWriter.transaction`.

    Every method takes the id of its record, the time at which the source wrote the event, in
    seconds since 1970, and the position after the event: `Entry.timestamp` and `Entry.position`.
    """

    def __init__(self, facts: TransactionFacts, origin: bytes, end: bytes) -> None:
        self._gtid_tag = [_GTID + text_bytes(facts.gtid)] if facts.gtid else []
        thread = facts.thread_id
        self._thread_tag = [] if thread is None else [_THREAD_ID + text_bytes(str(thread))]
        row_tags = [*self._thread_tag]
        if facts.server_id is not None:
            row_tags.append(_SERVER_ID + text_bytes(str(facts.server_id)))
        row_tags.append(_READ_AT + text_bytes(str(facts.read_ms)))
        # One more is the table's, and stands in front.
        self._row_tag_count = long_bytes(1 + len(row_tags))
        self._row_tags = b"".join(row_tags) + END
        self._origin = origin
        self._end = end

    def begin(self, ident: int, *, seconds: int, position: BinlogPosition) -> bytes:
        """BEGIN, which has the transaction's GTID; rows have it as ``sourceTxid`` only."""
        front = self._front(ident, seconds, position)
        return front + _BEGIN + _bare([*self._thread_tag, *self._gtid_tag]) + self._end

    def commit(self, ident: int, *, seconds: int, position: BinlogPosition) -> bytes:
        """COMMIT, with the GTID again: clients take records as short as it else is for fillers."""
        front = self._front(ident, seconds, position)
        return front + _COMMIT + _bare(self._gtid_tag) + self._end

    def ddl(
        self, ident: int, schema: str, statement: str, *, seconds: int, position: BinlogPosition
    ) -> bytes:
        """A DDL statement.

        Args:
            ident: the record's id.
            schema: where names without a schema belong.
            statement: its text.
            seconds: see the class.
            position: see the class.
        """
        front = self._front(ident, seconds, position)
        named = object_name(schema) + _NO_PROCESS_TIMESTAMPS + block_bytes(self._gtid_tag)
        images = NULL + NULL + _TEXT + text_bytes(statement)  # no fields, nothing before
        return front + _DDL + named + images + self._end

    def rows(
        self,
        form: TableForm,
        changes: DecodedRows,
        *,
        first_id: int,
        seconds: int,
        position: BinlogPosition,
    ) -> list[bytes]:
        """A record for each row change of one entry, in their order.

        Args:
            form: of the table, from the same context as `changes`.
            changes: the decoded entry.
            first_id: id of the first record; the next ones count on.
            seconds: see the class.
            position: see the class.

        Raises:
            DataError: a value is none of its column's kind.
        """
        common = b"".join(
            (
                self._moment(seconds, position),
                _ROWS[changes.op],
                form.name,
                _NO_PROCESS_TIMESTAMPS,
                self._row_tag_count,
                form.keys_tag,
                self._row_tags,
                form.fields,
            )
        )
        image = form.image
        end = self._end
        return [
            b"".join(
                (
                    _VERSION,
                    long_bytes(ident),
                    common,
                    NULL if before is None else image(before),
                    NULL if after is None else image(after),
                    end,
                )
            )
            for ident, (before, after) in enumerate(changes.images, first_id)
        ]

    def _front(self, ident: int, seconds: int, position: BinlogPosition) -> bytes:
        return _VERSION + long_bytes(ident) + self._moment(seconds, position)

    def _moment(self, seconds: int, position: BinlogPosition) -> bytes:
        return long_bytes(seconds) + text_bytes(position_text(position)) + self._origin


def position_text(position: BinlogPosition) -> str:
    """A position as records write it: offset, ``@``, number of the binlog file."""
    return f"{position.offset}@{binlog_file_number(position.file)}"


def _bare(tags: list[bytes]) -> bytes:
    """What follows the operation in a record without rows or statement."""
    return NULL + _NO_PROCESS_TIMESTAMPS + block_bytes(tags) + NULL * 3
