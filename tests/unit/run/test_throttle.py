"""Limits that a load of tables is throttled by."""

import math

import pytest

from setl.channel.fields.load_limits import LoadLimits
from setl.run.table_loads.throttle import Throttle
from setl.systems.replicas import ReplicaBehind
from tests.unit.select.fakes import ManualClock


class Way:
    def __init__(self, **limits):
        self.clock, self.lag, self.running, self.replica, self.asked = ManualClock(), 0.0, 1, 0.0, 0
        self.way = Throttle(LoadLimits(**limits), lambda: self.lag, self.clock)

    def may(self):
        if self.way.now:
            return False
        return self.way.may_step(lambda: self.running, self._replica)

    def _replica(self):
        self.asked += 1
        if self.replica is None:
            return None
        return ReplicaBehind("db3:3306", self.replica, "cannot be asked: gone")


def test_a_replica_that_is_behind_holds_a_load_back_until_it_is_not():
    here = Way(replica_lag=5)
    assert here.may()
    here.replica = 30.0
    here.clock.time += 1
    for seconds in (0, 1, 1):
        here.clock.time += seconds
        assert not here.may()
        assert here.way.waits_for == "the replica db3:3306 is 30 s behind"
    here.replica = 5.0
    here.clock.time += 1
    assert here.may()
    assert here.way.waits_for == ""
    assert here.way.count == 3


def test_a_replica_that_cannot_be_asked_holds_it_back():
    here = Way(replica_lag=5)
    here.replica = math.inf
    assert not here.may()
    assert here.way.waits_for == "the replica db3:3306 cannot be asked: gone"


def test_replicas_are_asked_once_a_second():
    here = Way(replica_lag=5)
    for _ in range(30):
        assert here.may()
        here.clock.time += 0.1
    assert here.asked == 3


@pytest.mark.parametrize("replica", [100.0, None])
def test_nobody_is_asked_without_a_limit(replica):
    here = Way()
    here.replica = replica
    assert here.may()
    assert here.asked == 0


def test_other_limits_are_looked_at_first():
    here = Way(replica_lag=5, lag=1.0, threads_running=8)
    here.lag = 2.0
    assert not here.may()
    assert here.way.waits_for == "the target is 2.0 s behind"
    here.lag, here.running = 0.0, 9
    here.clock.time += 1
    assert not here.may()
    assert here.way.waits_for == "the source carries out 9 statements"
    assert here.asked == 0
