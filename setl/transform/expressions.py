"""Evaluates Spark SQL expressions and `where` after compaction.

Only survivors are evaluated: a key that changed a hundred times in a batch costs one
evaluation. A survivor that `where` refuses becomes a delete of its key, since an earlier image
of the row may have passed and be in the target.

Only columns that an expression mentions take Spark types; all others travel beside them as
they are, so that Spark's types cannot alter them.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, ByteType, LongType, StructField, StructType

from setl.bisection import bisect_faults
from setl.channel.routing import Route
from setl.channel.spark_sql import referenced_columns
from setl.errors import ConfigurationError, DataError, SetlError, TransientError
from setl.model.change import Row, TargetChanges
from setl.model.document import DocumentForm
from setl.model.faulty import FaultyRow
from setl.model.schema import Column, RowSchema
from setl.transform.columns import ColumnPlan
from setl.transform.isolating import Refused, take_out
from setl.transform.share import Dealt, by_buckets, deal, faulty_by_buckets, packed, refused
from setl.transform.typed_rows import (
    arrow_schema,
    record_batch,
    result_column,
    rows_of,
    spark_schema,
)
from setl.transform.work import (
    TransformPlan,
    WorkItem,
    codec_named,
    compact,
    document_form,
    document_source,
)

# Columns of the frame between decoding and evaluation; the names cannot meet a user's.
CARRIED = pa.schema(
    [
        pa.field("__setl_kind", pa.int8()),  # one of the three below
        pa.field("__setl_version", pa.int64()),
        pa.field("__setl_body", pa.binary()),  # pickled: row beside the expressions, key, counts
    ]
)
_CARRIED_FIELDS = (
    StructField("__setl_kind", ByteType()),
    StructField("__setl_version", LongType()),
    StructField("__setl_body", BinaryType()),
)
_DELETE, UPSERT, _COUNTS, _REFUSED, _FAULTY = 0, 1, 2, 3, 4
ONLY_UPSERTS = f"__setl_kind = {UPSERT}"
_KEEP = "__setl_keep"
SHARES_DDL = "bucket int, share binary"
_SHARES = pa.schema([pa.field("bucket", pa.int32()), pa.field("share", pa.binary())])


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A route's expressions, analysed over the columns of one table.

    Attributes:
        route: the route.
        schema: the source table.
        columns: how its columns are mapped, beside the expressions.
        inputs: columns that the expressions mention.
        outputs: columns that the expressions fill.
        target_columns: columns of the target: those that pass, then `outputs`.
        document: how rows become documents; None if they do not.
    """

    route: Route
    schema: RowSchema
    columns: ColumnPlan
    inputs: tuple[Column, ...]
    outputs: tuple[Column, ...]
    target_columns: tuple[Column, ...]
    document: DocumentForm | None = None


def select_evaluated(
    frame: DataFrame, route: Route, carried: Sequence[str], only: str = "true"
) -> DataFrame:
    """A frame's carried columns, whether `where` keeps the row, and the value of each expression.

    The result has the columns `carried`, then ``__setl_keep``, then ``__setl_0`` and so on for
    the route's expressions in their order. Expressions are only evaluated on rows that are
    kept, and `where` only on rows of which `only` is true: either may guard the next.

    Raises:
        ConfigurationError: Spark cannot analyse some expressions; says which, all of them, and why.
    """
    wrong: list[str] = []
    kept = f"({only}) AND coalesce(({route.where}), false)" if route.where else only
    result = _analysed(frame, "where", wrong, "*", f"{kept} AS {_KEEP}")
    if result is None:
        result = frame.selectExpr("*", f"true AS {_KEEP}")  # the others are looked at all the same
    texts = {
        name: f"CASE WHEN {_KEEP} THEN ({text}) END" for name, text in route.expressions.items()
    }
    for name, text in texts.items():
        _analysed(result, f"columns.{name}", wrong, f"{text} AS x")
    if wrong:
        raise ConfigurationError(
            f"Spark cannot evaluate {'; nor '.join(wrong)}",
            hint="See https://spark.apache.org/docs/latest/api/sql/ for what Spark SQL offers",
            table=".".join(route.target),
        )
    outputs = [f"{text} AS `__setl_{i}`" for i, text in enumerate(texts.values())]
    return result.selectExpr(*carried, _KEEP, *outputs)


