"""Tables in memory that a leadership loads, step by step."""

from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from arbiter.values import PipelineId
from setl.bulk.source_reader import KeyRange, TableSize
from setl.channel.fields.load_limits import LoadLimits
from setl.errors import CollisionError, ConfigurationError
from setl.load.sink import LoadTicket
from setl.model.change import Op
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.model.load_request import LoadRequest
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.run.loads.catching_up import CatchingUp
from setl.run.measured.progress import Progress
from setl.run.table_loads.loading import TableLoading
from setl.run.table_loads.requests import StoredLoadRequests
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.unit.select.fakes import ManualClock

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

    def reading_at(self, position, *, inside):
        assert position.order <= (1, 900)
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
        self, tables, router: Any = None, wanted=(), *, has_end=True, limits=NONE, isolates=False
    ):
        self.tables, self.clock = tables, ManualClock()
        self.full: list[tuple[str, str]] = []
        self.unpassed = 0
        arbiter = MemoryArbiter(MemoryCluster())
        arbiter.channels.put("c", {})
        self.requests = StoredLoadRequests(arbiter, PipelineId("c", "p"))
        self.job: Any = Job(self.clock)
        self.end = BinlogPosition("bin.000001", 900)
        self.progress = Progress(self.clock)
        self.agreeing: Any = lambda wanted: frozenset(".".join(name) for name, _ in wanted)
        self._catching_up = CatchingUp(
            cast("Any", SimpleNamespace(rereads=False)),
            cast("Any", self.tables.opened),
            lambda wanted: self.agreeing(wanted),  # noqa: PLW0108 - a test sets another one
            isolates=isolates,
        )
        self.loading = TableLoading(
            self.job,
            LEADERSHIP,
            self.progress,
            self.clock,
            router=cast("Any", router or Router()),
            tables=cast("Any", self.tables.opened),
            latest=(lambda: self.end) if has_end else None,
            catching_up=self._catching_up,
            holds_rows=lambda target: target in self.full,
            requests=self.requests,
            wanted=wanted,
            limits=limits,
            back="c/back",
            unpassed=lambda: self.unpassed,
        )
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

    def catching_up(self, isolates=False):
        """Tables of which rows may go where one of `shop.a` is in another one's way."""
        tickets = []

        def load(ticket):
            tickets.append(ticket)
            if not ticket.catching_up and not isolates:
                raise CollisionError("in the way")
            return Loaded()

        try:
            loading = self.loading.alone({("shop", "a")})
            self._catching_up.load(load, LoadTicket(LEADERSHIP, 0, 0), loading)
        except CollisionError:
            return frozenset()
        return tickets[-1].catching_up

    @property
    def reported(self) -> Any:
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


def finished(bench):
    """Read all, let the stream come to the end, and answer."""
    bench.steps()
    bench.stream_at(900)
    bench.steps()
