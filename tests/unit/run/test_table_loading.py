"""Which ranges of which tables a step loads, and when a load is over."""

from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from arbiter.values import PipelineId
from setl.bulk.source_reader import KeyRange, TableSize
from setl.channel.load_limits import LoadLimits
from setl.errors import CollisionError, ConfigurationError, DataError
from setl.load.sink import LoadTicket
from setl.model.change import Op
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.leadership import Leadership
from setl.model.load_request import FREE_GATE, LoadRequest, RequestState
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.model.table_load import TableLoad
from setl.run import table_loading
from setl.run.load_requests import StoredLoadRequests
from setl.run.progress import Progress
from setl.run.table_loading import TableLoading
from setl.run.table_loading_parts import TableLoadingParts
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.unit.select.fakes import ManualClock


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch):
    monkeypatch.setattr(table_loading, "_LEAST_ROWS", 500)


NONE = LoadLimits()
LEADERSHIP = Leadership("c", "p", "n1", 5)
ROWS_IN_A_STEP = 1001
"""What can be loaded in the time of a step: no multiple of the number of tasks."""


class Table:
    """A table with the keys 1 to `count`, in memory."""

    def __init__(self, name, count):
        self.name = f"shop.{name}"
        self.schema = RowSchema("shop", name, (Column("id", Kind.INTEGER),), key=(0,))
        self.keys = list(range(1, count + 1))
        self.condition = ""
        self.decided_for: list[str] = []

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

    def only(self, condition):
        chosen = copy(self)
        chosen.condition = condition
        return chosen

    def showing(self, place, *, inside):
        assert place.order <= (1, 900)
        return self

    def decided(self, pipeline):
        self.decided_for.append(pipeline)
        return self

    def check(self):
        if "nonsense" in self.condition:
            raise ConfigurationError("nonsense")

    def parts_of_keys(self, key, keys):
        assert [column.name for column in key] == ["id"]
        return [[key for key in self.keys if (key,) in keys]]

    def read(self, columns, part):
        yield [(key,) for key in part if not self.condition or eval(self.condition, {"id": key})]


class Tables:
    def __init__(self, **counts):
        self.tables = {("shop", name): Table(name, count) for name, count in counts.items()}

    clock = 1000.5
    running = 1

    def names(self):
        return list(self.tables)

    def now(self):
        return self.clock

    def sizes(self):
        return {name: TableSize(len(t.keys), 100 * len(t.keys)) for name, t in self.tables.items()}

    def busy(self):
        return self.running

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
        self.deleted = []
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
                if part.op is Op.DELETE:
                    self.deleted += [(item.table[1], before[0]) for before, _ in part.images]
                else:
                    assert part.op is Op.INSERT
                    rows += [(item.table[1], after[0]) for _, after in part.images]
        self.loaded += rows
        self.clock.time += len(rows) * 0.3 / ROWS_IN_A_STEP
        self.steps.append(len(rows))
        return Loaded(rows=len(rows), upserts=len(rows))


class Router:
    """One entry of the file for each table."""

    decides = False
    conflict: Any = None

    def __init__(self, *unmapped):
        self.unmapped = unmapped
        self.entries: list[Any] = []

    def route(self, schema, table):
        if table in self.unmapped:
            return ()
        name = f"{schema}.{table} ->"
        if name not in [entry.name for entry in self.entries]:
            self.entries.append(SimpleNamespace(name=name))
        index = [entry.name for entry in self.entries].index(name)
        route = SimpleNamespace(
            nests=lambda *_: False,
            target=(schema, table),
            index=index,
            key=(),
            routing=None,
            processor=None,
            conflict=self.conflict,
        )
        return (route,)


