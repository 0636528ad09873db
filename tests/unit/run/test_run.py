"""A run with scripted parts: order of fence, checkpoint, load and ack, and what errors do."""

import gc
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from setl.codec.dts.rows import DtsRowCodec
from setl.errors import (
    CollisionError,
    DataError,
    FatalError,
    FencedError,
    PositionLostError,
    SetlError,
    TargetWentBackError,
    TransientError,
)
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition, document_version, version_generation
from setl.model.session import StatementSession
from setl.run.etl_work import EtlParts, EtlWork
from setl.run.figures import RunState
from setl.run.progress import Progress
from setl.run.run import PipelineRun, RunParts
from setl.run.schema_changes import SchemaChangePolicy
from setl.run.table_loading_parts import TableLoadingParts
from setl.select.batching import BatchSettings
from setl.select.reader import SelectLoop, SelectSettings
from tests.waiting import eventually


def at(offset):
    return BinlogPosition("binlog.000001", offset)


def transaction(start, rows, table="orders"):
    """BEGIN, single-row entries, COMMIT; every entry is ten bytes long."""
    kinds = [EntryKind.BEGIN, *[EntryKind.ROWS] * rows, EntryKind.COMMIT]
    return [
        Entry(
            kind,
            at(start + 10 * (i + 1)),
            1_700_000_000.0,
            "shop" if kind is EntryKind.ROWS else "",
            table if kind is EntryKind.ROWS else "",
            rows=1 if kind is EntryKind.ROWS else 0,
            payload=b"x" if kind is EntryKind.ROWS else b"",
        )
        for i, kind in enumerate(kinds)
    ]


class ScriptedSource:
    """A stream that is always all there; remembers where it was opened."""

    def __init__(self, entries):
        self.entries = entries
        self.opened = []
        self._rest = []

    def initial(self):
        return at(4)

    def locate(self, checkpoint):
        return checkpoint

    def open(self, position):
        self.opened.append(position.offset)
        self._rest = [e for e in self.entries if e.position.offset > position.offset]

    def read(self, limit, timeout):
        if not self._rest:
            threading.Event().wait(min(timeout, 0.01))
        part, self._rest = self._rest[:limit], self._rest[limit:]
        return part

    def latest(self):
        return self.entries[-1].position

    def behind(self):
        return None

    def waiting_for(self):
        return ""

    def shared(self):
        return False

    def close(self):
        pass

    release = close


class Log(list):
    """What happened, in order, over all parts."""


class RecordingStore:
    def __init__(self, log, stored=None):
        self.log = log
        self.stored = stored
        self.failures = []

    def load(self):
        return self.stored

    def store(self, checkpoint, epoch):
        if self.failures:
            raise self.failures.pop(0)
        self.log.append(("store", checkpoint.resume.offset))
        self.stored = checkpoint

    def close(self):
        self.log.append(("close", 0))


class RecordingFence:
    def __init__(self, log):
        self.log = log

    def raise_to(self, epoch, nid):
        self.log.append(("fence", epoch))

    def end_writers(self, epoch):
        self.log.append(("end writers", epoch))


class RecordingJob:
    """Applies rows by noting their positions; fails as told."""

    def __init__(self, log):
        self.log = log
        self.failures = []
        self.applied = []
        self.tickets = []
        self.throughs = []
        self.cancelled = threading.Event()
        self.abandoned = False
        self.forgotten = 0

    def forget_loaded(self, ticket):
        self.forgotten += 1

    def applied_through(self, ticket):
        return 0

    def run(self, rows, ticket, redelivered_through):
        if self.failures:
            failure = self.failures.pop(0)
            if failure is not None:
                raise failure
        self.log.append(("load", rows[-1].entry.position.offset))
        self.tickets.append(ticket)
        self.throughs.append(redelivered_through)
        self.applied += [row.entry.position.offset for row in rows]
        return Loaded(rows=len(rows))

    def cancel(self):
        self.cancelled.set()


class Routing:
    def route(self, schema, table):
        return (SimpleNamespace(index=0),) if table == "orders" else ()

    def shadow(self, schema, table):
        return None


