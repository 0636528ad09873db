"""Rows read by column and type, for processors and tools.

    for change in typed_changes(decoded):
        if change.changed("amount"):
            total = change.after.as_decimal("amount")

Nothing is converted before it is asked for, and nothing twice: what takes parsing is kept. Rows
do not change, so they may be read as often as one likes. Which conversions a column allows says
`setl.model.conversion`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, Value
from setl.model.conversion import CONVERSIONS, Json, UnfitError, ZeroDateError
from setl.model.rewriting import column_for, column_value
from setl.model.schema import Column, RowSchema

# What is as quick to convert again as to look up.
_NOT_CACHED = frozenset(("text", "bytes"))
_SHOWN = 60  # characters of a value in an error


class TypedRow:
    """One image of a row.

    A column is named, in any case as MySQL allows, or numbered from 0. SQL NULL is None in every
    type; a column that the record does not mention (`is_absent`) has no value, so that reading
    it raises DataError, as does a conversion that would lose something.
    """

    __slots__ = ("_cached", "_values", "schema")

    def __init__(self, schema: RowSchema, values: Row) -> None:
        """Nothing is looked at yet.

        Args:
            schema: the columns.
            values: a value for each of them.
        """
        self.schema = schema
        self._values = values
        self._cached: dict[tuple[str, int], Any] | None = None

    def value(self, column: str | int) -> Value:
        """The value in its normal form (see `Kind`); None is NULL, and ABSENT is absent."""
        return self._values[index_of(self.schema, column)]

    def is_null(self, column: str | int) -> bool:
        """Whether the column is SQL NULL."""
        return self.value(column) is None

    def is_absent(self, column: str | int) -> bool:
        """Whether the record does not mention the column, so that its value is not known."""
        return self.value(column) is ABSENT

    def as_text(self, column: str | int) -> str | None:
        """The column as text."""
        return self._as("text", column)

    def as_integer(self, column: str | int) -> int | None:
        """The column as a whole number."""
        return self._as("integer", column)

    def as_decimal(self, column: str | int) -> Decimal | None:
        """The column as an exact decimal number."""
        return self._as("decimal", column)

    def as_float(self, column: str | int) -> float | None:
        """The column as a float."""
        return self._as("float", column)

    def as_bytes(self, column: str | int) -> bytes | None:
        """The column as bytes."""
        return self._as("bytes", column)

    def as_date(self, column: str | int, *, zero_is_null: bool = False) -> date | None:
        """The column as a date.

        Args:
            column: which.
            zero_is_null: give None for a date of which a part is zero, in place of an error.
        """
        return self._as("date", column, zero_is_null=zero_is_null)

    def as_time(self, column: str | int) -> time | None:
        """The column as a time of day; `as_duration` takes every TIME."""
        return self._as("time", column)

    def as_duration(self, column: str | int) -> timedelta | None:
        """The column as a length of time, which may be negative or beyond a day."""
        return self._as("duration", column)

    def as_datetime(self, column: str | int, *, zero_is_null: bool = False) -> datetime | None:
        """The column as a date with a time: in UTC for TIMESTAMP, without a zone for DATETIME.

        Args:
            column: which.
            zero_is_null: give None for a date of which a part is zero, in place of an error.
        """
        return self._as("datetime", column, zero_is_null=zero_is_null)

    def as_json(self, column: str | int) -> Json:
        """The column as parsed JSON, in objects that belong to the caller.

        JSON's null is None like NULL; `is_null` tells them apart.
        """
        return _copied(self._as("json", column))

    def _as(self, form: str, column: str | int, *, zero_is_null: bool = False) -> Any:
        index = index_of(self.schema, column)
        value = self._values[index]
        if value is None:
            return None
        cached = self._cached
        if cached is not None and (form, index) in cached:
            return cached[form, index]
        try:
            found = _converted(self.schema, form, index, value)
        except ZeroDateError as error:
            if zero_is_null:
                return None
            raise _refusal(self.schema, form, index, value, str(error)) from error
        except UnfitError as error:
            raise _refusal(self.schema, form, index, value, str(error)) from error
        if form not in _NOT_CACHED:
            if cached is None:
                cached = self._cached = {}
            cached[form, index] = found
        return found


class TypedChange:
    """One change of one row, with the row before it and after it.

    Attributes:
        schema: the columns of both rows.
        op: what happened.
        before: the row before; None for an insert.
        after: the row after; None for a delete.
    """

    __slots__ = ("_after", "_before", "_identity", "_rows", "op", "schema")

    def __init__(
        self,
        schema: RowSchema,
        op: Op,
        before: Row | None,
        after: Row | None,
        identity: tuple[int, ...] | None = None,
    ) -> None:
        """Nothing is looked at yet; the arguments are the attributes, as a codec gives them.

        `identity` are the places of the columns by which the target finds the row, if these are
        not those of the key.
        """
        self.schema = schema
        self._identity = schema.key if identity is None else identity
        self.op = op
        self._before = before
        self._after = after
        self._rows: list[TypedRow | None] | None = None

    @property
    def before(self) -> TypedRow | None:
        """See `TypedChange`."""
        return self._typed(0)

    @property
    def after(self) -> TypedRow | None:
        """See `TypedChange`."""
        return self._typed(1)

    @property
    def row(self) -> TypedRow:
        """The row after the change; for a delete the one before it."""
        found = self.after or self.before
        if found is None:
            raise DataError("a change without a row", table=self.schema.name)
        return found

    def changed(self, column: str | int) -> bool:
        """Whether an update changed the column's value; see `changed_columns`."""
        return self._changed_at(index_of(self.schema, column))

    @property
    def changed_columns(self) -> tuple[str, ...]:
        """The columns that the change touched, in the order of the schema.

        For an update those whose values differ, and those that the row before does not mention
        (sources that log partial images mention only what was set). For an insert or a delete
        all that are mentioned.
        """
        return tuple(
            [name for index, name in enumerate(self.schema.names) if self._changed_at(index)]
        )

    @property
    def any_changed(self) -> bool:
        """Whether the change touched any column; an update may write what was there."""
        return any(map(self._changed_at, range(len(self.schema.columns))))

    @property
    def images(self) -> tuple[Row | None, Row | None]:
        """The rows before and after, as a codec gives them."""
        return self._before, self._after

    def with_values(self, values: Mapping[str, object]) -> TypedChange:
        """The same change with other values in the row after it; a delete stays as it is.

        Args:
            values: column → value, of the types that `setl.model.rewriting` lists. A column that
                the row does not have is added at its end; the row before does not have it.

        Raises:
            DataError: a column cannot hold its value, or is one by which the row is found, as
                those of its key, so that the row before has to have it as well: see `mapped`.
        """
        for name in values:
            index = self.schema.folded.get(name.lower())
            if index is not None and index in self._identity:
                raise DataError(
                    "the key of a row is to be changed without the row before it",
                    hint="Use `mapped`, which changes both",
                    table=self.schema.name,
                    column=name,
                )
        if self._after is None:
            return self
        schema, after = rewritten(self.schema, self._after, values)
        before = _widened(self._before, schema)
        return TypedChange(schema, self.op, before, after, self._identity)

    def mapped(self, function: Callable[[TypedRow], Mapping[str, object]]) -> TypedChange:
        """The same change with both rows rewritten in the same way.

        The target then holds at each moment what `function` makes of the source's row. Key
        columns may be rewritten too, since the row before is found under the same new key.

        Args:
            function: gives column → new value for a row, as for `with_values`.

        Raises:
            DataError: as for `with_values`; and whatever `function` raises.
        """
        schema, before, after = self.schema, self._before, self._after
        if after is not None:
            schema, after = rewritten(self.schema, after, function(TypedRow(self.schema, after)))
        if before is not None:
            values = function(TypedRow(self.schema, before))
            _, before = rewritten(self.schema, before, values)
            # Columns that are added are of no use in a row that is only looked for by its key.
            before = _widened(before[: len(self.schema.columns)], schema)
        return TypedChange(schema, self.op, before, after, self._identity)

    def as_delete(self) -> TypedChange:
        """That the row is gone: under its key before the change, or after it for an insert."""
        before = self._before or self._after
        return TypedChange(self.schema, Op.DELETE, before, None, self._identity)

    def _changed_at(self, index: int) -> bool:
        before, after = self._before, self._after
        if before is None or after is None:
            image = before if after is None else after
            return image is not None and image[index] is not ABSENT
        return after[index] is not ABSENT and before[index] != after[index]

    def _typed(self, side: int) -> TypedRow | None:
        rows = self._rows
        if rows is None:
            rows = self._rows = [
                None if image is None else TypedRow(self.schema, image)
                for image in (self._before, self._after)
            ]
        return rows[side]


