"""The rules by which a node judges a pipeline are those of its channel's file."""

from types import SimpleNamespace
from typing import Any

from arbiter.snapshot import look
from arbiter.values import Channel, ChannelState, NodeInfo, PipelineId
from setl.alarms.settings import AlarmSettings
from setl.node import alarm_sender as alarm_sender
from setl.node.alarm_sender import AlarmSender
from setl.node.status import NodeStatus
from tests.arbiter_in_memory import ManualClock, MemoryArbiter, MemoryCluster

PIPELINE = SimpleNamespace(ident=PipelineId("shop", "there"))
GONE = "ZooKeeper holds none of the channels that it held (shop): it was set up again"


def own_status(lost_channels=""):
    return NodeStatus("n1", "1", "connected", True, 0.0, (), lost_channels=lost_channels)


def test_a_channel_that_was_removed_and_stored_again_has_its_own_rules():
    """Its revision is the same."""
    clock = ManualClock()
    arbiter = MemoryArbiter(MemoryCluster(clock))
    sender = AlarmSender(
        "n1", arbiter, AlarmSettings(), clock, own=own_status, snapshot=lambda: None, environment={}
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


def sender_of(arbiter, clock):
    """One that tells nobody; it looks at no disk."""
    return AlarmSender(
        "n1",
        arbiter,
        AlarmSettings(least_disk_free=0.0),
        clock,
        own=own_status,
        snapshot=lambda: look(arbiter, clock),
        environment={},
    )


def test_lost_channels_raise_an_alarm_though_nothing_is_left_to_be_judged(monkeypatch):
    """ZooKeeper was emptied, with the alarms that were raised before."""
    clock = ManualClock()
    arbiter = MemoryArbiter(MemoryCluster(clock))
    last_sent_at = "ZooKeeper holds none of the channels that it held (shop): it was set up again."
    lost = {"pipelines": [], "lost_channels": f"{last_sent_at} `setl apply` them again"}
    answers = {"n1": None, "n2": lost}
    monkeypatch.setattr(alarm_sender, "ask_nodes", lambda nodes, whole: answers)
    sender = sender_of(arbiter, clock)
    sender.look()
    (alarm,) = sender.status().firing
    assert (alarm.rule, alarm.severity) == ("channels_lost", "critical")
    assert alarm.text == last_sent_at.removesuffix(".")
    lost["lost_channels"] = ""
    clock.advance(1)
    sender.look()
    clock.advance(61)
    sender.look()
    assert sender.status().firing == ()
    sender.stop()


def test_a_lost_zookeeper_server_raises_one_alarm_for_all_nodes(monkeypatch):
    clock = ManualClock()
    arbiter = MemoryArbiter(MemoryCluster(clock))
    seen = [{"address": f"zk{n}:2181", "answers": n != 2} for n in (1, 2, 3)]
    answer = {"pipelines": [], "zookeeper": seen}
    monkeypatch.setattr(
        alarm_sender, "ask_nodes", lambda nodes, whole: {"n1": answer, "n2": answer}
    )
    sender = sender_of(arbiter, clock)

    def raised(seconds):
        clock.advance(seconds)
        sender.look()
        return [(alarm.rule, alarm.subject) for alarm in sender.status().firing]

    assert raised(0) == raised(59) == []
    assert raised(1) == [("zookeeper_server", "zk2:2181")]
    (alarm,) = sender.status().firing
    assert (alarm.severity, bool(alarm.hint)) == ("warning", True)
    assert "n1, n2 see it so" in alarm.text
    # All are silent, or no node has its session: nobody knows, and nothing changes.
    for each in seen:
        each["answers"] = None
    assert raised(1) == raised(61) == [("zookeeper_server", "zk2:2181")]
    for each in seen:
        each["answers"] = True
    assert raised(1) == [("zookeeper_server", "zk2:2181")]
    assert raised(61) == []
    sender.stop()


def test_a_certificate_for_zookeeper_raises_one_alarm_until_it_is_renewed(monkeypatch):
    clock = ManualClock()
    arbiter = MemoryArbiter(MemoryCluster(clock))
    sender = sender_of(arbiter, clock)
    day, now = 86_400.0, clock.now()
    mine, ours = (
        {"kind": kind, "of": of, "begins": now - 300 * day, "expires": now + 5 * day}
        for kind, of in (("client", "/zk.pem"), ("server", "zk1:2181"))
    )
    answer = {"pipelines": [], "zookeeper_certificates": [mine, ours]}
    answers: dict[str, Any] = {"n1": answer, "n2": answer}
    monkeypatch.setattr(alarm_sender, "ask_nodes", lambda nodes, whole: answers)

    def raised(seconds):
        clock.advance(seconds)
        sender.look()
        return [alarm.subject for alarm in sender.status().firing if alarm.rule == "certificate"]

    files = ["/zk.pem of node n1", "/zk.pem of node n2"]
    assert raised(0) == [*files, "ZooKeeper zk1:2181"]
    (hint, _) = {alarm.hint for alarm in sender.status().firing}
    assert hint
    # A node that does not answer says nothing of its file, nor does one that has just started.
    answers["n2"] = None
    assert raised(61) == raised(61) == [*files, "ZooKeeper zk1:2181"]
    answers["n2"] = {"pipelines": [], "zookeeper_certificates": None}
    assert raised(61) == raised(61) == [*files, "ZooKeeper zk1:2181"]
    answers["n2"] = answer
    ours["expires"] = now + 300 * day
    raised(1)
    assert raised(61) == files
    del answers["n2"]  # it has left the cluster
    raised(1)
    assert raised(61) == files[:1]
    mine["expires"] = now + 300 * day
    raised(1)
    assert raised(61) == []
    sender.stop()


def test_the_node_that_decides_does_not_ask_itself_over_http(monkeypatch):
    clock = ManualClock()
    arbiter = MemoryArbiter(MemoryCluster(clock))
    arbiter.nodes.announce(NodeInfo("n1", host="h", pid=1, http="http://h:1", started=0.0))
    asked = []
    monkeypatch.setattr(alarm_sender, "ask_nodes", lambda nodes, whole: asked.extend(nodes) or {})
    sender = AlarmSender(
        "n1",
        arbiter,
        AlarmSettings(least_disk_free=0.0),
        clock,
        own=lambda: own_status(lost_channels=GONE),
        snapshot=lambda: look(arbiter, clock),
        environment={},
    )
    sender.look()
    sender.stop()
    assert not asked
    (alarm,) = sender.status().firing
    assert alarm.text == GONE
