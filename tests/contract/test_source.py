"""What every source promises (setl.select.source.Source)."""

import json
import threading
import time

import pytest

from setl.errors import FatalError, PositionLostError, TransientError
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.entry import EntryKind
from setl.model.position import KafkaPosition
from setl.systems.mysql.binlog.shared_reader import SharedReaders
from setl_embedded import Kafka
from tests.contract.source_sides import (
    SHARED,
    BinlogSide,
    DtsSide,
    Shared,
    StandaloneSide,
    kinds,
    read_rows,
    until_error,
)
from tests.databases import EACH, new_server
from tests.families import Pair
from tests.runs import single
from tests.unit.formats.records import FORMATS
from tests.waiting import eventually


@pytest.fixture(params=[*EACH, *SHARED, "dts", *FORMATS])
def side(request):
    if isinstance(request.param, Pair):
        made = BinlogSide(request.getfixturevalue("databases").site(request.param, 0))
    elif isinstance(request.param, Shared):
        server = request.getfixturevalue("databases").site(request.param.pair, 0)
        made = BinlogSide(server, SharedReaders())
    else:
        kafka = request.getfixturevalue("kafka")
        made = DtsSide(kafka) if request.param == "dts" else StandaloneSide(kafka, request.param)
    yield made
    made.close()


@pytest.fixture(params=[*EACH, "dts"])
def own(request, tmp_path):
    """A side on a server of its own, which a test may kill."""
    binlog = isinstance(request.param, Pair)
    server = new_server(request.param.a, tmp_path, "own", 7) if binlog else Kafka(tmp_path)
    with server:
        # No longer is one waited for that is frozen.
        made = BinlogSide(server, silence=5.0) if binlog else DtsSide(server)
        yield made
        made.close()


# ---- for both


def test_entries_come_in_order_with_their_positions(side):
    side.write(3)
    source = side.source()
    source.open(side.origin)
    entries = read_rows(source, 6)
    assert side.kinds(entries) == side.transaction * 3
    orders = [e.position.order for e in side.records(entries)]
    assert orders == sorted(set(orders))
    assert all(o > side.origin.order for o in orders)
    rows = [e for e in entries if e.kind is EntryKind.ROWS]
    assert all(e.payload and e.table and e.rows == 1 for e in rows)
    assert all(e.timestamp > 1_600_000_000 for e in rows)


def test_opened_at_any_boundary_the_rest_is_the_same(side):
    side.write(4)
    source = side.source()
    source.open(side.origin)
    whole = read_rows(source, 8)
    ends = [i + 1 for i, e in enumerate(whole) if e.kind is EntryKind.COMMIT]
    for end in [0, *ends[:-1]]:
        source.open(whole[end - 1].position if end else side.origin)
        rest = read_rows(source, 8 - sum(e.kind is EntryKind.ROWS for e in whole[:end]))
        assert side.comparable(rest) == side.comparable(whole[end:])


def test_an_idle_source_returns_nothing_in_time(side):
    source = side.source()
    source.open(source.latest())
    source.read(1000, 1.0)
    for timeout in (0.0, 0.3):
        # Once is enough: a busy machine makes any one of them late.
        eventually(lambda timeout=timeout: seconds_of_nothing(source, timeout) < timeout + 0.5, 20)


def seconds_of_nothing(source, timeout):
    """How long a read takes that brings nothing."""
    began = time.monotonic()
    found = source.read(1000, timeout)
    took = time.monotonic() - began
    if kinds(found):
        raise RuntimeError(f"not idle: {kinds(found)}")
    return took


def test_what_is_written_wakes_a_waiting_read(side):
    source = side.source()
    source.open(side.origin)
    source.read(1000, 0.5)
    writer = threading.Timer(0.3, side.write)
    writer.start()
    began, entries = time.monotonic(), []
    while not kinds(entries):
        entries = source.read(1000, 60)
    assert time.monotonic() - began < 30
    writer.join()  # it goes on writing behind what came first


def test_limit_is_about_stored(side):
    side.write(300)
    source = side.source()
    source.open(side.origin)
    sizes, rows = [], 0
    while rows < 600:
        found = source.read(50, 20)
        assert found
        sizes.append(len(found))
        rows += sum(e.kind is EntryKind.ROWS for e in single(found))
    assert max(sizes) <= 2048


def test_latest_is_where_what_comes_next_begins(side):
    side.begin_anew()
    side.write()
    source = side.source()
    source.open(side.origin)
    entries = read_rows(source, 2)
    latest = source.latest()
    assert latest.order == entries[-1].position.order
    side.write()
    later = side.source()
    later.open(latest)
    assert side.kinds(read_rows(later, 2)) == side.transaction


