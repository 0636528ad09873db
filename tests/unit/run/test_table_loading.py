"""Which ranges of which tables a step loads, and when a load is over."""

from dataclasses import replace

import pytest

from setl.channel.fields.load_limits import LoadLimits
from setl.errors import ConfigurationError, DataError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition
from setl.model.table_load import TableLoad
from setl.run.table_loads import loading as table_loading
from setl.run.table_loads.refusals import RefusedTables
from tests.unit.run.loaded_tables import ROWS_IN_A_STEP, Bench, Job, Router, Tables, everything

pytestmark = pytest.mark.usefixtures("small_ranges")


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


def test_each_step_reports_how_far_what_it_has_read_may_be_ahead_of_the_stream():
    """A replica that replaces the source has to have all of that."""
    bench = Bench(Tables(a=1700))
    bench.begin(TableLoad("x"))
    ends, load = [], bench.reached.load
    while load.until is None:
        load = bench.step()
        ends.append(load.unreached)
        moved = bench.reached.moved_to(BinlogPosition("elsewhere.000001", 4)).load
        assert (moved.until, moved.unreached) == (None, load.unreached)
        bench.end = BinlogPosition("bin.000001", bench.end.offset + 100, gtid=f"0-1-{len(ends)}")
    assert len(ends) > 2
    assert len(set(ends)) == len(ends)
    assert replace(load, ended=5.0).unreached is None


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
    assert bench.reported.state == "done"
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


def test_tables_that_take_each_others_names_are_read_again_and_reported():
    bench = Bench(Tables(a=3, z=3))
    bench.begin(TableLoad("x"))
    bench.read_all()
    brought(bench, "RENAME TABLE a TO x, z TO a, x TO z")
    bench.read_all()
    assert len(bench.job.loaded) == 12
    bench.stream_at(900)
    assert "--table shop.a --table shop.z --replace" in bench.step().error


def test_actions_of_foreign_keys_that_met_rows_ahead_of_the_stream_are_reported():
    bench = Bench(Tables(a=3, z=3))
    bench.begin(TableLoad("x"))
    family = {("shop", "a"), ("shop", "z")}
    acted = bench.loading.after_actions(["shop.z"], family, bench.reached.load)
    assert acted is not None
    assert acted.acted == ("shop.z",)
    assert TableLoad.from_json(acted.to_json()) == acted
    assert bench.loading.after_actions(["shop.z"], family, acted) is None
    assert bench.loading.after_actions(["shop.z"], family, replace(acted, ended=1.0)) is None
    some = TableLoad("x", tables=("shop.a",))
    assert bench.loading.after_actions(["shop.y"], {("shop", "y")}, some) is None
    bench.begin(acted)
    bench.read_all()
    bench.stream_at(900)
    assert "`setl load --table shop.z --replace`" in bench.step().error


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


def test_a_table_that_is_changed_again_is_waited_for_again():
    lacks = "lacks the columns {}"
    bench = Bench(Tables(a=3))
    bench.job.failures = [ConfigurationError(lacks.format(n), table="a") for n in "cdc"]
    bench.begin(TableLoad("x"))
    assert bench.step() is None
    bench.stream_at(900)
    assert bench.step() is None  # another column by now
    with pytest.raises(ConfigurationError, match="columns c"):
        bench.step()


def test_errors_that_are_never_the_same_end_a_load_all_the_same():
    refusals = RefusedTables()
    reported = [refusals.may_skip(DataError(f"row {n}")) for n in range(100)]
    assert reported[0]
    assert not reported[-1]
    refusals.forget()
    assert refusals.may_skip(DataError("row 99"))
    assert not refusals.may_skip(TransientError("gone"))


def test_what_both_sites_write_is_read_as_far_as_it_is_decided():
    router = Router()
    router.conflict = "home"
    tables = Tables(a=3)
    bench = Bench(tables, router)
    bench.begin(TableLoad("x"))
    bench.read_all()
    assert tables.tables["shop", "a"].decided_for == ["c/back"]
    assert bench.job.loaded == everything(tables)


