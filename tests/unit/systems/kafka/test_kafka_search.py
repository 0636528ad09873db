"""Whether a stored offset holds, is found by time in another topic, or is lost."""

from zlib import crc32

import pytest

from setl.errors import ConfigurationError, PositionLostError, TransientError
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.systems.kafka.partition import PartitionView
from setl.systems.kafka.source.search import TopicSearch, moved_reason
from tests.unit.codec.dts_records import record
from tests.unit.select.fakes import ManualClock
from tests.unit.systems.kafka.fake_topic import (
    BASE,
    GAP,
    ONE,
    PARTITION,
    TWO,
    FakeTopic,
    begin_and_commit,
    dated_by_its_begin,
    row,
    stream,
)

STREAM = stream(range(100))


def search(topic, clock=None):
    clock = clock or ManualClock()
    return TopicSearch(PartitionView(topic, PARTITION, timeout=2.0, clock=clock), clock)


def left(number, origin: KafkaOrigin | None = ONE, **changes):
    """The position behind a transaction of `STREAM`."""
    offset = 2 * number + 2
    values = {
        "timestamp": BASE + 30 * number,
        "record": crc32(STREAM[offset - 1]),
        "origin": origin,
        **changes,
    }
    return KafkaPosition("orders", 0, offset, **values)


@pytest.mark.parametrize("origin", [ONE, None, KafkaOrigin(), KafkaOrigin("cluster-1")])
def test_a_position_that_holds(origin):
    for number in (0, 50, 99):
        position = left(number, origin)
        assert search(FakeTopic(STREAM)).resume(position) is position
    unknown = left(50, origin, record=0, timestamp=0)
    assert search(FakeTopic(STREAM)).resume(unknown) is unknown
    start = KafkaPosition("orders", 0, 0, origin=origin)
    assert search(FakeTopic(STREAM)).resume(start) is start


def missing(found, topic, number):
    """Transactions behind a number that are not behind the position that was found."""
    wanted = set(STREAM[2 * number + 2 :]) & set(topic.values)
    return wanted - set(topic.values[found.offset :])


@pytest.mark.parametrize(
    "topic",
    [
        FakeTopic(STREAM, TWO),  # the same offsets, by chance or by copying
        FakeTopic(STREAM, KafkaOrigin("cluster-1", "topic-9")),
        FakeTopic(stream(range(40, 100))),  # neither cluster nor topic tells
        FakeTopic(stream(range(40, 60))),  # shorter than the offset
        FakeTopic(STREAM[:6] + STREAM, TWO),
        FakeTopic(stream(range(40, 100)), TWO),
        FakeTopic([v for n in range(40, 100) for v in [*stream([n]), GAP, b""]], TWO),
        FakeTopic(STREAM, TWO, first=70),
    ],
)
def test_another_topic_is_searched_by_time(topic):
    found = search(topic).resume(left(50))
    assert found.origin == topic.origin
    assert not missing(found, topic, 50)
    assert found.timestamp < BASE + 30 * 50
    # At a boundary: behind a COMMIT, or in front of a BEGIN.
    commits = set(STREAM[1::2])
    behind = found.offset > 0 and topic.values[found.offset - 1] in commits
    assert behind or topic.values[found.offset] in STREAM[::2]
    assert search(topic).resume(found) is found


def test_it_goes_back_a_minute_if_that_is_enough():
    found = search(FakeTopic(STREAM, TWO)).resume(left(50))
    assert BASE + 30 * 50 - 120 <= found.timestamp <= BASE + 30 * 50 - 60


def test_a_long_transaction_makes_it_go_back_further():
    rows = [row(BASE + n) for n in range(400, 999)]
    values = [
        *begin_and_commit(1, BASE),
        record("BEGIN", sourceTimestamp=BASE + 300),
        *rows,
        record("COMMIT", sourceTimestamp=BASE + 999),
        *begin_and_commit(2, BASE + 1000),
    ]
    position = KafkaPosition("orders", 0, 9000, BASE + 999, 1, ONE)
    found = search(FakeTopic(values, TWO)).resume(position)
    # A minute or ten before its end there is nothing but its rows.
    assert (found.offset, found.timestamp) == (0, BASE)


def test_statements_that_ran_for_long_do_not_hide_what_was_not_read():
    """What stands behind the first one seems to be of a minute before the position."""
    before = stream(range(160), 10)
    long = [*dated_by_its_begin(160, 1000, 4000, 1000), *dated_by_its_begin(161, 1250, 9, 1250)]
    values = [*before, *long, *stream(range(162, 200), 10)]
    position = KafkaPosition("orders", 0, 9000, BASE + 1300, 1, ONE)
    found = search(FakeTopic(values, TWO)).resume(position)
    assert found.offset <= 262


