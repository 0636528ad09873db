"""A relay that goes on after a crash, or beside a former leader, writes what one would have."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.relay.relay_streams import (
    ORDERS,
    START,
    AsRows,
    AsText,
    Binlog,
    Relay,
    as_read,
    binlogs,
    last_positions,
    pieces,
    relayed,
    without_heartbeats,
    words,
)

WAYS = st.sampled_from(
    [(*way, form) for way in (("order", 1), ("table", 3), ("key", 3)) for form in (AsText, AsRows)]
)
MANY = settings(max_examples=300, deadline=None)


def run(draw, relay, entries, checkpoints, known):
    """Give a relay entries in pieces; notes checkpoints with what was written before each."""
    for piece in draw(pieces(entries)):
        relay.take(piece)
        if draw(st.booleans()):
            relay.beat()
        written = map(len, map(without_heartbeats, relay.partitions))
        lengths = [k + n for k, n in zip(known, written, strict=True)]
        checkpoints.append((relay.sequencer.checkpoint, lengths))


def allowed(checkpoints, held):
    """Those that the relay may have stored: all before them is in the topic."""
    return [
        checkpoint
        for checkpoint, lengths in checkpoints
        if all(n <= len(without_heartbeats(h)) for n, h in zip(lengths, held, strict=True))
    ]


@MANY
@given(st.data(), binlogs(), WAYS)
def test_however_often_it_dies_nothing_is_lost_or_repeated(data, binlog, way):
    whole = relayed(binlog, *way)
    held = [[] for _ in whole.partitions]
    checkpoints = [(START, [0] * len(held))]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.sampled_from(allowed(checkpoints, held)))
        relay = Relay(binlog, *way, start=start, last=last_positions(held))
        entries = binlog.behind(start.resume)
        run(data.draw, relay, entries, checkpoints, [len(without_heartbeats(h)) for h in held])
        # It dies: of each partition some first part has arrived, whatever the others have.
        for partition, records in zip(held, relay.partitions, strict=True):
            partition.extend(records[: data.draw(st.integers(0, len(records)))])
    start = data.draw(st.sampled_from(allowed(checkpoints, held)))
    relay = Relay(binlog, *way, start=start, last=last_positions(held))
    relay.take(binlog.behind(start.resume))
    for partition, records, expected in zip(held, relay.partitions, whole.partitions, strict=True):
        there = partition + records
        assert without_heartbeats(there) == expected
        assert as_read(there) == there
    assert relay.sequencer.checkpoint == whole.sequencer.checkpoint


def interleaved(draw, one, other):
    """Both lists in one, each in its order."""
    left, right, merged = list(one), list(other), []
    while left or right:
        merged.append((left if left and (not right or draw(st.booleans())) else right).pop(0))
    return merged


@MANY
@given(st.data(), binlogs(), WAYS)
def test_a_reader_does_not_see_what_a_former_leader_still_sends(data, binlog, way):
    whole = relayed(binlog, *way)
    held, late = [], []
    for records in whole.partitions:
        at = data.draw(st.integers(0, len(records)))
        held.append(records[:at])
        late.append(records[at : data.draw(st.integers(at, len(records)))])
    relay = Relay(binlog, *way, last=last_positions(held)).take(binlog.entries)
    for there, stale, new, expected in zip(
        held, late, relay.partitions, whole.partitions, strict=True
    ):
        merged = there + interleaved(data.draw, stale, new)
        assert as_read(merged) == expected


@MANY
@given(st.data(), binlogs(), WAYS)
def test_pieces_make_no_difference(data, binlog, way):
    relay = Relay(binlog, *way)
    checkpoints = []
    run(data.draw, relay, binlog.entries, checkpoints, [0] * way[1])
    whole = relayed(binlog, *way)
    assert [without_heartbeats(p) for p in relay.partitions] == whole.partitions
    orders = [checkpoint.order for checkpoint, _ in checkpoints]
    assert orders == sorted(orders)


def test_a_partition_that_is_ahead_gets_no_heartbeat_until_it_is_reached():
    binlog = Binlog().ddl("ALTER TABLE orders ADD x INT").ddl("ALTER TABLE orders ADD y INT")
    last = last_positions(relayed(binlog, "key", 2).partitions)
    relay = Relay(binlog, "key", 2, last=[last[0], None]).take(binlog.entries[:1]).beat()
    beats = [[w for w in words(p) if "HEARTBEAT" in w] for p in relay.partitions]
    assert beats == [[], ["HEARTBEAT binlog.000007:34 5"]]
    relay.take(binlog.entries[1:]).beat()
    assert [words(p)[-1] for p in relay.partitions] == ["HEARTBEAT binlog.000007:64 5"] * 2


def test_positions_of_another_generation_are_behind():
    binlog = Binlog().begin().insert(ORDERS, 1).commit()
    (first,) = relayed(binlog).partitions
    moved = START.moved_to(START.resume)
    (second,) = relayed(binlog, start=moved, last=last_positions([first])).partitions
    assert [r.value for r in second] == [r.value for r in first]
    assert as_read(first + second + first) == first + second