class Bench:
    def __init__(
        self, tables, router: Any = None, wanted=(), *, tells_end=True, limits=NONE, isolates=False
    ):
        self.tables, self.clock = tables, ManualClock()
        self.full: list[tuple[str, str]] = []
        self.unpassed = 0
        arbiter = MemoryArbiter(MemoryCluster())
        arbiter.put_channel("c", {})
        self.requests = StoredLoadRequests(arbiter, PipelineId("c", "p"))
        self.job = Job(self.clock)
        self.end = BinlogPosition("bin.000001", 900)
        self.progress = Progress(self.clock)
        self.agreeing: Any = lambda wanted: frozenset(".".join(name) for name, _ in wanted)
        parts: Any = TableLoadingParts(
            self.job,
            self.tables.opened,
            (lambda: self.end) if tells_end else None,
            self._agree,
            cast("Any", router or Router()),
            lambda target: target in self.full,
            self.requests,
            wanted,
            limits,
            back="c/back",
            unpassed=lambda: self.unpassed,
            isolates=isolates,
        )
        self.loading = TableLoading(parts, LEADERSHIP, self.progress, self.clock)
        self.reached: Any = Checkpoint(BinlogPosition("bin.000001", 100))

    def begin(self, load):
        self.reached = replace(self.reached, load=load)
        self.loading.begin(load)

    def step(self, allowed=True) -> Any:
        ticket = LoadTicket(LEADERSHIP, 0, 0)
        load = self.loading.step(self.reached, ticket, lambda: allowed)
        if load is not None:
            self.reached = replace(self.reached, load=load)
        return load

    def steps(self):
        """Step until nothing moves any more."""
        return list(iter(self.step, None))

    def ask(self, **what):
        request = self.requests.add(LoadRequest(**what))
        self.loading.look_again()
        return request.id

    def request(self, ident) -> Any:
        return next(request for request in self.requests.all() if request.id == ident)

    def _agree(self, wanted):
        return self.agreeing(wanted)

    def catching_up(self, isolates=False):
        """Tables of which rows may go where one of `shop.a` is in another one's way."""
        tickets = []

        def load(ticket):
            tickets.append(ticket)
            if not ticket.catching_up and not isolates:
                raise CollisionError("in the way")
            return Loaded()

        try:
            self.loading.catching_up({("shop", "a")}, LoadTicket(LEADERSHIP, 0, 0), load)
        except CollisionError:
            return frozenset()
        return tickets[-1].catching_up

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


def test_what_spark_needs_for_a_step_does_not_make_steps_smaller():
    bench = Bench(Tables(a=12_000))

    def in_two_tasks(items, ticket):
        began = bench.clock.time
        loaded = Job.load_ranges(bench.job, items, ticket)
        taken = bench.clock.time - began
        bench.clock.time += 0.3  # whatever the rows
        return replace(loaded, seconds=2 * taken)

    bench.job.load_ranges = in_two_tasks
    bench.begin(TableLoad("start 0"))
    while bench.reached.load.reads:
        bench.step()
    in_time = table_loading.STEP_SECONDS / 0.3 * ROWS_IN_A_STEP
    assert all(0.95 * in_time < rows <= in_time for rows in bench.job.steps[1:-1])


def test_it_is_over_when_the_stream_has_come_to_where_the_last_rows_were_read():
    bench = Bench(Tables(a=10))
    bench.begin(TableLoad("x", taken=()))
    assert bench.catching_up() == {"shop.a"}
    load = bench.read_all()
    assert load.until == bench.end
    assert bench.step() is None
    bench.stream_at(899)
    assert bench.step() is None
    assert bench.catching_up() == {"shop.a"}
    bench.stream_at(900)
    ended = bench.step()
    assert ended.ended == bench.clock.now()
    assert bench.catching_up() == frozenset()
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


def ddl(statement):
    return Entry(EntryKind.DDL, BinlogPosition("bin.000001", 300), 0.0, "shop", statement=statement)


def brought(bench, *statements):
    """The stream brings schema changes."""
    moved = bench.loading.after_changes([ddl(text) for text in statements], bench.reached.load)
    if moved is not None:
        bench.reached = replace(bench.reached, load=moved)
    return moved


def test_a_table_with_another_key_is_read_again_from_its_beginning():
    bench = Bench(Tables(a=3, b=5000))
    bench.begin(TableLoad("x"))
    bench.step()
    assert bench.reached.load.after is not None
    assert brought(bench, "ALTER TABLE b DROP PRIMARY KEY, ADD PRIMARY KEY (o)") is not None
    before = len(bench.job.loaded)
    bench.read_all()
    assert bench.job.loaded[before:] == [("b", key) for key in range(1, 5001)]