class RecordingDdl:
    """Passes schema changes on by noting what they are."""

    def __init__(self, log):
        self.log = log
        self.changes = []

    def apply(self, ticket, change):
        self.log.append(("ddl", ticket.through & 0xFFFFFFFF))
        self.changes.append(change)
        return [change.statement]


def no_tables():
    """For pipelines that load none."""

    def never(*_):
        raise AssertionError("nobody asks for tables")

    unused: Any = SimpleNamespace()
    requests: Any = SimpleNamespace(unanswered=list)
    return TableLoadingParts(unused, never, never, never, unused, never, requests)


class Bench:
    """A run with all its parts at hand."""

    def __init__(self, entries, stored=None, **changes):
        self.log = Log()
        self.source = ScriptedSource(entries)
        self.store = RecordingStore(self.log, stored)
        self.job = RecordingJob(self.log)
        clock: Any = SimpleNamespace(monotonic=time.monotonic, now=lambda: 1_700_000_100.0)
        routing: Any = Routing()
        codec = DtsRowCodec()  # to which any bytes are one record
        self.progress = Progress(clock)
        settings = SelectSettings(batch=BatchSettings(rows=changes.pop("batch_rows", 3), wait=0.01))
        leading = Leadership("shop", "orders", "n1", 5)
        ddl = changes.pop("ddl", "ignore")
        self.ddl = RecordingDdl(self.log) if ddl == "pass" else None
        work = EtlParts(
            extractor=Extractor(routing, MarkIdentity(7), codec),
            job=self.job,
            fence=RecordingFence(self.log),
            heartbeat_id=changes.pop("heartbeat_id", 1),
            ddl=SchemaChangePolicy(ddl, self.ddl, leading, self.progress),
            rows_per_load=changes.pop("rows_per_load", 100),
            tables=no_tables(),
        )
        self.work: Any = EtlWork(work, leading, self.progress, clock)
        parts = RunParts(
            source=self.source,
            work=self.work,
            store=self.store,
            heartbeat=None,
            select=SelectLoop(self.source, settings, epoch=5, name="shop/orders"),
            generation=changes.pop("generation", 1),
            store_every=changes.pop("store_every", 0.0),
            beside=changes.pop("beside", None),
        )
        self.run = PipelineRun(parts, leading, self.progress, clock)
        self.error = None
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self):
        try:
            self.run.run()
        except SetlError as error:
            self.error = error

    def start(self):
        self.thread.start()
        return self

    def finish(self):
        self.run.stop()
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.fixture
def begun():
    benches = []

    def begin(entries, **changes):
        bench = Bench(entries, **changes)
        benches.append(bench)
        return bench

    yield begin
    for bench in benches:
        bench.run.abort()
        if bench.thread.ident:
            bench.thread.join(10)


ROWS_OF_TWO = [24, 34]
TWO = transaction(4, 2)  # rows at 24 and 34, commit at 44


def test_the_fence_comes_first_then_the_initial_checkpoint_then_loads(begun):
    bench = begun(TWO).start()
    eventually(lambda: bench.store.stored and bench.store.stored.resume.offset == 44, 10)
    assert bench.log[:2] == [("fence", 5), ("store", 4)]
    assert bench.log.index(("load", 34)) < bench.log.index(("store", 44))
    assert bench.job.applied == ROWS_OF_TWO
    assert bench.job.forgotten == 1  # how far tables have come is of another life


def test_a_stop_does_not_wait_for_the_next_look(begun, monkeypatch):
    monkeypatch.setattr("setl.run.run._POLL_SECONDS", 60.0)
    bench = begun(TWO).start()
    eventually(lambda: bench.store.stored and bench.store.stored.resume.offset == 44, 10)
    bench.run.stop()
    bench.thread.join(10)
    assert not bench.thread.is_alive()


@pytest.mark.parametrize(("heartbeat_id", "lag"), [(1, 0.0), (None, 100.0)])
def test_without_heartbeats_the_streams_own_times_tell_the_lag(begun, heartbeat_id, lag):
    bench = begun(TWO, heartbeat_id=heartbeat_id).start()
    eventually(lambda: bench.progress.figures().rows_applied == 2, 10)
    assert bench.progress.figures().lag == pytest.approx(lag, abs=30)


