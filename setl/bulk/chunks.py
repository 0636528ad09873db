"""A table cut into ranges of its key, so that many tasks can read it at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from setl.model.change import Row
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.conditions import Condition, literal
from setl.systems.mysql.identifiers import identifier

# Kinds whose ORDER BY and whose comparison with a literal agree. An ENUM or SET sorts by the
# number of its label but compares by the label's text; a FLOAT does not equal its own text.
_ORDERED = frozenset(
    {
        Kind.INTEGER,
        Kind.YEAR,
        Kind.DECIMAL,
        Kind.TEXT,
        Kind.BINARY,
        Kind.DATE,
        Kind.DATETIME,
        Kind.TIMESTAMP,
        Kind.TIME,
    }
)

# Integer keys with more gaps than this would leave most chunks empty and a few full.
_SPARSE = 4


class Chunk(NamedTuple):
    """The rows whose key lies above `low` and not above `high`; None is no limit.

    Values are those of the first columns of the key that `chunk_columns` names.
    """

    low: Row | None = None
    high: Row | None = None


WHOLE_TABLE = Chunk()


def chunk_columns(schema: RowSchema) -> tuple[Column, ...]:
    """The columns of the primary key by which a table can be cut; empty if it cannot be."""
    chosen: list[Column] = []
    for place in schema.key:
        column = schema.columns[place]
        if column.kind not in _ORDERED:
            break
        chosen.append(column)
    return tuple(chosen)


def integer_chunks(lowest: int, highest: int, parts: int) -> list[Chunk]:
    """Equal ranges of an integer key, the first and the last one open.

    Open ends, since rows may be written beyond both while others are being read.
    """
    parts = max(1, min(parts, highest - lowest + 1))
    width = highest - lowest + 1
    limits = [lowest + width * part // parts - 1 for part in range(1, parts)]
    return chunks_between([(limit,) for limit in limits])


def chunks_between(limits: Sequence[Row]) -> list[Chunk]:
    """The chunks that ascending limits cut a table into: one more than there are limits."""
    ends: list[Row | None] = [None, *limits, None]
    return [Chunk(ends[i], ends[i + 1]) for i in range(len(ends) - 1)]


def is_sparse(lowest: int, highest: int, rows: int) -> bool:
    """Whether equal ranges of an integer key would hold very different numbers of rows."""
    return highest - lowest + 1 > _SPARSE * max(1, rows)


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