@pytest.mark.parametrize("number", range(6))
def test_a_table_that_gets_another_name_is_read_under_that_by_any_leader(number):
    bench = Bench(Tables(b=900, c=900, z=900))
    bench.begin(TableLoad("x", ("shop.b", "shop.z")))
    for _ in range(number):
        bench.step()
    held = bench.tables.tables
    held["shop", "a"] = held.pop(("shop", "z"))
    held["shop", "a"].schema = replace(held["shop", "a"].schema, table="a")
    assert brought(bench, "RENAME TABLE z TO a") is not None
    bench.begin(TableLoad.from_json(bench.reached.load.to_json()))
    done = bench.read_all()
    assert {key for name, key in bench.job.loaded if name == "a"} == set(range(1, 901))
    assert "c" not in [name for name, _ in bench.job.loaded]
    bench.stream_at(900)
    ended = bench.step()
    assert ended.ended
    assert not ended.error
    assert done.only


def test_tables_that_take_each_others_names_are_read_again_and_told():
    bench = Bench(Tables(a=3, z=3))
    bench.begin(TableLoad("x"))
    bench.read_all()
    brought(bench, "RENAME TABLE a TO x, z TO a, x TO z")
    bench.read_all()
    assert len(bench.job.loaded) == 12
    bench.stream_at(900)
    assert "--table shop.a --table shop.z --replace" in bench.step().error


@pytest.mark.parametrize("isolates", [False, True])
def test_no_row_goes_for_a_unique_key_that_the_source_has_no_longer(isolates):
    bench = Bench(Tables(a=5000, b=3), isolates=isolates)
    assert bench.catching_up(isolates) == frozenset()
    bench.begin(TableLoad("x"))
    bench.step()
    assert bench.catching_up(isolates) == {"shop.a"}
    bench.agreeing = lambda _: frozenset()
    assert bench.catching_up(isolates) == frozenset()


def test_other_schema_changes_and_those_of_other_tables_change_nothing():
    bench = Bench(Tables(a=5000, b=3))
    bench.begin(TableLoad("x", ("shop.a",)))
    bench.step()
    assert brought(bench, "ALTER TABLE a ADD COLUMN more INT, ADD INDEX (more)") is None
    assert brought(bench, "ALTER TABLE b MODIFY id BIGINT", "CREATE TABLE c (id INT)") is None
    bench.reached = replace(bench.reached, load=replace(bench.reached.load, cancelled=True))
    assert brought(bench, "ALTER TABLE a MODIFY id BIGINT") is None


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


def test_what_both_sites_write_is_read_as_far_as_it_is_decided():
    router = Router()
    router.conflict = "home"
    tables = Tables(a=3)
    bench = Bench(tables, router)
    bench.begin(TableLoad("x"))
    bench.read_all()
    assert tables.tables["shop", "a"].decided_for == ["c/back"]
    assert bench.job.loaded == everything(tables)


def test_a_load_waits_for_the_other_site_to_read_what_is_kept_for_it():
    bench = Bench(Tables(a=3))
    bench.begin(TableLoad("x"))
    bench.unpassed = 100_001
    assert bench.step() is None
    assert bench.told.waits_for == "the opposite pipeline c/back has rows to read"
    assert not bench.loading.due(bench.reached.load)
    bench.unpassed = 99_999
    bench.clock.time += 2.0
    assert bench.loading.due(bench.reached.load)
    bench.read_all()
    assert len(bench.job.loaded) == 3


def test_a_load_is_kept_as_json():
    load = TableLoad(
        "x", ("s.a",), ("s.* ->",), True, "s.a", (1, "ä\udcff", b"\x00\xff", None, 1.5), 7, 3.5,
        BinlogPosition("bin.000002", 4, "0-1-2"), 4.5, 9.0, True, "why", ("s.* ->",),
        ("s.b",), ("s.c", "s.d"), (("s.c", "s.d"),), 4, 2.5,
    )  # fmt: skip
    assert TableLoad.from_json(load.to_json()) == load
    checkpoint = Checkpoint(BinlogPosition("bin.000002", 4), load=load)
    assert Checkpoint.from_json(checkpoint.to_json()) == checkpoint
    assert checkpoint.moved_to(BinlogPosition("bin.000009", 4)).load == replace(load, until=None)


# -- requests ------------------------------------------------------------------------------


def finished(bench):
    """Read all, let the stream come to the end, and answer."""
    bench.steps()
    bench.stream_at(900)
    bench.steps()