def test_a_run_goes_on_from_the_stored_checkpoint(begun):
    entries = [*TWO, *transaction(44, 1)]
    bench = begun(entries, stored=Checkpoint(at(44), rows=2)).start()
    eventually(lambda: bench.job.applied, 10)
    bench.finish()
    assert bench.job.applied == [64]
    assert bench.job.forgotten == 0
    assert bench.store.stored.rows == 3


def test_rows_applied_inside_a_transaction_are_not_applied_again(begun):
    entries = transaction(4, 4)  # rows at 24, 34, 44, 54
    bench = begun(entries, stored=Checkpoint(at(4), applied=at(34), rows=2)).start()
    eventually(lambda: bench.store.stored.resume.offset == 64, 10)
    bench.finish()
    assert bench.source.opened == [4]
    assert bench.job.applied == [44, 54]
    assert bench.store.stored.rows == 4


def test_a_transient_error_rolls_everything_unacked_back_and_loads_it_again(begun):
    # The first load is one batch; the second is the one that fails.
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2)
    bench.job.failures = [None, TransientError("the target went away")]
    bench.start()
    eventually(lambda: bench.store.stored.resume.offset == 84, 10)
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
    assert (bench.store.stored.resume.offset, bench.store.stored.rows) == (84, 4)


def test_a_target_that_lost_what_it_had_acknowledged_gets_it_again(begun):
    # A replica has taken its place, which had not got the last transactions.
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2, stored=Checkpoint(at(4)))
    loads = bench.job.run

    def lost(rows, *args):
        if not bench.progress.figures().retries and rows[0].entry.position.offset == 64:
            bench.store.stored = Checkpoint(at(4))
            raise TransientError("the connection was lost")
        return loads(rows, *args)

    bench.job.run = lost
    bench.start()
    eventually(lambda: bench.store.stored.resume.offset == 84, 10)
    bench.finish()
    assert bench.job.applied == [24, 34, 24, 34, 64, 74]


def test_work_that_has_to_go_back_further_is_read_for_from_there(begun):
    # Such as a relay whose topic has lost its last records.
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2, stored=Checkpoint(at(4)))
    bench.job.failures = [None, TransientError("the topic went away")]
    begin = bench.work.begin
    bench.work.begin = lambda checkpoint: begin(Checkpoint(at(4)))
    bench.start()
    eventually(lambda: bench.store.stored.resume.offset == 84, 10)
    bench.finish()
    assert bench.source.opened == [4, 44, 4]
    assert bench.job.applied == [24, 34, 24, 34, 64, 74]


def test_a_rollback_that_was_asked_for_while_it_waits_goes_to_what_is_stored(begun):
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2, store_every=3600)
    bench.store.stored = Checkpoint(at(4))
    loads = bench.job.run

    def fails(rows, *args):
        if rows[0].entry.position.offset == 64 and not bench.progress.figures().retries:
            bench.run.rollback()
            raise TransientError("the target went away")
        return loads(rows, *args)

    bench.job.run = fails
    bench.start()
    eventually(lambda: len(bench.job.applied) == 6, 10)
    bench.finish()
    assert bench.job.applied == [24, 34, 24, 34, 64, 74]


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
    bench.store.stored = Checkpoint(at(4))
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
        eventually(lambda: bench.store.stored.resume.offset == 84, 10)
        assert held() is None
    finally:
        gc.enable()
    bench.finish()
    assert bench.progress.figures().retries == 1


def test_a_load_that_left_tasks_behind_is_not_repeated_under_the_same_epoch(begun):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    bench.job.failures = [TransientError("a worker ended")]
    bench.job.abandoned = True
    bench.start()
    bench.thread.join(10)
    assert isinstance(bench.error, TransientError)
    assert bench.run.abandoned
    assert bench.job.applied == []


