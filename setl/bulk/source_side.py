"""The source side of a comparison: tables read, mapped and evaluated as the stream is."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from setl.bulk.pairs import FRAME, Pair, Reading, Shape, Side, packed
from setl.bulk.source_reader import SourceReader
from setl.channel.routes.routing import Route
from setl.errors import SetlError
from setl.model.change import DecodedRows, Op, Row
from setl.model.position import Position
from setl.model.schema import Column, RowSchema
from setl.transform.columns import ColumnPlan, key_indexes
from setl.transform.evaluation import Evaluation, analyse, select_evaluated
from setl.transform.processing import processed
from setl.transform.spark_on_demand import SparkOnDemand
from setl.transform.typed_rows import arrow_schema, record_batch, rows_of, spark_schema

Batches = Iterator[pa.RecordBatch]

_BODY = "__setl_body"  # pickled: the values that pass as they are, or the error of the task


@dataclass(frozen=True, slots=True)
class MappedTable:
    """A source table with the route by which its rows reach a target.

    Attributes:
        reader: reads the table.
        route: the route.
        columns: how its columns are mapped.
        evaluation: its expressions over this table; None if the route has none.
    """

    reader: SourceReader
    route: Route
    columns: ColumnPlan
    evaluation: Evaluation | None

    @classmethod
    def build(
        cls, spark: SparkSession | SparkOnDemand, reader: SourceReader, route: Route
    ) -> MappedTable:
        """Plan for one table; only expressions need the session.

        Raises:
            ConfigurationError: the mapping does not fit the table.
        """
        keyless = not reader.schema.key and route.takes_keyless
        plan = ColumnPlan.build(reader.schema, route, keyless=keyless)
        if not (route.expressions or route.where):
            return cls(reader, route, plan, None)
        session = SparkOnDemand.of(spark).session
        return cls(reader, route, plan, analyse(session, route, reader.schema))

    @property
    def target_columns(self) -> tuple[Column, ...]:
        """The target's columns that this table fills."""
        return self.evaluation.target_columns if self.evaluation else self.columns.columns

    @property
    def keyless(self) -> bool:
        """Whether its rows have no key, and are distinguished by all that goes to the target."""
        return not self.reader.schema.key and self.route.takes_keyless

    @property
    def key_names(self) -> tuple[str, ...]:
        """The target's names of the key columns; none without a key."""
        count = len(self.key_columns)
        return tuple(self.columns.columns[i].name for i in self.columns.key[:count])

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The source's key columns, in the order of `key_names`."""
        schema = self.reader.schema
        positions = () if self.keyless else key_indexes(schema, self.route.key)
        return tuple(schema.columns[i] for i in positions)

    def reading_at(self, position: Position | None) -> MappedTable:
        """The same, reading what is there after a position; see `SourceReader.reading_at`.

        None is no place: then it reads what is there.
        """
        if position is None:
            return self
        return replace(self, reader=self.reader.reading_at(position, inside=False))

    def frame(
        self, spark: SparkSession, parts: Sequence[Any], shape: Shape, reading: Reading
    ) -> DataFrame:
        """The rows of some parts of the table as pairs, read by a task for each part."""
        positions = {column.name.lower(): i for i, column in enumerate(self.target_columns)}
        pick = picker([positions[name.lower()] for name in shape.names])
        shape = shape.of_source(self.target_columns)
        if self.evaluation is None:
            read = _plain_reader(self, list(parts), pick, shape, reading)
            return one_task_each(spark, len(parts)).mapInArrow(read, FRAME)
        typed = one_task_each(spark, len(parts)).mapInArrow(
            _typed_reader(self.reader, self.evaluation, list(parts)),
            StructType([StructField(_BODY, BinaryType()), *spark_schema(self.evaluation.inputs)]),
        )
        evaluated = select_evaluated(typed, self.route, [_BODY])
        outputs = len(self.evaluation.outputs)
        return evaluated.mapInArrow(_finisher(outputs, pick, shape, reading), FRAME)


