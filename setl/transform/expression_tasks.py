"""What tasks do before and after Spark evaluates expressions: decode, then put together and deal.

Only columns that an expression mentions take Spark types; all others travel beside them as
they are, so that Spark's types cannot alter them.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.types import BinaryType, ByteType, LongType, StructField, StructType

from setl.bisection import bisect_faults
from setl.channel.routes.routing import Route
from setl.errors import DataError, SetlError, TransientError
from setl.model.change import Row, TargetChanges
from setl.model.faulty import FaultyRow
from setl.model.schema import Column, RowSchema
from setl.transform.columns import ColumnPlan
from setl.transform.evaluation import Evaluation
from setl.transform.isolating import Refused, take_out
from setl.transform.partition import (
    Shuffled,
    by_buckets,
    faulty_by_buckets,
    packed,
    refused,
    shuffle,
)
from setl.transform.partition_compaction import compact
from setl.transform.typed_rows import arrow_schema, record_batch, rows_of, spark_schema
from setl.transform.work import TransformPlan

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
PARTITIONS_DDL = "bucket int, `partition` binary"
_PARTITIONS = pa.schema([pa.field("bucket", pa.int32()), pa.field("partition", pa.binary())])

Batches = Iterator[pa.RecordBatch]


def decoded_schema(evaluation: Evaluation) -> StructType:
    """What `decoder` gives: the columns `CARRIED` and those that are mentioned."""
    return StructType([*_CARRIED_FIELDS, *spark_schema(evaluation.inputs)])


def dealer(plan: TransformPlan, buckets: int) -> Callable[[Batches], Batches]:
    """The task function for stretches of which nothing has to be evaluated."""

    def shuffled(batches: Batches) -> Batches:
        for batch in batches:
            for items in batch.column(0).to_pylist():
                yield _partitions(shuffle(plan, items, buckets))

    return shuffled


def _partitions(shuffled: Shuffled) -> pa.RecordBatch:
    numbers, partitions = zip(*shuffled, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers, pa.int32()), pa.array(partitions, pa.binary())], schema=_PARTITIONS
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

    def decode_insert_partition(items: bytes) -> Batches:
        started = time.monotonic()
        compacted = compact(plan, pickle.loads(items))  # noqa: S301 - made by our own driver
        for route, schema, part in compacted.survivors:
            columns = ColumnPlan.build(schema, route, incomplete=bool(schema.unlogged))
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
                    yield from decode_insert_partition(items)
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
        positions = [schema.index[column.name] for column in inputs]
    except KeyError as error:
        raise DataError(
            f"a row of {schema.name} lacks column {error.args[0]}, which an expression mentions",
            hint="The table changed; fix the channel file and start the channel again",
            table=schema.name,
        ) from error
    return lambda row: tuple(row[position] for position in positions)


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
        document, ids = evaluation.document, evaluation.ids
        empty = TargetChanges(
            target,
            columns,
            key,
            group=route.group,
            document=document,
            ids=ids,
            mapped_by=route.mapped_by,
        )
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
                    changes.own_upserts.append(content + extra)
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
            shuffled = refused(errors[0])
        else:
            by_bucket = by_buckets(plan, ((route, part) for part in parts), buckets)
            put_aside = faulty_by_buckets(plan, faulty, buckets)
            seconds += time.monotonic() - started
            shuffled = packed(by_bucket, rows, redelivered, seconds, faulty=put_aside)
        yield _partitions(shuffled)

    return pack