def _analysed(
    frame: DataFrame, place: str, wrong: list[str], *expressions: str
) -> DataFrame | None:
    """The frame with expressions in it, None if Spark refuses them; `wrong` gets the reason."""
    try:
        return frame.selectExpr(*expressions)
    except (AnalysisException, ParseException) as error:
        wrong.append(f"{place}: {str(error).strip().splitlines()[0]}")
        return None


def analyse(spark: SparkSession, route: Route, schema: RowSchema) -> Evaluation:
    """Analyse a route's expressions over a table, without touching any data.

    Raises:
        ConfigurationError: an expression names an unknown column, is malformed, or gives a
            type that no target holds.
    """
    columns = ColumnPlan.build(schema, route)
    names = referenced_columns(route.expressions.values(), route.where, schema.names)
    inputs = tuple(schema.columns[schema.index[name]] for name in names)
    empty = spark.createDataFrame([], spark_schema(inputs))
    evaluated = select_evaluated(empty, route, ())
    outputs = tuple(
        result_column(name, evaluated.schema[f"__setl_{i}"].dataType)
        for i, name in enumerate(route.expressions)
    )
    document = document_form(schema, route)
    return Evaluation(route, schema, columns, inputs, outputs, columns.columns + outputs, document)


class ExpressionBranch:
    """The part of a pipeline's Spark job that serves one route with expressions."""

    def __init__(self, spark: SparkSession, plan: TransformPlan, route: Route) -> None:
        self.spark = spark
        self._codec = codec_named(plan.codec)
        self._route = route
        self._evaluations: dict[RowSchema, Evaluation] = {}

    def shares(
        self, plan: TransformPlan, stretches: Sequence[list[WorkItem]], buckets: int
    ) -> DataFrame:
        """Transform stretches of one table's entries.

        Returns:
            A frame of (bucket, share), as `setl.transform.share.deal` gives them.

        Raises:
            ConfigurationError: an expression does not fit the table.
            DataError: the table's definition cannot be read from any entry, and nothing is
                isolated.
        """
        try:
            evaluation = self.evaluation(plan, stretches)
        except DataError:
            if not plan.isolates:
                raise
            # No entry can be decoded, so there is nothing to evaluate.
            return self._pickled(stretches).mapInArrow(_dealer(plan, buckets), SHARES_DDL)
        frame = self.decoded(plan, stretches, evaluation)
        evaluated = select_evaluated(frame, self._route, CARRIED.names, ONLY_UPSERTS)
        return evaluated.mapInArrow(packer(plan, evaluation, buckets), SHARES_DDL)

    def evaluation(self, plan: TransformPlan, stretches: Sequence[list[WorkItem]]) -> Evaluation:
        """The expressions over the table that the entries are of; raises as `shares`."""
        schema = self._schema_of(plan, stretches)
        evaluation = self._evaluations.get(schema)
        if evaluation is None:
            evaluation = analyse(self.spark, self._route, schema)
            self._evaluations[schema] = evaluation
        return evaluation

    def _schema_of(self, plan: TransformPlan, stretches: Sequence[list[WorkItem]]) -> RowSchema:
        failure: DataError | None = None
        for item in chain.from_iterable(stretches):
            try:
                return self._schema(plan, item)
            except DataError as error:
                failure = failure or error
                if not plan.isolates:
                    break
        raise failure or DataError("there is nothing to evaluate")

    def _pickled(self, stretches: Sequence[list[WorkItem]]) -> DataFrame:
        blobs = pa.table({"items": [pickle.dumps(stretch, protocol=5) for stretch in stretches]})
        frame = self.spark.createDataFrame(blobs)
        count = len(stretches)
        return frame.repartition(count) if count > 1 else frame.coalesce(1)

    def decoded(
        self, plan: TransformPlan, stretches: Sequence[list[WorkItem]], evaluation: Evaluation
    ) -> DataFrame:
        """What survives of the stretches: the columns `CARRIED` and those that are mentioned."""
        decode, schema = decoder(plan, evaluation), decoded_schema(evaluation)
        return self._pickled(stretches).mapInArrow(decode, schema)

    def _schema(self, plan: TransformPlan, first: WorkItem) -> RowSchema:
        if first.decoded is not None:
            seen = first.decoded.schema
        elif first.table_rows is not None:
            seen = first.table_rows.schema
        else:
            seen = self._codec.schema(self._codec.records(first.payload)[0][1], first.context)
        documents = self._route.documents
        return seen if documents is None else document_source(plan).schema(documents, seen)