def test_a_full_load_without_transactions_has_positions_to_go_on_from():
    values = [row(BASE + n, "INIT") for n in range(300)]
    position = KafkaPosition("orders", 0, 9000, BASE + 250, 1, ONE)
    found = search(FakeTopic(values, TWO)).resume(position)
    assert (found.offset, found.timestamp) == (190, BASE + 190)


def test_a_position_inside_a_transaction_is_refused():
    begin, commit = begin_and_commit(1, BASE)
    idle, filler = record("HEARTBEAT", sourceTimestamp=BASE), b""
    values = [begin, row(BASE), idle, row(BASE), commit, idle, filler, *begin_and_commit(2, BASE)]
    for offset in (0, 5, 6, 7, 9):
        search(FakeTopic(values)).check_between(offset)
    for offset in (1, 2, 3, 4, 8):
        with pytest.raises(ConfigurationError, match=f"position {offset} is inside") as raised:
            search(FakeTopic(values)).check_between(offset)
        assert f"ends before {9 if offset == 8 else 5}:" in raised.value.hint
    with pytest.raises(ConfigurationError) as raised:
        search(FakeTopic(values[:3])).check_between(2)
    assert "has not come to its end yet" in raised.value.hint
    # Without a COMMIT; rows of a full load; and where nothing is known of what was before.
    search(FakeTopic([begin, row(BASE), begin, row(BASE), commit])).check_between(2)
    search(FakeTopic([row(BASE, "INIT"), row(BASE, "INIT")])).check_between(1)
    search(FakeTopic(values, first=3)).check_between(3)


def test_where_offsets_have_gaps_the_position_is_compared_all_the_same():
    values = [*STREAM[:4], GAP, *STREAM[4:6], GAP, GAP]
    for offset, value in ((4, STREAM[3]), (7, STREAM[5])):
        position = KafkaPosition("orders", 0, offset, BASE + 30, crc32(value), ONE)
        assert search(FakeTopic(values)).resume(position) is position
    # The end, behind records that nobody is shown: nothing is known of them, but the time is.
    at_end = search(FakeTopic(values)).at(len(values))
    assert at_end == KafkaPosition("orders", 0, 9, BASE + 60, 0, ONE)
    assert search(FakeTopic(values)).resume(at_end) is at_end
    missing_one = KafkaPosition("orders", 0, 5, BASE + 90, crc32(STREAM[3]), ONE)
    moved = search(FakeTopic(values)).resume(missing_one)
    assert moved.offset < 5


LOST = [
    (FakeTopic([], TWO), left(50), "the topic is empty"),
    (FakeTopic(stream(range(50, 99)), TWO), left(50), "nothing in it is older than 2026-09-21"),
    (FakeTopic(stream(range(51, 99)), TWO), left(50), "cluster-1, and cluster-2 answers now"),
    (FakeTopic(STREAM, TWO), left(50, timestamp=0), "the position has no time"),
    (FakeTopic(STREAM, first=120), left(50), "offset 102 has expired; the topic holds 120 to 200"),
    (FakeTopic(STREAM, TWO, first=102), left(50), "nothing in it is older than"),
]


@pytest.mark.parametrize(("topic", "position", "says"), LOST)
def test_a_position_that_is_lost(topic, position, says):
    with pytest.raises(PositionLostError, match=says) as raised:
        search(topic).resume(position)
    assert "--to earliest" in raised.value.hint
    assert "setl position reset" in raised.value.hint


def test_a_broker_that_delivers_nothing_is_no_reason_to_give_up():
    clock = ManualClock()
    with pytest.raises(TransientError, match="do not come in time"):
        search(FakeTopic(STREAM, clock=clock), clock).resume(left(50))


@pytest.mark.parametrize(
    ("known", "found", "says"),
    [
        (None, ONE, ""),
        (ONE, ONE, ""),
        (KafkaOrigin(), ONE, ""),
        (ONE, KafkaOrigin(), ""),
        (ONE, TWO, "cluster-1, and cluster-2 answers now"),
        (ONE, ONE._replace(topic="t2"), "it was made again"),
    ],
)
def test_whether_ids_tell_a_topic_apart(known, found, says):
    assert says in moved_reason(known, found)
    assert bool(moved_reason(known, found)) == bool(says)
