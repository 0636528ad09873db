"""Large loads of new rows go stretch by stretch, and by key as soon as that could matter."""

import pickle
import threading
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from setl.channel.routes.routing import Route
from setl.errors import DataError
from setl.load.sink import LoadTicket
from setl.model.change import TargetChanges
from setl.model.conflict import ConflictPolicy
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.schema import Column, Kind
from setl.run.runners import insert_partitions
from setl.run.runners.insert_partitions import InsertPartitions, new_rows_alone
from setl.run.runners.runner import LoadState, Phase
from setl.run.runners.tasks import TaskReport
from setl.run.runners.work import LoadWork
from setl.transform.partition import Partition
from setl.transform.work import TransformPlan, WorkItem
from tests.unit.run.partitions import Partitions
from tests.waiting import eventually

TICKET = LoadTicket(Leadership("shop", "orders", "n1", 7), 1, 0)
ID, NAME = Column("id", Kind.INTEGER), Column("name", Kind.TEXT)
NEW, OTHER = b"new", b"other"


def route(index=0, target=("there", "orders"), **options):
    return Route(index, target, **options)


def plan(*routes, **options):
    router: Any = SimpleNamespace(route=lambda schema, table: routes)
    return TransformPlan("binlog", router, **options)


def item(table="orders", payload=NEW, routes=(0,)):
    return WorkItem(routes, 1, (), payload, ("shop", table))


CODEC: Any = SimpleNamespace(likely_inserts=lambda payload: payload == NEW)
HERE = {("there", "orders")}


def test_new_rows_of_one_table_go_insert_partition_by_insert_partition():
    assert new_rows_alone(plan(route()), LoadWork([item(), item()]), CODEC) == HERE


@pytest.mark.parametrize(
    "options",
    [
        {"key": ("code",)},
        {"routing": "area"},
        {"processor": "rules:apply"},
        {"group": "g"},
        {"rereads": True},
        {"conflict": ConflictPolicy("", from_home=True)},
        {"documents": cast("Any", "some")},
    ],
    ids=lambda options: next(iter(options)),
)
def test_rows_whose_order_or_key_is_not_that_of_their_table_do_not(options):
    assert not new_rows_alone(plan(route(**options)), LoadWork([item()]), CODEC)


BOTH = plan(route(), route(1))


@pytest.mark.parametrize(
    ("of", "work"),
    [
        (plan(route()), LoadWork([item(), item(payload=OTHER)])),
        (plan(route()), LoadWork([item(), item("more")])),  # two tables that come together in one
        (BOTH, LoadWork([item(routes=(0, 1))])),
        (plan(route(), single_writer=frozenset(HERE)), LoadWork([item()])),
        (plan(route()), LoadWork([item()._replace(decoded=cast("Any", "rows"))])),
        (plan(route()), LoadWork([item()], ready=[b"share"])),
        (plan(route()), LoadWork([item()], {(0, "shop", "orders"): [item()]})),
    ],
)
def test_nor_does_anything_else(of, work):
    assert not new_rows_alone(of, work, CODEC)
    assert new_rows_alone(BOTH, LoadWork([item()]), CODEC) == HERE


@pytest.fixture
def world(monkeypatch):
    """A runner whose tasks write what `rows` has of their first item, in this process."""
    made: Any = SimpleNamespace(rows={}, written=[], key=ID, error=None)
    made.transformed = []
    made.state = LoadState()

    def transform(_plan, items):
        (first, *_) = pickle.loads(items)
        found = made.rows[first.version]
        made.transformed.append(first.version)
        columns = (made.key, NAME)
        return [Partition([TargetChanges(("there", "orders"), columns, (0,), found)], len(found))]

    def load(_settings, ticket, slot, partitions):
        (partition,) = partitions
        assert all(part.shared for part in partition.changes), "other tasks write the table, too"
        made.written.append((slot, partition.changes[0].upserts))
        return TaskReport(Loaded(rows=partition.rows), error=made.error)

    monkeypatch.setattr(insert_partitions, "transform", transform)
    monkeypatch.setattr(insert_partitions, "load", load)
    context: Any = SimpleNamespace(
        master="spark://host:7077", parallelize=lambda blobs, count: Partitions(blobs)
    )
    sink: Any = "sink"
    made.runner = InsertPartitions(context, CODEC, sink, made.state)

    def run(*parts, tasks=None):
        made.rows = dict(enumerate(parts))
        work = LoadWork([item()._replace(version=number) for number in made.rows])
        return made.runner.run(plan(route()), work, TICKET, tasks or len(parts))

    made.run = run
    made.transform_with = partial(monkeypatch.setattr, insert_partitions, "transform")
    return made


