"""Keys with row digests as Arrow batches: reading tasks pass them to comparing tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql.types import BinaryType, ByteType, StringType, StructField, StructType

from setl.errors import SetlError
from setl.model.change import Row, Value
from setl.model.schema import Column


class Side(IntEnum):
    """Which side of the comparison a row is of."""

    SOURCE = 0
    TARGET = 1
    REFUSED = 2  # no row: a task gave up, `digest` is its error
    ALTERNATIVE = 3  # no row either: another form in which the target may hold a source row


class Pair(NamedTuple):
    """A row as far as it is compared.

    Attributes:
        key: what identifies the row in the target, as text; without a key, a digest of all of it.
        lookup: the values of the source's key columns as `key_text` writes them, if they are
            not `key`; None if they are, or are not known.
        compared: the values in the form compared.
        alternatives: other forms of a source row that are as right in the target.
    """

    key: str
    lookup: str | None
    compared: list[Value]
    alternatives: Sequence[list[Value]] = ()


class Shape(Protocol):
    """Makes pairs of target rows; picklable. Both sides use the same one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns compared, in the order of the values."""
        ...

    def pairs(self, rows: Sequence[Row]) -> list[Pair]:
        """Rows as the target should have them, with the values of `names`.

        Raises:
            DataError: the target cannot hold a row.
        """
        ...

    def of_source(self, columns: Sequence[Column]) -> Shape:
        """The same for rows whose target columns are filled from these source columns."""
        ...

    def source_key(self, key: str, lookup: str | None) -> Row | None:
        """The values of the source's key columns for a pair's `key` and `lookup`, if known."""
        ...

    def routing(self, key: str) -> str | None:
        """By what the document of a pair's `key` is routed; None if by its id, or if it is none."""
        ...


FRAME = StructType(
    [
        StructField("side", ByteType()),
        StructField("key", StringType()),
        StructField("lookup", StringType()),
        StructField("digest", BinaryType()),
    ]
)
_ARROW = pa.schema(
    [
        pa.field("side", pa.int8()),
        pa.field("key", pa.string()),
        pa.field("lookup", pa.string()),
        pa.field("digest", pa.binary()),
    ]
)

Content = Callable[[list[Value]], bytes]
"""What a pair says about its row: `digest`, or `shown` when people want to see values."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows are read; picklable.

    Attributes:
        content: what is kept of each row.
        rows: counts the rows read, for progress only: a task that Spark repeats counts twice.
        only: the keys of the pairs that count; None for all.
    """

    content: Content
    rows: Accumulator[int]
    only: frozenset[str] | None = None


def shown(compared: list[Value]) -> bytes:
    """The values themselves in place of their digest; `shown_values` is its inverse."""
    return pickle.dumps(compared, protocol=5)


def shown_values(content: bytes) -> list[Value]:
    """See `shown`."""
    values: list[Value] = pickle.loads(content)  # noqa: S301 - made by our own task
    return values


def packed(
    side: Side, batches: Iterable[Sequence[Pair]], reading: Reading
) -> Iterator[pa.RecordBatch]:
    """Pairs as Arrow batches; an error ends them and replaces it, so that it keeps its type."""
    content, only = reading.content, reading.only
    try:
        for found in batches:
            reading.rows.add(len(found))
            pairs = found if only is None else [pair for pair in found if pair.key in only]
            yield _record_batch(
                side,
                [pair.key for pair in pairs],
                [pair.lookup for pair in pairs],
                [content(pair.compared) for pair in pairs],
            )
            others = [(pair, other) for pair in pairs for other in pair.alternatives]
            if others:
                yield _record_batch(
                    Side.ALTERNATIVE,
                    [pair.key for pair, _ in others],
                    [pair.lookup for pair, _ in others],
                    [content(other) for _, other in others],
                )
    except SetlError as error:
        yield _record_batch(Side.REFUSED, [""], [None], [pickle.dumps(error)])


def _record_batch(
    side: Side, keys: list[str], lookups: list[str | None], contents: list[bytes]
) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([int(side)] * len(keys), pa.int8()),
            pa.array(keys, pa.string()),
            pa.array(lookups, pa.string()),
            pa.array(contents, pa.binary()),
        ],
        schema=_ARROW,
    )
