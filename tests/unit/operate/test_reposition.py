import json

import pytest

from arbiter.requests import Refused
from arbiter.values import ChannelState, LeaderLock, LeaderLockStatus, PipelineId
from setl.channel.file import BinlogStart, GtidStart, OffsetStart, TimestampStart
from setl.channel.reading import parse_channel
from setl.errors import ConfigurationError, FencedError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogOrigin, BinlogPosition, KafkaOrigin, KafkaPosition
from setl.operate.positions.epochs import KnownEpoch, known_epoch, verdict
from setl.operate.positions.position import look_at_position
from setl.operate.positions.reposition import exact_position, move, moved_checkpoint
from setl.operate.positions.stored import read_stored
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore
from setl.select.start_point import StartPoint
from setl.systems.kafka.source.positions import topic_distance
from setl.systems.mysql.binlog.positions import binlog_distance
from setl.systems.mysql.binlog.server import BinlogFile
from setl.systems.mysql.target_system import MysqlTargetSystem
from setl.systems.registry import system_of
from setl.systems.stored_state import StoredState
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster

ID = PipelineId("shop", "p")
MYSQL = {"type": "mysql", "host": "127.0.0.1", "port": 1, "user": "u"}
DTS = {"type": "kafka", "brokers": ["127.0.0.1:1"], "topic": "t"}
SEARCH = {"type": "elasticsearch", "hosts": ["http://127.0.0.1:1"]}
THERE = BinlogPosition("b.000003", 400)


def pipeline(source=MYSQL, target=SEARCH, tables=({"from": "s.t", "to": "i"},), **options):
    given = {"source": source, "target": target, "tables": list(tables)}
    definition = {"name": "p", **given, **options}
    return parse_channel({"channel": "shop", "pipelines": [definition]}).pipelines[0]


@pytest.fixture
def cluster():
    return MemoryCluster()


@pytest.fixture
def arbiter(cluster):
    arbiter = MemoryArbiter(cluster)
    arbiter.channels.put("shop", {"pipelines": [{"name": "p"}]})
    return arbiter


def stored(arbiter, checkpoint, epoch=3):
    ArbiterCheckpointStore(arbiter, ID).store(checkpoint, epoch)


def moved(arbiter, to=THERE, config=None):
    return move(config or pipeline(), ID, to, arbiter=arbiter, nid="position-reset.here")


def test_a_move_stores_the_position_one_generation_up(arbiter):
    before = Checkpoint(BinlogPosition("b.000009", 4), timestamp=7.0, generation=4, rows=50)
    stored(arbiter, before)
    change = moved(arbiter)
    assert change.before == before
    assert change.after == Checkpoint(
        THERE, timestamp=7.0, generation=5, rows=50, requested=4, repeats=True
    )
    saved = read_stored(pipeline(), "shop", arbiter)
    assert (saved.checkpoint, saved.by, saved.stored_in) == (
        change.after,
        change.epoch,
        "zookeeper",
    )
    assert arbiter.leader_locks.one(ID) is None
    assert not change.after.outdated(4)


def test_a_move_answers_a_raised_generation_in_the_file(arbiter):
    stored(arbiter, Checkpoint(THERE, generation=2))
    after = moved(arbiter, config=pipeline(generation=7)).after
    assert after.generation == 7
    assert not after.outdated(7)
    assert after.outdated(8)


def test_a_relay_is_moved_like_any_other(arbiter):
    stored(arbiter, Checkpoint(BinlogPosition("b.000009", 4), generation=4))
    change = moved(arbiter, config=pipeline(target=DTS, tables=[{"from": "s.t"}]))
    assert (change.after.resume, change.after.generation) == (THERE, 5)


def test_nothing_stored_yet(arbiter):
    assert moved(arbiter).after == Checkpoint(THERE, generation=1, requested=1)


@pytest.mark.parametrize("state", [ChannelState.START, ChannelState.PAUSE])
def test_a_channel_that_is_not_stopped_refuses(arbiter, state):
    arbiter.channels.set_state(arbiter.channels.one("shop"), state)
    with pytest.raises(Refused, match=f"set to {state.value}; `setl stop shop`"):
        moved(arbiter)
    assert arbiter.positions.read(ID) is None


