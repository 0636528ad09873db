"""Conditions that select rows by their keys, with values as parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from setl.bulk.chunks import Chunk
from setl.errors import DataError
from setl.model.change import Row, Value
from setl.model.labels import is_marked, is_numbered, shown, to_numbers
from setl.model.schema import Column, Kind
from setl.systems.mysql.identifiers import identifier
from setl.systems.mysql.values.fit import is_single
from setl.systems.mysql.values.literals import invalid_text, literal_of_bytes, single
from setl.systems.mysql.values.lost_text import bytes_of_lost, is_lost, lost, may_be_lost

KEYS_PER_CONDITION: Final = 500
_IN_A_CHARSET: Final = frozenset({Kind.TEXT, Kind.ENUM, Kind.SET})


class Condition(NamedTuple):
    """A condition for WHERE, with the values of its placeholders."""

    sql: str
    values: tuple[Any, ...]


def is_compared_apart(column: Column) -> bool:
    """Whether rows have to be compared one by one, and not in a list.

    MySQL 9.7 finds nothing for a list of rows with numbers of labels, and compares a list of one
    row as text: '10:00:00.000000' is not how TIME(2) is written.
    """
    return column.kind is Kind.TIME or is_numbered(column)


def keyed_conditions(key: Sequence[Column], keys: Sequence[Row]) -> Iterator[Condition]:
    """Conditions that select the rows with these values in the columns `key`, some at a time."""
    odd = [row for row in keys if any(value is None or is_lost(value) for value in row)]
    for first in range(0, len(odd), KEYS_PER_CONDITION):
        parts = [_equal(key, row) for row in odd[first : first + KEYS_PER_CONDITION]]
        sql = " OR ".join(part.sql for part in parts)
        yield Condition(sql, tuple(value for part in parts for value in part.values))
    if odd:
        known = set(odd)
        keys = [row for row in keys if row not in known]
    names = ", ".join(identifier(column.name) for column in key)
    left = f"({names})" if len(key) > 1 else names
    one = f"({', '.join(['%s'] * len(key))})" if len(key) > 1 else "%s"
    for first in range(0, len(keys), KEYS_PER_CONDITION):
        some = keys[first : first + KEYS_PER_CONDITION]
        values = [literal(c, v) for row in some for c, v in zip(key, row, strict=True)]
        if len(key) > 1 and any(c.kind in _IN_A_CHARSET or is_compared_apart(c) for c in key):
            # MariaDB 10.11 compares the bytes of a list of rows with those of the columns, whatever
            # their charsets: ('é', 1) in UTF-8 is not found in a latin1 column.
            yield Condition(" OR ".join([f"{left} = {one}"] * len(some)), tuple(values))
        else:
            yield Condition(f"{left} IN ({', '.join([one] * len(some))})", tuple(values))


def _equal(key: Sequence[Column], row: Row) -> Condition:
    """The rows with one key that has NULL, or text that a server can be told by its bytes only."""
    parts: list[str] = []
    values: list[Any] = []
    for column, value in zip(key, row, strict=True):
        name = identifier(column.name)
        reported = bytes_of_lost(value) if isinstance(value, str) and is_lost(value) else None
        if value is None:
            parts.append(f"{name} IS NULL")
        elif reported is not None:
            held = column.capacity
            # By the bytes alone, no index would find it.
            if held and (found := literal_of_bytes(value, held.charset)):
                parts.append(f"{name} = {found}")
            parts.append(f"CAST({name} AS BINARY) = %s")
            values.append(reported)
        else:
            parts.append(f"{name} = %s")
            values.append(literal(column, value))
    return Condition(f"({' AND '.join(parts)})", tuple(values))


def sayable(columns: Sequence[Column]) -> str:
    """SQL that is true for keys that can be limits of chunks: all of their text can be said."""
    odd = [
        lost(identifier(column.name), column.capacity)
        for column in columns
        if column.kind is Kind.TEXT and column.capacity and may_be_lost(column.capacity)
    ]
    return f"NOT ({' OR '.join(odd)})" if odd else "TRUE"


def literal(column: Column, value: Value) -> Any:
    """A key's value as pymysql has to get it to be compared as the column compares.

    Decimals as text would be compared as floating point, which takes neighbours for equal. A FLOAT
    (4 bytes) that holds 0.1 is not equal to 0.1.

    Raises:
        DataError: it is text that its character set does not know, or the number of a label that
            the column does not have.
    """
    if isinstance(value, str) and is_lost(value):
        raise invalid_text(column, value)
    if is_numbered(column):
        return _number(column, value)
    if is_marked(value):
        raise DataError(
            f"the key column {column.name} is {shown(str(value))}, and another value has that text,"
            " too; where the row is looked for, the column has other labels",
            hint="Give both columns the same labels, or correct the row at the source",
        )
    if column.kind is Kind.DECIMAL and isinstance(value, str):
        return Decimal(value)
    if column.kind is Kind.FLOAT and isinstance(value, float) and is_single(column):
        return single(value)
    return value


def _number(column: Column, value: Value) -> Any:
    """The number of a label, since its text may find other labels as well."""
    try:
        labels = column.capacity.labels if column.capacity is not None else ()
        return to_numbers(column.kind, labels)(value)
    except LookupError:
        return None  # which finds nothing


def chunk_condition(columns: Sequence[Column], chunk: Chunk) -> Condition:
    """The rows of a chunk as a condition on the key columns."""
    parts: list[Condition] = []
    if chunk.low is not None:
        parts.append(_beyond(columns, chunk.low))
    if chunk.high is not None:
        beyond = _beyond(columns, chunk.high)
        first = identifier(columns[0].name)
        # The plain upper limit of the first column says nothing new, but an index can use it.
        bound = Condition(f"{first} <= %s", (literal(columns[0], chunk.high[0]),))
        parts += [bound, Condition(f"NOT ({beyond.sql})", beyond.values)]
    if not parts:
        return Condition("TRUE", ())
    sql = " AND ".join(f"({part.sql})" for part in parts)
    return Condition(sql, tuple(value for part in parts for value in part.values))


def _beyond(columns: Sequence[Column], limit: Row) -> Condition:
    """Keys greater than `limit`, column by column: servers use no index for row constructors."""
    first, value = identifier(columns[0].name), literal(columns[0], limit[0])
    if len(limit) == 1:
        return Condition(f"{first} > %s", (value,))
    rest = _beyond(columns[1:], limit[1:])
    return Condition(
        f"{first} >= %s AND ({first} > %s OR ({rest.sql}))", (value, value, *rest.values)
    )
