"""The leader compares tables alongside the stream: when, how much of them, and what comes of it."""

import logging
import threading
from contextlib import contextmanager
from typing import Any

import pytest

from arbiter.errors import Unreachable
from arbiter.values import PipelineId
from setl.bulk.comparison import What
from setl.bulk.range_comparison import RangeOutcome
from setl.bulk.source_reader import TableSize
from setl.bulk.verdict import DifferingKeys, KeyDifference, TableVerdict
from setl.channel.fields.load_limits import LoadLimits
from setl.channel.fields.standing_verification import StandingVerification
from setl.errors import ConfigurationError, FencedError, TransientError
from setl.model.leadership import Leadership
from setl.model.load_request import RequestState
from setl.model.stream_end import StreamEnd
from setl.model.table_load import TableLoad
from setl.run.measured.figures import RunState
from setl.run.measured.progress import Progress
from setl.run.table_loads.requests import StoredLoadRequests
from setl.run.verification.range_comparison import RangeComparison
from setl.run.verification.store import StoredVerification
from setl.run.verification.verifier import Verifier
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.unit.select.fakes import ManualClock

PIPELINE = PipelineId("c", "p")
RATE = 1000


class Pair:
    """A table and its target in memory, compared range by range."""

    def __init__(self, name, count):
        self.table, self.name = f"shop.{name}", f"copy.{name}"
        self.source = dict.fromkeys(range(1, count + 1), "same")
        self.target = dict(self.source)
        self.compared = []
        self.failures: list[Exception] = []
        self.note = self.whole = ""

    def compare(self, after, rows):
        if self.failures:
            raise self.failures.pop(0)
        low = after[0] if after else 0
        keys = [key for key in sorted(self.source) if key > low][:rows]
        last = keys[-1] if len(keys) == rows else None
        both = {k for k in {*self.source, *self.target} if k > low and (last is None or k <= last)}
        found = {
            key: (
                What.MISSING if key not in self.target
                else What.EXTRA if key not in self.source
                else What.DIFFERENT
            )
            for key in sorted(both)
            if self.source.get(key) != self.target.get(key)
        }  # fmt: skip
        counts = [sum(what is kind for what in found.values()) for kind in What]
        assert list(What) == [What.MISSING, What.EXTRA, What.DIFFERENT]
        verdict = TableVerdict(
            self.table, self.name, len(keys), len(keys), *counts,
            sample_keys=tuple(KeyDifference(str(key), what) for key, what in found.items()),
            note=self.note,
            differing=DifferingKeys(("id",), tuple(((k,), what) for k, what in found.items())),
        )  # fmt: skip
        self.compared.append((after, len(keys)))
        return RangeOutcome(None if last is None else (last,), len(keys), verdict)


class Tables:
    def __init__(self, pairs):
        self.pairs = pairs
        self.running = 1

    def sizes(self):
        return {tuple(pair.table.split(".")): TableSize(len(pair.source), 9) for pair in self.pairs}

    def busy(self):
        return self.running

    @contextmanager
    def opened(self):
        yield self


class Bench:
    """One leadership after another of a pipeline, in one thread with a clock of its own."""

    def __init__(self, *pairs, limits=None, opposite=None, background=(), **settings):
        self.pairs = {pair.table: pair for pair in pairs}
        self.tables: Any = Tables(pairs)
        self.limits = limits or LoadLimits()
        self.settings = StandingVerification(**{"every": 3600, "rate": RATE, **settings})
        self.clock = ManualClock()
        self.arbiter: Any = MemoryArbiter(MemoryCluster())
        self.arbiter.channels.put("c", {})
        self.requests = StoredLoadRequests(self.arbiter, PIPELINE)
        self.looked = threading.Event()
        self.built = 0
        self.opposite = opposite
        self.background = background
        self.lead(1)

    def lead(self, epoch):
        self.progress = Progress(self.clock)
        self.progress.enter(RunState.TAKING)
        self.progress.enter(RunState.RUNNING)
        self.progress.caught_up()
        self.standing = Verifier(
            Leadership("c", "p", "n1", epoch),
            self.progress,
            self.clock,
            settings=self.settings,
            limits=self.limits,
            comparers=self.comparers,
            end=lambda: StreamEnd(None, 0.0),
            passed=lambda _reached, _position: True,
            tables=self.tables.opened,
            requests=self.requests,
            look_at_loads=self.looked.set,
            store=StoredVerification(self.arbiter, PIPELINE),
            opposite=self.opposite,
            others_writing=lambda _: self.background,
        )

    def comparers(self, _) -> Any:
        self.built += 1
        return list(self.pairs.values())

    def step(self):
        pause = self.standing.step()
        assert pause >= 0
        self.clock.time += max(pause, 0.01)
        self.progress.caught_up()
        return self.reported

    def until(self, state):
        return self.when(lambda reported: reported.state == state)

    def when(self, so):
        for _ in range(5000):
            if so(self.step()):
                return self.reported
        raise AssertionError(f"{self.reported}")

    def whole_pass(self):
        return self.until("waiting")

    @property
    def reported(self) -> Any:
        return self.progress.figures().verification

    def carry_out_requests(self):
        """What the run does with them: it sends the rows again, as they are now."""
        for request in self.requests.unanswered():
            [pair] = [self.pairs[name] for name in request.tables]
            for (key,) in request.keys:
                pair.target.pop(key, None)
                if key in pair.source:
                    pair.target[key] = pair.source[key]
            self.requests.answer(request, RequestState.DONE, "", rows=1, at=1.0)


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.INFO, logger="setl.run.verification")

    def named(message):
        return [r.__dict__["setl"] for r in caplog.records if r.getMessage() == message]

    return named


