"""The loop of whatever waits by looking again and again."""

import threading
from itertools import islice

from setl.waiting import polling
from tests.clocks import SetClock


def looks(seconds, every=1.0, takes=0.0):
    """What is left at each look, and the time when the wait is over."""
    clock = SetClock(0.0)

    def pause(length):
        clock.time += length

    left = []
    for each in polling(seconds, every, monotonic=clock.monotonic, pause=pause):
        left.append(each)
        clock.time += takes
    return left, clock.time


def test_the_last_look_begins_after_the_limit_and_says_so():
    assert looks(2.5) == ([2.5, 1.5, 0.5, 0.0], 3.0)
    assert looks(2.5, takes=9.0) == ([2.5, 0.0], 19.0)


def test_without_time_there_is_one_look():
    assert looks(0.0) == ([0.0], 0.0)
    assert looks(-1.0) == ([0.0], 0.0)


def test_an_event_ends_a_wait_and_without_a_limit_nothing_else_does():
    stopping = threading.Event()
    assert len(list(islice(polling(None, 0.0, pause=stopping.wait), 100))) == 100
    stopping.set()
    assert len(list(polling(None, 60.0, pause=stopping.wait))) == 1
