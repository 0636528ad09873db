"""Reads whole tables in parts, as rows in their normal form."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor, SSCursor
from pymysql.err import MySQLError

from setl.bulk.checksums import Checksum, Formed
from setl.bulk.chunks import (
    WHOLE_TABLE,
    Chunk,
    chunk_columns,
    chunks_between,
    integer_chunks,
    is_sparse,
)
from setl.bulk.source_reader import KeyRange, Snapshot
from setl.codec.sql.condition import condition_problem
from setl.errors import ConfigurationError, TransientError
from setl.model.change import Row
from setl.model.position import BinlogPosition, Position
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.conflicts.recent import stored_keys
from setl.systems.mysql.conflicts.tables import Table
from setl.systems.mysql.connection import (
    MysqlEndpoint,
    connect,
    is_mariadb,
    translate,
    translating,
)
from setl.systems.mysql.identifiers import identifier, qualified
from setl.systems.mysql.odd_utf8 import read_odd_utf8
from setl.systems.mysql.reading.checksums import ChecksumQuery
from setl.systems.mysql.reading.consistent_read import begin_consistent_read, read_all_before
from setl.systems.mysql.reading.snapshot import opened_snapshot
from setl.systems.mysql.values.conditions import (
    Condition,
    chunk_condition,
    keyed_conditions,
    sayable,
)
from setl.systems.mysql.values.row_text import VALUES, can_render, rendering, rows_of_one_column
from setl.systems.mysql.values.row_values import RAW_VALUES, decoded, decoders, select_list

_FETCH_ROWS = 2_000
# Seconds for which the server waits for a reader that is busy with what it has read.
_PATIENCE = 600
# Of a chunk whose checksum is computed: its server answers nothing before the last row.
_MOST_BYTES = 64 << 20
_LEAST_ROWS = 100


@dataclass(frozen=True, slots=True)
class TableReader:
    """One table of one server. Picklable: tasks read with it.

    Attributes:
        endpoint: the server.
        schema: the table as the server describes it.
        condition: SQL that is true for the rows to read, "" for all.
        position: everything before this position of the stream is to be seen; None for no matter
            what.
        inside: whether it is inside a transaction.
        decided_for: the pipeline without whose undecided rows it is read, "" for none; see
            `SourceReader.decided`.
    """

    endpoint: MysqlEndpoint
    schema: RowSchema
    condition: str = field(default="", kw_only=True)
    position: Position | None = field(default=None, kw_only=True)
    inside: bool = field(default=False, kw_only=True)
    decided_for: str = field(default="", kw_only=True)

    @property
    def name(self) -> str:
        """``schema.table``, for messages."""
        return self.schema.name

    def parts(self, rows_per_part: int) -> list[Condition]:
        """Conditions that cut the table into parts of about so many rows, each row in one.

        A table without a key that sorts as it compares is one part.

        Raises:
            SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
        """
        columns = chunk_columns(self.schema)
        if not columns:
            return [chunk_condition((), WHOLE_TABLE)]
        with closing(self._connect()) as connection, translating(self.endpoint):
            chunks = self._chunks(connection, columns, rows_per_part)
        return [chunk_condition(columns, chunk) for chunk in chunks]

    def ranges(self, after: Row | None, rows: int, count: int) -> list[KeyRange]:
        """See `SourceReader.ranges`; walks along the index.

        Raises:
            SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
        """
        columns = chunk_columns(self.schema)
        if not columns:
            return [KeyRange(chunk_condition((), WHOLE_TABLE), None)]
        found: list[KeyRange] = []
        with (
            closing(self._connect()) as connection,
            translating(self.endpoint),
            connection.cursor(Cursor) as cursor,
        ):
            while len(found) < count:
                last = self._limit(cursor, columns, Chunk(after), rows)
                there = rows if last else self._count(cursor, columns, after, rows)
                found.append(KeyRange(chunk_condition(columns, Chunk(after, last)), last, there))
                if last is None:
                    break
                after = last
        return found

    def only(self, condition: str) -> TableReader:
        """See `SourceReader.only`."""
        return replace(self, condition=condition)

    def reading_at(self, position: Position, *, inside: bool) -> TableReader:
        """See `SourceReader.reading_at`."""
        return replace(self, position=position, inside=inside)

    def decided(self, pipeline: str) -> TableReader:
        """See `SourceReader.decided`."""
        return replace(self, decided_for=pipeline)

    def check(self) -> None:
        """See `SourceReader.check`."""
        if not self.condition:
            return
        problem = condition_problem(self.condition)
        if problem:
            raise self._refused(problem)
        sql = f"EXPLAIN SELECT 1 FROM {self._qualified} WHERE {self._where('TRUE')}"
        with closing(self._connect()) as connection, connection.cursor(Cursor) as cursor:
            try:
                cursor.execute(sql, ())
            except (MySQLError, OSError) as error:
                failure = translate(error)
                if isinstance(failure, TransientError):
                    raise failure from error
                raise self._refused(f"is refused: {failure.message}") from error

    def _refused(self, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"the condition `{self.condition}` {why}",
            hint="Give one condition in the SQL of the source's server",
            table=self.name,
        )

    def parts_of_keys(self, key: Sequence[Column], keys: Sequence[Row]) -> list[Condition]:
        """Conditions that select the rows with these values in the columns `key`."""
        return list(keyed_conditions(key, keys))

    def read(self, columns: Sequence[Column], part: Condition) -> Iterator[list[Row]]:
        """The rows of a part, some thousand at a time, with the values of `columns`.

        Rows are streamed: the server's answer is never held in memory as a whole. One call
        sees the table as it is when the call begins.

        Raises:
            SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
        """
        if self.decided_for:
            yield from self._decided_rows(columns, part)
            return
        decode = decoders(columns)
        sql = f"SELECT {select_list(columns)} FROM {self._qualified}"
        sql += f" WHERE {self._where(part.sql)}"
        with (
            closing(self._connect(cursorclass=SSCursor)) as connection,
            translating(self.endpoint),
            connection.cursor() as cursor,
        ):
            cursor.execute(f"SET SESSION net_write_timeout={_PATIENCE}")
            ending = read_all_before(connection, self.position, inside=self.inside)
            cursor.execute(sql + ending, part.values)
            while raw := cursor.fetchmany(_FETCH_ROWS):
                yield [decoded(decode, row) for row in raw]

    @contextmanager
    def snapshot(self, columns: Sequence[Column]) -> Generator[Snapshot]:
        """See `SnapshotReader.snapshot`, and `setl.systems.mysql.reading.snapshot`.

        Raises:
            SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
        """
        position = self.position
        if not isinstance(position, BinlogPosition):
            raise ConfigurationError(
                "the table has no key, and the stream is none of its server's own: nobody could"
                " tell which changes its rows have already",
                hint="Name columns that are unique and never NULL under `key`, or set `load: false`"
                " in an entry of its own",
                table=self.name,
            )

        def connected(**options: Any) -> Connection[Any]:
            connection = connect(self.endpoint, **options)
            read_odd_utf8(connection)
            return connection

        with ExitStack() as stack:
            with translating(self.endpoint):  # not what is done with the rows
                opened = opened_snapshot(connected, self.schema, columns, position)
                snapshot = stack.enter_context(opened)
            yield snapshot._replace(rows=self._translated(snapshot.rows))

    def _translated(self, rows: Iterator[list[Row]]) -> Iterator[list[Row]]:
        with translating(self.endpoint):
            yield from rows

    def _decided_rows(self, columns: Sequence[Column], part: Condition) -> Iterator[list[Row]]:
        """Rows and what is kept of them, both as of one moment."""
        decode, schema = decoders(columns), self.schema
        key = [schema.columns[i] for i in schema.key]
        positions = [columns.index(column) for column in key]
        sql = f"SELECT {select_list(columns)} FROM {self._qualified} WHERE {self._where(part.sql)}"
        with (
            closing(self._connect()) as connection,
            translating(self.endpoint),
            connection.cursor(Cursor) as cursor,
        ):
            ending = begin_consistent_read(connection, self.position, inside=self.inside)
            cursor.execute(sql + ending, part.values)
            rows = [decoded(decode, raw) for raw in cursor.fetchall()]
            table = Table(
                self.decided_for,
                (schema.schema, schema.table),
                schema.names,
                tuple(column.name for column in key),
                "",
            )
            for some in _some(rows):
                keys = [tuple(row[position] for position in positions) for row in some]
                stored = stored_keys(cursor, table, keys, ending)
                yield [row for row, own in zip(some, keys, strict=True) if own not in stored]

    def text_order(self) -> str:
        """See `ChecksummedTable.text_order`."""
        with closing(self._connect()) as connection:
            return "mariadb" if is_mariadb(connection) else "mysql"

    def chunks(
        self, columns: Sequence[Column], rows: int, within: Chunk = WHOLE_TABLE
    ) -> list[Chunk]:
        """See `ChecksummedTable.chunks`."""
        with closing(self._connect()) as connection, translating(self.endpoint):
            with connection.cursor(Cursor) as cursor:
                rows = min(rows, self._rows_of_a_chunk(cursor))
            if within == WHOLE_TABLE:
                return self._chunks(connection, columns, rows)
            with connection.cursor(Cursor) as cursor:
                limits = self._limits(cursor, columns, rows, within)
        return [Chunk(low, high) for low, high in pairwise([within.low, *limits, within.high])]

    def next_chunk(self, columns: Sequence[Column], after: Row | None, rows: int) -> Chunk:
        """See `ChecksummedTable.next_chunk`."""
        with (
            closing(self._connect()) as connection,
            translating(self.endpoint),
            connection.cursor(Cursor) as cursor,
        ):
            rows = min(rows, self._rows_of_a_chunk(cursor))
            return Chunk(after, self._limit(cursor, columns, Chunk(after), rows))

    def part(self, columns: Sequence[Column], chunk: Chunk) -> Condition:
        """See `ChecksummedTable.part`."""
        return chunk_condition(columns, chunk)

    @contextmanager
    def checksums(
        self, formed: Sequence[Formed], cut: Sequence[Column]
    ) -> Generator[Callable[[Chunk], Checksum]]:
        """See `ChecksummedTable.checksums`."""
        with closing(self._connect()) as connection:
            query = ChecksumQuery(connection, self._qualified, formed)

            def checksum(chunk: Chunk) -> Checksum:
                where = chunk_condition(cut, chunk)
                with translating(self.endpoint):
                    return query.checksum(Condition(self._where(where.sql), where.values))

            yield checksum

    def _rows_of_a_chunk(self, cursor: Cursor) -> int:
        """How many rows make a chunk at most, by their average length."""
        cursor.execute(
            "SELECT AVG_ROW_LENGTH FROM information_schema.TABLES"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (self.schema.schema, self.schema.table),
        )
        row = cursor.fetchone()
        length = int(row[0] or 0) if row else 0
        return max(_LEAST_ROWS, _MOST_BYTES // max(1, length))

    def _where(self, part: str) -> str:
        if not self.condition:
            return part
        # A percent sign is none of pymysql's placeholders.
        return f"({part}) AND ({self.condition.replace('%', '%%')})"

    def renders(self, form: str, columns: Sequence[Column]) -> bool:
        """See `RenderingReader.renders`, and `setl.systems.mysql.values.row_text`."""
        return form == VALUES and can_render(columns)

    def rendered(
        self,
        form: str,  # noqa: ARG002 - `renders` knows one
        columns: Sequence[Column],
        part: Condition,
    ) -> Iterator[list[bytes]]:
        """See `RenderingReader.rendered`.

        Raises:
            DataError: a row cannot be written so.
            SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
        """
        with closing(self._connect()) as connection, translating(self.endpoint):
            with connection.cursor(Cursor) as cursor:
                cursor.execute(f"SET SESSION net_write_timeout={_PATIENCE}")
                where = cursor.mogrify(self._where(part.sql), part.values)
            ending = read_all_before(connection, self.position, inside=self.inside)
            table = qualified(self.schema.schema, self.schema.table)
            sql = f"SELECT {rendering(columns)} FROM {table} WHERE {where}{ending}"
            yield from rows_of_one_column(connection, sql)

    @property
    def _qualified(self) -> str:
        return f"{identifier(self.schema.schema)}.{identifier(self.schema.table)}"

    def _connect(self, **options: Any) -> Connection[Any]:
        connection = connect(self.endpoint, conv=RAW_VALUES, **options)
        read_odd_utf8(connection)
        return connection

    def _chunks(
        self, connection: Connection[Any], columns: Sequence[Column], rows_per_part: int
    ) -> list[Chunk]:
        with connection.cursor(Cursor) as cursor:
            first = columns[0]
            if len(self.schema.key) == 1 and first.kind is Kind.INTEGER:
                name = identifier(first.name)
                cursor.execute(f"SELECT MIN({name}), MAX({name}) FROM {self._qualified}", ())
                lowest, highest = cursor.fetchone() or (None, None)
                if lowest is None or highest is None:
                    return [WHOLE_TABLE]
                rows = self._estimated_rows(cursor)
                if not is_sparse(int(lowest), int(highest), rows):
                    parts = (int(highest) - int(lowest)) // rows_per_part + 1
                    return integer_chunks(int(lowest), int(highest), parts)
            return chunks_between(self._limits(cursor, columns, rows_per_part))

    def _estimated_rows(self, cursor: Cursor) -> int:
        cursor.execute(
            "SELECT TABLE_ROWS FROM information_schema.TABLES"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (self.schema.schema, self.schema.table),
        )
        row = cursor.fetchone()
        return int(row[0]) if row and row[0] is not None else 0

    def _limits(
        self,
        cursor: Cursor,
        columns: Sequence[Column],
        rows_per_part: int,
        within: Chunk = WHOLE_TABLE,
    ) -> list[Row]:
        """Every so many rows the key, found by walking along the index from limit to limit."""
        limits: list[Row] = []
        while True:
            left = Chunk(limits[-1], within.high) if limits else within
            found = self._limit(cursor, columns, left, rows_per_part)
            if found is None or found == within.high:
                return limits
            limits.append(found)

    def _count(
        self, cursor: Cursor, columns: Sequence[Column], after: Row | None, most: int
    ) -> int:
        above = chunk_condition(columns, Chunk(after))
        first = identifier(columns[0].name)
        cursor.execute(
            f"SELECT COUNT(*) FROM (SELECT {first} FROM {self._qualified} WHERE {above.sql}"
            f" LIMIT {max(1, most)}) behind",
            above.values,
        )
        row = cursor.fetchone()
        return int(row[0]) if row else 0

    def _limit(
        self, cursor: Cursor, columns: Sequence[Column], within: Chunk, rows: int
    ) -> Row | None:
        """The key of the so many-th row of a chunk; None if it has fewer.

        Rows whose keys cannot be limits are skipped, see `sayable`.
        """
        order = ", ".join(identifier(column.name) for column in columns)
        where = chunk_condition(columns, within)
        cursor.execute(
            f"SELECT {select_list(columns)} FROM {self._qualified}"
            f" WHERE ({where.sql}) AND {sayable(columns)}"
            f" ORDER BY {order} LIMIT 1 OFFSET {max(1, rows) - 1}",
            where.values,
        )
        row = cursor.fetchone()
        return None if row is None else decoded(decoders(columns), row)


def _some(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for first in range(0, len(rows), _FETCH_ROWS):
        yield rows[first : first + _FETCH_ROWS]
