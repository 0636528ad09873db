"""A run that others suspend, stop, abort or roll back while it works."""

import threading
from typing import Any
from unittest.mock import Mock

import pytest

from setl.errors import FencedError, TransientError
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.run.measured.figures import RunState
from tests.unit.run.scripted_run import ROWS_OF_TWO, TWO, BackgroundTask, at, transaction
from tests.waiting import eventually


def test_a_stop_does_not_wait_for_the_next_look(begun, monkeypatch):
    monkeypatch.setattr("setl.run.run._POLL_SECONDS", 3600.0)
    bench = begun(TWO).start()
    eventually(lambda: bench.stored_at == 44, 10)
    bench.run.stop()
    bench.thread.join(60)
    assert not bench.thread.is_alive()


def test_a_rollback_that_was_asked_for_while_it_waits_goes_to_what_is_stored(begun):
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2, store_every=3600)
    bench.store.stored = Checkpoint(at(4), began=True)
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
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    bench.run.suspend()
    bench.start()
    eventually(lambda: bench.source.opened, 10)
    bench.finish()
    assert bench.job.applied == []
    assert bench.stored_at == 4


def test_a_stop_ends_a_run_that_is_suspended_again_and_again(begun):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    bench.run.suspend()
    bench.run.stop()
    bench.run.suspend()
    bench.run._apply([Batch(1, 5, TWO, Checkpoint(at(44)), rows=2, size=2)])
    assert bench.job.applied == []


def test_an_abort_cancels_the_load_and_stores_nothing_more(begun):
    bench = begun(transaction(4, 2, table="other"), stored=Checkpoint(at(4), began=True)).start()
    eventually(lambda: bench.progress.figures().batches > 0, 10)
    bench.run.abort()
    bench.thread.join(60)
    assert bench.stored_at == 4


def test_what_an_abort_ended_is_not_taken_for_another_leader(begun):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    entered = threading.Event()

    def hangs(rows, ticket, redelivered_through):
        entered.set()
        bench.job.cancelled.wait(60)
        raise FencedError("cancelled")

    bench.job.run = hangs
    bench.start()
    assert entered.wait(60)
    bench.run.abort()
    bench.thread.join(60)
    assert isinstance(bench.error, TransientError)


def test_an_abort_cancels_a_load_that_begins_after_it(begun):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    entered, again = threading.Event(), threading.Event()

    def hangs(rows, ticket, redelivered_through):
        entered.set()
        assert again.wait(60), "cancelled only once, and too early"
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
    assert again.wait(60)
    bench.run.stop()
    bench.thread.join(60)
    assert ("end writers", 5) in bench.log
    assert bench.job.applied == []


def test_a_rollback_on_request_goes_back_to_the_checkpoint_and_on(begun):
    bench = begun([*TWO, *transaction(44, 2)]).start()
    eventually(lambda: bench.stored_at == 84, 10)
    done = bench.run.rollback()
    assert done.wait(60)
    eventually(lambda: bench.source.opened == [4, 84], 10)  # by a thread that begins now
    assert bench.log.count(("fence", 5)) == 2
    bench.finish()
    assert bench.job.applied == [24, 34, 64, 74]
    assert bench.progress.figures().retries == 1


def test_a_rollback_on_request_ends_the_wait_after_an_error(begun, monkeypatch):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    monkeypatch.setattr(bench.run._backoff, "failed", lambda: 3600.0)
    bench.job.failures = [TransientError("the target went away")]
    bench.start()
    eventually(lambda: bench.progress.figures().state is RunState.RETRYING, 10)
    assert bench.run.rollback().wait(60)
    eventually(lambda: bench.stored_at == 44, 10)
    bench.finish()
    assert bench.job.applied == ROWS_OF_TWO


def test_a_stop_that_comes_as_an_attempt_begins_ends_the_wait_after_it(begun, monkeypatch):
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))
    monkeypatch.setattr(bench.run._backoff, "failed", lambda: 3600.0)
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
    bench = begun(TWO, stored=Checkpoint(at(4), began=True))

    def stopped_and_failed(*_):
        bench.run.stop()
        raise TransientError("the index is busy")

    monkeypatch.setattr(bench.job, "run", stopped_and_failed)
    bench.start()
    bench.thread.join(20)
    assert not bench.thread.is_alive()
    assert bench.error is None
    assert len(bench.source.opened) == 1
    assert bench.store.stored == Checkpoint(at(4), began=True)


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
    eventually(lambda: bench.stored_at == 44, 10)
    monkeypatch.setattr(bench.run._backoff, "failed", lambda: 0.01)
    real, failures = bench.work.take_over, [TransientError("the target is down")]

    def take_over():
        if failures:
            raise failures.pop()
        return real()

    monkeypatch.setattr(bench.work, "take_over", take_over)
    assert bench.run.rollback().wait(60)
    assert not failures
    bench.finish()


def test_a_stop_during_a_rollback_stops(begun):
    bench = begun(TWO).start()
    eventually(lambda: bench.job.applied, 10)
    bench.run.rollback()
    bench.finish()
    assert bench.error is None


@pytest.mark.parametrize("end", ["stop", "abort"])
def test_what_is_done_beside_the_stream_knows_how_far_it_is_and_ends_first(begun, end):
    background = BackgroundTask()
    bench = begun(transaction(100, 2), verifier=background).start()
    end_of_rows = bench.source.entries[-1].position

    def reached():
        checkpoint: Any = background.reached()
        return checkpoint is not None and checkpoint.resume.order >= end_of_rows.order

    eventually(reached, 10)
    assert not background.stopped.is_set()
    getattr(bench.run, end)()
    assert background.stopped.is_set(), "at once, whatever the run still does"
    bench.thread.join(60)
    assert not bench.thread.is_alive()
