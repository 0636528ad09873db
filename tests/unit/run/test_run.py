"""A run with scripted parts: order of fence, checkpoint, load and ack, and what errors do."""

import gc
import time
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest

from setl.errors import (
    CollisionError,
    DataError,
    FatalError,
    FencedError,
    NodeFullError,
    PositionLostError,
    TargetWentBackError,
    TransientError,
)
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.position import document_version, version_generation
from setl.model.session import StatementSession
from setl.run.checkpoints.checkpoint_writer import QUIET_SECONDS
from setl.run.measured.figures import RunState
from setl.select.heartbeat import HeartbeatStatus
from tests.unit.run.scripted_run import ROWS_OF_TWO, TWO, at, transaction
from tests.waiting import eventually


def test_the_fence_comes_first_then_the_initial_checkpoint_then_loads(begun):
    bench = begun(TWO).start()
    eventually(lambda: bench.stored_at == 44, 10)
    assert bench.log[:2] == [("fence", 5), ("store", 4)]
    assert bench.log.index(("load", 34)) < bench.log.index(("store", 44))
    assert bench.job.applied == ROWS_OF_TWO
    assert bench.job.forgotten == 1  # how far tables have come is from an earlier generation


@pytest.mark.parametrize(("heartbeat_id", "lag"), [(1, 0.0), (None, 100.0)])
def test_without_heartbeats_the_streams_own_times_tell_the_lag(begun, heartbeat_id, lag):
    bench = begun(TWO, heartbeat_id=heartbeat_id).start()
    eventually(lambda: bench.progress.figures().rows_applied == 2, 10)
    bench.finish()  # the lag is told after the rows are counted
    assert bench.progress.figures().lag == pytest.approx(lag, abs=30)


def test_a_run_goes_on_from_the_stored_checkpoint(begun):
    entries = [*TWO, *transaction(44, 1)]
    bench = begun(entries, stored=Checkpoint(at(44), rows=2)).start()
    eventually(lambda: bench.job.applied, 10)
    bench.finish()
    assert bench.job.applied == [64]
    assert bench.job.forgotten == 0
    assert bench.store.stored.rows == 3


def test_a_run_reports_when_the_leader_before_stored_what_it_goes_on_from(begun):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    bench.store.stored_before = 40.0
    bench.start()
    eventually(bench.progress.handover_cost, 10)
    bench.finish()
    assert bench.progress.handover_cost().stored_at == 1_700_000_060.0


def test_rows_applied_inside_a_transaction_are_not_applied_again(begun):
    entries = transaction(4, 4)  # rows at 24, 34, 44, 54
    bench = begun(entries, stored=Checkpoint(at(4), applied=at(34), rows=2)).start()
    eventually(lambda: bench.stored_at == 64, 10)
    bench.finish()
    assert bench.source.opened == [4]
    assert bench.job.applied == [44, 54]
    assert bench.store.stored.rows == 4


def test_a_transient_error_rolls_everything_unacked_back_and_loads_it_again(begun):
    # The first load is one batch; the second is the one that fails.
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2)
    bench.job.failures = [None, TransientError("the target went away")]
    bench.start()
    eventually(lambda: bench.stored_at == 84, 10)
    bench.finish()
    assert bench.error is None
    assert bench.job.applied == [24, 34, 64, 74]
    assert bench.source.opened == [4, 44]
    assert bench.progress.figures().retries == 1


def test_what_is_acknowledged_is_not_loaded_again_though_it_is_not_stored_yet(begun):
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2, store_every=3600)
    bench.job.failures = [None, TransientError("the target went away")]
    bench.start()
    eventually(lambda: len(bench.job.applied) == 4, 10)
    bench.finish()
    assert bench.job.applied == [24, 34, 64, 74]
    assert (bench.stored_at, bench.store.stored.rows) == (84, 4)


def test_a_target_that_lost_what_it_had_acknowledged_gets_it_again(begun):
    # A replica has taken its place, which had not got the last transactions.
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2, stored=Checkpoint(at(4), began=True))
    loads = bench.job.run

    def lost(rows, *args):
        if not bench.progress.figures().retries and rows[0].entry.position.offset == 64:
            bench.store.stored = Checkpoint(at(4), began=True)
            raise TransientError("the connection was lost")
        return loads(rows, *args)

    bench.job.run = lost
    bench.start()
    eventually(lambda: bench.stored_at == 84, 10)
    bench.finish()
    assert bench.job.applied == [24, 34, 24, 34, 64, 74]


