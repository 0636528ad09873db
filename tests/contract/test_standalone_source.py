"""What a source promises whose records stand alone, whatever their format."""

import time
from dataclasses import replace

import pytest

from setl.channel.file import OffsetStart, TimestampStart
from setl.errors import PositionLostError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from tests.contract.source_sides import StandaloneSide, read_rows
from tests.unit.formats.records import FORMATS


@pytest.fixture(params=FORMATS)
def side(request, kafka):
    made = StandaloneSide(kafka, request.param)
    yield made
    made.close()


@pytest.fixture
def dated(side):
    """Ten rows that Kafka has dated 100 s after each other, from offset 1 on.

    All are later than what made the topic, and not so old that the broker would drop them.
    """
    side.written = int(time.time()) - 3000
    for number in range(10):
        side.write(rows=1, at=side.written + 100 * number)
    return side


def test_a_start_by_time_is_by_kafkas_own(dated):
    for seconds, offset in ((0, 1), (61, 2), (160, 2), (161, 3), (960, 10)):
        start = TimestampStart(timestamp=dated.written + seconds)
        assert dated.source(start).initial().offset == offset
    assert dated.source(OffsetStart(offset=7)).initial().offset == 7
    with pytest.raises(PositionLostError, match="has got no record since"):
        dated.source(TimestampStart(timestamp=dated.written + 1000)).initial()


def test_a_checkpoint_of_another_topic_is_found_by_time(dated):
    source = dated.source()
    source.open(dated.origin)
    entries = read_rows(source, 10)
    last = entries[-1].position
    assert last.offset == 11
    # Another record stands before it: the topic was made again, and filled anew.
    other = Checkpoint(replace(last, record=last.record ^ 1, timestamp=dated.written + 500))
    moved = source.locate(other)
    assert (moved.resume.offset, moved.generation) == (6, other.generation + 1)
    early = Checkpoint(replace(last, record=last.record ^ 1, timestamp=dated.written - 10_000))
    with pytest.raises(PositionLostError, match="nothing in it is older"):
        source.locate(early)


def test_any_record_is_a_boundary(dated):
    source = dated.source()
    source.open(dated.origin)
    entries = read_rows(source, 10)
    for entry in (e for e in entries if e.kind is EntryKind.ROWS):
        at = replace(entry.position, record=0)
        again = dated.source()
        again.open(at)
        rest = [e for e in again.read(100, 0.5) if e.kind is EntryKind.ROWS]
        assert sum(e.rows for e in rest) <= 11 - at.offset
        again.close()
