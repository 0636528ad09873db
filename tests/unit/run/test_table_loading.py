"""Which ranges of which tables a step loads, and when a load is over."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from setl.bulk.source_reader import KeyRange
from setl.errors import ConfigurationError, DataError
from setl.load.sink import LoadTicket
from setl.model.change import Op
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.model.table_load import TableLoad
from setl.run import table_loading
from setl.run.progress import Progress
from setl.run.table_loading import TableLoading, TableLoadingParts
from tests.unit.select.fakes import ManualClock


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch):
    monkeypatch.setattr(table_loading, "_LEAST_ROWS", 500)


ROWS_IN_A_STEP = 1001
"""What can be loaded in the time of a step: no multiple of the number of tasks."""


class Table:
    """A table with the keys 1 to `count`, in memory."""

    def __init__(self, name, count):
        self.name = f"shop.{name}"
        self.schema = RowSchema("shop", name, (Column("id", Kind.INTEGER),), key=(0,))
        self.keys = list(range(1, count + 1))

    def ranges(self, after, rows, count):
        found = []
        while len(found) < count:
            behind = [key for key in self.keys if after is None or key > after[0]]
            last = (behind[rows - 1],) if len(behind) >= rows else None
            part = behind[:rows]
            found.append(KeyRange(part, last, len(part)))
            if last is None:
                break
            after = last
        return found

    def read(self, columns, part):
        yield [(key,) for key in part]


class Tables:
    def __init__(self, **counts):
        self.tables = {("shop", name): Table(name, count) for name, count in counts.items()}

    def names(self):
        return list(self.tables)

    def readers(self, wanted):
        return [self.tables.get(name) for name in wanted]

    @contextmanager
    def opened(self):
        yield self


class Job:
    """Loads ranges by reading them."""

    parallelism = 2

    def __init__(self, clock):
        self.clock = clock
        self.loaded = []
        self.steps = []
        self.failures: list[Any] = []

    def load_ranges(self, items, ticket):
        if self.failures:
            failure = self.failures.pop(0)
            if failure is not None:
                raise failure
        rows = []
        for item, _ in items:
            for part in item.table_rows.read():
                assert part.op is Op.INSERT
                rows += [(item.table[1], after[0]) for _, after in part.images]
        self.loaded += rows
        self.clock.time += len(rows) * 0.3 / ROWS_IN_A_STEP
        self.steps.append(len(rows))
        return Loaded(rows=len(rows), upserts=len(rows))


class Router:
    decides = False

    def __init__(self, *unmapped):
        self.unmapped = unmapped

    def route(self, schema, table):
        route = SimpleNamespace(nests=lambda *_: False, target=(schema, table))
        return () if table in self.unmapped else (route,)


class Bench:
    def __init__(self, tables, router: Any = None):
        self.tables, self.clock = tables, ManualClock()
        self.job = Job(self.clock)
        self.end = BinlogPosition("bin.000001", 900)
        self.progress = Progress(self.clock)
        parts: Any = TableLoadingParts(
            self.job,
            self.tables.opened,
            lambda: self.end,
            lambda wanted: frozenset(".".join(name) for name, _ in wanted),
            cast("Any", router or Router()),
        )
        self.loading = TableLoading(parts, Leadership("c", "p", "n1", 5), self.progress, self.clock)
        self.reached: Any = Checkpoint(BinlogPosition("bin.000001", 100))

    def begin(self, load):
        self.reached = replace(self.reached, load=load)
        self.loading.begin(load)

    def step(self, allowed=True) -> Any:
        ticket = LoadTicket(Leadership("c", "p", "n1", 5), 0, 0)
        load = self.loading.step(self.reached, ticket, lambda: allowed)
        if load is not None:
            self.reached = replace(self.reached, load=load)
        return load

    @property
    def told(self) -> Any:
        return self.progress.figures().table_load

    def stream_at(self, offset):
        self.reached = replace(self.reached, resume=BinlogPosition("bin.000001", offset))

    def read_all(self):
        for _ in range(1000):
            assert self.step() is not None
            if self.reached.load.until is not None:
                return self.reached.load
        raise AssertionError("no end")


def everything(tables):
    return [(table.schema.table, key) for table in tables.tables.values() for key in table.keys]


def test_each_row_is_read_once_whatever_the_sizes_of_tables():
    tables = Tables(a=700, b=0, c=1, d=1500, e=500, f=499, g=501)
    bench = Bench(tables)
    bench.begin(TableLoad("x"))
    load = bench.read_all()
    assert sorted(bench.job.loaded) == sorted(everything(tables))
    assert load.rows == 3701


def test_a_leader_goes_on_from_any_step_of_another():
    tables = Tables(a=1700, b=30, c=2600)
    first = Bench(tables)
    first.begin(TableLoad("x"))
    states = [TableLoad("x")]
    while first.reached.load.until is None:
        states.append(first.step())
    for i, state in enumerate(states[:-1]):
        again = Bench(tables)
        again.begin(TableLoad.from_json(state.to_json()))
        again.read_all()
        done = sum(first.job.steps[:i])
        assert sorted(again.job.loaded + first.job.loaded[:done]) == sorted(everything(tables))


def test_many_small_tables_go_together():
    tables = Tables(**{f"t{i:02d}": 10 for i in range(100)})
    bench = Bench(tables)
    bench.begin(TableLoad("x"))
    bench.read_all()
    assert len(bench.job.steps) <= 4
    assert len(bench.job.loaded) == 1000


def test_it_is_over_when_the_stream_has_come_to_where_the_last_rows_were_read():
    bench = Bench(Tables(a=10))
    bench.begin(TableLoad("x"))
    assert bench.loading.catching_up == {"shop.a"}
    load = bench.read_all()
    assert load.until == bench.end
    assert bench.step() is None
    bench.stream_at(899)
    assert bench.step() is None
    assert bench.loading.catching_up == {"shop.a"}
    bench.stream_at(900)
    ended = bench.step()
    assert ended.ended == bench.clock.now()
    assert bench.loading.catching_up == frozenset()
    assert bench.told.state == "done"
    assert bench.step() is None


def test_only_the_tables_that_are_asked_for_and_mapped():
    bench = Bench(Tables(a=3, b=3, c=3), Router("b"))
    bench.begin(TableLoad("x", tables=("shop.b", "shop.c")))
    bench.read_all()
    assert bench.job.loaded == [("c", 1), ("c", 2), ("c", 3)]


def test_a_table_that_is_dropped_meanwhile_is_passed_over():
    tables = Tables(a=3, b=3)
    bench = Bench(tables)
    bench.begin(TableLoad("x"))
    gone = tables.tables["shop", "a"]
    tables.readers = lambda wanted: [
        None if n == ("shop", "a") else tables.tables[n] for n in wanted
    ]
    bench.read_all()
    assert gone.keys
    assert bench.job.loaded == [("b", 1), ("b", 2), ("b", 3)]


def test_nothing_is_loaded_while_it_is_not_allowed_or_the_stream_repeats():
    bench = Bench(Tables(a=3))
    bench.begin(TableLoad("x"))
    assert bench.step(allowed=False) is None
    bench.reached = replace(bench.reached, repeats=True)
    assert bench.step() is None
    assert bench.job.loaded == []


@pytest.mark.parametrize("error", [ConfigurationError("lacks a column"), DataError("too long")])
def test_what_a_change_of_the_table_explains_waits_for_the_stream(error):
    bench = Bench(Tables(a=3))
    bench.job.failures = [error]
    bench.begin(TableLoad("x"))
    assert bench.step() is None
    assert bench.step() is None  # the stream is not there yet
    assert bench.job.failures == []
    bench.stream_at(900)
    assert bench.step().rows == 3


def test_what_is_wrong_all_the_same_is_an_error():
    bench = Bench(Tables(a=3))
    bench.job.failures = [DataError("too long"), DataError("too long")]
    bench.begin(TableLoad("x"))
    assert bench.step() is None
    bench.stream_at(900)
    with pytest.raises(DataError):
        bench.step()


def test_tables_with_a_conflict_policy_are_refused():
    router = Router()
    router.decides = True
    with pytest.raises(ConfigurationError, match="conflict"):
        Bench(Tables(a=3), router).begin(TableLoad("x"))


def test_a_load_is_kept_as_json():
    load = TableLoad(
        "x", ("s.a",), "s.a", (1, "ä\udcff", b"\x00\xff", None, 1.5), 7, 3.5,
        BinlogPosition("bin.000002", 4, "0-1-2"), 9.0, True,
    )  # fmt: skip
    assert TableLoad.from_json(load.to_json()) == load
    checkpoint = Checkpoint(BinlogPosition("bin.000002", 4), load=load)
    assert Checkpoint.from_json(checkpoint.to_json()) == checkpoint
    assert checkpoint.moved_to(BinlogPosition("bin.000009", 4)).load == replace(load, until=None)