def test_work_that_has_to_go_back_further_is_read_for_from_there(begun):
    # Such as a relay whose topic has lost its last records.
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2, stored=Checkpoint(at(4), began=True))
    bench.job.failures = [None, TransientError("the topic went away")]
    begin = bench.work.begin
    bench.work.begin = lambda checkpoint: begin(Checkpoint(at(4), began=True))
    bench.start()
    eventually(lambda: bench.stored_at == 84, 10)
    bench.finish()
    assert bench.source.opened == [4, 44, 4]
    assert bench.job.applied == [24, 34, 24, 34, 64, 74]


@pytest.mark.parametrize(("server", "reported"), [("db1:3306", True), ("db2:3306", False)])
def test_a_source_whose_commits_hang_is_reported_of_when_it_answers_nothing(
    begun, server, reported
):
    beats = HeartbeatStatus(3, 1, 100.0, "the commit does not end", hangs_at="db1:3306")
    bench = begun(TWO, heartbeat=SimpleNamespace(status=lambda: beats, stop=lambda: None))
    bench.run._count(TransientError("the read operation timed out", server=server))
    assert ("its disk is full" in bench.progress.figures().error) is reported


def test_what_is_done_again_before_the_same_failure_is_no_success(begun):
    # Rows of another table are dropped, which is acknowledged, and stored only now and then.
    bench = begun([*transaction(4, 3, "other"), *transaction(54, 2)], store_every=3600)
    seen = []

    def fails(*_):
        figures = bench.progress.figures()
        seen.append((figures.attempts, figures.state, bool(figures.error)))
        raise TransientError("the target's disk is full")

    loads, bench.job.run = bench.job.run, fails
    bench.start()
    eventually(lambda: len(seen) >= 3, 20)
    assert bench.source.opened[:3] == [4, 54, 54], "what was acknowledged is not read again"
    assert seen[:3] == [
        (0, RunState.RUNNING, False),
        (1, RunState.RETRYING, True),
        (2, RunState.RETRYING, True),
    ]
    bench.job.run = loads
    eventually(lambda: bench.progress.figures().rows_applied == 2, 20)
    eventually(lambda: bench.progress.figures().state is RunState.RUNNING)
    figures = bench.progress.figures()
    assert (figures.attempts, figures.error) == (0, "")


def test_a_checkpoint_that_cannot_be_stored_leaves_the_attempt_a_failed_one(begun):
    bench = begun(TWO)
    bench.store.stored = Checkpoint(at(4), began=True)
    bench.store.failures = [TransientError("the target's disk is full") for _ in range(3)]
    seen = []
    loads = bench.job.run

    def noting(*args):
        seen.append(bench.progress.figures().attempts)
        return loads(*args)

    bench.job.run = noting
    bench.start()
    eventually(lambda: len(seen) >= 4, 20)
    assert seen[:4] == [0, 1, 2, 3]


def test_what_is_rolled_back_is_freed_before_it_is_read_again_even_if_it_hangs_together(begun):
    class KnottedError(TransientError):
        pass

    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2)
    bench.job.failures = [None, KnottedError("the target went away")]
    bench.job.failures[1].itself = bench.job.failures[1]
    held = weakref.ref(bench.job.failures[1])
    gc.disable()
    try:
        bench.start()
        eventually(lambda: bench.stored_at == 84, 10)
        assert held() is None
    finally:
        gc.enable()
    bench.finish()
    assert bench.progress.figures().retries == 1


def test_a_load_that_left_tasks_behind_is_not_repeated_under_the_same_epoch(begun):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    bench.job.failures = [TransientError("a worker ended")]
    bench.job.abandoned = True
    bench.start()
    bench.thread.join(60)
    assert isinstance(bench.error, TransientError)
    assert bench.run.abandoned
    assert bench.job.applied == []


def test_a_full_disk_of_the_node_ends_the_run(begun):
    """Under this leadership it would be tried again here, while other nodes have room."""
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    bench.job.failures = [NodeFullError("No space left on device")]
    bench.start()
    bench.thread.join(60)
    bench.finish()
    assert isinstance(bench.error, NodeFullError)
    assert bench.job.applied == []


def test_a_target_that_was_set_back_is_taken_over_under_another_epoch(begun):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    bench.job.failures = [TargetWentBackError("the fence stands at epoch 3")]
    bench.start()
    bench.thread.join(60)
    assert isinstance(bench.error, TargetWentBackError)
    assert [what for what in bench.log if what[0] == "fence"] == [("fence", 5)]
    assert bench.job.applied == []


