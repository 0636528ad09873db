"""Finds the rows on which a route's expressions fail.

Spark says of a job that it fails, not on which row. So the rows are decoded once, and evaluated
again and again in halves: about ``2 * log2(n)`` small jobs for each faulty row.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from setl.bisection import bisect_faults
from setl.errors import DataError, FatalError, SetlError
from setl.model.change import Row
from setl.transform.evaluation import select_evaluated
from setl.transform.expression_tasks import CARRIED, UPSERT
from setl.transform.expressions import ExpressionBranch
from setl.transform.work import TransformPlan, WorkItem

MOST_FAULTY = 200
"""Faulty rows of one load that are looked for; beyond, the expression is what is wrong."""


def faulty_rows(
    branch: ExpressionBranch,
    plan: TransformPlan,
    insert_partitions: Sequence[list[WorkItem]],
    failure: Callable[[Exception], SetlError],
) -> dict[tuple[int, Row, int], DataError]:
    """Rows on which an expression fails, after a job has failed for the same stretches.

    Args:
        branch: evaluates the route's expressions.
        plan: the plan that failed.
        insert_partitions: the entries that failed.
        failure: gives the kind of an exception of Spark.

    Returns:
        What `TransformPlan.excluded` takes.

    Raises:
        FatalError: there are too many of them.
        SetlError: Spark fails for another reason than a value.
    """
    evaluation = branch.evaluation(plan, insert_partitions)
    decoded = branch.decoded(plan, insert_partitions, evaluation)
    rows = decoded.where(f"__setl_kind = {UPSERT}").toArrow()
    found: dict[tuple[int, Row, int], DataError] = {}

    def attempt(start: int, stop: int) -> bool:
        some = branch.spark.createDataFrame(rows.slice(start, stop - start)).coalesce(1)
        try:
            evaluated = select_evaluated(some, evaluation.route, CARRIED.names)
            evaluated.mapInArrow(_drained, "n int").collect()
        except Exception as error:
            raise failure(error) from error
        return True

    def refuse(number: int, error: DataError) -> None:
        if len(found) >= MOST_FAULTY:
            raise FatalError(
                f"expressions fail on more than {MOST_FAULTY} rows of one load: {error.message}",
                hint="Fix the expression in the channel file, for example with try_cast",
                table=evaluation.schema.name,
            ) from error
        version, body = (rows.column(i)[number].as_py() for i in (1, 2))
        passing: Row = pickle.loads(body)  # noqa: S301 - made by our own task
        key = tuple(passing[i] for i in evaluation.columns.key)
        found[evaluation.route.index, key, version] = error

    bisect_faults(rows.num_rows, attempt, refuse)
    return found


def _drained(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task function that has everything evaluated and gives nothing."""
    for _ in batches:
        pass
    yield pa.RecordBatch.from_arrays([pa.array([], pa.int32())], names=["n"])