Batches = Iterator[pa.RecordBatch]


def decoded_schema(evaluation: Evaluation) -> StructType:
    """What `decoder` gives: the columns `CARRIED` and those that are mentioned."""
    return StructType([*_CARRIED_FIELDS, *spark_schema(evaluation.inputs)])


def _dealer(plan: TransformPlan, buckets: int) -> Callable[[Batches], Batches]:
    """The task function for stretches of which nothing has to be evaluated."""

    def dealt(batches: Batches) -> Batches:
        for batch in batches:
            for items in batch.column(0).to_pylist():
                yield _shares(deal(plan, items, buckets))

    return dealt


def _shares(dealt: Dealt) -> pa.RecordBatch:
    numbers, shares = zip(*dealt, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers, pa.int32()), pa.array(shares, pa.binary())], schema=_SHARES
    )


def decoder(plan: TransformPlan, evaluation: Evaluation) -> Callable[[Batches], Batches]:
    """The task function that decodes and compacts stretches, and gives columns their types."""
    inputs = evaluation.inputs
    out = pa.schema([*CARRIED, *arrow_schema(inputs)])

    def carried(kind: int, versions: Sequence[int], bodies: list[object]) -> list[pa.Array]:
        return [
            pa.array([kind] * len(bodies), pa.int8()),
            pa.array(versions, pa.int64()),
            pa.array([pickle.dumps(body, protocol=5) for body in bodies], pa.binary()),
        ]

    def without_inputs(kind: int, versions: Sequence[int], bodies: list[object]) -> pa.RecordBatch:
        nulls = [pa.nulls(len(bodies), field.type) for field in arrow_schema(inputs)]
        return pa.RecordBatch.from_arrays([*carried(kind, versions, bodies), *nulls], schema=out)

    def decode_stretch(items: bytes) -> Batches:
        started = time.monotonic()
        compacted = compact(plan, pickle.loads(items))  # noqa: S301 - made by our own driver
        for route, schema, part in compacted.survivors:
            columns = ColumnPlan.build(schema, route)
            if columns.columns != evaluation.columns.columns:
                raise _changed_columns(route, schema)
            pick = _input_row(schema, inputs)
            try:
                seen = record_batch(inputs, list(map(pick, part.upserts)))
            except DataError:
                if not plan.isolates:
                    raise
                refused = _without_types(inputs, list(map(pick, part.upserts)))
                taken = take_out(route, schema, part, refused)
                compacted.faulty.extend((route, row) for row in taken)
                seen = record_batch(inputs, list(map(pick, part.upserts)))
            passing = columns.rows(part.upserts)
            yield pa.RecordBatch.from_arrays(
                [*carried(UPSERT, part.upsert_versions, [*passing]), *seen.columns], schema=out
            )
            yield without_inputs(_DELETE, part.delete_versions, [*part.deletes])
        yield without_inputs(_FAULTY, [0] * len(compacted.faulty), [*compacted.faulty])
        counts = (compacted.rows, compacted.redelivered, time.monotonic() - started)
        yield without_inputs(_COUNTS, [0], [counts])

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            for items in batch.column(0).to_pylist():
                try:
                    yield from decode_stretch(items)
                except SetlError as error:
                    yield without_inputs(_REFUSED, [0], [error])

    return decode