def test_a_target_that_was_set_back_is_taken_over_under_another_epoch(begun):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    bench.job.failures = [TargetWentBackError("the fence stands at epoch 3")]
    bench.start()
    bench.thread.join(10)
    assert isinstance(bench.error, TargetWentBackError)
    assert [what for what in bench.log if what[0] == "fence"] == [("fence", 5)]
    assert bench.job.applied == []


def test_a_target_that_lost_its_checkpoint_too_is_not_begun_anew(begun):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    bench.job.failures = [TargetWentBackError("the fence has no row")]
    bench.store.load = iter([Checkpoint(at(4)), None]).__next__
    bench.start()
    bench.thread.join(10)
    assert isinstance(bench.error, FatalError)
    assert "its checkpoint is gone, which was last binlog.000001:4" in str(bench.error)


def test_a_checkpoint_that_cannot_be_stored_is_not_acknowledged(begun):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    bench.store.failures = [TransientError("no answer")]
    bench.start()
    eventually(lambda: bench.store.stored.resume.offset == 44, 10)
    bench.finish()
    # The rows are loaded again, since nobody knows that they were applied.
    assert bench.job.applied == ROWS_OF_TWO * 2
    assert bench.store.stored.rows == 2


@pytest.mark.parametrize("error", [DataError("bad row"), FencedError("newer epoch")])
def test_an_error_that_stays_ends_the_run_and_moves_no_checkpoint(begun, error):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    bench.job.failures = [error]
    bench.start()
    bench.thread.join(10)
    assert bench.error is error
    assert bench.store.stored.resume.offset == 4
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


def test_nothing_is_loaded_while_suspended(begun):
    bench = begun(TWO)
    bench.run.suspend()
    bench.start()
    eventually(lambda: bench.source.opened, 10)
    assert not threading.Event().wait(0.3)
    assert bench.job.applied == []
    bench.run.resume()
    eventually(lambda: bench.job.applied == ROWS_OF_TWO, 10)


def test_a_stop_while_suspended_applies_nothing_and_loses_nothing(begun):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    bench.run.suspend()
    bench.start()
    eventually(lambda: bench.source.opened, 10)
    bench.finish()
    assert bench.job.applied == []
    assert bench.store.stored.resume.offset == 4


def test_a_stop_ends_a_run_that_is_suspended_again_and_again(begun):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    bench.run.suspend()
    bench.run.stop()
    bench.run.suspend()
    bench.run._apply([Batch(1, 5, TWO, Checkpoint(at(44)), rows=2, size=2)])
    assert bench.job.applied == []


def test_a_schema_change_stops_the_pipeline_if_the_channel_says_so(begun):
    ddl = Entry(EntryKind.DDL, at(54), 0.0, "shop", "orders", statement="ALTER TABLE orders ADD x")
    bench = begun([*TWO, ddl, *transaction(54, 1)], ddl="stop").start()
    bench.thread.join(10)
    assert isinstance(bench.error, FatalError)
    assert "ALTER TABLE" in str(bench.error)
    assert bench.job.applied == ROWS_OF_TWO
    assert bench.store.stored.resume.offset == 44


def test_a_schema_change_is_passed_on_alone_between_two_checkpoints(begun):
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
    assert (figures.ddl_passed, figures.last_ddl) == (1, "TRUNCATE orders")


def test_an_ignored_schema_change_is_counted(begun):
    ddl = Entry(EntryKind.DDL, at(54), 0.0, "shop", "orders", statement="ALTER TABLE orders ADD x")
    bench = begun([*TWO, ddl, *transaction(54, 1)]).start()
    eventually(lambda: bench.job.applied == [*ROWS_OF_TWO, 74], 10)
    assert bench.progress.figures().ddl_ignored == 1
    before, after = (ticket.schema_version for ticket in bench.job.tickets)
    assert before != after, "somebody has changed the target about now"


def test_a_higher_generation_starts_over_where_the_source_says(begun):
    bench = begun(TWO, stored=Checkpoint(at(44), rows=2), generation=2).start()
    eventually(lambda: bench.job.applied == ROWS_OF_TWO, 10)
    bench.finish()
    assert bench.store.stored.generation == 2
    assert bench.store.stored.rows == 4


