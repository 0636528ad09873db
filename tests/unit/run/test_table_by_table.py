"""Large loads of several tables: whole tables for each task, where nothing speaks against it."""

import pickle
from types import SimpleNamespace
from typing import Any, cast

import pytest

from setl.channel.routes.routing import Route
from setl.errors import DataError
from setl.load.sink import LoadTicket
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.run.runners import table_by_table
from setl.run.runners.runner import LoadState, Phase
from setl.run.runners.table_by_table import TableByTable, by_task
from setl.run.runners.tasks import TaskReport
from setl.run.runners.work import LoadWork
from setl.transform.work import TransformPlan, WorkItem
from tests.unit.run.partitions import Partitions

TICKET = LoadTicket(Leadership("shop", "orders", "n1", 7), 1, 0)


def route(name, index=0, **options):
    return Route(index, ("there", name), **options)


def plan(routes=None, *, decides=False, **options):
    """Tables that go to targets of their names, but for those that are given."""
    found = routes or {}
    router: Any = SimpleNamespace(
        route=lambda _, table: found.get(table, (route(table),)), decides=decides
    )
    return TransformPlan("binlog", router, **options)


def item(table, size=10, version=1, routes=(0,)):
    return WorkItem(routes, version, (), b"x" * size, ("shop", table))


def shuffled(plan, *items, tasks=2):
    """The tables of each task, and how often they come."""
    return [[each.table[1] for each in mine] for mine in by_task(plan, LoadWork([*items]), tasks)]


def test_its_entries_stay_in_order_and_keep_what_they_are():
    items = [item("a", version=1), item("b", version=2), item("a", version=3)]
    first, second = by_task(plan(), LoadWork([*items, item("b", version=4)]), 2)
    assert first == [items[0], items[2]]
    assert [each.version for each in second] == [2, 4]


@pytest.mark.parametrize(
    ("sizes", "tasks", "shared"),
    [
        ({"a": 50, "b": 30, "c": 30, "d": 30, "e": 10}, 2, [["a", "d"], ["b", "c", "e"]]),
        ({"a": 10, "b": 10, "c": 10}, 2, [["a", "c"], ["b"]]),  # even enough
        # Mostly one table: by key.
        ({"a": 71, "b": 29}, 2, []),
        ({"a": 70, "b": 30}, 2, [["a"], ["b"]]),
        ({"a": 10}, 2, []),
        ({"a": 10, "b": 10}, 8, []),  # tasks would have no work
    ],
)
def test_tasks_get_about_as_much(sizes, tasks, shared):
    assert shuffled(plan(), *(item(*each) for each in sizes.items()), tasks=tasks) == shared


def test_tables_that_come_together_in_one_target_have_one_task():
    """A key may move from the one to the other, and there only the order tells what is left."""
    into_one = {"a": (route("all"),), "b": (route("all"),)}
    items = [item("a"), item("b"), item("c", 20)]
    assert shuffled(plan(into_one), *items) == [["a", "b"], ["c"]]
    assert shuffled(plan(into_one), *items[:2]) == []


def test_also_by_another_way():
    twice = {"a": (route("x"), route("y", 1)), "b": (route("y"), route("z", 1)), "c": (route("z"),)}
    both = (0, 1)
    linked = [item("c"), item("a", routes=both), item("b", routes=both)]
    assert shuffled(plan(twice), *linked, item("d", 30)) == [["c", "a", "b"], ["d"]]
    # Each way counts only for items that go by it.
    unlinked = [item("c"), item("a"), item("b"), item("d")]
    assert shuffled(plan(twice), *unlinked) == [["c", "b"], ["a", "d"]]


def test_tables_of_a_group_have_one_task():
    grouped = {name: (route(name, group="g"),) for name in "ab"}
    assert shuffled(plan(grouped), item("a"), item("c", 20), item("b")) == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("of", "items"),
    [
        (plan({"a": (route("a", rereads=True),)}), [item("a"), item("b")]),
        (plan({"a": (route("a", documents=cast("Any", "some")),)}), [item("a"), item("b")]),
        (plan(decides=True), [item("a"), item("b")]),  # both sites write them
        # It is not known where they go.
        (plan(), [item("a"), item("b", routes=(0, 1))]),
        (plan({"a": ()}), [item("a"), item("b")]),
    ],
)
def test_what_is_not_dealt_out_by_table(of, items):
    assert shuffled(of, *items) == []


def test_nor_is_what_needs_spark_sql_or_is_transformed_already():
    items = [item("a"), item("b")]
    assert not by_task(plan(), LoadWork(items, {(0, "shop", "c"): items}), 2)
    assert not by_task(plan(), LoadWork(items, ready=[b"share"]), 2)


@pytest.fixture
def world(monkeypatch):
    """A runner whose tasks note in this process what they are given."""
    made: Any = SimpleNamespace(written=[], error=None, state=LoadState())

    def load(_settings, ticket, slot, partitions):
        assert ticket is TICKET
        made.written.append((slot, *partitions))
        return TaskReport(Loaded(rows=len(partitions[0])), error=made.error)

    def transform(_plan, items):
        return [[each.table[1] for each in pickle.loads(items)]]

    monkeypatch.setattr(table_by_table, "load", load)
    monkeypatch.setattr(table_by_table, "transform", transform)

    def parallelize(blobs, count):
        assert count == len(blobs), "each has a task of its own"
        return Partitions(blobs)

    context: Any = SimpleNamespace(master="local[2]", parallelize=parallelize)
    sink: Any = "sink"
    made.run = TableByTable(context, sink, made.state).run
    return made


def test_a_task_transforms_and_loads_its_tables_under_its_own_number(world):
    work = LoadWork([item("a"), item("b"), item("a"), item("b")])
    reports = world.run(plan(), work, TICKET, 2)
    assert world.written == [(0, ["a", "a"]), (1, ["b", "b"])]
    assert [report.loaded.rows for report in reports] == [2, 2]
    assert world.state.phase is Phase.BOTH, "they may write from the first moment"


def test_what_is_not_dealt_out_by_table_is_dealt_out_by_key(world):
    work = LoadWork([item("a")])
    assert world.run(plan(), work, TICKET, 2) is None
    assert not world.written


def test_an_error_of_a_task_is_reported(world):
    world.error = DataError("no")
    reports = world.run(plan(), LoadWork([item("a"), item("b")]), TICKET, 2)
    assert [str(report.error) for report in reports] == ["no", "no"]