def test_a_request_is_carried_out_and_answered_once_its_end_is_kept():
    bench = Bench(Tables(a=3, b=3))
    bench.begin(None)
    assert bench.step() is None
    ident = bench.ask(tables=("shop.b",))
    assert bench.loading.due(None)
    bench.steps()
    assert bench.job.loaded == [("b", 1), ("b", 2), ("b", 3)]
    assert not bench.request(ident).ended
    bench.stream_at(900)
    assert bench.step().ended
    assert not bench.request(ident).ended  # that it has ended is not kept yet
    bench.step()
    answered = bench.request(ident)
    assert (answered.state, answered.rows) == (RequestState.DONE, 3)
    assert not bench.loading.due(bench.reached.load)


def test_requests_are_carried_out_in_order_and_once():
    bench = Bench(Tables(a=2))
    bench.begin(None)
    first, second = bench.ask(tables=("shop.a",)), bench.ask(tables=("shop.a",))
    finished(bench)
    assert bench.job.loaded == [("a", 1), ("a", 2)] * 2
    assert bench.request(first).state is bench.request(second).state is RequestState.DONE
    bench.steps()
    assert len(bench.job.loaded) == 4


def test_a_leader_that_dies_before_it_answers_leaves_that_to_the_next_one():
    bench = Bench(Tables(a=2))
    bench.begin(None)
    ident = bench.ask()
    bench.steps()
    bench.stream_at(900)
    assert bench.step().ended
    bench.begin(bench.reached.load)  # another leadership
    assert bench.step() is None
    assert bench.request(ident).state is RequestState.DONE
    assert len(bench.job.loaded) == 2


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("stored_by", ["this version", "an older one"])
def test_a_request_is_not_taken_for_one_of_a_zookeeper_before_that_had_its_id(ended, stored_by):
    before = Bench(Tables(a=3, b=3))
    before.begin(None)
    before.clock.time = 100.0
    first = before.ask(tables=("shop.a",), sent=100.0)
    before.steps()
    if ended:
        before.stream_at(900)
        before.steps()
    load = before.reached.load
    bench = Bench(before.tables)
    bench.clock.time = 200.0
    bench.begin(load if stored_by == "this version" else replace(load, sent=0.0))
    assert bench.ask(tables=("shop.b",), sent=200.0) == first
    finished(bench)
    assert bench.job.loaded == [("b", 1), ("b", 2), ("b", 3)]
    assert bench.request(first).state is RequestState.DONE


def test_only_rows_for_which_the_condition_is_true():
    bench = Bench(Tables(a=5000))
    bench.begin(None)
    bench.ask(tables=("shop.a",), where="id % 1000 == 0")
    finished(bench)
    assert bench.job.loaded == [("a", n) for n in (1000, 2000, 3000, 4000, 5000)]


def test_keys_that_are_there_are_loaded_and_others_deleted():
    bench = Bench(Tables(a=5000))
    bench.begin(None)
    keys = tuple((n,) for n in range(4000, 6000))
    ident = bench.ask(tables=("shop.a",), key=("id",), keys=keys)
    finished(bench)
    assert bench.job.loaded == [("a", n) for n in range(4000, 5001)]
    assert bench.job.deleted == [("a", n) for n in range(5001, 6000)]
    assert len(bench.job.steps) > 1
    assert bench.request(ident).state is RequestState.DONE


def test_keys_are_gone_on_with_where_another_leader_left():
    bench = Bench(Tables(a=5000))
    bench.begin(None)
    bench.ask(tables=("shop.a",), key=("id",), keys=tuple((n,) for n in range(1, 3001)))
    bench.step()
    bench.step()
    assert len(bench.job.loaded) == 1000
    bench.begin(TableLoad.from_json(bench.reached.load.to_json()))
    finished(bench)
    assert bench.job.loaded == [("a", n) for n in range(1, 3001)]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"tables": ("shop.x",)}, "shop.x"),
        ({"tables": ("shop.a",), "where": "nonsense"}, "nonsense"),
        ({"tables": ("shop.a",), "key": ("no",), "keys": ((1,),)}, "no column no"),
    ],
)
def test_a_request_that_makes_no_sense_fails_and_the_stream_goes_on(what, message):
    bench = Bench(Tables(a=3))
    bench.begin(None)
    ident = bench.ask(**what)
    finished(bench)
    answered = bench.request(ident)
    assert answered.state is RequestState.FAILED
    assert message in answered.answer
    assert bench.told.state == "failed"
    good = bench.ask(tables=("shop.a",))
    finished(bench)
    assert bench.request(good).state is RequestState.DONE