def test_equal_tables_are_compared_silently_at_the_rate_and_again_after_a_while(logged):
    orders, users = Pair("orders", 30_000), Pair("users", 10)
    bench = Bench(orders, users)
    begun = bench.clock.time
    reported = bench.whole_pass()
    assert (reported.number, reported.rows, reported.differences, reported.coverage) == (
        1,
        30_010,
        0,
        1.0,
    )
    assert bench.clock.time - begun >= 30_000 / RATE
    assert sum(rows for _, rows in orders.compared) == 30_000
    assert len(orders.compared) > 3, "in ranges"
    assert reported.next_at == begun + 3600
    bench.when(lambda reported: reported.number == 2)
    assert begun + 3600 <= bench.clock.time <= begun + 3602 + 20
    assert logged("verification found differences") == []


def test_what_differs_is_reported_once_and_until_it_is_equal_again(logged):
    orders, users = Pair("orders", 30_000), Pair("users", 10)
    bench = Bench(orders, users)
    del orders.target[7]
    orders.target[29_000], orders.target[30_001] = "other", "extra"
    reported = bench.whole_pass()
    assert reported.differences == reported.counters.found == 3
    [found] = reported.findings
    assert (found.target, found.missing, found.extra, found.different) == ("copy.orders", 1, 1, 1)
    [line] = logged("verification found differences")
    assert (line["table"], line["number"], line["keys"]) == ("shop.orders", 1, "7 missing")
    orders.target = dict(orders.source)
    assert bench.when(lambda reported: reported.number == 2).differences == 3
    assert bench.whole_pass().differences == 0
    assert bench.requests.all() == [], "it was not asked to repair"


@pytest.mark.parametrize(
    ("problem", "word"),
    [
        (lambda b: b.progress.enter(RunState.RETRYING, "no"), "retrying"),
        (lambda b: b.progress.enter(RunState.SUSPENDED), "suspended"),
        (lambda b: b.progress.loads_tables(TableLoad("load-1")), "whole tables are loaded"),
        (lambda b: b.progress.sample_lag(9.0), "9.0 s behind"),
        (lambda b: setattr(b.tables, "running", 21), "21 statements"),
    ],
    ids=["retrying", "suspended", "loading", "lag", "statements"],
)
def test_it_is_throttled(problem, word):
    orders = Pair("orders", 100)
    bench = Bench(orders, limits=LoadLimits(threads_running=20, lag=8.0))
    problem(bench)
    reported = bench.step()
    assert (reported.state, orders.compared) == ("throttled", [])
    assert word in reported.waits_for


def test_a_new_leader_goes_on_where_the_last_one_was_seconds_ago():
    orders = Pair("orders", 60_000)
    bench = Bench(orders)
    bench.when(lambda reported: reported.rows >= 30_000)
    orders.compared.clear()
    bench.lead(2)
    bench.step()
    [(after, _)] = orders.compared
    assert after is not None
    assert after[0] > 30_000 - 2 * 5 * RATE
    reported = bench.whole_pass()
    assert (reported.number, reported.coverage) == (1, 1.0)
    assert reported.rows == 60_000


def test_a_former_leader_neither_goes_on_nor_disturbs():
    bench = Bench(Pair("orders", 600_000))
    bench.step()
    former, position = bench.standing, bench.reported.rows
    assert position
    bench.lead(2)
    for _ in range(20):
        bench.step()
    bench.clock.time += 6  # it is to keep what it finds next
    with pytest.raises(FencedError):
        former.step()
    newest = StoredVerification(bench.arbiter, PIPELINE).load()
    assert newest.epoch == 2