def typed_changes(
    rows: DecodedRows, identity: tuple[int, ...] | None = None
) -> Iterator[TypedChange]:
    """The changes of one decoded entry, in order; see `TypedChange` for `identity`."""
    schema, op, images = rows
    for before, after in images:
        yield TypedChange(schema, op, before, after, identity)


def rewritten(schema: RowSchema, row: Row, values: Mapping[str, object]) -> tuple[RowSchema, Row]:
    """A row with other values, and its schema, which has further columns for new names.

    Raises:
        DataError: a column cannot hold its value.
    """
    result, added = list(row), list[Column]()
    for name, value in values.items():
        index = schema.folded.get(name.lower())
        try:
            column = column_for(name, value) if index is None else schema.columns[index]
            written = column_value(column, value)
        except UnfitError as error:
            raise DataError(
                f"{value!r:.60} cannot be written: it {error}",
                table=schema.name,
                column=name,
            ) from error
        if index is None:
            added.append(column)
            result.append(written)
        else:
            result[index] = written
    return (_extended(schema, tuple(added)) if added else schema), tuple(result)


@lru_cache(maxsize=256)
def _extended(schema: RowSchema, added: tuple[Column, ...]) -> RowSchema:
    return replace(schema, columns=schema.columns + added)


def _widened(row: Row | None, schema: RowSchema) -> Row | None:
    """A row of a schema to which columns were added; it does not mention them."""
    if row is None:
        return None
    return row + (ABSENT,) * (len(schema.columns) - len(row))