def test_a_place_that_moved_is_stored_before_anything_is_selected(begun):
    """A crash in between leaves the old checkpoint, which leads to the same place again."""
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
    bench.source.read = lambda limit, timeout: read(3, timeout)  # slowly
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
    bench.job.failures = [CollisionError("another row is in the way")]
    bench.start()
    eventually(lambda: bench.job.applied == ROWS_OF_TWO, 15)
    assert bench.progress.figures().retries == 1


def test_a_row_in_the_way_of_a_new_one_is_final(begun):
    bench = begun(TWO, stored=Checkpoint(at(4), timestamp=1_600_000_000.0))
    bench.job.failures = [CollisionError("another row is in the way")]
    bench.start()
    bench.thread.join(10)
    assert isinstance(bench.error, CollisionError)


def test_a_place_that_is_lost_ends_the_run_at_once(begun):
    bench = begun(TWO, stored=Checkpoint(at(90)))

    def locate(checkpoint):
        raise PositionLostError("it was purged", position=checkpoint.resume)

    bench.source.locate = locate
    bench.start()
    bench.thread.join(10)
    assert isinstance(bench.error, PositionLostError)
    assert bench.source.opened == []
    assert bench.progress.figures().retries == 0
    assert bench.store.stored == Checkpoint(at(90))


def test_foreign_rows_move_the_checkpoint_only_now_and_then(begun):
    bench = begun(transaction(4, 2, table="other"), stored=Checkpoint(at(4))).start()
    eventually(lambda: bench.progress.figures().batches > 0, 10)
    assert [what for what, _ in bench.log if what == "store"] == []
    bench.finish()
    # A planned stop keeps the place, so that the next leader reads nothing twice.
    assert bench.store.stored.resume.offset == 44


def test_an_abort_cancels_the_load_and_stores_nothing_more(begun):
    bench = begun(transaction(4, 2, table="other"), stored=Checkpoint(at(4))).start()
    eventually(lambda: bench.progress.figures().batches > 0, 10)
    bench.run.abort()
    bench.thread.join(10)
    assert bench.store.stored.resume.offset == 4


def test_what_an_abort_ended_is_not_taken_for_another_leader(begun):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    entered = threading.Event()

    def hangs(rows, ticket, redelivered_through):
        entered.set()
        bench.job.cancelled.wait(10)
        raise FencedError("cancelled")

    bench.job.run = hangs
    bench.start()
    assert entered.wait(10)
    bench.run.abort()
    bench.thread.join(10)
    assert isinstance(bench.error, TransientError)


def test_an_abort_cancels_a_load_that_begins_after_it(begun):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    entered, again = threading.Event(), threading.Event()

    def hangs(rows, ticket, redelivered_through):
        entered.set()
        assert again.wait(10), "cancelled only once, and too early"
        raise TransientError("cancelled")

    def cancel():
        if entered.is_set():
            again.set()

    bench.job.run, bench.job.cancel = hangs, cancel
    wait = bench.run._asked.allowed

    def aborted_and_allowed():
        wait()
        bench.run.abort()
        bench.run._asked._stopping.clear()
        return True

    bench.run._asked.allowed = aborted_and_allowed
    bench.start()
    assert again.wait(10)
    bench.run.stop()
    bench.thread.join(10)
    assert ("end writers", 5) in bench.log
    assert bench.job.applied == []


def test_a_rollback_on_request_goes_back_to_the_checkpoint_and_on(begun):
    bench = begun([*TWO, *transaction(44, 2)]).start()
    eventually(lambda: bench.store.stored and bench.store.stored.resume.offset == 84, 10)
    done = bench.run.rollback()
    assert done.wait(10)
    assert bench.source.opened == [4, 84]
    assert bench.log.count(("fence", 5)) == 2
    bench.finish()
    assert bench.job.applied == [24, 34, 64, 74]
    assert bench.progress.figures().retries == 1


