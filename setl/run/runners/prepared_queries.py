"""Small loads with expressions, run by Spark queries that are made once.

To Spark a load with expressions is a query. To analyse it, plan it and make Java of it takes
several times as long as to run it over a few rows. So a query is made once for the tables that a
load is of, and run again for each further load of these. Nothing of a load stands in it: that
comes to the tasks as a local property of the job, which Spark hands to each task.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from setl.channel.routes.routing import Route, Router
from setl.errors import DataError
from setl.load.sink import LoadTicket, SinkSettings
from setl.model.change import DecodedRows, Op
from setl.model.leadership import Leadership
from setl.model.schema import Column, Kind, RowSchema
from setl.run.runners.tasks import TaskReport, load, transform
from setl.run.runners.work import LoadWork, TableRoute
from setl.run.spark.job_property import Instructions, instructing, instructions_of_job, takes_rows
from setl.transform.evaluation import Evaluation, analyse, select_evaluated
from setl.transform.expression_tasks import (
    CARRIED,
    ONLY_UPSERTS,
    PARTITIONS_DDL,
    Batches,
    decoded_schema,
    decoder,
    packer,
)
from setl.transform.expressions import ExpressionBranch
from setl.transform.spark_on_demand import SparkOnDemand
from setl.transform.work import TransformPlan, WorkItem

MOST_BYTES = 1 << 20
"""Size of a load above which it is no property of a job: Spark copies those several times."""

_MOST_QUERIES = 32

_Tables = tuple[tuple[TableRoute, RowSchema], ...]


class PreparedQueries:
    """The `LoadRunner` of small loads with expressions; the queries of one pipeline."""

    def __init__(
        self,
        spark: SparkOnDemand,
        plan: TransformPlan,
        branches: Mapping[TableRoute, ExpressionBranch],
        sink: SinkSettings,
    ) -> None:
        """Make nothing yet.

        Args:
            spark: gives the session, with the first query.
            plan: the pipeline's; each load brings its own `applied_through` and `excluded`.
            branches: the branch of each route with expressions; others may be added.
            sink: where to.
        """
        self._spark = spark
        self._plan = plan
        self._branches = branches
        self._sink = sink
        self._queries: OrderedDict[_Tables, DataFrame] = OrderedDict()
        self._allowed = takes_rows(spark.context)

    def run(
        self, plan: TransformPlan, work: LoadWork, ticket: LoadTicket, tasks: int
    ) -> list[TaskReport] | None:
        """See `LoadRunner.run`.

        Raises:
            ConfigurationError: as `ExpressionBranch.evaluation`.
        """
        if tasks > 1 or not (work.by_branch and self._allowed):
            return None
        insert_partitions = [pickle.dumps(items, protocol=5) for items in work.by_branch.values()]
        plain = pickle.dumps(work.plain, protocol=5) if work.plain else b""
        if sum(map(len, (*insert_partitions, plain, *work.ready))) > MOST_BYTES:
            return None
        try:
            evaluations = {
                table_route: self._branches[table_route].evaluation(plan, [items])
                for table_route, items in work.by_branch.items()
            }
        except DataError:
            return None
        instructions = Instructions(
            plan.applied_through, plan.excluded, ticket, plain, work.ready, insert_partitions
        )
        return _collect(self._query(evaluations), instructions)

    def _query(self, evaluations: Mapping[TableRoute, Evaluation]) -> DataFrame:
        tables = tuple((table_route, each.schema) for table_route, each in evaluations.items())
        query = self._queries.pop(tables, None)
        if query is None:
            loading = _loading(self._plan, self._sink)
            query = prepared_query(
                self._spark.session, self._plan, [*evaluations.values()], loading
            )
        self._queries[tables] = query
        while len(self._queries) > _MOST_QUERIES:
            self._queries.popitem(last=False)
        return query


class WarmUp:
    """A query over one row that writes nothing.

    After it, the JVM has loaded and compiled what analyses, plans and evaluates, and the Python
    workers have imported what they need: the first real query costs little more than any later.
    """

    def __init__(self, spark: SparkSession) -> None:
        """Make the query."""
        columns = (
            Column("id", Kind.INTEGER),
            Column("name", Kind.TEXT),
            Column("price", Kind.DECIMAL, precision=12, scale=2),
        )
        route = Route(
            0,
            ("", "warm_up"),
            expressions={"loud": "upper(name)", "twice": "price * 2"},
            where="name <> ''",
        )
        schema = RowSchema("", "warm_up", columns, key=(0,))
        plan = TransformPlan("binlog", cast("Router", _OneRoute(route)))
        evaluations = [analyse(spark, route, schema)] * 2
        self._query = prepared_query(spark, plan, evaluations, _dropped)
        row = DecodedRows(schema, Op.INSERT, [(None, (1, "a", "1.50"))])
        insert_partition = [WorkItem((0,), 1, (), b"", ("", "warm_up"), row)]
        text = pickle.dumps(insert_partition, protocol=5)
        ticket = LoadTicket(Leadership("", "warm_up", "", 0), 0, 0)
        self._instructions = Instructions(0, {}, ticket, b"", [], [text] * len(evaluations))

    def run(self) -> None:
        """Run it; raises what Spark raises."""
        _collect(self._query, self._instructions)


class _OneRoute:
    """The `Router` of a warm_up."""

    def __init__(self, route: Route) -> None:
        self._route = route

    def route(self, schema: str, table: str) -> tuple[Route, ...]:
        del schema, table
        return (self._route,)


def _dropped(batches: Batches) -> Batches:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_arrays([pa.array([], pa.binary())], names=["report"])


def prepared_query(
    spark: SparkSession,
    plan: TransformPlan,
    evaluations: Sequence[Evaluation],
    loading: Callable[[Batches], Batches],
) -> DataFrame:
    """The query for loads of some tables.

    Args:
        spark: the session.
        plan: see `PreparedQueries`.
        evaluations: the tables, with their expressions.
        loading: the task function that makes pickled reports of all their shares.
    """
    frames = [
        select_evaluated(
            spark.createDataFrame(pa.table({"start": [0]}))
            .coalesce(1)
            .mapInArrow(_decoding(plan, evaluation, number), decoded_schema(evaluation)),
            evaluation.route,
            CARRIED.names,
            ONLY_UPSERTS,
        )
        for number, evaluation in enumerate(evaluations)
    ]
    if len(frames) == 1:
        # In one step, since each has a Python process of its own.
        pack = packer(plan, evaluations[0], 1)
        return frames[0].mapInArrow(lambda batches: loading(pack(batches)), "report binary")
    partitions = [
        frame.mapInArrow(packer(plan, evaluation, 1), PARTITIONS_DDL)
        for frame, evaluation in zip(frames, evaluations, strict=True)
    ]
    return reduce(DataFrame.union, partitions).coalesce(1).mapInArrow(loading, "report binary")


def _collect(query: DataFrame, instructions: Instructions) -> list[TaskReport]:
    with instructing(query.sparkSession.sparkContext, instructions):
        reports = query.collect()
    return [pickle.loads(row[0]) for row in reports]  # noqa: S301 - made by our own task


def _decoding(
    plan: TransformPlan, evaluation: Evaluation, number: int
) -> Callable[[Batches], Batches]:
    """The task function that decodes the stretch of the table with this number."""

    def decode(batches: Batches) -> Batches:
        for _ in batches:
            pass  # the row that makes Spark start the task
        instructions = instructions_of_job()
        insert_partition = pa.RecordBatch.from_arrays(
            [pa.array([instructions.insert_partitions[number]], pa.binary())], names=["items"]
        )
        yield from decoder(instructions.plan(plan), evaluation)(iter([insert_partition]))

    return decode


def _loading(plan: TransformPlan, sink: SinkSettings) -> Callable[[Batches], Batches]:
    """The task function that takes all shares, and then writes them and those of plain items."""

    def collect_and_load(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        evaluated = [
            partition for batch in batches for partition in batch.column("partition").to_pylist()
        ]
        instructions = instructions_of_job()
        own = instructions.plan(plan)
        plain = transform(own, instructions.plain) if instructions.plain else ()
        report = load(sink, instructions.ticket, 0, [*instructions.ready, *evaluated, *plain])
        yield pa.RecordBatch.from_arrays(
            [pa.array([pickle.dumps(report, protocol=5)], pa.binary())], names=["report"]
        )

    return collect_and_load