def test_a_target_that_lost_its_checkpoint_too_is_not_begun_again(begun):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    bench.job.failures = [TargetWentBackError("the fence has no row")]
    bench.store.load = iter([Checkpoint(at(4), began=True), None]).__next__
    bench.start()
    bench.thread.join(60)
    assert isinstance(bench.error, FatalError)
    assert "its checkpoint is gone, which was last binlog.000001:4" in str(bench.error)


def test_a_checkpoint_that_cannot_be_stored_is_not_acknowledged(begun):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    bench.store.failures = [TransientError("no answer")]
    bench.start()
    eventually(lambda: bench.stored_at == 44, 10)
    bench.finish()
    # The rows are loaded again, since nobody knows that they were applied.
    assert bench.job.applied == ROWS_OF_TWO * 2
    assert bench.store.stored.rows == 2


@pytest.mark.parametrize("error", [DataError("bad row"), FencedError("newer epoch")])
def test_an_error_that_stays_ends_the_run_and_moves_no_checkpoint(begun, error):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    bench.job.failures = [error]
    bench.start()
    bench.thread.join(60)
    assert bench.error is error
    assert bench.stored_at == 4
    assert bench.job.applied == []


def test_what_piles_up_is_loaded_together_and_acknowledged_in_order(begun):
    entries = [e for i in range(12) for e in transaction(4 + 40 * i, 2)]
    bench = begun(entries, batch_rows=2, rows_per_load=100)
    bench.run.suspend()
    bench.start()
    eventually(lambda: bench.progress.figures().state is not RunState.STANDBY, 10)
    bench.run.resume()
    eventually(lambda: len(bench.job.applied) == 24, 10)
    assert bench.job.applied == sorted(bench.job.applied)
    assert bench.progress.figures().loads <= bench.progress.figures().batches


def test_a_schema_change_stops_the_pipeline_if_the_channel_says_so(begun):
    ddl = Entry(EntryKind.DDL, at(54), 0.0, "shop", "orders", statement="ALTER TABLE orders ADD x")
    bench = begun([*TWO, ddl, *transaction(54, 1)], ddl="stop").start()
    bench.thread.join(60)
    assert isinstance(bench.error, FatalError)
    assert "ALTER TABLE" in str(bench.error)
    assert bench.job.applied == ROWS_OF_TWO
    assert bench.stored_at == 44


def test_a_schema_change_is_replicated_alone_between_two_checkpoints(begun):
    ddl = Entry(
        EntryKind.DDL,
        at(54),
        0.0,
        "shop",
        "orders",
        "0-1-7",
        statement="TRUNCATE orders",
        session=StatementSession("other"),
    )
    # However seldom checkpoints are stored: rows from before it must not come again behind it.
    bench = begun([*TWO, ddl, *transaction(54, 1)], ddl="pass", store_every=60.0).start()
    eventually(lambda: bench.job.applied == [*ROWS_OF_TWO, 74], 10)
    assert bench.log == [
        *[("fence", 5), ("store", 4), ("load", 34)],
        *[("store", 44), ("ddl", 54), ("store", 54), ("load", 74)],
    ]
    (change,) = bench.ddl.changes
    assert (change.id, change.session.schema, change.generation) == ("0-1-7", "other", 1)
    before, after = (ticket.schema_version for ticket in bench.job.tickets)
    assert before != after
    figures = bench.progress.figures()
    assert (figures.ddl_replicated, figures.last_ddl) == (1, "TRUNCATE orders")


def test_an_ignored_schema_change_is_counted(begun):
    ddl = Entry(EntryKind.DDL, at(54), 0.0, "shop", "orders", statement="ALTER TABLE orders ADD x")
    bench = begun([*TWO, ddl, *transaction(54, 1)]).start()
    eventually(lambda: bench.job.applied == [*ROWS_OF_TWO, 74], 10)
    assert bench.progress.figures().ddl_ignored == 1
    before, after = (ticket.schema_version for ticket in bench.job.tickets)
    assert before != after, "somebody has changed the target about now"


def test_a_statement_that_passes_is_counted_by_its_schema(begun):
    def statement(position, schema):
        text = f"DELETE FROM {schema}.t"
        return Entry(EntryKind.STATEMENT, at(position), 0.0, schema, statement=text)

    mixed = transaction(54, 1)
    bench = begun(
        [*TWO, statement(50, "x"), statement(51, "y"), statement(52, "y"), *mixed]
    ).start()
    eventually(lambda: bench.job.applied == [*ROWS_OF_TWO, 74], 10)
    figures = bench.progress.figures()
    assert figures.statements_skipped == 3
    assert {n: reported.number for n, reported in figures.statements_by_schema.items()} == {
        "x": 1,
        "y": 2,
    }