def test_it_is_written_down_every_few_seconds_only():
    bench = Bench(Pair("orders", 60_000))
    bench.step()
    writes = 0
    store, began = bench.arbiter.verifications.store, bench.clock.time

    def counted(*args):
        nonlocal writes
        writes += 1
        return store(*args)

    bench.arbiter.verifications.store = counted
    bench.whole_pass()
    assert 1 <= writes <= (bench.clock.time - began) / 5 + 1


def test_what_differs_is_repaired_and_compared_once_more(logged):
    orders = Pair("orders", 5_000)
    bench = Bench(orders, repair=True)
    del orders.target[7]
    orders.target[9], orders.target[5_001] = "other", "extra"
    reported = bench.until("repairing")
    assert (reported.differences, reported.repaired) == (2, 0)
    assert bench.looked.is_set()
    [request] = bench.requests.unanswered()
    assert (request.tables, request.key) == (("shop.orders",), ("id",))
    assert (request.keys, request.reason) == (((7,), (9,)), "repair")
    assert bench.step().state == "repairing", "it waits for the load"
    bench.carry_out_requests()
    reported = bench.until("repairing")
    bench.carry_out_requests()
    reported = bench.whole_pass()
    assert (orders.source == orders.target) is True
    assert (reported.differences, reported.repaired, reported.last.found) == (0, 3, 3)
    assert reported.counters.repaired == 3
    assert reported.rows == 5_000, "a row counts once for a pass"
    assert len(logged("verification found differences")) == 1


def test_a_new_leader_goes_on_with_a_repair():
    orders = Pair("orders", 100)
    bench = Bench(orders, repair=True)
    del orders.target[7]
    bench.until("repairing")
    bench.clock.time += 6
    bench.step()  # it is kept by now
    bench.lead(2)
    assert bench.step().state == "repairing"
    bench.carry_out_requests()
    assert bench.whole_pass().repaired == 1
    assert len(bench.requests.all()) == 1


def test_what_a_repair_did_not_mend_stays_reported_and_is_not_sent_again_in_this_pass():
    orders = Pair("orders", 100)
    bench = Bench(orders, repair=True)
    del orders.target[7]
    bench.until("repairing")
    [request] = bench.requests.unanswered()
    bench.requests.answer(request, RequestState.FAILED, "refused", rows=0, at=1.0)
    reported = bench.whole_pass()
    assert (reported.differences, reported.repaired) == (1, 0)
    assert len(bench.requests.all()) == 1


def test_where_both_sites_write_nothing_is_deleted():
    orders = Pair("orders", 100)
    bench = Bench(orders, repair=True, opposite=lambda _: None)
    del orders.target[7]
    orders.target[500] = "same"
    reported = bench.until("repairing")
    assert reported.differences == 2
    (request,) = bench.requests.unanswered()
    assert request.keys == ((7,),), "the other direction brings the row that only the target has"
    bench.carry_out_requests()
    orders.target[500] = "same"  # what is carried out here knows of no policy
    reported = bench.whole_pass()
    assert (reported.differences, reported.repaired) == (1, 1)


def test_where_another_pipeline_writes_as_well_nothing_is_deleted():
    orders = Pair("orders", 100)
    bench = Bench(orders, repair=True, background=("south/ab",))
    del orders.target[7]
    orders.target[500] = "a row of another source"
    bench.until("repairing")
    (request,) = bench.requests.unanswered()
    assert request.keys == ((7,),)


def test_more_than_a_pass_repairs_is_reported_and_left_alone(logged):
    orders = Pair("orders", 100)
    bench = Bench(orders, repair=True, repair_limit=3)
    for key in range(1, 5):
        del orders.target[key]
    reported = bench.whole_pass()
    assert (reported.differences, bench.requests.all()) == (4, [])
    assert "repair_limit" in reported.repairs_no_more
    assert len(logged("verification repairs no more in this pass")) == 1


def test_an_error_is_reported_and_what_failed_is_tried_again():
    orders = Pair("orders", 100)
    bench = Bench(orders)
    orders.failures = [TransientError("gone"), ValueError("a defect")]
    assert "gone" in bench.step().error
    assert bench.reported.state == "failing"
    assert "a defect" in bench.until("failing").error
    reported = bench.whole_pass()
    assert (reported.error, reported.rows, reported.tables_left_out) == ("", 100, 0)
    assert bench.built == 3, "what is known of the tables may be of the past"


