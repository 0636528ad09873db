"""Where a relay goes on, from its checkpoint and what is in the topic."""

from dataclasses import replace

import pytest

from setl.codec.dts.relayed import HEARTBEAT, RelayPosition, RelayTransaction
from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.relay.resume import resumption, with_written

ORIGIN = BinlogOrigin("srv-1", 7, 1_700_000_000)


def stored(offset, file=3, generation=2, **more):
    position = BinlogPosition(f"binlog.{file:06d}", offset, "0-1-9", ORIGIN)
    return Checkpoint(position, generation=generation, rows=40, **more)


def last(begin, ordinal=HEARTBEAT, file=3, generation=2):
    name = f"binlog.{file:06d}"
    return RelayPosition(RelayTransaction(generation, name, begin, *ORIGIN, "0-1-9"), ordinal)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("tails", [(None,), (last(100),), (last(100, 7),), (last(300), last(100))])
def test_a_checkpoint_that_the_topic_has_reached_is_where_reading_begins(tails, exact):
    found = resumption(stored(100), tails, exact=exact)
    assert found.checkpoint == stored(100)
    assert (found.tails, found.reason) == (tails, "")


def test_a_topic_that_has_lost_records_gets_them_again():
    checkpoint = stored(500, applied=BinlogPosition("binlog.000003", 600))
    found = resumption(checkpoint, (last(400), last(90, 5, file=2), None), exact=True)
    assert found.checkpoint.resume == BinlogPosition("binlog.000002", 90, "", ORIGIN)
    assert found.checkpoint.applied is None
    assert (found.checkpoint.generation, found.checkpoint.rows) == (2, 40)
    assert found.tails == (last(400), last(90, 5, file=2), None)
    assert "has lost records" in found.reason


def test_what_the_topic_has_is_asked_for_at_another_source():
    def gtid(position, name):
        return position._replace(transaction=position.transaction._replace(gtid=name))

    ends = (gtid(last(400, 3), "0-1-8"), None, gtid(last(500, 7), "0-1-9"), gtid(last(600), ""))
    assert with_written(stored(100), ends).transaction == "0-1-8,0-1-9"
    # After a reset, what the topic has is no reason to stop.
    assert with_written(stored(100, generation=3), ends).transaction == ""


def test_partitions_that_were_added_would_move_rows():
    tails = (last(100), last(300, 7), None)
    with pytest.raises(FatalError, match="nothing is in the partitions 2, though") as raised:
        resumption(stored(100), tails, exact=True, spread=True)
    assert "setl position reset" in raised.value.hint
    # In order, nothing goes there. A reset says that subscribers have come to the end.
    assert resumption(stored(100), tails, exact=True).tails == tails
    anew = stored(100, generation=3)
    assert resumption(anew, tails, exact=True, spread=True).tails == (None, None, None)
    # Before the first checkpoint, partitions that got nothing have no heartbeat yet.
    first = replace(stored(100), rows=0)
    assert resumption(first, tails, exact=True, spread=True).tails == tails


def test_late_records_of_a_former_leader_take_nothing_back():
    found = resumption(stored(500), (last(90, 5),), exact=False)
    assert found.checkpoint == stored(500)
    assert found.tails == (last(90, 5),)


def test_what_was_written_before_a_reset_says_nothing():
    found = resumption(stored(4, generation=3), (last(900), last(5, generation=3)), exact=True)
    assert found.checkpoint == stored(4, generation=3)
    assert found.tails == (None, last(5, generation=3))


def test_without_its_checkpoint_a_relay_goes_on_where_the_topic_ends():
    fresh = stored(9000, file=9, generation=1)
    tails = (last(700, 3, generation=4), last(650, generation=4), last(1, generation=2))
    found = resumption(fresh, tails, exact=True)
    assert found.checkpoint.resume == BinlogPosition("binlog.000003", 650, "", ORIGIN)
    assert found.checkpoint.generation == 4
    assert found.tails == tails
    assert "older than what is in the topic" in found.reason
