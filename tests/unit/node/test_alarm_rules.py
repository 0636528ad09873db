"""The rules by which a node judges a pipeline are those of its channel's file."""

from types import SimpleNamespace
from typing import Any

from arbiter.values import Channel, ChannelState, PipelineId
from setl.alarms.settings import AlarmSettings
from setl.node.alarm_sender import AlarmSender
from tests.arbiter_in_memory import ManualClock, MemoryArbiter, MemoryCluster

PIPELINE = SimpleNamespace(ident=PipelineId("shop", "there"))


def test_a_channel_that_was_removed_and_stored_again_has_its_own_rules():
    """Its revision is the same."""
    clock = ManualClock()
    arbiter = MemoryArbiter(MemoryCluster(clock))
    sender = AlarmSender(
        "n1", arbiter, AlarmSettings(), clock, snapshot=lambda: None, environment={}
    )
    limits = []
    for above in (60, 600):
        definition = {"alarms": {"lag": {"above": above}}, "pipelines": [{"name": "there"}]}
        channel = Channel("shop", ChannelState.START, definition, revision=1)
        view: Any = SimpleNamespace(facts=SimpleNamespace(channels={"shop": channel}))
        pipeline: Any = PIPELINE
        limits.append(sender._rules_of(view, pipeline)[0].lag.above)
    sender.stop()
    assert limits == [60, 600]
