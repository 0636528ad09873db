import random

from setl.run.backoff import Backoff


def test_it_doubles_up_to_the_longest_wait_and_starts_again_after_a_success():
    backoff = Backoff(random.Random(1), first=1.0, longest=8.0)
    waits = [backoff.failed() for _ in range(6)]
    for wait, limit in zip(waits, (1, 2, 4, 8, 8, 8), strict=True):
        assert limit / 2 <= wait <= limit
    assert backoff.failures == 6
    backoff.succeeded()
    assert backoff.failed() <= 1.0


def test_it_survives_a_very_long_outage():
    backoff = Backoff(random.Random(1), first=0.2, longest=10.0)
    assert all(backoff.failed() <= 10.0 for _ in range(5000))
