"""Compares one target with everything that goes into it.

Both sides are read side by side by Spark tasks, source rows are mapped as the stream maps them,
and what the two sides say of each key meets in one shuffle: a digest, never the row itself. A
pipeline may be running meanwhile: keys that differ are read again before they count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from setl.bulk.comparing import digest
from setl.bulk.comparison import Comparison, Difference, What, compare
from setl.bulk.pairs import FRAME, Content, Reading, Side, packed, shown, shown_values
from setl.bulk.rechecking import Rechecking
from setl.bulk.row_counter import Progress, RowCounter
from setl.bulk.source_side import MappedTable, numbers_in, one_task_each
from setl.bulk.target_reader import TargetReader
from setl.bulk.verdict import (
    ColumnDifference,
    DifferingKeys,
    KeyDifference,
    TableVerdict,
    for_people,
)

_PARTS_PER_COMPARING_TASK = 8


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """How thoroughly is looked.

    Attributes:
        sample: differing keys to name for each target.
        rows_per_part: rows that one task reads.
        rechecks: how many times keys that differ are read again before they count.
        pause: seconds before each time.
        recheck_keys: how many keys are read again at most; those beyond count as they are.
    """

    sample: int = 20
    rows_per_part: int = 50_000
    rechecks: int = 5
    pause: float = 1.0
    recheck_keys: int = 10_000


def verify_target(
    spark: SparkSession,
    sources: Sequence[MappedTable],
    target: TargetReader,
    settings: VerifySettings = VerifySettings(),
    *,
    progress: Progress | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> TableVerdict:
    """Compare a target with all source tables that go into it.

    Columns that only the target has are not looked at. The target is closed at the end.

    Args:
        spark: the session.
        sources: the source tables, at least one.
        target: the target.
        settings: how thoroughly to look.
        progress: is told how many rows were read so far, from a thread of its own.
        wait: waits for so many seconds.

    Raises:
        SetlError: a side cannot be read, or Spark failed.
    """
    with closing(target), RowCounter(spark, progress) as counter:
        pair = _Pair(spark, sources, target, counter)
        first = pair.compare_all(settings)
        kept = sorted(first.differences, key=_order)[: settings.recheck_keys]
        rechecking = Rechecking(kept)
        # A processor may give rows other keys, by which they are not found at the source.
        processed = any(source.route.processor for source in sources)
        for _ in range(0 if processed else settings.rechecks):
            if not rechecking.pending:
                break
            wait(settings.pause)
            rechecking.look(pair.compare_keys(rechecking.pending, digest).differences)
        still_different = sorted(rechecking.still_different(), key=_order)
        counts = dict(first.counts)
        for difference in kept:
            counts[difference.what] -= 1
        for difference in still_different:
            counts[difference.what] += 1
        sample = pair.explain(still_different[: settings.sample])
        differing = _differing(sources, target, still_different)
    return TableVerdict(
        table=", ".join(source.reader.name for source in sources),
        target=target.name,
        source_rows=first.source_rows,
        target_rows=first.target_rows,
        missing=counts[What.MISSING],
        extra=counts[What.EXTRA],
        different=counts[What.DIFFERENT],
        caught_up=len(kept) - len(still_different),
        sample_keys=tuple(sample),
        differing=differing,
    )


def _differing(
    sources: Sequence[MappedTable], target: TargetReader, differences: Sequence[Difference]
) -> DifferingKeys:
    if len(sources) != 1 or sources[0].route.processor:
        return DifferingKeys(unknown=len(differences))
    columns = tuple(column.name for column in sources[0].key_columns)
    keys = [(target.shape.source_key(d.key, d.lookup), d.what) for d in differences]
    known = tuple((key, what) for key, what in keys if key is not None)
    return DifferingKeys(columns, known, unknown=len(keys) - len(known))


class _Pair:
    """The two sides of one comparison."""

    def __init__(
        self,
        spark: SparkSession,
        sources: Sequence[MappedTable],
        target: TargetReader,
        counter: RowCounter,
    ) -> None:
        self._spark = spark
        self._sources = sources
        self._target = target
        self._counter = counter

    def compare_all(self, settings: VerifySettings) -> Comparison:
        """Compare every row of both sides."""
        reading = Reading(digest, self._counter.rows)
        size = settings.rows_per_part
        source_parts = [source.reader.parts(size) for source in self._sources]
        target_parts = self._target.parts(size)
        frames = [
            source.frame(self._spark, parts, self._target.shape, reading)
            for source, parts in zip(self._sources, source_parts, strict=True)
        ]
        count = sum(map(len, source_parts)) + len(target_parts)
        return compare(
            frames,
            self._target_frame(target_parts, reading),
            partitions=max(
                self._spark.sparkContext.defaultParallelism, count // _PARTS_PER_COMPARING_TASK
            ),
            keep=settings.recheck_keys,
        )

    def compare_keys(self, differences: Sequence[Difference], content: Content) -> Comparison:
        """Read some keys on both sides again and compare them."""
        reading = Reading(content, self._counter.rows)
        shape = self._target.shape
        keys = [shape.source_key(d.key, d.lookup) for d in differences]
        known = [key for key in keys if key is not None]
        target_parts = self._target.parts_of_keys([d.key for d in differences])
        frames = [
            source.frame(
                self._spark,
                source.reader.parts_of_keys(source.key_columns, known),
                shape,
                reading,
            )
            for source in self._sources
        ]
        target = self._target_frame(target_parts, reading)
        return compare(frames, target, partitions=1, keep=len(differences))

    def explain(self, differences: Sequence[Difference]) -> Iterator[KeyDifference]:
        """Read some differing keys once more, to say in which columns they differ."""
        both = [d for d in differences if d.what is What.DIFFERENT]
        values: dict[str, tuple[ColumnDifference, ...]] = {}
        if both:
            for again in self.compare_keys(both, shown).differences:
                values[again.key] = tuple(self._columns_of(again))
        for difference in differences:
            yield KeyDifference(difference.key, difference.what, values.get(difference.key, ()))

    def _columns_of(self, difference: Difference) -> Sequence[ColumnDifference]:
        """The fewest columns in which the two sides differ, of all forms that would be right."""
        names = self._target.shape.names
        found = [
            [
                ColumnDifference(name, for_people(there), for_people(here))
                for name, there, here in zip(
                    names, shown_values(source), shown_values(target), strict=True
                )
                if there != here
            ]
            for source in difference.source
            for target in difference.target
        ]
        return min(found, key=len) if found else []

    def _target_frame(self, parts: Sequence[object], reading: Reading) -> DataFrame:
        numbered = one_task_each(self._spark, len(parts))
        return numbered.mapInArrow(_target_reading(self._target, list(parts), reading), FRAME)


def _target_reading(
    target: TargetReader, parts: list[object], reading: Reading
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers_in(batches):
            yield from packed(Side.TARGET, target.read(parts[number]), reading)

    return read


def _order(difference: Difference) -> tuple[int, str]:
    """Short keys first, which brings positive numbers into their order."""
    return len(difference.key), difference.key
