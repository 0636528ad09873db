"""A small load runs a calculation that was made for all: it must bring its own rows and ticket."""

from types import SimpleNamespace
from typing import Any

import pytest

from setl.load.sink import LoadTicket
from setl.model.leadership import Leadership
from setl.run.runners import one_task
from setl.run.runners.one_task import MOST_BYTES, OneTask
from setl.run.runners.work import LoadWork
from setl.run.spark import job_property
from setl.transform.work import TransformPlan

SINK: Any = "sink"


class Calculation:
    def __init__(self, items, function=None):
        self.items, self.function = items, function

    def map(self, function):
        return Calculation(self.items, function)

    def toLocalIterator(self):  # noqa: N802 - as Spark spells it
        assert self.function is not None
        return map(self.function, self.items)


class Context:
    def __init__(self):
        self.properties: dict[str, str | None] = {}
        self.made = 0
        self.conf: dict[str, str] = {}

    def parallelize(self, items, _slices):
        self.made += 1
        return Calculation(items)

    def getConf(self):  # noqa: N802 - as Spark spells it
        return self.conf

    def setLocalProperty(self, name, value):  # noqa: N802 - as Spark spells it
        self.properties[name] = value

    def getLocalProperty(self, name):  # noqa: N802 - as Spark spells it
        return self.properties.get(name)


@pytest.fixture
def context(monkeypatch):
    made = Context()
    monkeypatch.setattr(job_property, "TaskContext", SimpleNamespace(get=lambda: made))
    monkeypatch.setattr(one_task, "transform", lambda plan, _items: [plan])
    monkeypatch.setattr(
        one_task, "load", lambda _sink, ticket, _slot, partitions: (ticket, partitions)
    )
    return made


def runner(context, event_log="false"):
    context.conf["spark.eventLog.enabled"] = event_log
    router: Any = "router"
    plan = TransformPlan("binlog", router)
    under_test = OneTask(context, plan, SINK)

    def load(number, partition=b"x"):
        of_load = TransformPlan("binlog", router, applied_through=number)
        ticket = LoadTicket(Leadership("shop", "orders", "n1", 7), number, number)
        found: Any = under_test.run(of_load, LoadWork(ready=[partition]), ticket, 1)
        ((reported, partitions),) = found
        return reported.batch_id, partitions[0], partitions[1].applied_through

    return load


def test_each_load_has_its_own_rows_and_ticket_and_leaves_nothing(context):
    load = runner(context)
    assert [load(1, b"a"), load(2, b"b")] == [(1, b"a", 1), (2, b"b", 2)]
    assert context.made == 1
    assert not any(context.properties.values())


def test_large_loads_are_no_property_of_a_job(context):
    large = b"x" * (MOST_BYTES + 1)
    assert runner(context)(3, large) == (3, large, 3)
    assert context.properties == {}


def test_rows_do_not_get_into_the_event_log(context):
    assert runner(context, event_log="true")(4) == (4, b"x", 4)
    assert context.properties == {}