def test_how_far_the_end_is_costs_no_question(side):
    side.write(3)
    source = side.source()
    assert source.behind() is None
    source.open(side.origin)
    assert source.behind() is None
    read_rows(source, 6)
    behind = source.behind()
    assert behind is None if isinstance(side, BinlogSide) else behind == 0
    source.close()
    assert source.behind() == behind


def test_a_pipeline_without_checkpoint_starts_where_it_is_reported(side):
    side.begin_anew()
    side.write()
    assert side.source("latest").initial().order == side.source().latest().order
    earliest = side.source("earliest")
    start = earliest.initial()
    assert start.order <= side.origin.order
    earliest.open(start)
    found = []
    while not any(e.position.order > side.origin.order for e in found):
        found += earliest.read(10_000, 5)


def test_a_position_that_is_gone_is_final_and_names_the_hints(side):
    source = side.source()
    with pytest.raises(PositionLostError) as raised:
        source.open(side.lost)
    assert "--to latest" in raised.value.hint
    assert "--to earliest" in raised.value.hint
    source.open(side.origin)  # the source itself is none the worse for it


def test_a_position_of_another_kind_of_source_is_refused(side):
    other = KafkaPosition("x", 0, 0) if isinstance(side, BinlogSide) else BinlogSide.lost
    with pytest.raises(FatalError, match="is not one of"):
        side.source().open(other)
    with pytest.raises(FatalError, match="is not one of"):
        side.source().locate(Checkpoint(other))


def test_a_checkpoint_of_the_source_that_answers_is_left_as_it_is(side):
    source = side.source()
    for start in (source.initial(), side.source("earliest").initial()):
        checkpoint = Checkpoint(start)
        assert source.locate(checkpoint) is checkpoint
    side.write(2)
    source.open(side.origin)
    entries = read_rows(source, 4)
    source.close()
    tracker = CheckpointTracker(Checkpoint(side.origin))
    for entry in entries:
        checkpoint = tracker.advance(entry)  # between and inside transactions
        stored = Checkpoint.from_json(json.loads(json.dumps(checkpoint.to_json())))
        assert source.locate(stored) is stored


def test_a_checkpoint_that_is_gone_is_final_and_names_the_hints(side):
    with pytest.raises(PositionLostError) as raised:
        side.source().locate(Checkpoint(side.lost))
    assert "--to latest" in raised.value.hint
    assert "--to earliest" in raised.value.hint
    assert "setl position reset" in raised.value.hint


def test_closing_from_another_thread_ends_a_waiting_read(side):
    source = side.source()
    source.open(source.latest())
    source.read(1000, 0.5)
    timer = threading.Timer(0.3, source.close)
    timer.start()
    error, seconds = until_error(source, limit=60, wait=60)
    assert isinstance(error, TransientError)
    assert "closed" in str(error)
    assert seconds < 20
    timer.join()
    source.close()
    with pytest.raises(TransientError):
        source.read(1000, 0)
    side.write()
    source.open(side.origin)
    assert side.kinds(read_rows(source, 2)) == side.transaction


def test_no_thread_is_left_behind(side):
    before = set(threading.enumerate())
    source = side.source()
    for _ in range(3):
        source.open(side.origin)
        source.read(10, 0.1)
    source.latest()
    source.close()
    eventually(lambda: set(threading.enumerate()) <= before, 30)


@pytest.mark.parametrize("crashed", [True, False], ids=["crashed", "frozen"])
def test_a_server_that_is_gone_is_noticed_and_nothing_is_lost(own, crashed):
    own.write(3)
    source = own.source()
    source.open(own.origin)
    first = read_rows(source, 6)
    if crashed:
        getattr(own.server, own.crash)()
    else:
        own.server.pause()
    error, seconds = until_error(source)
    assert isinstance(error, TransientError), error
    assert seconds < 30
    began = time.monotonic()
    with pytest.raises(TransientError) as raised:
        source.open(first[-1].position)
    assert time.monotonic() - began < 30
    assert getattr(own.server, "password", "no password") not in str(raised.value)
    if crashed:  # one that is frozen is waited for as it was above
        with pytest.raises(TransientError):
            source.latest()
        own.server.start()
    else:
        own.server.resume()
    own.write(2)
    source.open(first[-1].position)
    assert own.kinds(read_rows(source, 4)) == own.transaction * 2


# ---- binlog


# ---- DTS over Kafka
