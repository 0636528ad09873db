"""The Spark job that joins both sides of a comparison by key."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what Spark's own documentation calls it

from setl.bulk.pairs import Side
from setl.errors import SetlError, TransientError
from setl.transform.worker_errors import worker_error


class Merging(Enum):
    """Which rows of the source may be one row of the target, as the channel file has it."""

    NONE = "none"  # each row has a key of its own
    TABLES = "tables"  # rows of different tables, since several go into one target
    ROWS = "rows"  # any rows: a mapping names the `key`, or a processor makes the rows
    COUNTED = "counted"  # none: rows have no key, and each is there as often as at the source


class What(Enum):
    """How the two sides differ in a key."""

    MISSING = "missing"  # in the source only
    EXTRA = "extra"  # in the target only
    DIFFERENT = "different"  # in both, with other values


@dataclass(frozen=True, slots=True)
class Held:
    """What one side has under one key.

    Attributes:
        rows: how many rows.
        contents: what they say, sorted: one for each row, or where any rows may be merged, or rows
            have no key, without repetitions.
        others: other forms of these rows that are as right in the target.
        tables: how many tables the rows come from, if it matters.
    """

    rows: int = 0
    contents: tuple[bytes, ...] = ()
    others: frozenset[bytes] = frozenset()
    tables: int = 0

    def merged(self, merging: Merging) -> int:
        """How many of these rows of the source have no row of their own in the target."""
        allowed = merging is Merging.ROWS or (
            merging is Merging.TABLES and self.tables == self.rows
        )
        return self.rows - 1 if allowed and self.rows else 0


NOTHING = Held()


@dataclass(frozen=True, slots=True)
class Difference:
    """One key on which the two sides do not agree.

    Attributes:
        key: the key as text.
        what: how they differ.
        lookup: see `setl.bulk.pairs.Pair`.
        source: what the source has under the key.
        target: what the target has.
    """

    key: str
    what: What
    lookup: str | None
    source: Held
    target: Held


@dataclass(slots=True)
class Comparison:
    """What a comparison found, of a partition of the keys or of all.

    If no key differs, `source_rows` is `target_rows` and `merged` together.

    Attributes:
        source_rows: rows that the source says the target should have.
        target_rows: rows that it has.
        merged: rows of the source that may share a row of the target with another one.
        counts: number of keys by how they differ.
        differences: some of these keys, in no order.
        errors: why tasks gave up.
    """

    source_rows: int = 0
    target_rows: int = 0
    merged: int = 0
    counts: dict[What, int] = field(default_factory=lambda: dict.fromkeys(What, 0))
    differences: list[Difference] = field(default_factory=list[Difference])
    errors: list[SetlError] = field(default_factory=list[SetlError])

    def add(self, other: Comparison) -> None:
        """Take in another partition's."""
        self.source_rows += other.source_rows
        self.target_rows += other.target_rows
        self.merged += other.merged
        for what, count in other.counts.items():
            self.counts[what] += count
        self.differences += other.differences
        self.errors += other.errors


def compare(
    sources: Sequence[DataFrame],
    target: DataFrame,
    merging: Merging,
    *,
    partitions: int,
    keep: int,
) -> Comparison:
    """Compare pairs of both sides; `judge` says which of them agree.

    Args:
        sources: frames of `setl.bulk.pairs.FRAME`, one for each source table.
        target: another one.
        merging: which rows of the source may be one row of the target.
        partitions: tasks that compare.
        keep: how many differences each of them keeps; all are counted.

    Raises:
        SetlError: the first error of a task that read.
        TransientError: Spark itself failed.
    """
    frames = [*with_table(sources), target.withColumn("table", F.lit(0))]
    source, of_target, refused, other = (
        F.col("side") == int(side)
        for side in (Side.SOURCE, Side.TARGET, Side.REFUSED, Side.ALTERNATIVE)
    )
    # Rows that are their own key are counted: nobody holds one for each time that it is there.
    once = merging in {Merging.ROWS, Merging.COUNTED}
    collected = F.collect_set if once else F.collect_list
    tables = (
        F.size(F.collect_set(F.when(source, F.col("table"))))
        if merging is Merging.TABLES
        else F.lit(0)
    )
    joined = (
        reduce(DataFrame.union, frames)
        .repartition(partitions, "key")
        .groupBy("key")
        .agg(
            F.max("lookup").alias("lookup"),
            F.count(F.when(source, 1)).alias("source_rows"),
            collected(F.when(source, F.col("digest"))).alias("source"),
            F.collect_set(F.when(other, F.col("digest"))).alias("others"),
            tables.alias("tables"),
            F.count(F.when(of_target, 1)).alias("target_rows"),
            collected(F.when(of_target, F.col("digest"))).alias("target"),
            F.collect_list(F.when(refused, F.col("digest"))).alias("errors"),
        )
    )
    found = Comparison()
    try:
        parts = joined.mapInArrow(_summary(merging, keep), "part binary").collect()
    except (PySparkException, Py4JError) as error:
        raise spark_failure(str(error).strip() or type(error).__name__) from error
    for row in parts:
        found.add(pickle.loads(row[0]))  # noqa: S301 - made by our own tasks
    if found.errors:
        raise found.errors[0]
    return found


def with_table(sources: Sequence[DataFrame]) -> list[DataFrame]:
    """Frames of source tables, with the number of its table beside each row."""
    return [frame.withColumn("table", F.lit(i)) for i, frame in enumerate(sources)]


def spark_failure(text: str) -> SetlError:
    """What Spark says of a job that failed: the worker's own message, if a worker says any."""
    return worker_error(text) or TransientError(
        f"the Spark job failed: {text.splitlines()[0][:500]}"
    )


def _summary(
    merging: Merging, keep: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The task function that judges the keys of a partition."""

    def summarise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = Comparison()
        for batch in batches:
            columns = (column.to_pylist() for column in batch.columns)
            for key, lookup, rows, said, others, tables, target_rows, there, errors in zip(
                *columns, strict=True
            ):
                part.errors += map(pickle.loads, errors)
                source = Held(rows, tuple(sorted(said)), frozenset(others), tables)
                target = Held(target_rows, tuple(sorted(there)))
                part.source_rows += rows
                part.target_rows += target_rows
                part.merged += source.merged(merging)
                what = judge(source, target, merging)
                if what is None:
                    continue
                part.counts[what] += 1
                if len(part.differences) < keep:
                    part.differences.append(Difference(key, what, lookup, source, target))
        blob = pa.array([pickle.dumps(part, protocol=5)], pa.binary())
        yield pa.RecordBatch.from_arrays([blob], names=["part"])

    return summarise


def judge(source: Held, target: Held, merging: Merging) -> What | None:
    """How the two sides differ in a key, None if they agree.

    They agree if each row of the source has its own row in the target, and no row is left over.
    Rows that may be merged are one row in the target, which says what any of them says: nobody
    knows which of them came last. The key of a row without one is all that it says.
    """
    if not source.rows:
        return What.EXTRA if target.rows else None
    if not target.rows:
        return What.MISSING
    if target.rows != source.rows - source.merged(merging):
        return What.DIFFERENT
    if target.rows == 1:
        said = target.contents[0]
        return None if said in source.contents or said in source.others else What.DIFFERENT
    return None if target.contents == source.contents else What.DIFFERENT
