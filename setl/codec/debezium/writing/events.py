"""Writes the transactions of a binlog as change events."""

from __future__ import annotations

from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Final

from setl import __version__
from setl.codec.binlog.event import EVENT_HEADER
from setl.codec.binlog_tables import completed
from setl.codec.debezium.reading.header import WRITER
from setl.codec.debezium.writing.columns import NULL
from setl.codec.debezium.writing.schemas import schema_change, schema_change_key, wrapping
from setl.codec.debezium.writing.tables import DebeziumTables
from setl.model.change import DecodedRows, Op, Row
from setl.model.entry import Entry
from setl.model.position import BinlogPosition

_FILE_START: Final = 4
_OPS: Final = {Op.INSERT: "c", Op.UPDATE: "u", Op.DELETE: "d"}

Event = tuple[bytes | None, bytes | None]
"""Value and key."""


@dataclass(frozen=True, slots=True)
class TransactionSource:
    """What the source block says about a transaction.

    Attributes:
        gtid: its GTID, "" if it has none.
        thread_id: the connection that wrote it, None if the binlog does not say.
        read_ns: when it was read, in nanoseconds since 1970.
    """

    gtid: str
    thread_id: int | None
    read_ns: int


class DebeziumEvents:
    """Writes change events of one stream."""

    def __init__(self, prefix: str, *, mariadb: bool, schemas: bool, exact_decimals: bool) -> None:
        """See `setl.relay.debezium.DebeziumSerializer`."""
        connector = "mariadb" if mariadb else "mysql"
        self._tables = DebeziumTables(
            prefix, connector, schemas=schemas, exact_decimals=exact_decimals
        )
        self._head = (
            f'{{"version":"{WRITER}{__version__}","connector":"{connector}",'
            f'"name":{encode_basestring(prefix)},"ts_ms":'
        )
        self._around_ddl = self._around_ddl_key = (b"", b"")
        if schemas:
            self._around_ddl = wrapping(schema_change(connector))
            self._around_ddl_key = wrapping(schema_change_key(connector))

    def rows(
        self,
        source: TransactionSource,
        entry: Entry,
        position: BinlogPosition,
        changes: DecodedRows,
        first: int,
    ) -> list[list[Event]]:
        """The events of each row of an entry.

        Args:
            source: of its transaction.
            entry: the entry.
            position: its end.
            changes: its rows, or some.
            first: the number of the first of `changes` among the rows of the entry.

        Raises:
            DataError: an image is not in full, or a value cannot be written.
        """
        table = self._tables.table(entry.context)
        schema, op, images = changes
        begin, end = self._source(source, entry, position, schema.schema, schema.table)
        front, behind = table.around_value
        moment = _moments(source.read_ns)

        def value(row: int, kind: str, before: Row | None, after: Row | None) -> bytes:
            text = (
                f'{{"before":{table.image(before)},"after":{table.image(after)},"source":{begin}'
                f'{row}{end},"transaction":null,"op":"{kind}",{moment}}}'
            )
            return front + text.encode() + behind

        made: list[list[Event]] = []
        for row, (before, changed) in enumerate(images, first):
            after = completed(before, changed)
            key = table.key((after if before is None else before) or ())
            new = key if after is None or op is not Op.UPDATE else table.key(after)
            if op is not Op.DELETE and new == key:
                made.append([(value(row, _OPS[op], before, after), key)])
                continue
            events: list[Event] = [(value(row, "d", before, None), key), (None, key)]
            if op is Op.UPDATE:
                # Whoever goes by keys has two rows here.
                events.append((value(row, "c", None, after), new))
            made.append(events)
        return made

    def schema_change(
        self, source: TransactionSource, entry: Entry, position: BinlogPosition, schema: str
    ) -> Event:
        """The event of a DDL statement, in whose session `schema` is the default."""
        begin, end = self._source(source, entry, position, schema, entry.table)
        name = encode_basestring(schema)
        text = (
            f'{{"source":{begin}0{end},"ts_ms":{source.read_ns // 1_000_000},'
            f'"databaseName":{name},"schemaName":null,"ddl":{encode_basestring(entry.statement)},'
            '"tableChanges":[]}'
        )
        key = f'{{"databaseName":{name}}}'
        (front, behind), (key_front, key_behind) = self._around_ddl, self._around_ddl_key
        return (
            front + text.encode("utf-8", "replace") + behind,
            key_front + key.encode() + key_behind,
        )

    def _source(
        self,
        source: TransactionSource,
        entry: Entry,
        position: BinlogPosition,
        schema: str,
        table: str,
    ) -> tuple[str, str]:
        """The source block up to the number of the row, and behind it."""
        payload = entry.payload
        server_id = size = 0
        if len(payload) >= EVENT_HEADER.size:
            _, _, server_id, size, _, _ = EVENT_HEADER.unpack_from(payload)
        millis = int(entry.timestamp * 1000)
        thread = NULL if source.thread_id is None else source.thread_id
        begin = (
            f'{self._head}{millis},"snapshot":"false","db":{encode_basestring(schema)},'
            f'"sequence":null,"ts_us":{millis}000,"ts_ns":{millis}000000,'
            f'"table":{encode_basestring(table) if table else NULL},"server_id":{server_id},'
            f'"gtid":{encode_basestring(source.gtid) if source.gtid else NULL},'
            f'"file":{encode_basestring(position.file)},'
            f'"pos":{max(position.offset - size, _FILE_START)},"row":'
        )
        return begin, f',"thread":{thread},"query":null}}'


def _moments(nanos: int) -> str:
    return f'"ts_ms":{nanos // 1_000_000},"ts_us":{nanos // 1_000},"ts_ns":{nanos}'