def test_a_leader_that_has_not_stopped_yet_refuses(arbiter, cluster):
    MemoryArbiter(cluster).leader_locks.campaign(ID, "n1")
    with pytest.raises(Refused, match="n1 still leads"):
        moved(arbiter)


def test_a_channel_that_is_started_meanwhile_refuses(arbiter, cluster, monkeypatch):
    """Somebody starts it between the look and the leadership."""
    other, true = MemoryArbiter(cluster), arbiter.leader_locks.campaign

    def campaign(ident, nid):
        other.channels.set_state(other.channels.one("shop"), ChannelState.START)
        return true(ident, nid)

    monkeypatch.setattr(arbiter.leader_locks, "campaign", campaign)
    with pytest.raises(Refused, match="START by now"):
        moved(arbiter)
    assert other.leader_locks.one(ID) is None
    assert other.positions.read(ID) is None


def test_nobody_leads_while_it_moves(arbiter, cluster, monkeypatch):
    seen = []

    def look(*_):
        seen.append(MemoryArbiter(cluster).leader_locks.campaign(ID, "n2").nid)
        return read_stored(pipeline(), "shop", arbiter)

    monkeypatch.setattr("setl.operate.positions.reposition.read_stored", look)
    moved(arbiter)
    assert seen == ["position-reset.here"]


def test_a_higher_epoch_refuses(arbiter):
    stored(arbiter, Checkpoint(THERE), epoch=1 << 40)
    with pytest.raises(FencedError):
        moved(arbiter)
    assert arbiter.leader_locks.one(ID) is None


def test_what_cannot_be_read_is_written_over(arbiter):
    arbiter.positions.store(ID, {"version": 1, "epoch": 3, "checkpoint": {"nonsense": 1}}, None)
    assert "no checkpoint" in read_stored(pipeline(), "shop", arbiter).damage
    assert moved(arbiter).before is None
    assert read_stored(pipeline(), "shop", arbiter).checkpoint == Checkpoint(THERE, requested=1)


def test_what_is_no_position_at_all_is_written_over(arbiter):
    arbiter.positions.store(ID, {}, None)
    znodes = arbiter._znodes
    path = f"/setl/channels/{ID.channel}/{ID.pipeline}/position"
    znodes.write(path, b"\xff rubbish", znodes.read(path).version)
    assert "UTF-8" in read_stored(pipeline(), "shop", arbiter).damage
    assert moved(arbiter).before is None
    assert read_stored(pipeline(), "shop", arbiter).checkpoint == Checkpoint(THERE, requested=1)


def test_generations_end():
    with pytest.raises(ConfigurationError, match="used up"):
        moved_checkpoint(Checkpoint(THERE, generation=2047), THERE, 1)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("latest", StartPoint("latest")),
        ("earliest", StartPoint("earliest")),
        ("mysql-bin.000003:154", StartPoint(BinlogStart(file="mysql-bin.000003", offset=154))),
        ("0-1-17", StartPoint(GtidStart(gtid="0-1-17"))),
        ("1-101-5,2-102-7", StartPoint(GtidStart(gtid="1-101-5,2-102-7"))),
        (
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23:nightly:2",
            StartPoint(GtidStart(gtid="3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23:nightly:2")),
        ),
        (
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23",
            StartPoint(GtidStart(gtid="3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23")),
        ),
        ("2026-11-21T22:00:00Z", StartPoint("earliest", time=1795298400.0)),
    ],
)
def test_positions_in_a_binlog(text, position):
    assert system_of(pipeline().source).parse_start_point(text) == position


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("latest", StartPoint("latest")),
        ("17", StartPoint(OffsetStart(offset=17))),
        ("2026-11-21T22:00:00Z", StartPoint(TimestampStart(timestamp=1795298400))),
    ],
)
def test_positions_in_a_topic(text, position):
    assert system_of(pipeline(DTS).source).parse_start_point(text) == position


@pytest.mark.parametrize(
    ("text", "source"),
    [("17", MYSQL), ("then", MYSQL), ("b.000001:2", MYSQL), ("b.000001:4", DTS), ("0-1-1", DTS)],
)
def test_what_is_no_position(text, source):
    with pytest.raises(ConfigurationError, match="not a position in the source"):
        system_of(pipeline(source).source).parse_start_point(text)


