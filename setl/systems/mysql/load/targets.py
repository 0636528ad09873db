"""The tables that a MySQL sink writes to, and its statements for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.clock import Clock
from setl.errors import ConfigurationError, TransientError
from setl.model.change import TargetChanges
from setl.model.schema import Column, RowSchema
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.generated_by_session import dependent_columns
from setl.systems.mysql.identifiers import qualified
from setl.systems.mysql.load.statements import TableWrites, lacking, plan_writes
from setl.systems.mysql.server_kind import version_numbers
from setl.systems.mysql.values.json_literal import PARSES_EXACTLY

# A unique key that a table gets meanwhile is noticed at once, when a row collides on it: upserts
# touch no other row, and what is refused is looked at again. One that it loses takes this long.
_SECONDS = 60.0

_Columns = tuple[object, ...]
_Shape = tuple[tuple[str, str], tuple[Column, ...], tuple[int, ...], tuple[int, ...], bool, bool]


class ColumnsChangedError(TransientError):
    """A table has other columns than it had; it is to be looked at again, and all restarted."""


class Targets:
    """The statements for each shape of rows, with the table's description read when needed.

    Forgets everything after a minute, so that a change of the target's tables is seen.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._writes: dict[_Shape, TableWrites] = {}
        self._tables: dict[tuple[str, str], RowSchema] = {}
        self._columns: dict[tuple[str, str], _Columns] = {}
        self._by_session: dict[tuple[str, str], Mapping[str, str]] = {}
        self._exact_json: bool | None = None
        self._until = 0.0
        self._version = 0
        self.fresh = False
        """Whether what is known was read for the transaction that is open."""

    def forget(self) -> None:
        """Read all tables again; after a statement found one to be different."""
        self._writes.clear()
        self._tables.clear()
        self._columns.clear()
        self._by_session.clear()
        self.fresh = True

    def as_of(self, version: int) -> None:
        """Read all tables again if they may have changed since, see `LoadTicket.schema_version`."""
        if version != self._version:
            self._version = version
            self.forget()

    def writes(self, connection: Connection[Any], changes: TargetChanges) -> TableWrites:
        """How these changes are written; reads the table's description outside a transaction.

        Raises:
            ConfigurationError: the table is missing, or does not take these rows.
            SetlError: as `read_table`.
        """
        self._expire()
        collations = tuple(changes.columns[i].collation for i in changes.key)
        how = (changes.partial, changes.keyless)
        shape = (changes.target, changes.columns, changes.key, collations, *how)
        known = self._writes.get(shape)
        if known is None:
            columns = [column.name for column in changes.columns]
            described = self.described(connection, changes.target, columns)
            known = self._writes[shape] = plan_writes(
                changes.columns,
                changes.key,
                described,
                row_alias=_has_row_alias(connection),
                partial=changes.partial,
                exact_json=self._parses_exactly(connection, described),
                keyless=changes.keyless,
            )
        return known

    def _parses_exactly(self, connection: Connection[Any], table: RowSchema) -> bool:
        """Whether documents can be given to the server as they are, if the table has any."""
        if not any(c.capacity is not None and c.capacity.type == "json" for c in table.columns):
            return False
        if self._exact_json is None:
            with connection.cursor(Cursor) as cursor:
                cursor.execute(PARSES_EXACTLY)
                self._exact_json = cursor.fetchall() == ((1,),)
        return self._exact_json

    def described(
        self, connection: Connection[Any], name: tuple[str, str], columns: Collection[str] = ()
    ) -> RowSchema:
        """The description of a table, read outside a transaction.

        Args:
            connection: to the target.
            name: schema and table.
            columns: what rows have. A description that lacks one of them is read again, since it
                may have been added a moment ago, before the source got it.

        Raises:
            ConfigurationError: the table is missing.
            SetlError: as `read_table`.
        """
        self._expire()
        known = self._tables.get(name)
        if known is None or lacking(known, columns):
            known = read_table(connection, *name)
            if known is None:
                raise ConfigurationError(
                    "the target table does not exist, or the account may not see it",
                    hint="Create it on the target; `setl check` names all that are missing",
                    table=".".join(name),
                )
            self._tables[name] = known
        return known

    def by_session(self, connection: Connection[Any], name: tuple[str, str]) -> Mapping[str, str]:
        """What columns of a table depend on, see `dependent_columns`. Raises as `described`."""
        described = self.described(connection, name)
        if name not in self._by_session:

            def ask(sql: str, values: Sequence[object]) -> Sequence[Sequence[Any]]:
                with connection.cursor(Cursor) as cursor:
                    cursor.execute(sql, values)
                    return cursor.fetchall()

            self._by_session[name] = dependent_columns(ask, described)
        return self._by_session[name]

    def contested(self, connection: Connection[Any], name: tuple[str, str]) -> RowSchema:
        """As `described`, of a table that `confirm` will be asked about."""
        self._expire()
        if name not in self._columns:
            # Before the description, so that a change between the two is noticed.
            self._columns[name] = _columns_of(connection, name)
            self._tables.pop(name, None)
        return self.described(connection, name)

    def confirm(self, connection: Connection[Any], names: Iterable[tuple[str, str]]) -> None:
        """Make sure that tables have the columns that they had when `contested` described them.

        In a transaction, then they have them until its end.

        Raises:
            ColumnsChangedError: one has others.
        """
        for name in names:
            if self._columns.get(name) != _columns_of(connection, name):
                raise ColumnsChangedError(
                    "the columns of the target table have changed", table=".".join(name)
                )

    def confirm_texts(self, connection: Connection[Any], name: tuple[str, str]) -> None:
        """Make sure that labels and character sets of a table are those it was described with.

        In a transaction that has written to it: they have been the same all the time then.

        Raises:
            ColumnsChangedError: they are others, so the numbers of labels, or the bytes of text,
                that were written are of others.
        """
        known, there = self._tables.get(name), read_table(connection, *name)
        if known is None or there is None or _texts_of(known) != _texts_of(there):
            raise ColumnsChangedError(
                "the labels or character sets of the target table have changed",
                table=".".join(name),
            )

    def _expire(self) -> None:
        now = self._clock.monotonic()
        if now >= self._until:
            self.forget()
            self._until = now + _SECONDS


def _columns_of(connection: Connection[Any], name: tuple[str, str]) -> _Columns:
    """The columns as the server announces them with rows; none of a table that is missing."""
    with connection.cursor(Cursor) as cursor:
        try:
            cursor.execute(f"SELECT * FROM {qualified(*name)} LIMIT 0")
        except pymysql.ProgrammingError:
            return ()
        return tuple(cursor.description or ())


def _texts_of(table: RowSchema) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Character set and labels of each column."""
    held = {c.name.lower(): c.capacity for c in table.columns if c.capacity is not None}
    return {name: (capacity.charset, capacity.labels) for name, capacity in held.items()}


def _has_row_alias(connection: Connection[Any]) -> bool:
    """Whether an INSERT can name its new row, as MySQL does since it calls VALUES() deprecated.

    MariaDB knows VALUES() only.
    """
    text = str(cast("Any", connection).get_server_info())
    return "mariadb" not in text.lower() and version_numbers(text) >= (8, 0, 20)