def test_a_rollback_on_request_ends_the_wait_after_an_error(begun, monkeypatch):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    monkeypatch.setattr(bench.run._backoff, "failed", lambda: 60.0)
    bench.job.failures = [TransientError("the target went away")]
    bench.start()
    eventually(lambda: bench.progress.figures().state is RunState.RETRYING, 10)
    assert bench.run.rollback().wait(10)
    eventually(lambda: bench.store.stored.resume.offset == 44, 10)
    bench.finish()
    assert bench.job.applied == ROWS_OF_TWO


def test_a_stop_that_comes_as_an_attempt_begins_ends_the_wait_after_it(begun, monkeypatch):
    bench = begun(TWO, stored=Checkpoint(at(4)))
    monkeypatch.setattr(bench.run._backoff, "failed", lambda: 60.0)
    forget = bench.run._asked._interrupted.clear

    def stopped_before():
        bench.run.stop()
        forget()

    monkeypatch.setattr(bench.run._asked._interrupted, "clear", stopped_before)
    monkeypatch.setattr(bench.work, "take_over", Mock(side_effect=TransientError("it is down")))
    bench.start()
    bench.thread.join(20)
    assert not bench.thread.is_alive()


def test_a_stop_while_a_load_fails_begins_to_read_nothing_again(begun, monkeypatch):
    """Or it would wait for a source that does not answer, and be told that it tries again."""
    bench = begun(TWO, stored=Checkpoint(at(4)))

    def stopped_and_failed(*_):
        bench.run.stop()
        raise TransientError("the index is busy")

    monkeypatch.setattr(bench.job, "run", stopped_and_failed)
    bench.start()
    bench.thread.join(20)
    assert not bench.thread.is_alive()
    assert bench.error is None
    assert len(bench.source.opened) == 1
    assert bench.store.stored == Checkpoint(at(4))


def test_a_rollback_that_is_asked_for_while_one_begins_is_not_forgotten(begun, monkeypatch):
    bench = begun(TWO)
    taken, asked = bench.run._asked.begin, []

    def asked_for_behind():
        found = taken()
        if not asked:
            asked.append(bench.run.rollback())
        return found

    monkeypatch.setattr(bench.run._asked, "begin", asked_for_behind)
    bench.start()
    eventually(lambda: asked and asked[0].is_set(), 20)
    bench.finish()


def test_a_rollback_that_fails_as_it_begins_is_carried_out_by_the_next_attempt(begun, monkeypatch):
    """Its answer would never come, and the leader attends to nothing else before."""
    bench = begun(TWO).start()
    eventually(lambda: bench.store.stored and bench.store.stored.resume.offset == 44, 10)
    monkeypatch.setattr(bench.run._backoff, "failed", lambda: 0.01)
    real, failures = bench.work.take_over, [TransientError("the target is down")]

    def take_over():
        if failures:
            raise failures.pop()
        return real()

    monkeypatch.setattr(bench.work, "take_over", take_over)
    assert bench.run.rollback().wait(10)
    assert not failures
    bench.finish()


def test_a_stop_during_a_rollback_stops(begun):
    bench = begun(TWO).start()
    eventually(lambda: bench.job.applied, 10)
    bench.run.rollback()
    bench.finish()
    assert bench.error is None


class Beside:
    """What is done beside the stream; notes what it is told."""

    def __init__(self):
        self.reached = lambda: None
        self.stopped = threading.Event()

    def start(self, reached):
        self.reached = reached

    def stop(self):
        self.stopped.set()


@pytest.mark.parametrize("end", ["stop", "abort"])
def test_what_is_done_beside_the_stream_knows_how_far_it_is_and_ends_first(begun, end):
    beside = Beside()
    bench = begun(transaction(100, 2), beside=beside).start()
    end_of_rows = bench.source.entries[-1].position

    def reached():
        checkpoint: Any = beside.reached()
        return checkpoint is not None and checkpoint.resume.order >= end_of_rows.order

    eventually(reached, 10)
    assert not beside.stopped.is_set()
    getattr(bench.run, end)()
    assert beside.stopped.is_set(), "at once, whatever the run still does"
    bench.thread.join(10)
    assert not bench.thread.is_alive()
