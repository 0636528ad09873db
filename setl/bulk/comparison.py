"""The Spark job that joins both sides of a comparison by key."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
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


class What(Enum):
    """How the two sides differ in a key."""

    MISSING = "missing"  # in the source only
    EXTRA = "extra"  # in the target only
    DIFFERENT = "different"  # in both, with other values


@dataclass(frozen=True, slots=True)
class Difference:
    """One key on which the two sides do not agree.

    Attributes:
        key: the key as text.
        what: how they differ.
        lookup: see `setl.bulk.pairs.Pair`.
        source: what the source's rows of that key say; empty if there are none.
        target: the same of the target's.
    """

    key: str
    what: What
    lookup: str | None
    source: frozenset[bytes]
    target: frozenset[bytes]


@dataclass(slots=True)
class Comparison:
    """What a comparison found, of a partition of the keys or of all.

    Attributes:
        source_rows: rows that the source says the target should have.
        target_rows: rows that it has.
        counts: number of keys by how they differ.
        differences: some of these keys, in no order.
        errors: why tasks gave up.
    """

    source_rows: int = 0
    target_rows: int = 0
    counts: dict[What, int] = field(default_factory=lambda: dict.fromkeys(What, 0))
    differences: list[Difference] = field(default_factory=list[Difference])
    errors: list[SetlError] = field(default_factory=list[SetlError])

    def add(self, other: Comparison) -> None:
        """Take in another partition's."""
        self.source_rows += other.source_rows
        self.target_rows += other.target_rows
        for what, count in other.counts.items():
            self.counts[what] += count
        self.differences += other.differences
        self.errors += other.errors


def compare(
    sources: Sequence[DataFrame], target: DataFrame, *, partitions: int, keep: int
) -> Comparison:
    """Compare pairs of both sides.

    Several rows of the source may want the same key of the target (several tables going into
    one); the target is right with any of them. Two rows of the target with one key are wrong.

    Args:
        sources: frames of `setl.bulk.pairs.FRAME`.
        target: another one.
        partitions: tasks that compare.
        keep: how many differences each of them keeps; all are counted.

    Raises:
        SetlError: the first error of a task that read.
        TransientError: Spark itself failed.
    """
    everything = reduce(DataFrame.union, [*sources, target])
    source, of_target, refused = (
        F.col("side") == int(side) for side in (Side.SOURCE, Side.TARGET, Side.REFUSED)
    )
    wanted = F.col("side").isin(int(Side.SOURCE), int(Side.ALTERNATIVE))
    joined = (
        everything.repartition(partitions, "key")
        .groupBy("key")
        .agg(
            F.count(F.when(source, 1)).alias("source_rows"),
            F.count(F.when(of_target, 1)).alias("target_rows"),
            F.max("lookup").alias("lookup"),
            F.collect_set(F.when(wanted, F.col("digest"))).alias("source"),
            F.collect_set(F.when(of_target, F.col("digest"))).alias("target"),
            F.collect_list(F.when(refused, F.col("digest"))).alias("errors"),
        )
    )
    found = Comparison()
    try:
        parts = joined.mapInArrow(_summary(keep), "part binary").collect()
    except (PySparkException, Py4JError) as error:
        raise spark_failure(str(error).strip() or type(error).__name__) from error
    for row in parts:
        found.add(pickle.loads(row[0]))  # noqa: S301 - made by our own tasks
    if found.errors:
        raise found.errors[0]
    return found


def spark_failure(text: str) -> SetlError:
    """What Spark says of a job that failed: the worker's own message, if a worker says any."""
    return worker_error(text) or TransientError(
        f"the Spark job failed: {text.splitlines()[0][:500]}"
    )


def _summary(keep: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The task function that judges the keys of a partition."""

    def summarise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = Comparison()
        for batch in batches:
            columns = (batch.column(i).to_pylist() for i in range(7))
            for key, source_rows, target_rows, lookup, source, target, errors in zip(
                *columns, strict=True
            ):
                part.errors += map(pickle.loads, errors)
                part.source_rows += source_rows
                part.target_rows += target_rows
                what = judge(source, target, target_rows)
                if what is None:
                    continue
                part.counts[what] += 1
                if len(part.differences) < keep:
                    part.differences.append(
                        Difference(key, what, lookup, frozenset(source), frozenset(target))
                    )
        blob = pa.array([pickle.dumps(part, protocol=5)], pa.binary())
        yield pa.RecordBatch.from_arrays([blob], names=["part"])

    return summarise


def judge(source: Iterable[bytes], target: Sequence[bytes], target_rows: int) -> What | None:
    """How the two sides differ in a key, None if they agree.

    Args:
        source: what the source's rows of that key say.
        target: what the target's say, without repetitions.
        target_rows: how many rows the target has of it.
    """
    wanted = set(source)
    if not wanted:
        return What.EXTRA if target_rows else None
    if not target_rows:
        return What.MISSING
    return None if target_rows == 1 and target[0] in wanted else What.DIFFERENT