def one_task_each(spark: SparkSession, count: int) -> DataFrame:
    """A frame of the numbers from 0 to `count` - 1, each in a task of its own."""
    return spark.range(0, count, 1, max(1, count))


def picker(indexes: Sequence[int]) -> Callable[[Row], Row]:
    """A function that takes the values at `indexes` out of a row."""
    if len(indexes) == 1:
        index = indexes[0]
        return lambda row: (row[index],)
    return itemgetter(*indexes)


def processing(route: Route, schema: RowSchema) -> Callable[[list[Row]], list[Row]]:
    """What becomes of rows before they are mapped: what the route's processor makes of them.

    Each row counts as inserted. Columns that the processor adds are left out: nothing but its
    rows says which they are.
    """
    name = route.processor
    if name is None:
        return lambda rows: rows
    width = len(schema.columns)

    def process(rows: list[Row]) -> list[Row]:
        inserts = DecodedRows(schema, Op.INSERT, [(None, row) for row in rows])
        return [
            after[:width]
            for part in processed(name, inserts, route.key, route.routing)
            for _, after in part.images
            if after is not None
        ]

    return process


def _plain_reader(
    table: MappedTable,
    parts: list[Any],
    pick: Callable[[Row], Row],
    shape: Shape,
    reading: Reading,
) -> Callable[[Batches], Batches]:
    reader, columns = table.reader, table.columns
    source_columns = reader.schema.columns
    process = processing(table.route, reader.schema)

    def pairs(part: Any) -> Iterator[list[Pair]]:
        for rows in map(process, reader.read(source_columns, part)):
            yield shape.pairs(list(map(pick, columns.rows(rows))))

    def read(batches: Batches) -> Batches:
        for number in numbers_in(batches):
            yield from packed(Side.SOURCE, pairs(parts[number]), reading)

    return read


def numbers_in(batches: Batches) -> Iterator[int]:
    """The numbers that `one_task_each` gave to this task."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _typed_reader(
    reader: SourceReader, evaluation: Evaluation, parts: list[Any]
) -> Callable[[Batches], Batches]:
    schema = reader.schema
    inputs, columns = evaluation.inputs, evaluation.columns
    positions = [schema.index[column.name] for column in inputs]
    process = processing(evaluation.route, schema)
    out = pa.schema([pa.field(_BODY, pa.binary()), *arrow_schema(inputs)])

    def batch_of(bodies: list[Any], seen: list[Row]) -> pa.RecordBatch:
        body = pa.array([pickle.dumps(body, protocol=5) for body in bodies], pa.binary())
        typed = record_batch(inputs, seen)
        return pa.RecordBatch.from_arrays([body, *typed.columns], schema=out)

    def read(batches: Batches) -> Batches:
        for number in numbers_in(batches):
            try:
                for rows in map(process, reader.read(schema.columns, parts[number])):
                    seen = [tuple(row[i] for i in positions) for row in rows]
                    yield batch_of(columns.rows(rows), seen)
            except SetlError as error:
                yield batch_of([error], [(None,) * len(inputs)])

    return read


def _finisher(
    outputs: int, pick: Callable[[Row], Row], shape: Shape, reading: Reading
) -> Callable[[Batches], Batches]:
    def pairs(batch: pa.RecordBatch) -> Iterator[list[Pair]]:
        bodies, stored = batch.column(0).to_pylist(), batch.column(1).to_pylist()
        # `select_evaluated` gives what is carried, whether it is kept, then what is computed.
        computed = rows_of(batch.select(range(2, 2 + outputs)))
        rows: list[Row] = []
        for body, keep, extra in zip(bodies, stored, computed, strict=True):
            selected = pickle.loads(body)  # noqa: S301 - made by our own task
            if isinstance(selected, SetlError):
                raise selected
            if keep:
                rows.append(pick(selected + extra))
        yield shape.pairs(rows)

    def finish(batches: Batches) -> Batches:
        for batch in batches:
            yield from packed(Side.SOURCE, pairs(batch), reading)

    return finish
