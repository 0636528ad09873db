"""Loads that operators, the channel file and the free gate ask for, one after another."""

from typing import Any

import pytest

from setl.model.load_request import FREE_GATE, RequestState
from setl.model.table_load import TableLoad
from tests.unit.run.loaded_tables import Bench, Tables, finished

pytestmark = pytest.mark.usefixtures("small_ranges")


def test_a_request_is_carried_out_and_answered_once_its_end_is_stored():
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
def test_a_request_is_not_taken_for_one_of_a_zookeeper_before_that_had_its_id(ended):
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
    bench.begin(load)
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
    assert bench.reported.state == "failed"
    good = bench.ask(tables=("shop.a",))
    finished(bench)
    assert bench.request(good).state is RequestState.DONE


def test_a_key_of_the_free_gate_that_is_none_is_reported_though_nothing_else_is_asked_for(caplog):
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
    assert bench.reported.state == "paused"
    assert not bench.loading.due(bench.reached.load)
    bench.begin(TableLoad.from_json(bench.reached.load.to_json()))  # another leader
    assert bench.steps() == []
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
    assert bench.reported.state == "catching up"
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
