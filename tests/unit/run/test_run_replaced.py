"""A run whose source is replaced at its address, while its checkpoint is stored now and then."""

from setl.errors import PositionLostError, TransientError
from setl.model.checkpoint import Checkpoint
from tests.unit.run.scripted_run import ROWS_OF_TWO, TWO, at, transaction
from tests.waiting import eventually


def replaced(bench, locate):
    """Let the source end once all is applied; `locate` is what then answers."""
    read = bench.source.read

    def ends(limit, timeout, absorbs):
        entries = read(limit, timeout, absorbs)
        if not entries and bench.source.locate != locate and len(bench.job.applied) == 4:
            bench.source.locate = locate
            raise TransientError("the connection was lost")
        return entries

    bench.source.read = ends
    bench.start()


def seldom_kept(begun):
    """Rows of two transactions, in a load each, of which the second is not stored."""
    bench = begun([*TWO, *transaction(44, 2)], batch_rows=2, store_every=3600)
    bench.store.stored = Checkpoint(at(4))
    return bench


def test_another_source_has_to_have_what_was_applied_since_the_last_checkpoint(begun):
    bench = seldom_kept(begun)
    asked = []

    def lacks(checkpoint):
        asked.append(checkpoint.resume.offset)
        if checkpoint.resume.offset > 44:
            raise PositionLostError("the replica lacks it", position=checkpoint.resume)
        return checkpoint.moved_to(at(4))

    replaced(bench, lacks)
    bench.thread.join(60)
    assert isinstance(bench.error, PositionLostError)
    assert asked == [84]
    assert bench.stored_at == 4


def test_on_another_source_it_goes_on_behind_that(begun):
    bench = seldom_kept(begun)
    replaced(bench, lambda checkpoint: checkpoint.moved_to(at(64), exact=True))
    eventually(lambda: bench.source.opened == [4, 64], 10)
    eventually(lambda: len(bench.job.applied) == 5, 10)
    bench.finish()
    assert bench.error is None
    assert bench.job.applied == [*ROWS_OF_TWO, 64, 74, 74]
    assert (bench.stored_at, bench.store.stored.generation) == (84, 2)


def test_on_the_same_source_it_goes_on_from_what_is_stored(begun):
    bench = seldom_kept(begun)
    replaced(bench, lambda checkpoint: checkpoint)
    eventually(lambda: len(bench.job.applied) == 8, 10)
    bench.finish()
    assert bench.error is None
    assert bench.source.opened == [4, 4]