FILES = [BinlogFile("b.000003", 1000), BinlogFile("b.000004", 500), BinlogFile("b.000005", 90)]


@pytest.mark.parametrize(
    ("position", "latest", "behind"),
    [
        (BinlogPosition("b.000005", 50), BinlogPosition("b.000005", 90), 40),
        (BinlogPosition("b.000003", 400), BinlogPosition("b.000005", 90), 600 + 500 + 90),
        (BinlogPosition("b.000005", 95), BinlogPosition("b.000005", 90), 0),
        (BinlogPosition("b.000001", 4), BinlogPosition("b.000005", 90), None),
        (
            BinlogPosition("b.000005", 50, origin=BinlogOrigin("1")),
            BinlogPosition("b.000005", 90, origin=BinlogOrigin("2")),
            None,
        ),
        (KafkaPosition("t", 0, 10), KafkaPosition("t", 0, 17), 7),
        (KafkaPosition("t", 0, 10), KafkaPosition("u", 0, 17), None),
        (
            KafkaPosition("t", 0, 10, origin=KafkaOrigin("c", "1")),
            KafkaPosition("t", 0, 17, origin=KafkaOrigin("c", "2")),
            None,
        ),
        (KafkaPosition("t", 0, 10), BinlogPosition("b.000005", 90), None),
    ],
)
def test_distances(position, latest, behind):
    found = binlog_distance(position, latest, FILES)
    assert (topic_distance(position, latest) if found is None else found) == behind


def test_ends_that_do_not_answer_are_findings(arbiter, monkeypatch):
    stored(arbiter, Checkpoint(THERE, rows=9))
    report = look_at_position(pipeline(), "shop", arbiter, "n")
    assert report.stored.checkpoint == Checkpoint(THERE, rows=9)
    assert (report.latest, report.earliest, report.behind) == (None, None, None)
    assert len(report.problems) == 1
    assert "127.0.0.1:1" in report.problems[0]


def test_what_the_target_stores_is_read(arbiter, monkeypatch):
    saved = StoredState(9, "n1", json.dumps(Checkpoint(THERE).to_json()), 8, 100.0)
    monkeypatch.setattr(MysqlTargetSystem, "stored_state", lambda *_: saved)
    seen = read_stored(pipeline(target=MYSQL), "shop", arbiter)
    assert (seen.stored_in, seen.checkpoint, seen.by, seen.at, seen.fence) == (
        "target", Checkpoint(THERE), 8, 100.0, 9,
    )  # fmt: skip
    assert known_epoch(pipeline(target=MYSQL), "shop", arbiter) == KnownEpoch(9, "n1")


def test_an_unknown_epoch_is_a_finding(arbiter):
    assert "127.0.0.1:1" in known_epoch(pipeline(target=MYSQL), "shop", arbiter).problem


@pytest.mark.parametrize(
    ("known", "leads", "coming", "words"),
    [
        (KnownEpoch(5), 5, 9, ""),
        (KnownEpoch(5, "n1"), 5, 9, ""),
        (KnownEpoch(5, "n2"), 5, 9, "refuses the present leader's, 5"),
        (KnownEpoch(0), None, 1, ""),
        (KnownEpoch(5), None, 5, ""),
        (KnownEpoch(5), 4, 9, "refuses the present leader's, 4"),
        (KnownEpoch(50), None, 9, "a leader elected now would be refused"),
        (KnownEpoch(50), 60, 9, "a leader elected now would be refused"),
        (KnownEpoch(problem="no answer"), 4, 9, "not known: no answer"),
    ],
)
def test_verdicts(known, leads, coming, words):
    leader_lock = leads and LeaderLock("n1", LeaderLockStatus.OVERTAKE, leads, 1)
    found = verdict(known, leader_lock, coming)
    assert words in found
    assert bool(found) == bool(words)


@pytest.mark.parametrize(
    ("config", "position", "start"),
    [
        (MYSQL, THERE, BinlogStart(file="b.000003", offset=400)),
        (DTS, KafkaPosition("t", 0, 17), OffsetStart(offset=17)),
    ],
)
def test_a_position_that_was_found_can_be_asked_for(config, position, start):
    system = system_of(pipeline(source=config).source)
    assert system.parse_start_point(exact_position(position)).start == start
