"""Evaluates Spark SQL expressions and `where` after compaction.

Only survivors are evaluated: a key that changed a hundred times in a batch costs one
evaluation. A survivor that `where` refuses becomes a delete of its key, since an earlier image
of the row may have passed and be in the target.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from setl.channel.routes.routing import Route
from setl.errors import DataError
from setl.model.schema import RowSchema
from setl.transform.evaluation import Evaluation, analyse, select_evaluated
from setl.transform.expression_tasks import (
    CARRIED,
    ONLY_UPSERTS,
    PARTITIONS_DDL,
    dealer,
    decoded_schema,
    decoder,
    packer,
)
from setl.transform.partition_compaction import document_source
from setl.transform.work import TransformPlan, WorkItem, codec_named


class ExpressionBranch:
    """The part of a pipeline's Spark job that serves one route with expressions."""

    def __init__(self, spark: SparkSession, plan: TransformPlan, route: Route) -> None:
        self.spark = spark
        self._codec = codec_named(plan.codec)
        self._route = route
        self._evaluations: dict[RowSchema, Evaluation] = {}

    def partitions(
        self, plan: TransformPlan, insert_partitions: Sequence[list[WorkItem]], buckets: int
    ) -> DataFrame:
        """Transform stretches of one table's entries.

        Returns:
            A frame of (bucket, share), as `setl.transform.partition.shuffle` gives them.

        Raises:
            ConfigurationError: an expression does not fit the table.
            DataError: the table's definition cannot be read from any entry, and nothing is
                isolated.
        """
        try:
            evaluation = self.evaluation(plan, insert_partitions)
        except DataError:
            if not plan.isolates:
                raise
            # No entry can be decoded, so there is nothing to evaluate.
            return self._pickled(insert_partitions).mapInArrow(
                dealer(plan, buckets), PARTITIONS_DDL
            )
        frame = self.decoded(plan, insert_partitions, evaluation)
        evaluated = select_evaluated(frame, self._route, CARRIED.names, ONLY_UPSERTS)
        return evaluated.mapInArrow(packer(plan, evaluation, buckets), PARTITIONS_DDL)

    def evaluation(
        self, plan: TransformPlan, insert_partitions: Sequence[list[WorkItem]]
    ) -> Evaluation:
        """The expressions over the table that the entries are of; raises as `partitions`."""
        schema = self._schema_of(plan, insert_partitions)
        evaluation = self._evaluations.get(schema)
        if evaluation is None:
            evaluation = analyse(self.spark, self._route, schema)
            self._evaluations[schema] = evaluation
        return evaluation

    def _schema_of(
        self, plan: TransformPlan, insert_partitions: Sequence[list[WorkItem]]
    ) -> RowSchema:
        failure: DataError | None = None
        for item in chain.from_iterable(insert_partitions):
            try:
                return self._schema(plan, item)
            except DataError as error:
                failure = failure or error
                if not plan.isolates:
                    break
        raise failure or DataError("there is nothing to evaluate")

    def _pickled(self, insert_partitions: Sequence[list[WorkItem]]) -> DataFrame:
        blobs = pa.table(
            {
                "items": [
                    pickle.dumps(insert_partition, protocol=5)
                    for insert_partition in insert_partitions
                ]
            }
        )
        frame = self.spark.createDataFrame(blobs)
        count = len(insert_partitions)
        return frame.repartition(count) if count > 1 else frame.coalesce(1)

    def decoded(
        self,
        plan: TransformPlan,
        insert_partitions: Sequence[list[WorkItem]],
        evaluation: Evaluation,
    ) -> DataFrame:
        """What survives of the stretches: the columns `CARRIED` and those that are mentioned."""
        decode, schema = decoder(plan, evaluation), decoded_schema(evaluation)
        return self._pickled(insert_partitions).mapInArrow(decode, schema)

    def _schema(self, plan: TransformPlan, first: WorkItem) -> RowSchema:
        if first.decoded is not None:
            seen = first.decoded.schema
        elif first.table_rows is not None:
            seen = first.table_rows.schema
        else:
            seen = self._codec.schema(self._codec.records(first.payload)[0][1], first.context)
        documents = self._route.documents
        return seen if documents is None else document_source(plan).schema(documents, seen)
