"""Where tasks find Python, and what is said when Spark loses one of them."""

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from setl.errors import DataError, FencedError, NodeFullError, TransientError
from setl.load.sink import LoadTicket
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.run.loads import job as job_module
from setl.run.loads.job import LoadJob
from setl.run.runners.tasks import TaskReport
from setl.run.spark.errors import spark_error
from setl.run.spark.session import SparkSettings, worker_python
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index.load.sink import IndexSinkSettings
from setl.transform.work import TransformPlan

ARCHIVES = ("/data/rules.zip", "hdfs://n/env.tar.gz#environment", "/data/more.tgz#more")


@pytest.mark.parametrize(
    ("settings", "preset", "python"),
    [
        (SparkSettings(), "", sys.executable),
        (SparkSettings(), "/opt/python", "/opt/python"),
        (SparkSettings("spark://m:7077"), "", sys.executable),
        (SparkSettings("yarn", archives=ARCHIVES), "", "./environment/bin/python"),
        (SparkSettings("yarn", archives=ARCHIVES), "/opt/python", "/opt/python"),
        (SparkSettings("yarn", archives=ARCHIVES, python="python3"), "/opt/python", "python3"),
        (SparkSettings("yarn", archives=ARCHIVES[:1]), "", sys.executable),
        (SparkSettings("local[2]", archives=ARCHIVES), "", sys.executable),
    ],
)
def test_the_python_of_tasks(settings, preset, python):
    assert worker_python(settings, preset) == python


# As Spark 4.3 says it, but for the addresses.
LOST = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 21.0 failed 1 \
times, most recent failure: Lost task 1.0 in stage 21.0 (TID 30) (10.0.0.7 executor 3): \
ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Executor \
heartbeat timed out after 31400 ms
Driver stacktrace:
"""


def test_an_executor_that_is_lost_is_named():
    error = spark_error(RuntimeError(LOST), cancelled=False)
    assert isinstance(error, TransientError)
    assert error.message == "Spark lost executor 3 on 10.0.0.7 in the middle of a load"
    assert "log" in error.hint


@pytest.mark.parametrize(
    "text",
    [
        "[Errno 28] No space left on device",
        "java.io.IOException: No space left on device",
        "PythonException: Traceback (a):\n  x\nOSError: [Errno 28] No space left on device\n\n",
    ],
)
def test_a_full_disk_is_no_defect_and_another_node_may_have_room(text):
    error = spark_error(RuntimeError(text), cancelled=False)
    assert isinstance(error, NodeFullError)
    assert error.message == "Spark cannot write to its disk: No space left on device"


class Context:
    defaultParallelism = 2  # noqa: N815 - as Spark spells it

    def getConf(self):  # noqa: N802 - as Spark spells it
        return {}

    def __getattr__(self, name):
        return lambda *_args, **_options: None


def job_whose_tasks_report(monkeypatch, *reports) -> LoadJob:
    spark: Any = SimpleNamespace(context=Context())
    router: Any = SimpleNamespace(decides=False)
    plan = TransformPlan("binlog", router)
    monkeypatch.setattr(job_module, "replace", lambda value, **_: value)
    sink = IndexSinkSettings(ElasticEndpoint(("http://127.0.0.1:1",)))
    job = LoadJob(spark, name="shop/orders", epoch=7, plan=plan, sink=sink, rows_per_task=10)
    monkeypatch.setattr(job, "_ways", SimpleNamespace(run=lambda *_: list(reports)))
    return job


TICKET = LoadTicket(Leadership("shop", "orders", "n1", 7), 1, 0)
DONE = TaskReport(Loaded(rows=3))


def test_a_load_is_abandoned_when_one_of_its_tasks_ran_twice(monkeypatch):
    job = job_whose_tasks_report(monkeypatch, DONE, replace(DONE, repeated=True))
    with pytest.raises(TransientError, match="a second time"):
        job.run([], TICKET, 0)
    assert job.abandoned


@pytest.mark.parametrize("error", [FencedError("fenced"), DataError("too long")])
def test_what_such_a_task_fails_with_is_reported_all_the_same(monkeypatch, error):
    job = job_whose_tasks_report(monkeypatch, TaskReport(error=error, repeated=True))
    with pytest.raises(type(error)):
        job.run([], TICKET, 0)
    assert job.abandoned


def test_a_load_whose_tasks_ran_once_is_not_abandoned(monkeypatch):
    job = job_whose_tasks_report(monkeypatch, DONE, DONE)
    assert job.run([], TICKET, 0).rows == 6
    assert not job.abandoned