def test_a_higher_generation_starts_over_where_the_source_says(begun):
    bench = begun(TWO, stored=Checkpoint(at(44), rows=2), generation=2).start()
    eventually(lambda: bench.job.applied == ROWS_OF_TWO, 10)
    bench.finish()
    assert bench.store.stored.generation == 2
    assert bench.store.stored.rows == 4


def test_a_position_that_moved_is_stored_before_anything_is_selected(begun):
    """A crash in between leaves the old checkpoint, which leads to the same position again."""
    bench = begun(TWO, stored=Checkpoint(at(90), applied=at(95), rows=2, generation=3))
    located = []

    def locate(checkpoint):
        located.append(checkpoint)
        return checkpoint if checkpoint.generation > 3 else checkpoint.moved_to(at(4))

    bench.source.locate = locate
    bench.store.failures = [TransientError("the target is down")]
    bench.start()
    eventually(lambda: bench.job.applied == ROWS_OF_TWO, 10)
    bench.finish()
    assert [c.generation for c in located] == [3, 3]
    assert bench.source.opened == [4]
    assert bench.log.index(("store", 4)) < bench.log.index(("load", 34))
    assert (bench.store.stored.generation, bench.store.stored.rows) == (4, 4)
    assert version_generation(bench.job.tickets[-1].through) == 4


def test_what_was_applied_before_comes_in_one_load(begun):
    """A target with unique keys never holds rows of two places of the stream at once."""
    entries = []
    for second, start in enumerate(range(4, 404, 40)):
        entries += [e._replace(timestamp=1_700_000_000.0 + second) for e in transaction(start, 2)]
    stored = Checkpoint(at(90), timestamp=1_700_000_006.0, generation=3)
    bench = begun(entries, stored=stored, batch_rows=2)
    bench.source.locate = lambda c: c if c.generation > 3 else c.moved_to(at(4))
    read = bench.source.read
    bench.source.read = lambda limit, timeout, _: read(3, timeout)  # slowly
    bench.start()
    eventually(lambda: len(bench.job.applied) == 20, 10)
    bench.finish()
    before, *after = [offset for what, offset in bench.log if what == "load"]
    assert before >= 4 + 6 * 40 + 30, "the seventh transaction is the last that was applied"
    assert after, "what is new comes as ever"
    # The rows of the seventh transaction end at 274; what was new counts as such.
    assert bench.job.throughs[0] == document_version(4, at(274))
    assert set(bench.job.throughs[1:]) == {0}
    assert not bench.store.stored.repeats


def test_what_was_applied_before_may_end_the_stream(begun):
    stored = Checkpoint(at(90), timestamp=1_700_000_006.0, generation=3).moved_to(at(4))
    bench = begun(TWO, stored=stored)
    bench.start()
    eventually(lambda: bench.job.applied == ROWS_OF_TWO, 10)
    bench.finish()
    assert bench.store.stored.repeats, "there may be more of it"


def test_a_row_in_the_way_is_waited_out_while_what_was_applied_comes_again(begun):
    stored = Checkpoint(at(90), timestamp=1_700_000_006.0, generation=3).moved_to(at(4))
    bench = begun(TWO, stored=stored)
    bench.job.failures = [CollisionError("another row conflicts with it")]
    bench.start()
    eventually(lambda: bench.job.applied == ROWS_OF_TWO, 15)
    assert bench.progress.figures().retries == 1


def test_a_row_in_the_way_of_a_new_one_is_final(begun):
    bench = begun(TWO, stored=Checkpoint(at(4), timestamp=1_600_000_000.0))
    bench.job.failures = [CollisionError("another row conflicts with it")]
    bench.start()
    bench.thread.join(60)
    assert isinstance(bench.error, CollisionError)


def test_a_position_that_is_lost_ends_the_run_at_once(begun):
    bench = begun(TWO, stored=Checkpoint(at(90)))

    def locate(checkpoint):
        raise PositionLostError("it was purged", position=checkpoint.resume)

    bench.source.locate = locate
    bench.start()
    bench.thread.join(60)
    assert isinstance(bench.error, PositionLostError)
    assert bench.source.opened == []
    assert bench.progress.figures().retries == 0
    assert bench.store.stored == Checkpoint(at(90))


def test_foreign_rows_move_the_checkpoint_only_now_and_then(begun):
    bench = begun(transaction(4, 2, table="other"), stored=Checkpoint(at(4), began=True)).start()
    eventually(lambda: bench.progress.figures().batches > 0, 10)
    assert [what for what, _ in bench.log if what == "store"] == []
    bench.finish()
    # A planned stop keeps the position, so that the next leader reads nothing twice.
    assert bench.stored_at == 44