def test_each_task_loads_its_insert_partition(world):
    reports = world.run([(1, "a"), (2, "b")], [(3, "c")])
    assert world.written == [(0, [(1, "a"), (2, "b")]), (1, [(3, "c")])]
    assert sum(report.loaded.rows for report in reports) == 3
    assert world.state.phase is Phase.BOTH


@pytest.fixture
def in_pieces(world, monkeypatch):
    """Each entry is a piece of its own."""
    monkeypatch.setattr(insert_partitions, "pieces", lambda items: [[item] for item in items])
    return world


def test_a_task_loads_its_pieces_in_order(in_pieces):
    reports = in_pieces.run([(1, "a")], [(2, "b")], [(3, "c")], [(4, "d"), (5, "e")], tasks=2)
    first, second = [[(1, "a")], [(2, "b")]], [[(3, "c")], [(4, "d"), (5, "e")]]
    assert in_pieces.written == [*((0, rows) for rows in first), *((1, rows) for rows in second)]
    assert [report.loaded.rows for report in reports] == [2, 3]


def test_a_piece_is_transformed_while_the_one_before_it_is_written(in_pieces, monkeypatch):
    load, both = insert_partitions.load, threading.Event()

    def slow_load(*arguments):
        if not in_pieces.written:
            eventually(lambda: in_pieces.transformed == [0, 1])
            both.set()
        return load(*arguments)

    monkeypatch.setattr(insert_partitions, "load", slow_load)
    in_pieces.run([(1, "a")], [(2, "b")], [(3, "c")], tasks=1)
    assert both.is_set()


def test_a_task_writes_no_piece_after_one_that_failed(in_pieces):
    in_pieces.error = DataError("no")
    reports = in_pieces.run([(1, "a")], [(2, "b")], [(3, "c")], [(4, "d")], tasks=2)
    assert in_pieces.written == [(0, [(1, "a")]), (1, [(3, "c")])]
    assert [str(report.error) for report in reports] == ["no", "no"]


def test_a_piece_that_cannot_be_transformed_fails_the_task(in_pieces, monkeypatch):
    """A defect; errors of the data travel in the share."""
    transform = insert_partitions.transform

    def fails(plan, items):
        if in_pieces.transformed:
            raise ZeroDivisionError
        return transform(plan, items)

    monkeypatch.setattr(insert_partitions, "transform", fails)
    with pytest.raises(ZeroDivisionError):
        in_pieces.run([(1, "a")], [(2, "b")], tasks=1)


def test_a_key_in_two_pieces_of_a_task_is_loaded_again_by_key(in_pieces):
    assert in_pieces.run([(1, "older")], [(1, "newer")], [(2, "b")], [(3, "c")], tasks=2) is None


def test_rows_that_must_not_be_shared_out_are_written_by_no_task(in_pieces):
    """Those of other tables may be, before; they are written again by key."""

    def transform(_plan, items):
        (first, *_) = pickle.loads(items)
        key = replace(NAME, name="id", binary_order=first.version != 1)
        target = ("there", f"t{first.version}")
        part = TargetChanges(target, (key, NAME), (0,), [(f"k{first.version}", "a")])
        return [Partition([part], 1)]

    in_pieces.transform_with(transform)
    assert in_pieces.run([], [], [], [], tasks=2) is None
    assert [rows for _, rows in in_pieces.written] == [[("k0", "a")], [("k2", "a")], [("k3", "a")]]


def test_a_load_of_too_few_entries_for_its_tasks_is_dealt_out(world):
    assert world.run([(1, "a"), (2, "b")], tasks=2) is None
    assert world.written == []


def test_a_key_that_two_tasks_wrote_is_loaded_again_by_key(world):
    assert world.run([(1, "older")], [(2, "b"), (1, "newer")]) is None
    # The table's next loads are not tried this way any more.
    written = len(world.written)
    assert world.run([(5, "e")], [(6, "f")]) is None
    assert len(world.written) == written


def test_keys_of_text_meet_too(world):
    world.key = replace(NAME, name="id", binary_order=True)
    assert world.run([("a", "x")], [("b", "y")]) is not None
    assert world.run([("a", "x")], [("b", "y"), ("a", "z")]) is None


def test_rows_of_a_table_that_must_not_be_shared_out_are_not_written(world):
    world.key = replace(NAME, name="id", binary_order=False)
    assert world.run([("a", "x")], [("A", "y")]) is None
    assert world.written == []


def test_an_error_of_a_task_is_reported_and_nothing_is_done_again(world):
    world.error = DataError("no")
    reports = world.run([(1, "a")], [(1, "b")])
    assert [str(report.error) for report in reports] == ["no", "no"]


def test_a_load_that_was_cancelled_meanwhile_is_not_done_again(world):
    world.state.cancelled = True
    with pytest.raises(Exception, match="cancelled"):
        world.run([(1, "a")], [(1, "b")])
