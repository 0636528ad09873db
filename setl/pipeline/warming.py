"""Warming a Spark session: after it, the first batch pays for nothing but itself (I4)."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from setl.pipeline.spark_session import parallelism

# What a load task imports; the first import in a fresh worker takes a second.
_TASK_MODULES = (
    "setl.pipeline.tasks",
    "setl.load.worker",
    "setl.transform.expressions",
    "setl.codec.binlog.rows",
)
_ROUNDS = 3  # the JVM compiles what it has run a few times


def warm(spark: SparkSession) -> None:
    """Start Python workers, import what tasks need, and run each kind of job a few times.

    Takes a few seconds and blocks.
    """
    tasks = parallelism(spark)
    context = spark.sparkContext

    def touch(part: int) -> int:
        for module in _TASK_MODULES:
            importlib.import_module(module)
        return part

    for _ in range(_ROUNDS):
        context.parallelize(range(tasks * 2), tasks * 2).map(touch).collect()
        context.parallelize([b""], 1).map(len).collect()
        context.parallelize([(i, b"") for i in range(tasks)], tasks).partitionBy(tasks, int).count()
        _evaluate(spark)


def _evaluate(spark: SparkSession) -> None:
    """A job of the shape that `setl.transform.expressions` gives, over one row."""
    frame = spark.createDataFrame(pa.table({"items": [b"x"]})).coalesce(1)
    decoded = frame.mapInArrow(_decoded, "kind tinyint, body binary, t string, d decimal(12,2)")
    kept = decoded.selectExpr("*", "kind = 1 AND coalesce((t <> ''), false) AS keep")
    evaluated = kept.selectExpr(
        "kind", "body", "keep", "CASE WHEN keep THEN (upper(t)) END AS a",
        "CASE WHEN keep THEN (d * 2) END AS b",
    )  # fmt: skip
    shares = evaluated.mapInArrow(_bodies, "share binary")
    shares.union(shares).coalesce(1).mapInArrow(_bodies, "share binary").collect()


def _decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([1], pa.int8()),
                pa.array([b"x"], pa.binary()),
                pa.array(["x"], pa.string()),
                pa.array(["1.50"]).cast(pa.decimal128(12, 2)),
            ],
            names=["kind", "body", "t", "d"],
        )


def _bodies(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        bodies = batch.column("body" if "body" in batch.schema.names else "share")
        yield pa.RecordBatch.from_arrays([bodies], names=["share"])