def index_of(schema: RowSchema, column: str | int) -> int:
    """The position of a column's value in a row.

    Args:
        schema: the columns.
        column: a index, counted from 0; or a name: one that is written just so, or else one that
            differs by case only.

    Raises:
        DataError: there is no such column, or more than one.
    """
    if isinstance(column, str):
        index = schema.index.get(column)
        if index is None:
            index = schema.folded.get(column.lower())
        if index is not None and index >= 0:
            return index
        what = "no column" if index is None else "more than one column"
    elif 0 <= column < len(schema.columns):
        return column
    else:
        what = "no column"
    raise DataError(
        f"there is {what} {column!r}",
        hint=f"The record has {', '.join(schema.names)}",
        table=schema.name,
    )


def _converted(schema: RowSchema, form: str, index: int, value: Value) -> Any:
    if value is ABSENT:
        raise UnfitError("is absent from the record, so its value is not known")
    convert = CONVERSIONS[form].get(schema.columns[index].kind)
    if convert is None:
        raise UnfitError(f"is {schema.columns[index].kind.value}")
    return convert(value)


def _refusal(schema: RowSchema, form: str, index: int, value: Value, reason: str) -> DataError:
    column = schema.columns[index]
    kinds = ", ".join(sorted({name for name, by in CONVERSIONS.items() if column.kind in by}))
    return DataError(
        f"{_shown(value)} cannot be read as {form}: it {reason}",
        hint=f"A column of this kind can be read as {kinds}",
        table=schema.name,
        column=column.name,
        kind=column.kind.value,
    )


def _shown(value: Value) -> str:
    """The form of a value, for an error: enough to recognise it, never all of a large one."""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    written = repr(value)
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}… ({len(written):,} in all)"


def _copied(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _copied(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
