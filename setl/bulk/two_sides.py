"""Reads both sides of a comparison in Spark tasks: ranges, or keys once more."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what Spark's own documentation calls it

from setl.bulk.comparing import digest
from setl.bulk.comparison import (
    Comparison,
    Difference,
    Held,
    Merging,
    What,
    compare,
    spark_failure,
    with_table,
)
from setl.bulk.pairs import FRAME, Content, Reading, Side, packed, shown, shown_values
from setl.bulk.rechecking import Contents
from setl.bulk.row_counter import RowCounter
from setl.bulk.source_side import MappedTable, numbers_in, one_task_each
from setl.bulk.target_reader import TargetReader
from setl.bulk.verdict import (
    ColumnDifference,
    DifferingKeys,
    KeyDifference,
    for_people,
    row_text,
)
from setl.model.change import Row
from setl.model.position import Position
from setl.model.schema import Column, Kind
from setl.transform.spark_on_demand import SparkOnDemand

_PARTS_PER_COMPARING_TASK = 8
_ROWS_PER_PART = 50_000  # of a side that is read as a whole once more


class TwoSides:
    """A target and all source tables that go into it."""

    def __init__(
        self,
        spark: SparkOnDemand,
        sources: Sequence[MappedTable],
        target: TargetReader,
        counter: RowCounter,
    ) -> None:
        """Nothing is read yet.

        Args:
            spark: gives the session.
            sources: the source tables, at least one.
            target: the target.
            counter: counts the rows that are read.
        """
        self._spark = spark
        self._sources = sources
        self._target = target
        self._counter = counter
        self.merging = _merging(sources)

    def compare_all(self, rows_per_part: int, keep: int, further: int = 0) -> Comparison:
        """Compare every row of both sides; `keep` and `further` as in `compare_parts`.

        Raises:
            SetlError: a side cannot be read, or Spark failed.
        """
        source_parts = [source.reader.parts(rows_per_part) for source in self._sources]
        target_parts = self._target.parts(rows_per_part)
        return self.compare_parts(source_parts, target_parts, keep, further)

    def compare_parts(
        self,
        source_parts: Sequence[Sequence[Any]],
        target_parts: Sequence[Any],
        keep: int,
        further: int = 0,
    ) -> Comparison:
        """Compare parts of the source tables, those of each by itself, with parts of the target.

        Args:
            source_parts: what to read of each source table.
            target_parts: what to read of the target.
            keep: how many differences each task keeps, see `setl.bulk.comparison.compare`.
            further: how many all tasks together are to keep besides, if there are so many.

        Raises:
            SetlError: a side cannot be read, or Spark failed.
        """
        reading = Reading(digest, self._counter.in_tasks)
        frames = [
            source.frame(self._spark.session, parts, self._target.shape, reading)
            for source, parts in zip(self._sources, source_parts, strict=True)
        ]
        count = sum(map(len, source_parts)) + len(target_parts)
        most = count // _PARTS_PER_COMPARING_TASK
        tasks = max(min(count, self._spark.context.defaultParallelism), most)
        return compare(
            frames,
            self._target_frame(target_parts, reading),
            self.merging,
            partitions=tasks,
            # Keys are distributed by hash, so each task has about as many.
            keep=max(keep, -(-(keep + further) // tasks)),
        )

    def source_of(
        self, differences: Sequence[Difference], reading_at: Position | None = None
    ) -> Contents:
        """What the source says of some keys; with everything before a position, if one is given.

        Raises:
            SetlError: it cannot be read, or Spark failed.
        """
        return self._source_of(differences, digest, reading_at)

    def target_of(self, differences: Sequence[Difference]) -> Contents:
        """What the target has of some keys.

        Raises:
            SetlError: it cannot be read, or Spark failed.
        """
        return self._target_of(differences, digest)

    def explain(self, differences: Sequence[Difference]) -> Iterator[KeyDifference]:
        """Read some differing keys once more, to say in which columns they differ.

        Raises:
            SetlError: a side cannot be read, or Spark failed.
        """
        if self._counted:
            for each, key in zip(differences, self.named(differences), strict=True):
                yield KeyDifference(key, each.what, (), each.source.rows, each.target.rows)
            return
        both = [d for d in differences if d.what is What.DIFFERENT]
        again = self._compare_keys(both, shown).differences if both else []
        now = {each.key: each for each in again}
        for each in differences:
            seen = each if each.what is not What.DIFFERENT else now.get(each.key)
            if seen is None:
                yield KeyDifference(each.key, each.what)
            else:
                columns = tuple(self._columns_of(seen))
                rows = seen.source.rows, seen.target.rows
                yield KeyDifference(each.key, each.what, columns, *rows)

    def named(self, differences: Sequence[Difference]) -> Sequence[str]:
        """Keys for people. Rows without a key are read once more, to be named by their values.

        Raises:
            SetlError: a side cannot be read, or Spark failed.
        """
        if not (self._counted and differences):
            return [each.key for each in differences]
        held = {**self._target_of(differences, shown), **self._source_of(differences, shown)}
        values = {key: shown_values(each.contents[0]) for key, each in held.items()}
        keys = [each.key for each in differences]
        return [row_text(tuple(values[key])) if key in values else key for key in keys]

    def differing(
        self, differences: Sequence[Difference], undecided: Sequence[Difference]
    ) -> DifferingKeys:
        """Keys as the source knows them."""
        if self._counted or len(self._sources) != 1 or self._sources[0].route.processor:
            return DifferingKeys(unknown=len(differences), keyless=self._counted)
        columns = tuple(column.name for column in self._sources[0].key_columns)
        routing = self._routing_column()
        keys = [(self._named(d, routing), d.what) for d in differences]
        known = tuple((key, what) for key, what in keys if key is not None)
        moving = tuple(key for d in undecided if (key := self._named(d, routing)) is not None)
        if routing is not None:
            columns += (routing.name,)
        return DifferingKeys(columns, known, len(keys) - len(known), moving)

    def _routing_column(self) -> Column | None:
        """What says, beside its key, where the document of a row is; None if nothing does."""
        source = self._sources[0]
        name = (source.route.routing or "").lower()
        index = source.reader.schema.folded.get(name)
        column = None if index is None else source.reader.schema.columns[index]
        # Of the bytes in a routing nobody reads them back.
        if column in source.key_columns or (column and column.kind is Kind.BINARY):
            return None
        return column

    def _named(self, difference: Difference, routing: Column | None) -> Row | None:
        """A key as a repair names it: where documents are routed, with what routes this one."""
        key = self._source_key(difference)
        if key is None or routing is None:
            return key
        return (*key, self._target.shape.routing(difference.key))

    def is_found(self, difference: Difference) -> bool:
        """Whether the source can be asked for a key."""
        return self._counted or self._source_key(difference) is not None

    def _source_key(self, difference: Difference) -> Row | None:
        return self._target.shape.source_key(difference.key, difference.lookup)

    def _compare_keys(self, differences: Sequence[Difference], content: Content) -> Comparison:
        reading = self._reading_of(differences, content)
        frames = self._frames(differences, reading)
        target = self._target_frame(self._target_parts(differences), reading)
        return compare(frames, target, self.merging, partitions=1, keep=len(differences))

    @property
    def _counted(self) -> bool:
        return self.merging is Merging.COUNTED

    def _source_of(
        self,
        differences: Sequence[Difference],
        content: Content,
        reading_at: Position | None = None,
    ) -> Contents:
        reading = self._reading_of(differences, content)
        frames = with_table(self._frames(differences, reading, reading_at))
        return _contents(reduce(DataFrame.union, frames), self.merging)

    def _target_of(self, differences: Sequence[Difference], content: Content) -> Contents:
        reading = self._reading_of(differences, content)
        frame = self._target_frame(self._target_parts(differences), reading)
        return _contents(frame.withColumn("table", F.lit(0)), self.merging)

    def _reading_of(self, differences: Sequence[Difference], content: Content) -> Reading:
        """How some keys are read once more.

        No condition finds exactly the rows with some values, of every type. So a side without a
        key is read as a whole, and what is not looked for is left out where it is read.
        """
        only = frozenset(d.key for d in differences) if self._counted else None
        return Reading(content, self._counter.in_tasks, only)

    def _target_parts(self, differences: Sequence[Difference]) -> Sequence[Any]:
        if self._counted:
            return self._target.parts(_ROWS_PER_PART)
        return self._target.parts_of_keys([d.key for d in differences])

    def _source_parts(self, source: MappedTable, known: Sequence[Row]) -> Sequence[Any]:
        if self._counted:
            return source.reader.parts(_ROWS_PER_PART)
        return source.reader.parts_of_keys(source.key_columns, known)

    def _frames(
        self,
        differences: Sequence[Difference],
        reading: Reading,
        reading_at: Position | None = None,
    ) -> list[DataFrame]:
        known = [key for d in differences if (key := self._source_key(d)) is not None]
        return [
            source.reading_at(reading_at).frame(
                self._spark.session,
                self._source_parts(source, known),
                self._target.shape,
                reading,
            )
            for source in self._sources
        ]

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
            for source in (*difference.source.contents, *difference.source.others)
            for target in difference.target.contents
        ]
        return min(found, key=len) if found else []

    def _target_frame(self, parts: Sequence[object], reading: Reading) -> DataFrame:
        numbered = one_task_each(self._spark.session, len(parts))
        return numbered.mapInArrow(_target_reading(self._target, list(parts), reading), FRAME)


def _merging(sources: Sequence[MappedTable]) -> Merging:
    if any(source.keyless for source in sources):
        return Merging.COUNTED
    if any(source.route.key or source.route.processor for source in sources):
        return Merging.ROWS
    return Merging.TABLES if len(sources) > 1 else Merging.NONE


def _contents(frame: DataFrame, merging: Merging) -> Contents:
    """What a frame of `FRAME`, with the number of each row's table, has under its keys; few rows.

    Raises:
        SetlError: the error of a task that read.
    """
    rows: dict[str, list[bytes]] = {}
    numbers: Counter[str] = Counter()
    others: dict[str, set[bytes]] = {}
    tables: dict[str, set[int]] = {}
    try:
        found = _numbered(frame, merging).collect()
    except (PySparkException, Py4JError) as error:
        raise spark_failure(str(error).strip() or type(error).__name__) from error
    for row in found:
        key, content = str(row["key"]), bytes(row["digest"])
        if row["side"] == Side.REFUSED:
            raise pickle.loads(content)  # noqa: S301 - made by our own task
        if row["side"] == Side.ALTERNATIVE:
            others.setdefault(key, set()).add(content)
        else:
            rows.setdefault(key, []).append(content)
            numbers[key] += int(row["number"])
            tables.setdefault(key, set()).add(int(row["table"]))
    once = merging in {Merging.ROWS, Merging.COUNTED}
    distinct = set[bytes] if once else list[bytes]
    return {
        key: Held(
            numbers[key],
            tuple(sorted(distinct(there))),
            frozenset(others.get(key, ())),
            len(tables[key]) if merging is Merging.TABLES else 0,
        )
        for key, there in rows.items()
    }


def _numbered(frame: DataFrame, merging: Merging) -> DataFrame:
    """Rows with how often they are there: without a key, one may be there any number of times."""
    columns = ["side", "key", "digest", "table"]
    if merging is Merging.COUNTED:
        return frame.groupBy(*columns).agg(F.count(F.lit(1)).alias("number"))
    return frame.select(*columns, F.lit(1).alias("number"))


def _target_reading(
    target: TargetReader, parts: list[object], reading: Reading
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers_in(batches):
            yield from packed(Side.TARGET, target.read(parts[number]), reading)

    return read