def test_a_load_waits_for_the_other_site_to_read_what_is_stored_for_it():
    bench = Bench(Tables(a=3))
    bench.begin(TableLoad("x"))
    bench.unpassed = 100_001
    assert bench.step() is None
    assert bench.reported.waits_for == "the opposite pipeline c/back has rows to read"
    assert not bench.loading.due(bench.reached.load)
    bench.unpassed = 99_999
    bench.clock.time += 2.0
    assert bench.loading.due(bench.reached.load)
    bench.read_all()
    assert len(bench.job.loaded) == 3


def test_a_load_is_stored_as_json():
    load = TableLoad(
        "x", ("s.a",), ("s.* ->",), True, "s.a", (1, "ä\udcff", b"\x00\xff", None, 1.5), 7, 3.5,
        BinlogPosition("bin.000002", 4, "0-1-2"), 4.5, 9.0, True, "why", ("s.* ->",),
        ("s.b",), ("s.c", "s.d"), (("s.c", "s.d"),), 4, 2.5, BinlogPosition("bin.000002", 9),
        ("s.a", "s.e"),
    )  # fmt: skip
    assert TableLoad.from_json(load.to_json()) == load
    checkpoint = Checkpoint(BinlogPosition("bin.000002", 4), load=load)
    assert Checkpoint.from_json(checkpoint.to_json()) == checkpoint
    assert checkpoint.moved_to(BinlogPosition("bin.000009", 4)).load == load.elsewhere


# -- requests ------------------------------------------------------------------------------


def test_a_stream_that_comes_late_is_waited_for_by_the_clock_of_its_server():
    bench = Bench(Tables(a=3), has_end=False)
    bench.begin(TableLoad("x"))
    load = bench.steps()[-1]
    assert (load.until, load.until_time) == (None, 1000.5)
    bench.reached = replace(bench.reached, timestamp=1000.0)
    assert bench.step() is None
    bench.reached = replace(bench.reached, timestamp=1001.0)
    assert bench.step().ended


# -- limits --------------------------------------------------------------------------------


def test_a_load_reports_how_much_is_left_and_for_how_long():
    bench = Bench(Tables(a=5000))
    bench.begin(None)
    bench.ask()
    bench.step()
    bench.step()
    reported = bench.reported
    assert (reported.rows, reported.rows_expected) == (1000, 5000)
    assert reported.seconds_left == pytest.approx(4000 * 0.3 / ROWS_IN_A_STEP, abs=0.1)
    assert reported.bytes_per_second == pytest.approx(100 * ROWS_IN_A_STEP / 0.3, rel=0.01)


def test_a_load_reports_how_far_it_is_in_a_table():
    bench = Bench(Tables(a=300, b=5000))
    bench.begin(TableLoad("x"))
    while bench.reported.table != "shop.b":
        bench.step()
    before, reported = len(bench.job.loaded) - 300, bench.reported
    assert (reported.table_rows, reported.table_rows_expected) == (before, 5000)
    bench.begin(TableLoad.from_json(bench.reached.load.to_json()))
    bench.step()
    assert bench.reported.table_rows == len(bench.job.loaded) - 300 > before


def test_a_busy_source_is_throttle_count_to():
    tables = Tables(a=5000)
    bench = Bench(tables, limits=LoadLimits(threads_running=8))
    bench.begin(TableLoad("x", taken=()))
    bench.step()
    tables.running = 9
    before = len(bench.job.loaded)
    assert bench.step() is None
    assert not bench.loading.due(bench.reached.load)
    assert (bench.reported.throttle_count, bench.reported.waits_for) == (
        1, "the source carries out 9 statements",
    )  # fmt: skip
    bench.clock.time += 1.0
    tables.running = 8
    assert bench.loading.due(bench.reached.load)
    bench.step()
    assert len(bench.job.loaded) > before
    assert bench.reported.waits_for == ""


def test_a_load_is_throttled_while_the_target_is_behind():
    bench = Bench(Tables(a=5000), limits=LoadLimits(lag=2.0))
    bench.begin(TableLoad("x", taken=()))
    bench.loading._throttle._lag = lambda: 2.5
    assert bench.step() is None
    assert bench.reported.waits_for == "the target is 2.5 s behind"
    bench.loading._throttle._lag = lambda: None
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
