"""Large loads: a job that deals changes out by key, then one that loads them."""

from types import SimpleNamespace
from typing import Any

import pytest

from setl.errors import SetlError, TransientError
from setl.extract.extractor import RoutedRows
from setl.load.sink import LoadTicket, NoSingleWriterTables
from setl.model.entry import Entry, EntryKind
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition
from setl.run.loads import job as job_module
from setl.run.loads.job import LoadJob
from setl.run.runners.tasks import TaskReport
from setl.run.stalls.stall import JobView
from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.search_index.load.sink import IndexSinkSettings
from setl.transform.work import TransformPlan
from tests.waiting import eventually

TICKET = LoadTicket(Leadership("shop", "orders", "n1", 7), 1, 0)
ROUTE: Any = SimpleNamespace(index=0, target=("shop", "orders"), expressions={}, where=None)


class Data:
    """What a job works on; collecting it runs the job."""

    def __init__(self, context, items, steps=()):
        self.context = context
        self.items = items
        self.steps = steps

    def flatMap(self, step):  # noqa: N802 - Spark's name
        return Data(self.context, self.items, (*self.steps, "deal"))

    def map(self, step):
        return Data(self.context, self.items, (*self.steps, "load"))

    def collect(self):
        return self.context.run(self.steps[-1], self.items)


class Context:
    """A SparkContext that notes its jobs and answers as told."""

    master = "local[2]"

    def __init__(self):
        self.jobs = []
        self.groups = []
        self.cancelled = []
        self.partitions = [(1, b"a"), (0, b"b"), (1, b"c")]
        self.reports = [TaskReport(Loaded(rows=2)), TaskReport(Loaded(rows=1))]
        self.meanwhile = lambda _kind: None

    def parallelize(self, items, slices):
        assert slices == len(items)
        return Data(self, items)

    def run(self, kind, items):
        self.jobs.append((kind, items))
        self.meanwhile(kind)
        return self.partitions if kind == "deal" else self.reports

    def getConf(self):  # noqa: N802 - Spark's name
        return {}

    def setJobGroup(self, name, _what, *, interruptOnCancel):  # noqa: N802, N803 - Spark's names
        self.groups.append((name, interruptOnCancel))

    def setLocalProperty(self, *_args):  # noqa: N802 - Spark's name
        pass

    def cancelJobGroup(self, name):  # noqa: N802 - Spark's name
        self.cancelled.append(name)


@pytest.fixture
def context():
    return Context()


@pytest.fixture
def job(context, monkeypatch):
    return job_of(context, 7, monkeypatch)


def job_of(context, epoch, monkeypatch):
    monkeypatch.setattr(job_module, "parallelism", lambda _: 2)
    spark: Any = SimpleNamespace(context=context)
    router: Any = SimpleNamespace(decides=False, route=lambda *_: ())
    sink = IndexSinkSettings(ElasticEndpoint(("http://127.0.0.1:1",)))
    job = LoadJob(
        spark,
        name="shop/orders",
        epoch=epoch,
        plan=TransformPlan("binlog", router),
        sink=sink,
        rows_per_task=1,
    )
    monkeypatch.setattr(job, "_single_writer", NoSingleWriterTables())
    return job


def rows(count=4):
    def entry(number):
        at = BinlogPosition("binlog.000001", 10 * number)
        return Entry(EntryKind.ROWS, at, 0.0, "shop", "orders", rows=1, payload=b"x")

    return [RoutedRows(entry(number), (ROUTE,)) for number in range(1, count + 1)]


def test_shares_are_loaded_by_the_task_that_they_are_for_in_the_order_of_the_stream(job, context):
    report = job.run(rows(), TICKET, 0)
    assert [kind for kind, _ in context.jobs] == ["deal", "load"]
    assert dict(context.jobs[1][1]) == {1: [b"a", b"c"], 0: [b"b"]}
    assert report.rows == 3


def test_no_thread_of_spark_is_interrupted_which_would_end_tasks_of_other_pipelines(job, context):
    job.run(rows(), TICKET, 0)
    assert context.groups == [("setl shop/orders 7", False)]


def test_the_next_leader_s_load_goes_on_when_the_former_one_is_cancelled_late(
    job, context, monkeypatch
):
    successor = job_of(context, 8, monkeypatch)
    context.meanwhile = lambda _kind: job.cancel()
    assert successor.run(rows(), TICKET, 0).rows == 3
    eventually(lambda: context.cancelled, 10)
    assert not {group for group, _ in context.groups} & set(context.cancelled)


def test_a_load_that_is_cancelled_while_it_is_dealt_out_is_not_written(job, context):
    context.meanwhile = lambda _kind: job.cancel()
    with pytest.raises(TransientError, match="cancelled"):
        job.run(rows(), TICKET, 0)
    assert [kind for kind, _ in context.jobs] == ["deal"]


@pytest.mark.parametrize(("fails", "abandoned"), [("deal", False), ("load", True)])
def test_only_what_may_have_written_is_abandoned(job, context, fails, abandoned):
    def fail(kind):
        if kind == fails:
            raise RuntimeError("a worker is gone")

    context.meanwhile = fail
    with pytest.raises(SetlError):
        job.run(rows(), TICKET, 0)
    assert job.abandoned is abandoned


def test_it_can_be_seen_which_of_the_two_runs(job, context, monkeypatch):
    monkeypatch.setattr(job_module, "look_at_group", lambda *_: JobView(tasks=2, active=2))
    seen = {}
    context.meanwhile = lambda kind: seen.update({kind: job.activity().loading})
    job.run(rows(), TICKET, 0)
    assert seen == {"deal": False, "load": True}
