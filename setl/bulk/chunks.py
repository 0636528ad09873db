"""Cuts a table into ranges of its key, so that many tasks can read it at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from setl.model.change import Row
from setl.model.schema import Column, Kind, RowSchema

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

# Collations that compare one character after another: latin1_swedish_ci, ascii_general_ci,
# utf8mb3_general_ci, utf8mb4_general_ci, latin1_general_ci, latin1_general_cs.
_BY_CHARACTER = frozenset({8, 11, 33, 45, 48, 49})

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
    for index in schema.key:
        column = schema.columns[index]
        if column.kind not in _ORDERED or (index in schema.begun and not cuts_begun(column)):
            break
        chosen.append(column)
    return tuple(chosen)


def cuts_begun(column: Column) -> bool:
    """Whether ranges are right where a key has the beginning of a column only.

    Where one character counts together with the next one, or not at all, a beginning does not sort
    as the whole does. MySQL takes it for the same, and finds rows in no range.
    """
    by_character = column.binary_order or column.collation in _BY_CHARACTER
    return column.kind is not Kind.TEXT or by_character


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


def joined_chunks(chunks: Sequence[Chunk], most: int) -> list[Chunk]:
    """The same rows in fewer chunks: neighbours are joined, so many at most.

    Args:
        chunks: in order.
        most: of how many a chunk may be made.
    """
    joined: list[Chunk] = []
    parts = 0
    for chunk in chunks:
        if joined and parts < most and chunk.low is not None and joined[-1].high == chunk.low:
            joined[-1] = Chunk(joined[-1].low, chunk.high)
            parts += 1
        else:
            joined.append(chunk)
            parts = 1
    return joined


def is_sparse(lowest: int, highest: int, rows: int) -> bool:
    """Whether equal ranges of an integer key would hold very different numbers of rows."""
    return highest - lowest + 1 > _SPARSE * max(1, rows)
