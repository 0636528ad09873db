"""Writes rows and statements of a binlog as flat messages of Canal, one for each row.

Members, and their order: Canal's `FlatMessage` as it comes to Kafka.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Final

from setl.codec.binlog_tables import BinlogTable, binlog_table, check_key_text, completed, whole
from setl.codec.canal.writing.columns import MISFITS, canal_column
from setl.codec.sql.statement import tables_of
from setl.errors import DataError
from setl.model.change import DecodedRows, Op, Row
from setl.model.entry import Entry
from setl.model.schema import Kind

_MAX_TABLES: Final = 1024
_NULL: Final = "null"
_COMMENT: Final = re.compile(r"/\*(?!!).*?\*/|(--\s|#)[^\n]*\n", re.DOTALL)
_QUERY: Final = "QUERY"
_TYPES: Final = (
    (re.compile(r"CREATE\s+(UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)?INDEX\b", re.I), "CINDEX"),
    (re.compile(r"DROP\s+INDEX\b", re.I), "DINDEX"),
    (re.compile(r"CREATE\s+(OR\s+REPLACE\s+)?(TEMPORARY\s+)?TABLE\b", re.I), "CREATE"),
    (re.compile(r"ALTER\s+((ONLINE|IGNORE)\s+)*TABLE\b", re.I), "ALTER"),
    (re.compile(r"DROP\s+(TEMPORARY\s+)?TABLE\b", re.I), "ERASE"),
    (re.compile(r"TRUNCATE\b", re.I), "TRUNCATE"),
    (re.compile(r"RENAME\s+TABLE\b", re.I), "RENAME"),
)
"""How statements begin, and what Canal calls them; all others are queries."""


class CanalTable:
    """Writes row images of a table, and what is the same in all of its messages.

    Attributes:
        database: its database, as JSON.
        mysql_type: the types of its columns as MySQL names them.
        tail: what stands between ``old`` and the time at which a row was read.
    """

    def __init__(self, table: BinlogTable) -> None:
        """Prepare for a table."""
        schema = table.schema
        columns = [canal_column(column) for column in table.columns]
        self._schema = schema
        self._names = [f"{encode_basestring(name)}:" for name in schema.names]
        self._write = [column.write for column in columns]
        keys = [schema.names[i] for i in schema.key]
        self._key_texts = [i for i in schema.key if schema.columns[i].kind is Kind.TEXT]
        types = {name: c.mysql_type for name, c in zip(schema.names, columns, strict=True)}
        numbers = {name: c.sql_type for name, c in zip(schema.names, columns, strict=True)}
        self.mysql_type = _compact(types)
        self.tail = (
            f'"pkNames":{_compact(keys) if keys else _NULL},"sql":"",'
            f'"sqlType":{_compact(numbers)},"table":{encode_basestring(schema.table)},"ts":'
        )
        self.database = encode_basestring(schema.schema)

    def texts(self, row: Row) -> list[str]:
        """Each value of an image as JSON.

        Raises:
            DataError: it is not in full, or a value cannot be written.
        """
        values = whole(row, self._schema)
        try:
            for i in self._key_texts:
                check_key_text(values[i])
            texts = [
                _NULL if value is None else encode_basestring(write(value))
                for value, write in zip(values, self._write, strict=True)
            ]
            "".join(texts).encode()  # a surrogate is refused here
        except MISFITS as error:
            raise DataError(
                f"a row cannot be written as Canal's: {error}",
                hint="Change it, or leave the table out; `format: dts` has every value",
                schema=self._schema.schema,
                table=self._schema.table,
            ) from error
        return texts

    def image(self, texts: list[str]) -> str:
        """All values of an image."""
        pairs = [name + text for name, text in zip(self._names, texts, strict=True)]
        return "{" + ",".join(pairs) + "}"

    def changed(self, before: list[str], after: list[str]) -> str:
        """The former values of what changed."""
        rows = zip(self._names, before, after, strict=True)
        return "{" + ",".join([name + old for name, old, new in rows if old != new]) + "}"


class CanalMessages:
    """Writes flat messages of one stream."""

    def __init__(self) -> None:
        """No table is known."""
        self._tables: dict[tuple[bytes, ...], CanalTable] = {}

    def rows(
        self, first_id: int, entry: Entry, changes: DecodedRows, gtid: str, read_ms: int
    ) -> list[bytes]:
        """The message of each row of an entry.

        Args:
            first_id: of the first one; the next ones count on.
            entry: the entry.
            changes: its rows, or some.
            gtid: of the transaction, "" if it has none.
            read_ms: when it was read, in milliseconds since 1970.

        Raises:
            DataError: an image is not in full, or a value cannot be written.
        """
        table = self._table(entry.context)
        op = changes.op
        middle = f'],"database":{table.database},{_moment(entry, gtid)},"id":'
        behind = f',"isDdl":false,"mysqlType":{table.mysql_type},"old":'
        end = f',{table.tail}{read_ms},"type":"{op.name}"}}'
        made: list[bytes] = []
        for ident, (before, changed) in enumerate(changes.images, first_id):
            after = completed(before, changed)
            data = table.texts((before if after is None else after) or ())
            old = _NULL
            if op is Op.UPDATE and before is not None:
                old = f"[{table.changed(table.texts(before), data)}]"
            text = f'{{"data":[{table.image(data)}{middle}{ident}{behind}{old}{end}'
            made.append(text.encode())
        return made

    def ddl(self, ident: int, entry: Entry, gtid: str, read_ms: int) -> bytes:
        """The message of a DDL statement."""
        tables = tables_of(entry)
        schema, table = tables[0] if tables else (entry.default_schema or entry.schema, "")
        text = (
            f'{{"data":null,"database":{encode_basestring(schema)},{_moment(entry, gtid)},'
            f'"id":{ident},"isDdl":true,"mysqlType":null,"old":null,"pkNames":null,'
            f'"sql":{encode_basestring(entry.statement)},"sqlType":null,'
            f'"table":{encode_basestring(table)},"ts":{read_ms},"type":"{_type(entry.statement)}"}}'
        )
        return text.encode("utf-8", "replace")

    def _table(self, context: tuple[bytes, ...]) -> CanalTable:
        found = self._tables.get(context)
        if found is None:
            if len(self._tables) >= _MAX_TABLES:
                self._tables.clear()
            found = self._tables[context] = CanalTable(binlog_table(context))
        return found


def _moment(entry: Entry, gtid: str) -> str:
    return f'"es":{int(entry.timestamp * 1000)},"gtid":{encode_basestring(gtid)}'


def _type(statement: str) -> str:
    text = _COMMENT.sub(" ", statement).lstrip()
    return next((name for form, name in _TYPES if form.match(text)), _QUERY)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
