"""What becomes of exceptions that leave a Spark task, whichever way its job is run."""

import os

import pytest

from setl.bulk.comparison import spark_failure
from setl.errors import FatalError, TransientError
from setl.run.spark.errors import spark_error
from setl.run.spark.one_partition import collect_one


def of_an_rdd(spark, task, collect):
    return collect(spark.sparkContext.parallelize([0], 1).map(task))


def of_a_frame(spark, task):
    def batches(found):
        for batch in found:
            task(0)
            yield batch

    return spark.range(1).mapInArrow(batches, "id long").collect()


WAYS = {
    "collect": lambda spark, task: of_an_rdd(spark, task, lambda rdd: rdd.collect()),
    "collect_one": lambda spark, task: of_an_rdd(spark, task, collect_one),
    "frame": of_a_frame,
}


@pytest.fixture(params=WAYS)
def failure(request, spark):
    """Runs a task that fails; returns what Spark raised."""

    def fail(task):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever Spark makes of it
            WAYS[request.param](spark, task)
        return raised.value

    return fail


def defect(_):
    raise ValueError("no such form")


def lack(_):
    raise ConnectionResetError("the machine was busy")


def death(_):
    os._exit(3)


def test_what_a_task_raises_is_a_defect(failure):
    raised = failure(defect)
    for error in (spark_error(raised, cancelled=False), spark_failure(str(raised))):
        assert isinstance(error, FatalError)
        assert error.message == "a Spark task failed unexpectedly: ValueError: no such form"


def test_what_the_machine_lacked_is_tried_again(failure):
    raised = failure(lack)
    for error in (spark_error(raised, cancelled=False), spark_failure(str(raised))):
        assert isinstance(error, TransientError)
        assert error.message == ("a Spark task failed: ConnectionResetError: the machine was busy")


def test_a_worker_that_ends_is_reported_of(failure):
    error = spark_error(failure(death), cancelled=False)
    assert isinstance(error, TransientError)
    assert error.message == "a Python worker of Spark ended in the middle of a task"


def test_the_rows_of_a_partition_come_in_order(spark):
    assert collect_one(spark.sparkContext.parallelize([3, 1, 2], 1)) == [3, 1, 2]
    assert collect_one(spark.sparkContext.parallelize([], 1)) == []
