import pytest

from setl.select.heartbeat import HeartbeatStatus
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.heartbeats.shared import HeartbeatWriters, SharedHeartbeat

DB1, DB2 = MysqlEndpoint("db1", 3306, "u", "p"), MysqlEndpoint("db2", 3306, "u", "p")


class Writer:
    """Writes when a test says so."""

    def __init__(self, endpoint, interval):
        self.endpoint, self.interval = endpoint, interval
        self.id = 0
        self.running = False
        self.reported = HeartbeatStatus()

    def start(self):
        self.running = True

    def stop(self):
        self.running = False

    def status(self):
        return self.reported


@pytest.fixture
def made():
    return []


@pytest.fixture
def beat(made):
    def make(endpoint, interval):
        made.append(Writer(endpoint, interval))
        return made[-1]

    writers = HeartbeatWriters(make)
    return lambda end=DB1, interval=1.0: SharedHeartbeat(end, interval=interval, writers=writers)


def test_pipelines_of_one_source_partition_what_writes(beat, made):
    several = [beat() for _ in range(60)]
    for one in several:
        one.start()
        one.start()
    assert [w.running for w in made] == [True]
    for one in several[1:]:
        one.stop()
        one.stop()
    assert made[0].running
    several[0].stop()
    assert not made[0].running
    several[0].start()
    assert [w.running for w in made] == [False, True]


def test_another_server_account_or_interval_is_written_to_by_itself(beat, made):
    other = MysqlEndpoint("db1", 3306, "u2", "p")
    for one in (beat(), beat(DB2), beat(other), beat(DB1, 5.0)):
        one.start()
    assert [(w.endpoint, w.interval) for w in made] == [
        (DB1, 1.0), (DB2, 1.0), (other, 1.0), (DB1, 5.0),
    ]  # fmt: skip


def test_all_who_read_a_server_look_for_the_same_row(beat):
    assert beat().id == beat(interval=5.0).id != beat(DB2).id


def test_each_counts_what_was_written_since_its_own_start(beat, made):
    early, late = beat(), beat()
    assert late.status() == HeartbeatStatus()
    early.start()
    made[0].reported = HeartbeatStatus(5, 2, 100.0, "")
    late.start()
    assert late.status() == HeartbeatStatus(0, 0, 100.0, "")
    made[0].reported = HeartbeatStatus(8, 3, 103.0, "down")
    assert early.status() == HeartbeatStatus(8, 3, 103.0, "down")
    assert late.status() == HeartbeatStatus(3, 1, 103.0, "down")
    late.stop()
    made[0].reported = HeartbeatStatus(20, 3, 115.0, "")
    assert late.status() == HeartbeatStatus(3, 1, 103.0, "down")
    late.start()
    assert late.status().written == 3  # goes on where it was


def test_an_interval_of_nothing_writes_nothing(beat, made):
    beat(interval=0).start()
    assert not made