def test_a_key_of_the_free_gate_that_is_none_is_told_though_nothing_else_is_asked_for(caplog):
    bench = Bench(Tables(a=10))
    bench.begin(None)
    bench.ask(tables=("shop.a",), key=("id",), keys=(("x",),), reason=FREE_GATE)
    finished(bench)
    assert [r.message for r in caplog.records if "left out" in r.message] == [
        "rows of the free gate are left out"
    ]


def test_a_load_into_empty_tables_is_refused_where_there_are_rows():
    bench = Bench(Tables(a=3, b=3))
    bench.begin(None)
    bench.full = [("shop", "a")]
    refused, good = (bench.ask(tables=(t,), into_empty=True) for t in ("shop.a", "shop.b"))
    finished(bench)
    finished(bench)
    assert "rows already in shop.a" in bench.request(refused).answer
    assert bench.request(good).state is RequestState.DONE


def test_a_load_is_paused_and_resumed():
    bench = Bench(Tables(a=5000))
    bench.begin(None)
    ident = bench.ask()
    bench.step()
    bench.step()
    bench.requests.change_state(ident, RequestState.PAUSED)
    bench.loading.look_again()
    before = len(bench.job.loaded)
    assert bench.step() is None
    assert bench.told.state == "paused"
    assert not bench.loading.due(bench.reached.load)
    bench.requests.change_state(ident, RequestState.WAITING)
    bench.loading.look_again()
    finished(bench)
    assert before < len(bench.job.loaded) == 5000


def test_a_load_is_cancelled_and_stays_so():
    bench = Bench(Tables(a=5000))
    bench.begin(None)
    ident, later = bench.ask(), bench.ask()
    bench.step()
    bench.step()
    for each in (ident, later):
        bench.requests.change_state(each, RequestState.CANCELLED)
    bench.loading.look_again()
    bench.steps()
    assert bench.told.state == "catching up"
    assert bench.catching_up() == {"shop.a"}, "its rows may be ahead of the stream"
    finished(bench)
    assert bench.catching_up() == set()
    assert bench.request(ident).state is RequestState.CANCELLED
    assert bench.request(ident).rows == len(bench.job.loaded) == 1000
    assert bench.request(later).ended
    bench.begin(bench.reached.load)
    bench.steps()
    assert len(bench.job.loaded) == 1000


def test_what_is_narrowed_is_not_loaded_as_a_whole_when_its_request_is_gone():
    bench = Bench(Tables(a=5000))
    bench.begin(TableLoad("load-1", ("shop.a",), narrowed=True))
    finished(bench)
    assert bench.job.loaded == []
    assert bench.reached.load.cancelled


def test_what_the_channel_file_asks_for_is_loaded_once():
    bench = Bench(Tables(a=3, b=3), wanted=("shop.a ->",))
    bench.begin(None)
    finished(bench)
    assert bench.job.loaded == [("a", 1), ("a", 2), ("a", 3)]
    (made,) = bench.requests.all()
    assert (made.reason, made.state) == ("start", RequestState.DONE)
    bench.begin(TableLoad.from_json(bench.reached.load.to_json()))
    assert bench.steps() == []


def again(bench, *wanted):
    """The same cluster, source and target under a changed channel file."""
    changed = Bench(bench.tables, wanted=wanted)
    changed.requests, changed.reached = bench.requests, bench.reached
    changed.loading._queue._requests = bench.requests
    changed.begin(bench.reached.load)
    return changed


def test_a_table_that_is_added_to_the_file_is_loaded_and_no_other():
    bench = Bench(Tables(a=3, b=3), wanted=("shop.a ->",))
    bench.begin(None)
    finished(bench)
    more = again(bench, "shop.a ->", "shop.b ->")
    finished(more)
    assert more.job.loaded == [("b", 1), ("b", 2), ("b", 3)]
    less = again(more, "shop.b ->")
    assert len(less.steps()) == 1  # it forgets the table
    back = again(less, "shop.a ->", "shop.b ->")
    finished(back)
    assert back.job.loaded == [("a", 1), ("a", 2), ("a", 3)]