def beat(offset):
    return Entry(EntryKind.HEARTBEAT, at(offset), 1_700_000_040.0)


@pytest.fixture
def quiet(begun):
    """A run that has applied all there is, and waits; its source goes on with what it is given."""
    bench = begun(TWO, heartbeat_id=None)
    coming = []

    def read(limit, timeout, absorbs):
        return coming.pop(0) if coming else first(limit, timeout, absorbs)

    first, bench.source.read = bench.source.read, read
    bench.goes_on, bench.loads = coming.append, []
    apply = bench.work.apply

    def noted(batches, allowed):
        bench.loads.append([e.position.offset for batch in batches for e in batch.entries])
        return apply(batches, allowed)

    bench.work.apply = noted
    bench.start()
    eventually(lambda: bench.stored_at == 44, 10)
    bench.loads.clear()
    return bench


def shown_at(bench, offset):
    return bench.progress.figures().position == str(at(offset))


def test_heartbeats_move_a_waiting_run_on_and_do_not_wake_it(quiet):
    for offset in (54, 64):
        quiet.goes_on([beat(offset)])
        eventually(lambda offset=offset: shown_at(quiet, offset), 10)
    assert quiet.progress.figures().lag == pytest.approx(60, abs=5)
    assert quiet.loads == []
    quiet.goes_on(transaction(64, 1))
    eventually(lambda: quiet.stored_at == 94, 10)
    quiet.goes_on([beat(104)])
    eventually(lambda: shown_at(quiet, 104), 10)
    quiet.finish()
    assert (quiet.store.stored.resume.offset, quiet.store.stored.rows) == (104, 3)
    assert (quiet.job.applied, quiet.loads) == ([*ROWS_OF_TWO, 84], [[74, 84, 94]])


def test_heartbeats_an_hour_apart_do_not_tell_the_lag(begun):
    nothing = SimpleNamespace(status=HeartbeatStatus, start=lambda: None, stop=lambda: None)
    bench = begun(TWO, heartbeat=SimpleNamespace(**vars(nothing), interval=3600))
    bench.progress.sample_lag(6.0)
    bench.start()
    eventually(lambda: bench.stored_at == 44, 10)
    clock = bench.progress._lag._clock
    clock.monotonic = lambda: time.monotonic() + 60
    eventually(lambda: bench.progress.figures().lag < 6, 10)
    bench.finish()


def test_what_passed_by_is_stored_as_often_as_ever(quiet):
    quiet.goes_on([beat(54)])
    eventually(lambda: quiet.stored_at == 54, 10)
    assert quiet.loads == []


def test_no_heartbeat_is_absorbed_while_no_load_may_start(quiet):
    quiet.run.suspend()
    quiet.goes_on([beat(54)])
    eventually(lambda: quiet.loads == [[54]], 10)
    assert shown_at(quiet, 44)
    quiet.run.resume()
    eventually(lambda: shown_at(quiet, 54), 10)


def test_no_heartbeat_is_absorbed_while_dead_letters_wait(quiet):
    quiet.work._letters = SimpleNamespace(
        tables_with_dead_letters={"shop.orders"}, look=lambda *_: None
    )
    quiet.goes_on([beat(54)])
    eventually(lambda: quiet.loads == [[54]], 10)


def test_heartbeats_inside_a_transaction_come_with_it(quiet):
    begin, row, commit = transaction(44, 1)
    quiet.goes_on([begin, beat(55)])
    quiet.goes_on([row, commit])
    eventually(lambda: quiet.stored_at == 74, 10)
    assert quiet.job.applied == [*ROWS_OF_TWO, 64]
    assert [offset for load in quiet.loads for offset in load] == [54, 55, 64, 74]


def test_a_quiet_run_wakes_up_for_checkpoints_where_heartbeats_are_absorbed(begun, monkeypatch):
    beats = HeartbeatStatus()
    heartbeat = SimpleNamespace(status=lambda: beats, stop=lambda: None, interval=1)
    bench = begun(TWO, heartbeat=heartbeat)
    monkeypatch.setattr(type(bench.run._checkpoints), "quiet", True)
    bench.progress.enter(RunState.RUNNING)
    assert bench.run._patience() == QUIET_SECONDS
    for seldom in (False, True):
        monkeypatch.setattr(bench.work, "absorbs", lambda _, seldom=seldom: seldom)
        beats = replace(beats, error="read-only" if seldom else "")
        assert bench.run._patience() < 1.5, "lag, dead letters and a relay are looked at as ever"
