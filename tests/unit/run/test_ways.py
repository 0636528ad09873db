"""Which way each kind of load is run."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from setl.load.sink import LoadTicket
from setl.model.leadership import Leadership
from setl.run.runners import ways
from setl.run.runners.runner import LoadState
from setl.run.runners.ways import Ways
from setl.run.runners.work import LoadWork
from setl.transform.work import TransformPlan, WorkItem

TICKET = LoadTicket(Leadership("shop", "orders", "n1", 7), 1, 0)
BRANCH = (0, "shop", "orders")
ROWS: Any = object()


class JobError(Exception):
    """A way begins a job."""


def fails(*_):
    raise JobError


class Context:
    master = "yarn"
    parallelize = fails

    def setLocalProperty(self, *_):  # noqa: N802 - as Spark spells it
        raise JobError

    def getConf(self):  # noqa: N802 - as Spark spells it
        return {}


def load(*, evaluated=False, ranges=False):
    item = WorkItem((0,), 1, (), b"", ("shop", "orders"), table_rows=ROWS if ranges else None)
    return LoadWork(by_branch={BRANCH: [item]}) if evaluated else LoadWork([item])


@pytest.mark.parametrize(
    ("work", "tasks", "way"),
    [
        (load(ranges=True), 1, "ItemByItem"),
        (load(ranges=True), 2, "ItemByItem"),
        (load(ranges=True, evaluated=True), 1, "ItemByItem"),
        (load(), 1, "OneTask"),
        (load(evaluated=True), 1, "PreparedQueries"),
        (load(evaluated=True), 2, "ShuffleByKey"),
        (load(), 2, "ShuffleByKey"),
    ],
)
def test_a_load_is_run_in_the_first_way_that_takes_it(monkeypatch, work, tasks, way):
    tried = []

    def noted(name, made):
        def make(*arguments):
            runner = made(*arguments)
            run = runner.run
            runner.run = lambda *given: (tried.append(name), run(*given))[1]
            return runner

        return make

    for name in re.findall(r"^\| `(\w+)`", ways.__doc__ or "", re.MULTILINE):
        monkeypatch.setattr(ways, name, noted(name, getattr(ways, name)))
    router: Any = SimpleNamespace(decides=False, route=lambda *_: ())
    plan = TransformPlan("binlog", router)
    context = Context()
    spark: Any = SimpleNamespace(context=context)
    branch: Any = SimpleNamespace(evaluation=fails, partitions=fails)
    sink: Any = None
    made = Ways(spark, plan, {BRANCH: branch}, sink, LoadState())
    with pytest.raises(JobError):
        made.run(plan, work, TICKET, tasks)
    assert tried[-1] == way