def _without_types(inputs: Sequence[Column], rows: list[Row]) -> list[Refused]:
    """The rows with values that have no Spark type."""
    refused: list[Refused] = []

    def attempt(start: int, stop: int) -> bool:
        record_batch(inputs, rows[start:stop])
        return True

    bisect_faults(len(rows), attempt, lambda number, error: refused.append((number, error)))
    return refused


def _changed_columns(route: Route, schema: RowSchema) -> SetlError:
    """The error for rows that have other columns than those for which the job was made."""
    if route.documents is not None:
        # The driver and this task have looked at the source's tables at different times.
        return TransientError("the source's tables are just being changed", table=schema.name)
    return DataError(
        f"rows of {schema.name} have other columns than those before them",
        hint="The table changed without a DDL record; start the channel again",
        table=schema.name,
    )


def _input_row(schema: RowSchema, inputs: Sequence[Column]) -> Callable[[Row], Row]:
    """Picks the values of the expressions' inputs from a row of this shape.

    Raises:
        DataError: the rows lack a column that an expression mentions.
    """
    try:
        places = [schema.index[column.name] for column in inputs]
    except KeyError as error:
        raise DataError(
            f"a row of {schema.name} lacks column {error.args[0]}, which an expression mentions",
            hint="The table changed; fix the channel file and start the channel again",
            table=schema.name,
        ) from error
    return lambda row: tuple(row[place] for place in places)


def packer(
    plan: TransformPlan, evaluation: Evaluation, buckets: int
) -> Callable[[Batches], Batches]:
    """The task function that puts passing and evaluated values together and deals them out."""
    route = evaluation.route
    target = route.target
    columns, key = evaluation.target_columns, evaluation.columns.key
    outputs = len(evaluation.outputs)

    def pack(batches: Batches) -> Batches:
        # One for each stretch. Keys are unique within a stretch only, and Spark may give several
        # stretches to one task; put together they would hold a delete beside an older upsert.
        empty = TargetChanges(target, columns, key, group=route.group, document=evaluation.document)
        changes = empty.without_rows()
        parts: list[TargetChanges] = [changes]
        rows = redelivered = 0
        seconds = 0.0
        errors: list[SetlError] = []
        faulty: list[tuple[Route, FaultyRow]] = []
        started = time.monotonic()
        for batch in batches:
            values = rows_of(batch.select(range(4, 4 + outputs)))
            for kind, version, body, keep, extra in zip(
                *(batch.column(i).to_pylist() for i in range(4)), values, strict=True
            ):
                content = pickle.loads(body)  # noqa: S301 - made by our own task
                if kind == UPSERT and keep:
                    changes.upserts.append(content + extra)
                    changes.upsert_versions.append(version)
                elif kind == UPSERT:
                    changes.deletes.append(tuple(content[i] for i in key))
                    changes.delete_versions.append(version)
                elif kind == _DELETE:
                    changes.deletes.append(content)
                    changes.delete_versions.append(version)
                elif kind == _COUNTS:
                    changes = empty.without_rows()
                    parts.append(changes)
                    rows, redelivered = rows + content[0], redelivered + content[1]
                    seconds += content[2]
                elif kind == _FAULTY:
                    faulty.append(content)
                else:
                    errors.append(content)
        if errors:
            dealt = refused(errors[0])
        else:
            by_bucket = by_buckets(plan, ((route, part) for part in parts), buckets)
            put_aside = faulty_by_buckets(plan, faulty, buckets)
            seconds += time.monotonic() - started
            dealt = packed(by_bucket, rows, redelivered, seconds, faulty=put_aside)
        yield _shares(dealt)

    return pack