def test_tables_of_the_file_that_are_cancelled_before_they_begin_stay_cancelled():
    bench = Bench(Tables(a=3), wanted=("shop.a ->",))
    bench.begin(None)
    bench.loading._queue.look(None)
    (made,) = bench.requests.all()
    bench.requests.change_state(made.id, RequestState.CANCELLED)
    bench.loading.look_again()
    bench.steps()
    assert bench.job.loaded == []
    bench.begin(bench.reached.load)
    bench.steps()
    assert (bench.job.loaded, len(bench.requests.all())) == ([], 1)


def test_what_an_older_version_has_begun_goes_on_and_counts_as_all():
    bench = Bench(Tables(a=3), wanted=("shop.a ->",))
    bench.begin(TableLoad("start 1"))
    finished(bench)
    assert bench.job.loaded == [("a", 1), ("a", 2), ("a", 3)]
    assert bench.requests.all() == []
    assert bench.reached.load.taken == ("shop.a ->",)


def test_the_arbiter_is_asked_again_when_it_was_silent():
    bench = Bench(Tables(a=3))
    bench.begin(None)
    bench.ask()
    arbiter: Any = bench.requests._arbiter
    arbiter.link.refuse(1)
    assert bench.step() is None
    assert bench.loading.due(None)
    finished(bench)
    assert len(bench.job.loaded) == 3


def test_a_stream_that_comes_late_is_waited_for_by_the_clock_of_its_server():
    bench = Bench(Tables(a=3), tells_end=False)
    bench.begin(TableLoad("x"))
    load = bench.steps()[-1]
    assert (load.until, load.until_time) == (None, 1000.5)
    bench.reached = replace(bench.reached, timestamp=1000.0)
    assert bench.step() is None
    bench.reached = replace(bench.reached, timestamp=1001.0)
    assert bench.step().ended


# -- limits --------------------------------------------------------------------------------


def test_a_load_tells_how_much_is_left_and_for_how_long():
    bench = Bench(Tables(a=5000))
    bench.begin(None)
    bench.ask()
    bench.step()
    bench.step()
    told = bench.told
    assert (told.rows, told.rows_expected) == (1000, 5000)
    assert told.seconds_left == pytest.approx(4000 * 0.3 / ROWS_IN_A_STEP, abs=0.1)
    assert told.bytes_per_second == pytest.approx(100 * ROWS_IN_A_STEP / 0.3, rel=0.01)


def test_a_load_tells_how_far_it_is_in_a_table():
    bench = Bench(Tables(a=300, b=5000))
    bench.begin(TableLoad("x"))
    while bench.told.table != "shop.b":
        bench.step()
    before, told = len(bench.job.loaded) - 300, bench.told
    assert (told.table_rows, told.table_rows_expected) == (before, 5000)
    bench.begin(TableLoad.from_json(bench.reached.load.to_json()))
    bench.step()
    assert bench.told.table_rows == len(bench.job.loaded) - 300 > before


def test_a_busy_source_is_given_way_to():
    tables = Tables(a=5000)
    bench = Bench(tables, limits=LoadLimits(threads_running=8))
    bench.begin(TableLoad("x", taken=()))
    bench.step()
    tables.running = 9
    before = len(bench.job.loaded)
    assert bench.step() is None
    assert not bench.loading.due(bench.reached.load)
    assert (bench.told.given_way, bench.told.waits_for) == (
        1, "the source carries out 9 statements",
    )  # fmt: skip
    bench.clock.time += 1.0
    tables.running = 8
    assert bench.loading.due(bench.reached.load)
    bench.step()
    assert len(bench.job.loaded) > before
    assert bench.told.waits_for == ""


def test_a_target_that_is_behind_is_given_way_to():
    bench = Bench(Tables(a=5000), limits=LoadLimits(lag=2.0))
    bench.begin(TableLoad("x", taken=()))
    bench.loading._way._lag = lambda: 2.5
    assert bench.step() is None
    assert bench.told.waits_for == "the target is 2.5 s behind"
    bench.loading._way._lag = lambda: None
    assert bench.step() is not None


def test_no_more_rows_a_second_than_allowed():
    bench = Bench(Tables(a=5000), limits=LoadLimits(rows_per_second=1000))
    bench.begin(TableLoad("x", taken=()))
    began = bench.clock.monotonic()
    while bench.reached.load.reads:
        if bench.loading.due(bench.reached.load):
            bench.step()
        else:
            bench.clock.time += 0.01
    assert bench.clock.monotonic() - began == pytest.approx(5.0, rel=0.15)
