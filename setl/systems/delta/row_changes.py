"""Changes of a load as rows of a Delta table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from setl.errors import ConfigurationError, DataError
from setl.model.change import Row, TargetChanges
from setl.model.schema import Column, Kind
from setl.systems.delta.rewriting import RowChanges
from setl.systems.delta.types import delta_name, takes
from setl.systems.delta.values import NoSuchValueError, ZeroDates, column_of, error_of

_FULL = "Set binlog_row_image=FULL at the source, or subscribe to all columns"


def row_changes(
    schema: pa.Schema, parts: Sequence[TargetChanges], zero_dates: ZeroDates
) -> RowChanges:
    """What becomes of a table's rows, in its types.

    Raises:
        ConfigurationError: the table lacks a column, or one is of a type that does not hold all
            of the source's values.
        DataError: it cannot hold a row as it is; names the row.
    """
    names = {name.lower(): name for name in schema.names}
    keys = {_key_names(part, names) for part in parts}
    if len(keys) > 1:
        raise ConfigurationError(
            "rows with different keys go to one table",
            hint="Give their tables the same `key`, or targets of their own",
        )
    (key,) = keys
    upserts = [_rows(schema, part, names, zero_dates) for part in parts if part.upserts]
    gone: dict[Row, TargetChanges] = {row: part for part in parts for row in part.deletes}
    written = Counter(tuple(row[i] for i in part.key) for part in parts for row in part.upserts)
    twice = next((row for row, count in written.items() if count > 1), None)
    if twice is not None:
        raise DataError("two rows of a load have the same key", key=_shown(twice))
    emptied = [row for row in gone if row in written]
    deleted = [row for row in gone if row not in written]
    return RowChanges(
        key,
        upserts,
        _keys(schema, parts[0], key, deleted) if deleted else None,
        _keys(schema, parts[0], key, emptied) if emptied else None,
    )


def _key_names(part: TargetChanges, names: dict[str, str]) -> tuple[str, ...]:
    columns = [part.columns[i] for i in part.key]
    if part.keyless or not columns:
        raise ConfigurationError(
            "rows of a table without a key cannot be told from each other in a Delta table",
            hint="Give the table a primary key, or name columns that are unique and never NULL"
            " under `key`, or leave it out with `except`",
        )
    for column in columns:
        if column.kind is Kind.FLOAT:
            raise ConfigurationError(
                f"the key column {column.name} is a floating-point number, of which 0.0 and -0.0"
                " are one key",
                hint="Name other columns under `key`",
            )
    return tuple(_own_name(column, names) for column in columns)


def _own_name(column: Column, names: dict[str, str]) -> str:
    name = names.get(column.name.lower())
    if name is None:
        raise ConfigurationError(
            f"the Delta table has no column {column.name}",
            hint=f"Add it to the table, or leave it out (`exclude`). Its columns are"
            f" {', '.join(names.values())}",
        )
    return name


def _rows(
    schema: pa.Schema, part: TargetChanges, names: dict[str, str], zero_dates: ZeroDates
) -> pa.Table:
    if part.partial or part.unlogged:
        said = ", ".join(part.unlogged) or "some of the columns"
        why = f"does not mention {said}" if part.unlogged else f"mentions only {said}"
        key = tuple(part.upserts[0][i] for i in part.key)
        raise DataError(f"a record {why}", hint=_FULL, key=_shown(key))
    own = [_own_name(column, names) for column in part.columns]
    fields = [schema.field(name) for name in own]
    _refuse_misfits(part.columns, fields)
    needed = [f.name for f in schema if not f.nullable and f.name not in own]
    if needed:
        raise ConfigurationError(
            f"column {needed[0]} of the Delta table takes no NULL, and nothing fills it",
            hint="Let it be NULL, or fill it with `columns`",
        )
    values = list(zip(*part.upserts, strict=True))
    arrays: list[pa.Array] = []
    for i, (column, field) in enumerate(zip(part.columns, fields, strict=True)):
        of_key = i in part.key
        try:
            made = column_of(column, values[i], field.type, zero_dates, of_key=of_key)
        except NoSuchValueError as error:
            row = part.upserts[error.index]
            fault = error_of(column, row[i], field.type)
            raise fault.at(key=_shown(tuple(row[k] for k in part.key))) from None
        if made.null_count and (of_key or not field.nullable):
            first = int(pc.indices_nonzero(pc.is_null(made)).to_pylist()[0])
            row = part.upserts[first]
            key = _shown(tuple(row[k] for k in part.key))
            if of_key:
                raise DataError(f"the key column {column.name} is NULL", hint=_NULL, key=key)
            raise DataError(f"column {field.name} of the Delta table takes no NULL", key=key)
        arrays.append(made)
    return pa.Table.from_arrays(arrays, names=own)


def _refuse_misfits(columns: Sequence[Column], fields: Sequence[pa.Field]) -> None:
    for column, field in zip(columns, fields, strict=True):
        if not takes(field.type, column):
            raise ConfigurationError(
                f"column {field.name} of the Delta table is {delta_name(field.type)}, which does"
                f" not hold all values of {column.name}, a column of kind {column.kind.value}",
                hint="Give the rows another table with `to`, or leave the column out (`exclude`)",
            )


_NULL = "Name other columns under `key`, which are never NULL"


def _keys(
    schema: pa.Schema, part: TargetChanges, key: tuple[str, ...], rows: Sequence[Row]
) -> pa.Table:
    """Keys of rows that go. No row has a key that the table cannot hold, so none goes for it.

    But of another type, such as a number where the table has text, none would be found.
    """
    columns = [part.columns[i] for i in part.key]
    _refuse_misfits(columns, [schema.field(name) for name in key])
    kinds = [schema.field(name).type for name in key]
    values = list(zip(*rows, strict=True))
    bad: set[int] = set()
    for column, kind, own in zip(columns, kinds, values, strict=True):
        try:
            column_of(column, own, kind, "refuse", of_key=True)
        except NoSuchValueError:
            bad.update(i for i, value in enumerate(own) if not _holds(column, value, kind))
    fitting = [[value for i, value in enumerate(own) if i not in bad] for own in values]
    arrays = [
        column_of(column, own, kind, "refuse", of_key=True)
        for column, kind, own in zip(columns, kinds, fitting, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=list(key))


def _holds(column: Column, value: object, kind: pa.DataType) -> bool:
    try:
        column_of(column, [value], kind, "refuse", of_key=True)  # pyright: ignore[reportArgumentType]
    except NoSuchValueError:
        return False
    return True


def _shown(key: Row) -> str:
    return ", ".join(map(str, key))[:200]
