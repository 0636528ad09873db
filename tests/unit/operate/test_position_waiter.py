"""When a target has what its source has shown, by the checkpoints that are stored."""

from dataclasses import replace
from itertools import chain, repeat

import pytest

from arbiter.values import ChannelState, PipelineId
from setl.bulk.position_waiter import WaitOutcome
from setl.channel.file import Pipeline
from setl.errors import TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.model.stream_end import StreamEnd
from setl.model.table_load import TableLoad
from setl.operate import waiting
from setl.operate.positions.stored import Stored
from setl.operate.waiting import Health, StoredPositionWaiter, Verdict, WaitContext, wait_for
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.clocks import SetClock

ENDPOINT = {"type": "mysql", "host": "127.0.0.1", "port": 1, "user": "u", "password": "p"}
PIPELINE = Pipeline.model_validate(
    {
        "name": "p",
        "source": ENDPOINT,
        "target": {**ENDPOINT, "port": 2},
        "tables": [{"from": "s.t"}],
    }
)
IDENT = PipelineId("c", "p")


def at(offset, timestamp=0.0):
    position = BinlogPosition("b.000001", offset, origin=BinlogOrigin("server"))
    return Checkpoint(position, timestamp=timestamp)


def end(offset):
    return StreamEnd(at(offset).resume, 0.0)


@pytest.fixture
def wait(monkeypatch):
    """What a wait finds, given what is stored at each look and how the pipeline runs."""

    def waited(stored, health=None, timeout=10.0, *, loads_too=False):
        looks = chain(stored, repeat(stored[-1]))

        def read(*_):
            found = next(looks)
            if isinstance(found, Exception):
                raise found
            return Stored("target", checkpoint=found)

        monkeypatch.setattr(waiting, "read_stored", read)
        monkeypatch.setattr(
            "setl.systems.mysql.source_system.binlog_distance", lambda a, b, _: b.offset - a.offset
        )
        monkeypatch.setattr(
            "setl.systems.mysql.source_system.BinlogServer.files", lambda _: (), raising=False
        )
        clock, said = SetClock(0.0), []

        def pause(seconds):
            clock.time += seconds

        context = WaitContext(
            MemoryArbiter(MemoryCluster()),
            lambda _: health or Health(ChannelState.START),
            clock,
            pause,
        )
        if loads_too:
            found = wait_for(
                PIPELINE, IDENT, end(100), context, timeout=timeout, progress=said.append
            )
            return found, clock.time, said
        found = StoredPositionWaiter(
            {IDENT: PIPELINE}, context, nid="verify", timeout=timeout, show=said.append
        ).wait(end(100))
        return found, clock.time, said

    return waited


def test_what_is_past():
    def order(reached, position):
        return reached.offset >= position.offset

    assert end(5).is_past(at(5), order)
    assert not end(5).is_past(at(4), order)
    # By time: whole seconds, so what is of this second may still come.
    assert StreamEnd(None, 7.9).is_past(at(0, 8.0), order)
    assert not StreamEnd(None, 7.9).is_past(at(0, 7.0), order)


def test_it_is_there_at_once(wait):
    found, seconds, said = wait([at(100)])
    assert (found.wait_outcome, found.why, seconds, said) == (WaitOutcome.CAUGHT_UP, "", 0.0, [])


def test_it_comes_while_one_waits(wait):
    found, seconds, said = wait([at(10), TransientError("gone"), at(60), at(200)])
    assert found.wait_outcome is WaitOutcome.CAUGHT_UP
    assert 0 < seconds < 1
    assert "90 bytes behind" in said[0]
    assert "gone" in said[1]


def test_it_does_not_come_in_time(wait):
    found, seconds, _ = wait([at(10)], timeout=3.0)
    assert found.wait_outcome is WaitOutcome.LATE
    assert found.why == "c/p is not there after 3 s: it is at b.000001:10, 90 bytes behind"
    assert 3 <= seconds < 4


@pytest.mark.parametrize(
    ("health", "seconds", "why"),
    [
        (Health(ChannelState.STOP), 0, "10, 90 bytes behind, and its channel is set to STOP"),
        (Health(ChannelState.START, failed=True, error="no room"), 5, "its last error: no room"),
    ],
)
def test_a_pipeline_that_does_not_run_is_not_waited_for(wait, health, seconds, why):
    found, waited, _ = wait([at(10)], health)
    assert found.wait_outcome is WaitOutcome.LATE
    assert why in found.why
    assert seconds <= waited <= seconds + 1


def test_nothing_is_stored_yet(wait):
    found, _, _ = wait([None], timeout=1.0)
    assert found.wait_outcome is WaitOutcome.LATE
    assert "no checkpoint" in found.why


def test_tables_that_are_being_loaded_are_missing_or_noted(wait):
    loading = replace(at(100), load=TableLoad("l"))
    found, _, _ = wait([loading])
    assert found.wait_outcome is WaitOutcome.CAUGHT_UP
    assert "whole tables are still being loaded" in found.why
    waited, _, _ = wait([loading], timeout=1.0, loads_too=True)
    assert waited.verdict is Verdict.TIMEOUT
    assert waited.why == "whole tables are still being loaded"
    done, _, _ = wait([loading, at(100)], loads_too=True)
    assert (done.verdict, done.why) == (Verdict.PASSED, "")
