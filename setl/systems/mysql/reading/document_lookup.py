"""Documents looked up in the MySQL or MariaDB server that their rows come from.

Rows are read under shared locks, each statement on its own. A server may put a transaction into
its binlog before its tables show it. A plain read would be too early then, and miss the change for
good. But the transaction's rows are still locked, so a locking read waits for it. Locks last as
long as the statement. The price: a transaction that holds rows of an order for long holds up its
document for as long.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pymysql.connections import Connection

from setl.errors import ConfigurationError, SetlError, TransientError
from setl.model.change import Row, Value
from setl.model.nesting import Documents, NestedTable
from setl.model.schema import Column, RowSchema
from setl.systems.mysql.cached_connection import CachedConnection
from setl.systems.mysql.connection import (
    MysqlEndpoint,
    connect,
    translating,
)
from setl.systems.mysql.identifiers import identifier
from setl.systems.mysql.reading.nested_tables import DescribedDocuments, describe_documents
from setl.systems.mysql.shared_lock import shared_lock
from setl.systems.mysql.values.conditions import KEYS_PER_CONDITION, keyed_conditions
from setl.systems.mysql.values.row_values import (
    AlteredTableError,
    decoded,
    decoders,
    select_list,
)

_LOCK_WAIT: Final = 10
# How long a column that was dropped, or whose type has changed, may go unnoticed.
_DESCRIBED_SECONDS: Final = 2.0


# Descriptions of this process outlive the tasks that use them, as its connections do.
_descriptions: dict[tuple[MysqlEndpoint, Documents], tuple[float, DescribedDocuments]] = {}


@dataclass(frozen=True, slots=True)
class MysqlDocuments:
    """The `setl.transform.documents.DocumentSource` of a MySQL or MariaDB server.

    Attributes:
        endpoint: the server; its account may read the tables.
    """

    endpoint: MysqlEndpoint

    def schema(self, documents: Documents, seen: RowSchema | None = None) -> RowSchema:
        """See `DocumentSource.schema`."""
        described = self._described(documents)
        if seen is not None and described.lacks(seen):
            return self.schema_now(documents)
        return described.schema

    def schema_now(self, documents: Documents) -> RowSchema:
        """As `schema`, whatever is known of the tables from before."""
        _descriptions.pop((self.endpoint, documents), None)
        return self._described(documents).schema

    def read(self, documents: Documents, keys: Sequence[Row], schema: RowSchema) -> list[Row]:
        """See `DocumentSource.read`."""
        try:
            return self._read(self._described_as(documents, schema), documents, keys)
        except ConfigurationError:
            # The tables may have changed since they were described.
            _descriptions.pop((self.endpoint, documents), None)
            return self._read(self._described_as(documents, schema), documents, keys)

    def _read(
        self, described: DescribedDocuments, documents: Documents, keys: Sequence[Row]
    ) -> list[Row]:
        own = RowSchema(documents.schema, documents.table, described.own)
        key = [own.columns[own.folded[name.lower()]] for name in documents.key]
        positions = [own.folded[name.lower()] for name in documents.key]
        rows = list(self._rows(own, key, keys, ()))
        if not rows:
            return []
        found = [tuple(row[i] for i in positions) for row in rows]
        arrays = [
            self._nested(nested, table, own, found)
            for nested, table in zip(documents.nested, described.nested, strict=True)
        ]
        return [
            # The type of values has no room for rows, which nothing but documents has.
            row + tuple(cast("Value", array.get(at, ())) for array in arrays)
            for row, at in zip(rows, found, strict=True)
        ]

    def _nested(
        self, nested: NestedTable, table: RowSchema, own: RowSchema, keys: Sequence[Row]
    ) -> dict[Row, tuple[Row, ...]]:
        """The shown values of a nested table's rows, by the key of their document."""
        on = [table.folded[column.lower()] for column, _ in nested.on]
        key = [own.columns[own.folded[name.lower()]] for _, name in nested.on]
        shown = nested.shown(table.names)
        # Values are looked for, and compared, as the key's own column has them.
        named = [replace(c, name=table.names[i]) for c, i in zip(key, on, strict=True)]
        order = [table.columns[i] for i in (table.key or range(len(table.columns)))]
        belongs: dict[Row, Row | None] = {k: k for k in keys}
        groups: dict[Row, list[Row]] = {}
        # A part at a time: a row that the nested table's collation finds for keys of two parts
        # counts once, for the part that has its document.
        for first in range(0, len(keys), KEYS_PER_CONDITION):
            some = keys[first : first + KEYS_PER_CONDITION]
            here = set(some)
            for row in self._rows(table, named, some, order):
                at = tuple(row[i] for i in on)
                if at not in belongs:
                    belongs[at] = self._spelled(own, key, at)
                owner = belongs[at]
                if owner in here:
                    groups.setdefault(owner, []).append(tuple(row[i] for i in shown))
        return {at: tuple(rows) for at, rows in groups.items()}

    def _spelled(self, own: RowSchema, key: Sequence[Column], at: Row) -> Row | None:
        """The key of the document that a nested row names in another way; None if there is none.

        Only the server knows: 'Zoe' and 'zoë' are one key in some collations and two in others,
        and a number may stand in a column of text.
        """
        positions = [own.index[column.name] for column in key]
        found = [tuple(row[i] for i in positions) for row in self._rows(own, key, (at,), ())]
        return found[0] if len(found) == 1 else None

    def _rows(
        self,
        table: RowSchema,
        key: Sequence[Column],
        keys: Sequence[Row],
        order: Iterable[Column],
    ) -> Iterable[Row]:
        decode = decoders(table.columns)
        select = (
            f"SELECT {select_list(table.columns)}"
            f" FROM {identifier(table.schema)}.{identifier(table.table)}"
        )
        by = ", ".join(identifier(column.name) for column in order)
        conditions = list(keyed_conditions(key, keys))

        def ask(connection: Connection[Any]) -> list[Row]:
            rows: list[Row] = []
            with translating(self.endpoint), connection.cursor() as cursor:
                lock = shared_lock(connection)
                ending = f" ORDER BY {by} {lock}" if by else f" {lock}"
                for condition in conditions:
                    cursor.execute(f"{select} WHERE {condition.sql}{ending}", condition.values)
                    rows += [decoded(decode, raw) for raw in cursor.fetchall()]
            return rows

        try:
            return _stored(self.endpoint).ask(ask)
        except AlteredTableError as error:
            _descriptions.clear()
            raise _altered(table) from error
        except SetlError as error:
            error.at(table=table.name)
            raise

    def _described_as(self, documents: Documents, schema: RowSchema) -> DescribedDocuments:
        """The tables, if their documents have this schema; TransientError if they have another."""
        described = self._described(documents)
        if described.schema != schema:
            _descriptions.pop((self.endpoint, documents), None)
            described = self._described(documents)
        if described.schema != schema:
            raise _altered(schema)
        return described

    def _described(self, documents: Documents) -> DescribedDocuments:
        position = (self.endpoint, documents)
        until, known = _descriptions.get(position, (0.0, None))
        if known is None or time.monotonic() >= until:
            with closing(connect(self.endpoint)) as connection:
                known = describe_documents(connection, documents)
            _descriptions[position] = (time.monotonic() + _DESCRIBED_SECONDS, known)
        return known


def _altered(table: RowSchema) -> TransientError:
    return TransientError("the table is just being changed", table=table.name)


def _stored(endpoint: MysqlEndpoint) -> CachedConnection:
    # Locks rows, and hardly any gaps between them.
    first = ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",)
    return CachedConnection(endpoint, _LOCK_WAIT, first)
