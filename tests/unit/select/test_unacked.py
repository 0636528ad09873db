import threading

import pytest

from setl.errors import FatalError, FencedError, TransientError
from setl.model.batch import Batch, BatchTermin
from setl.model.checkpoint import Checkpoint
from setl.select.unacked import UnackedBatches
from tests.unit.model.streams import kafka_position
from tests.waiting import eventually

START = Checkpoint(kafka_position(0))
EPOCH = 5
ERROR = TransientError("the target is down")


def batch(number, size=0):
    return Batch(number, EPOCH, [], Checkpoint(kafka_position(number * 10)), 0, size)


def ack(number, epoch=EPOCH):
    return BatchTermin(number, epoch)


@pytest.fixture
def three():
    batches = UnackedBatches(EPOCH, START, 3, 1000)
    for number in (1, 2, 3):
        assert batches.offer(batch(number), 0)
    return batches


def in_thread(function):
    """Run `function` in a thread; returns the list that gets its result, and the thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()), daemon=True)
    thread.start()
    return found, thread


def test_batches_are_taken_in_order_and_stored_until_their_ack(three):
    assert [three.take(0).id for _ in range(3)] == [1, 2, 3]
    assert three.take(0) is None
    assert (len(three), three.waiting) == (3, 0)
    assert three.finish(ack(1)) == batch(1).checkpoint
    assert (len(three), three.acked) == (2, batch(1).checkpoint)


def test_no_more_than_window_batches_are_unacked(three):
    assert not three.offer(batch(4), 0)
    three.take(0)
    assert not three.offer(batch(4), 0.01)  # taken is not acked
    three.finish(ack(1))
    assert three.offer(batch(4), 0)


def test_what_comes_behind_those_taken_can_be_taken_with_them(three):
    cut = []

    def fourth():
        cut.append(4)
        return batch(4, 100)

    assert three.take_also(100, fourth) is None, "nothing is being applied"
    three.take(0)
    assert three.take_also(100, fourth) is None, "others come first"
    three.take(0)
    three.take(0)
    assert three.take_also(100, fourth) is None, "the window is full"
    three.finish(ack(1))
    assert three.take_also(1001, fourth) is None, "it would be too large"
    three.wake()
    assert three.take_also(100, fourth) is None, "who takes is to look at other things"
    three.take(0)
    assert not cut
    assert three.take_also(100, lambda: None) is None, "there is none"
    assert three.take_also(100, fourth).id == 4
    assert (len(three), three.waiting, three.size) == (3, 0, 100)
    for number in (2, 3, 4):
        three.finish(ack(number))
    assert three.acked == batch(4).checkpoint
    assert three.take_also(100, fourth) is None, "nothing is being applied"


def test_nothing_is_taken_from_a_queue_that_is_closed_or_has_failed(three):
    for _ in range(3):
        three.take(0)
    three.finish(ack(1))
    three.fail(ERROR)
    assert three.take_also(0, lambda: batch(4)) is None
    three.close()
    assert three.take_also(0, lambda: batch(4)) is None


def test_unacked_batches_hold_no_more_bytes_than_they_may():
    batches = UnackedBatches(EPOCH, START, 9, 1000)
    assert batches.offer(batch(1, 600), 0)
    assert batches.offer(batch(2, 400), 0)
    assert batches.size == 1000
    assert not batches.offer(batch(3, 1), 0)
    batches.take(0)
    batches.finish(ack(1))
    assert batches.size == 400
    assert batches.offer(batch(3, 1), 0)
    batches.close()
    assert batches.size == 0


def test_a_batch_that_is_too_large_comes_in_alone():
    batches = UnackedBatches(EPOCH, START, 9, 1000)
    assert batches.offer(batch(1, 5000), 0)
    assert not batches.offer(batch(2, 1), 0)
    batches.take(0)
    batches.finish(ack(1))
    assert batches.offer(batch(2, 1), 0)
    assert not batches.offer(batch(3, 5000), 0)


def test_an_ack_lets_a_blocked_offer_in(three):
    three.take(0)
    found, thread = in_thread(lambda: three.offer(batch(4), 600))
    assert not found
    three.finish(ack(1))
    thread.join(60)
    assert found == [True]


def test_closing_interrupts_whoever_waits(three):
    offering, one = in_thread(lambda: three.offer(batch(4), 600))
    empty = UnackedBatches(EPOCH, START, 1, 1000)
    taking, two = in_thread(lambda: empty.take(600))
    assert three.close() == START
    empty.close()
    one.join(60)
    two.join(60)
    assert (offering, taking) == ([False], [None])
    assert not three.offer(batch(4), 0)
    assert three.take(0) is None
    assert three.close() == START


def test_an_offer_wakes_who_waits_for_a_batch():
    batches = UnackedBatches(EPOCH, START, 1, 1000)
    found, thread = in_thread(lambda: batches.take(600))
    batches.offer(batch(1), 0)
    thread.join(60)
    assert found == [batch(1)]


def test_who_waits_for_a_batch_can_be_woken_without_one():
    batches = UnackedBatches(EPOCH, START, 3, 1000)
    found, thread = in_thread(lambda: batches.take(600))
    batches.wake()
    thread.join(60)
    assert found == [None]
    batches.wake()
    assert batches.take(600) is None, "the next one that would wait"
    found, thread = in_thread(lambda: batches.take(600))
    assert batches.offer(batch(1), 0), "nor is one that is woken in vain lost"
    thread.join(60)
    assert [each.id for each in found] == [1]


def test_a_rollback_gives_everything_up_and_says_where_to_go_on(three):
    three.take(0)
    three.take(0)
    three.finish(ack(1))
    assert three.finish(BatchTermin(2, EPOCH, ERROR)) == batch(1).checkpoint
    assert (len(three), three.waiting) == (0, 0)
    assert three.take(0) is None
    assert not three.offer(batch(9), 0)


def test_a_rollback_before_the_first_ack_goes_back_to_the_start(three):
    three.take(0)
    assert three.finish(BatchTermin(1, EPOCH, ERROR)) == START


@pytest.mark.parametrize("number", [2, 3, 99])
def test_a_termin_out_of_order_is_refused(three, number):
    three.take(0)
    three.take(0)
    with pytest.raises(FatalError, match="out of order"):
        three.finish(ack(number))
    with pytest.raises(FatalError, match="out of order"):
        three.finish(BatchTermin(number, EPOCH, ERROR))
    assert len(three) == 3
    three.finish(ack(1))


def test_a_batch_that_nobody_took_cannot_have_ended(three):
    with pytest.raises(FatalError, match="none is loading"):
        three.finish(ack(1))


def test_a_termin_twice_is_refused(three):
    three.take(0)
    three.finish(ack(1))
    with pytest.raises(FatalError):
        three.finish(ack(1))


@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
def test_a_termin_of_another_epoch_is_refused(three, epoch):
    three.take(0)
    with pytest.raises(FencedError):
        three.finish(ack(1, epoch))
    assert len(three) == 3


def test_an_error_comes_after_the_batches_before_it_and_again_and_again(three):
    three.fail(ERROR)
    assert [three.take(0).id for _ in range(3)] == [1, 2, 3]
    for _ in range(2):
        with pytest.raises(TransientError) as raised:
            three.take(600)
        assert raised.value is ERROR
    assert three.finish(ack(1)) == batch(1).checkpoint  # what was read is still good


def test_an_error_wakes_who_waits():
    batches = UnackedBatches(EPOCH, START, 1, 1000)
    caught = []

    def wait():
        with pytest.raises(TransientError) as raised:
            batches.take(600)
        caught.append(raised.value)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    batches.fail(ERROR)
    eventually(lambda: caught == [ERROR], 60)


class Noting:
    """Lets pass what it is told to, and notes the batches that did."""

    def __init__(self, *, passes=True):
        self.passes = passes
        self.passed = []

    def absorbs(self, entries):
        return self.passes

    def absorbed(self, batch):
        self.passed.append(batch.id)


@pytest.mark.parametrize("passes", [True, False])
def test_a_batch_is_absorbed_whoever_waits_and_counts_as_acked(passes):
    batches, absorber = UnackedBatches(EPOCH, START, 3, 1000), Noting(passes=passes)
    found, thread = in_thread(lambda: batches.take(60, absorber))
    eventually(lambda: batches.absorb([], lambda: batch(1)) or not passes, 60)
    assert (absorber.passed, len(batches)) == ([1] if passes else [], 0)
    assert batches.acked == (batch(1).checkpoint if passes else START)
    assert thread.is_alive(), "it waits on"
    batches.offer(batch(2), 0)
    thread.join(60)
    assert [each.id for each in found] == [2]


def test_nothing_is_absorbed_unless_somebody_waits_with_nothing_unacked(three):
    def never():
        raise AssertionError("this batch is to be offered")

    absorber = Noting()
    assert not three.absorb([], never)
    for _ in range(3):
        three.take(0, absorber)
    assert not three.absorb([], never), "nobody waits"
    found, thread = in_thread(lambda: three.take(60, absorber))
    assert not three.absorb([], never), "what is being applied comes first"
    three.close()
    thread.join(60)
    assert not three.absorb([], never)
    assert (found, absorber.passed) == ([None], [])


def test_nothing_is_absorbed_what_was_applied_before():
    start = Checkpoint(kafka_position(0), timestamp=1.0, repeats=True)
    batches, absorber = UnackedBatches(EPOCH, start, 3, 1000), Noting()
    found, thread = in_thread(lambda: batches.take(60, absorber))
    eventually(lambda: batches._absorber is absorber, 60)
    assert not batches.absorb([], lambda: batch(1))
    batches.wake()
    thread.join(60)
    assert found == [None]
