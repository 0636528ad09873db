"""Replaces and removes rows of a table by their keys: files that have any are written again.

Rows that replace others go into the file where these were, so that a file keeps the part of the
keys that it has. New rows get a file of their own.

Keys are equal if their values are, byte by byte: the stream has both spellings where a key that
the source's collation takes for the same one was written again, and what it removes goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from setl.systems.delta.files import (
    DataFile,
    add_files,
    described_columns,
    files_of,
    read_file,
    remove_file,
    schema_of,
)
from setl.systems.delta.location import Folder

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What becomes of rows of one table; no key is in two of them.

    Attributes:
        key: names of the key columns.
        upserts: rows, in tables whose columns may differ; those that a table lacks stay as they
            are, or are NULL in a row that is new.
        deletes: keys of rows that go; a table of the key columns, None for none.
        emptied: keys among those of `upserts` of which nothing stays, None for none.
    """

    key: tuple[str, ...]
    upserts: Sequence[pa.Table] = ()
    deletes: pa.Table | None = None
    emptied: pa.Table | None = None


@dataclass(slots=True)
class _Keys:
    """A set of keys."""

    columns: list[Any]
    _exact: frozenset[tuple[Any, ...]] = field(default_factory=frozenset[tuple[Any, ...]])

    @classmethod
    def of(cls, rows: pa.Table, key: Sequence[str]) -> _Keys:
        columns = [rows.column(name).combine_chunks() for name in key]
        exact: frozenset[tuple[Any, ...]] = frozenset()
        if len(key) > 1:
            exact = frozenset(_tuples(columns))
        return cls(columns, exact)

    def among(self, rows: pa.Table, key: Sequence[str]) -> Any:
        """For each row whether its key is one of these: an array of booleans."""
        found = None
        for name, mine in zip(key, self.columns, strict=True):
            here = pc.is_in(rows.column(name), value_set=mine)
            found = here if found is None else pc.and_(found, here)
        assert found is not None
        if len(key) == 1 or not pc.any(found).as_py():
            return found
        # Each value is that of some key; whether it is one key's, together, is seen here.
        indexes = pc.indices_nonzero(found)
        few = rows.select(list(key)).take(indexes)
        right = [one in self._exact for one in _tuples(few.columns)]
        right_ones = indexes.filter(pa.array(right, pa.bool_()))
        mask = pc.is_in(pa.array(range(rows.num_rows), pa.uint64()), value_set=right_ones)
        return pa.chunked_array([mask])

    def may_be_in(self, file: DataFile, key: Sequence[str]) -> bool:
        """Whether a file may have any of them, by what the log says of it."""
        for name, column in zip(key, self.columns, strict=True):
            if pa.types.is_signed_integer(column.type) and len(column):
                ends = pc.min_max(column)
                if not file.may_have(name, ends["min"].as_py(), ends["max"].as_py()):
                    return False
        return True


def rewrite(folder: Folder, table: DeltaTable, changes: RowChanges) -> list[Any]:
    """Write the files that a table needs for changes; returns the actions that take them in.

    None if nothing changes. Raises OSError.
    """
    schema, key, described = schema_of(table), changes.key, described_columns(table)
    wanted = pa.schema([schema.field(name) for name in key])
    parts = [rows.select(list(key)).cast(wanted) for rows in changes.upserts]
    parts += [] if changes.deletes is None else [changes.deletes.cast(wanted)]
    keys = _Keys.of(pa.concat_tables(parts), key)
    left = [_Left(rows) for rows in changes.upserts]
    emptied = None if changes.emptied is None else _Keys.of(changes.emptied.cast(wanted), key)
    actions: list[Any] = []
    for file in files_of(table):
        if not keys.may_be_in(file, key):
            continue
        hit = keys.among(read_file(folder, file.path, schema, key), key)
        if not pc.any(hit).as_py():
            continue
        rows = read_file(folder, file.path, schema)
        old = rows.filter(hit)
        new = [rows.filter(pc.invert(hit))]
        if left:
            there = _Keys.of(old, key)
            new += [one.replacing(old, there, key, schema, emptied) for one in left]
        actions.append(remove_file(file))
        actions += add_files(folder, pa.concat_tables(new), described)
    new = [one.rest(schema) for one in left]
    return [*actions, *(add_files(folder, pa.concat_tables(new), described) if new else [])]


class _Left:
    """Rows of one shape of which it is not known yet whether they replace others."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def replacing(
        self,
        old: pa.Table,
        there: _Keys,
        key: Sequence[str],
        schema: pa.Schema,
        emptied: _Keys | None,
    ) -> pa.Table:
        """Those that replace some of these rows, whole; they are not left any more."""
        here = there.among(self._rows, key)
        rows = self._rows.filter(here)
        self._rows = self._rows.filter(pc.invert(here))
        missing = [name for name in schema.names if name not in rows.column_names]
        if not missing or not rows.num_rows:
            return whole(rows, schema)
        if emptied is not None:
            old = old.filter(pc.invert(emptied.among(old, key)))
        index_of = {one: at for at, one in enumerate(_tuples([old.column(name) for name in key]))}
        own = pa.array(map(index_of.get, _tuples([rows.column(n) for n in key])), pa.int64())
        for name in missing:
            rows = rows.append_column(schema.field(name), old.column(name).take(own))
        return whole(rows, schema)

    def rest(self, schema: pa.Schema) -> pa.Table:
        """Those that are new."""
        return whole(self._rows, schema)


def whole(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with all columns of a table, NULL in those that they lack."""
    columns = [
        rows.column(each.name) if each.name in rows.column_names
        else pa.nulls(rows.num_rows, each.type)
        for each in schema
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=schema)


def _tuples(columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*(_plain(column) for column in columns), strict=True))


def _plain(column: Any) -> list[Any]:
    """Values that are equal as Python's are; moments as numbers, which Python's own are not all."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = column.cast(pa.int64() if pa.types.is_timestamp(column.type) else pa.int32())
    return column.to_pylist()
