"""A relay stops where its source has lost what the topic has; it leaves no successor out."""

import pytest

from setl.errors import PositionLostError
from tests.unit.relay.relay_streams import ITEMS, ORDERS, Binlog, Relay, last_positions, relayed


def known():
    """What the topic has: a transaction that ended, and three rows of the next one."""
    return Binlog().begin("0-1-1").insert(ORDERS, 1).commit().begin("0-1-2").insert(ORDERS, 2, 3, 4)


def again(binlog, held, **options):
    return Relay(binlog, last=last_positions([held]), **options).take(binlog.entries)


def held_of(binlog, beat=False):
    relay = relayed(binlog)
    if beat:
        relay.beat()
    return relay.partitions[0]


def first_two():
    return Binlog().begin("0-1-1").insert(ORDERS, 1).commit()


@pytest.mark.parametrize(
    "binlog",
    [
        first_two().begin("0-1-2").insert(ORDERS, 2).commit(),  # the server gave its GTID again
        first_two().begin("0-1-2").insert(ORDERS, 2).insert(ITEMS, 9).insert(ORDERS, 8).commit(),
        first_two().begin("0-1-2").commit(),
        first_two().ddl("TRUNCATE orders"),
        first_two().begin("0-1-3").insert(ORDERS, 2, 3, 4),
        Binlog().begin("0-1-1").insert(ORDERS, 1, 2).commit(),
        Binlog().ddl("TRUNCATE orders").begin("0-1-2").insert(ORDERS, 2, 3, 4).commit(),
        Binlog().begin("0-1-1").insert(ORDERS, 1).commit().rotate(),
    ],
    ids=["shorter", "other rows", "empty", "ddl", "other", "longer before", "before", "file"],
)
def test_another_transaction_instead_of_one_that_the_topic_has_a_part_of(binlog):
    held = held_of(known())
    assert [bytes(r.value[:6]) for r in held] == [b"BEGIN ", b"INSERT", b"COMMIT", b"BEGIN "] + [
        b"INSERT"
    ] * 3
    with pytest.raises(PositionLostError, match=r"topic has .*the source has lost"):
        again(binlog, held)


@pytest.mark.parametrize("beat", [False, True], ids=["commit", "heartbeat"])
def test_another_transaction_instead_of_a_whole_one(beat):
    """It would be left out, since the topic has what is there."""
    held = held_of(first_two(), beat)
    longer = Binlog().begin("0-1-1").insert(ORDERS, 1, 2).commit()
    if beat:
        with pytest.raises(PositionLostError, match=r"a heartbeat behind binlog\.000007:92"):
            again(longer, held)
    other = Binlog().begin("0-1-7").insert(ORDERS, 7).commit()
    if not beat:
        with pytest.raises(PositionLostError, match="0-1-7 comes there now"):
            again(other, held)


def test_the_same_stream_goes_on_and_what_is_mapped_does_not_matter():
    binlog = known().insert(ITEMS, 5, 6).commit().rotate().begin("0-1-3").insert(ORDERS, 7).commit()
    (whole,) = relayed(binlog).partitions
    for count in range(len(whole) + 1):
        (rest,) = again(binlog, whole[:count]).partitions
        assert whole[:count] + rest == whole
        again(binlog, whole[:count], mapped=("names",))
    for count in range(1, len(whole)):
        relay = Relay(binlog, last=last_positions([whole[:count]]))
        for entry in binlog.entries:
            relay.take([entry]).beat()


def test_a_transaction_that_has_not_come_yet_may_still_come():
    held = held_of(known())
    again(first_two(), held)
    again(first_two().begin("0-1-2"), held)