def test_a_table_that_cannot_be_compared_is_left_out_and_the_others_are_not():
    orders, users = Pair("orders", 100), Pair("users", 10)
    bench = Bench(orders, users)
    orders.failures = [ConfigurationError("no such table")] * 100
    reported = bench.whole_pass()
    assert users.compared
    assert (reported.number, reported.tables_left_out, reported.rows) == (1, 1, 10)
    assert reported.coverage < 1
    assert "no such table" in reported.findings[0].error
    assert reported.error == ""


def test_what_may_only_be_on_its_way_is_no_difference():
    orders = Pair("orders", 100)
    bench = Bench(orders)
    del orders.target[7]
    orders.note = "the pipeline did not come there"
    reported = bench.until("failing")
    assert (reported.differences, "did not come there" in reported.error) == (0, True)


def test_an_arbiter_that_does_not_answer_costs_no_table():
    orders = Pair("orders", 50_000)
    bench = Bench(orders)
    bench.step()
    bench.clock.time += 6

    def silent(*_):
        raise Unreachable("no answer")

    bench.arbiter.verifications.store = silent
    assert "no answer" in bench.step().error
    for _ in range(10):
        bench.step()
    del bench.arbiter.verifications.store
    reported = bench.whole_pass()
    assert (reported.tables_left_out, reported.error) == (0, "")


def test_its_thread_ends_when_it_is_reported_to():
    bench = Bench(Pair("orders", 100))
    bench.standing.start(lambda: None)
    bench.standing.stop()
    bench.standing.stop()
    assert bench.standing.join(30)


def test_what_differs_in_one_look_only_is_no_difference(logged):
    orders = Pair("orders", 100)
    bench = Bench(orders, repair=True)
    del orders.target[7]
    bench.when(lambda _: len(orders.compared) == 1)
    orders.target[7] = orders.source[7]
    reported = bench.whole_pass()
    assert (reported.differences, reported.counters.found, bench.requests.all()) == (0, 0, [])
    assert len(orders.compared) == 2
    assert logged("verification found differences") == []


def test_what_differs_in_the_second_look_only_is_looked_at_once_more():
    orders = Pair("orders", 100)
    bench = Bench(orders)
    del orders.target[7]
    bench.when(lambda _: len(orders.compared) == 1)
    orders.target[8] = "other"
    assert bench.whole_pass().differences == 2
    assert len(orders.compared) == 3


def test_rows_that_the_other_direction_is_to_bring_are_waited_for():
    orders = Pair("orders", 100)

    def is_planned(_stopping):
        orders.source[101] = orders.target[101]

    bench = Bench(orders, opposite=is_planned)
    orders.target[101] = "of the other site"
    assert bench.whole_pass().differences == 0
    assert len(orders.compared) == 2


def test_nothing_is_reported_while_the_other_direction_does_not_come():
    def late(_stopping):
        raise TransientError("it did not come")

    orders = Pair("orders", 100)
    bench = Bench(orders, opposite=late)
    orders.target[101] = "of the other site"
    reported = bench.until("failing")
    assert (reported.differences, "did not come" in reported.error) == (0, True)


def test_a_source_that_cannot_be_asked_whether_it_is_busy_costs_no_table():
    orders = Pair("orders", 50_000)
    bench = Bench(orders, limits=LoadLimits(threads_running=20))
    bench.when(lambda reported: reported.rows)

    def gone():
        raise TransientError("gone")

    bench.tables.busy = gone
    for _ in range(10):
        assert bench.step().error
    del bench.tables.busy
    reported = bench.whole_pass()
    assert (reported.number, reported.tables_left_out, reported.rows) == (1, 0, 50_000)


def test_a_range_that_is_compared_again_is_as_large_as_before():
    orders = Pair("orders", 100)
    orders.target[60] = "other"
    looking = RangeComparison(None, threading.Event(), ManualClock())
    assert not looking.look(orders, (10,), 60).sure
    looked = looking.look(orders, (10,), 20)
    assert looked.sure
    assert (looked.outcome.last, looked.outcome.verdict.differences) == ((70,), 1)
    assert looking.look(orders, (70,), 20).outcome.last == (90,)


def test_what_is_compared_as_a_whole_is_reported_with_its_reason(caplog):
    caplog.set_level(logging.INFO, logger="setl.run.verification")
    cut, whole = Pair("a", 10), Pair("b", 10)
    whole.whole = "the two sides do not sort their keys alike"
    bench = Bench(cut, whole, every=1)
    bench.whole_pass()
    reported = bench.whole_pass()
    assert reported.whole == {"copy.b": "the two sides do not sort their keys alike"}
    lines = [r for r in caplog.records if r.getMessage() == "target is compared as a whole"]
    assert len(lines) == 1, "it is said once"
