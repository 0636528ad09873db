"""An outage in the history counts from when changes were last applied, whoever saw that."""

from dataclasses import replace

import pytest

from arbiter.values import ChannelState
from setl.errors import TransientError
from setl.run.measured.figures import RunState
from tests.unit.arbiter.elected_node import set_state
from tests.unit.node.candidate import PIPELINE, Node, leading
from tests.waiting import eventually


def takes_up(cluster, node, seconds=0.0, age=None):
    """A new leader finds a checkpoint of some age, and has its first batch some seconds later."""
    leads(cluster, node)
    return works(cluster, node, seconds, age)


def leads(cluster, node):
    """Let time pass until a node has a run of a new leadership."""
    runs = len(node.runs)
    for _ in range(20):
        node.tick()
        # Of a thread of its own, for which the clock stands still.
        eventually(lambda: len(node.runs) > runs or not node.controller.busy)
        if len(node.runs) > runs:
            return
        cluster.advance(0.5)
    raise AssertionError(f"{node.nid} does not lead")


def works(cluster, node, seconds=0.0, age=None):
    eventually(lambda: node.state is RunState.RUNNING)
    progress = node.runs[-1].progress
    progress.found_checkpoint(age)
    cluster.advance(seconds)
    progress.took_over(0, counted=True)
    progress.acknowledged(0)
    node.tick()
    return node.runs[-1]


def last(operator):
    return operator.history.all(PIPELINE)[-1]


@pytest.fixture
def ends():
    nodes = []
    yield nodes.append
    for node in nodes:
        node.controller.close(5)


def test_a_leader_that_stood_still_counts_from_its_last_look(cluster, operator, ends):
    """As a machine that sleeps: when it goes on, its session is over, and nobody else led."""
    node = Node(cluster)
    ends(node)
    leading(cluster, node)
    works(cluster, node)
    node.tick()
    cluster.clock.advance(45)
    node.arbiter.link.expire()
    node.tick()
    node.idle()
    node.arbiter.link.resume()
    node.tell_others()
    takes_up(cluster, node)
    assert len({run.epoch for run in node.runs}) == 2
    assert last(operator).outage == pytest.approx(45, abs=3)
    assert last(operator).outage_least is None


def test_leaderships_that_never_applied_anything_belong_to_the_outage(cluster, operator, ends):
    """A target that is away: each attempt has an epoch of its own, and only the last one works."""
    node = Node(cluster)
    ends(node)
    run = leading(cluster, node)
    works(cluster, node)
    cluster.advance(100)
    node.tick()
    run.failure = TransientError("the target is away")
    run.ends.set()
    node.idle()
    for _ in range(3):
        cluster.advance(15)
        node.tick()  # steps down
        node.tick()  # has another
        eventually(lambda before=run: node.runs[-1] is not before)
        run = node.runs[-1]
        run.failure = TransientError("the target is away")
        run.ends.set()
        node.idle()
        assert last(operator).outage is None
    # Another node finds it working again, and nothing but the history says since when it was not.
    other = Node(cluster, "n2")
    ends(other)
    other.tick()
    node.controller.close(5)
    takes_up(cluster, other)
    assert last(operator).nid == "n2"
    assert last(operator).outage == pytest.approx(45, abs=3)


def test_an_outage_of_all_nodes_counts_from_the_recorded_end(cluster, operator, ends):
    node = Node(cluster)
    leading(cluster, node)
    works(cluster, node)
    node.controller.close(5)
    cluster.advance(45)
    other = Node(cluster, "n2")  # of a new process, which has seen nobody lead
    ends(other)
    takes_up(cluster, other)
    assert last(operator).outage == pytest.approx(45, abs=3)


def test_to_be_stopped_is_no_outage(cluster, operator, ends):
    node, other = Node(cluster), Node(cluster, "n2")
    ends(node)
    ends(other)
    leading(cluster, node)
    works(cluster, node)
    other.tick()
    set_state(operator, ChannelState.STOP)
    node.tick()
    node.idle()
    for _ in range(2):
        node.tick()
        other.tick()
    cluster.advance(3600)
    set_state(operator, ChannelState.START)
    takes_up(cluster, other)
    assert (last(operator).nid, last(operator).outage) == ("n2", None)


def test_who_saw_nothing_meanwhile_gives_bounds(cluster, operator, ends):
    """ZooKeeper was away for 45 s, and the leader died in that time, nobody knows when."""
    node, other = Node(cluster), Node(cluster, "n2")
    ends(other)
    run = leading(cluster, node)
    works(cluster, node)
    other.tick()
    other.arbiter.link.suspend()
    other.tick()
    cluster.clock.advance(45)
    node.arbiter.link.expire()
    run.ends.set()
    other.arbiter.link.resume()
    takes_up(cluster, other)
    item = last(operator)
    assert item.nid == "n2"
    assert item.outage == pytest.approx(46, abs=3)
    assert item.outage_least == pytest.approx(11, abs=3)  # the session's timeout, and its turn


def killed_after(cluster, ends, seconds):
    """Another node sees a leader work, and die so many seconds later; its session is over."""
    node, other = Node(cluster), Node(cluster, "n2")
    ends(other)
    run = leading(cluster, node)
    works(cluster, node)
    other.tick()
    cluster.advance(seconds)
    other.tick()
    node.arbiter.link.cut()
    run.ends.set()
    cluster.advance(10)
    return other


@pytest.mark.parametrize(
    ("age", "outage", "least"),
    [
        (None, 11.5, None),  # its session's silence is all that is known
        (310.5, 311.5, 11.5),  # it hung for minutes, or there was nothing to apply
        (10.5, 11.5, None),  # about as long as its session was silent
        (4.0, 5.0, None),  # it reached its target after its session had fallen silent
        (-60.0, 11.5, None),  # later than it was gone, so not by it
    ],
)
def test_a_leader_that_died_counts_from_the_checkpoint_it_stored(
    cluster, operator, ends, age, outage, least
):
    other = killed_after(cluster, ends, 300)
    takes_up(cluster, other, 1.0, age)
    item = last(operator)
    assert (item.nid, item.outage) == ("n2", pytest.approx(outage, abs=0.6))
    assert item.outage_least == (least and pytest.approx(least, abs=0.6))


def test_a_checkpoint_counts_behind_leaderships_that_never_applied_anything(
    cluster, operator, ends
):
    other = killed_after(cluster, ends, 300)
    leads(cluster, other)
    other.runs[-1].failure = TransientError("the target is away")
    other.runs[-1].ends.set()
    other.idle()
    other.controller.close(5)
    cluster.advance(60)
    third = Node(cluster, "n3")
    ends(third)
    takes_up(cluster, third, age=371.0)
    assert last(operator).nid == "n3"
    assert last(operator).outage == pytest.approx(372, abs=3)
    assert last(operator).outage_least == pytest.approx(72, abs=3)


@pytest.mark.parametrize("seen", [True, False])
def test_a_leadership_that_was_given_up_counts_from_then(cluster, operator, ends, seen):
    """Its last checkpoint may be hours old, if there was nothing to apply."""
    node, other = Node(cluster), Node(cluster, "n2")
    ends(other)
    leading(cluster, node)
    works(cluster, node)
    if seen:
        other.tick()
    cluster.advance(3600)
    node.tick()
    node.controller.close(5)
    takes_up(cluster, other, 1.0, 3600.0)
    assert last(operator).nid == "n2"
    assert last(operator).outage < 5
    assert last(operator).outage_least is None


def test_who_reports_only_after_the_next_has_begun_that_it_gave_up_is_heard(
    cluster, operator, ends, monkeypatch
):
    node, other = Node(cluster), Node(cluster, "n2")
    ends(other)
    leading(cluster, node)
    works(cluster, node)
    other.tick()
    cluster.advance(3600)
    node.tick()
    node.controller.close(5)
    reported, history = [], other.arbiter.history.all

    def late(pipeline):
        reported.append(pipeline)
        found = history(pipeline)
        return found if len(reported) > 1 else [replace(i, applied_until=None) for i in found]

    monkeypatch.setattr(other.arbiter.history, "all", late)
    takes_up(cluster, other, 1.0, 3600.0)
    assert len(reported) == 2
    assert (last(operator).outage < 5, last(operator).outage_least) == (True, None)


def test_a_leadership_that_goes_on_after_an_error_has_not_ended_then(cluster, operator, ends):
    """It failed, works again under the same epoch, and is handed over much later."""
    node, other = Node(cluster), Node(cluster, "n2")
    ends(node)
    ends(other)
    run = leading(cluster, node)
    works(cluster, node)
    held = node.controller._own_lock
    assert held is not None
    node.controller._record.failed(held, None, "no such table")
    assert last(operator).applied_until is not None
    assert not node.controller.at_rest
    node.tick()
    assert last(operator).applied_until is None
    other.tick()
    cluster.advance(3600)
    node.tick()
    node.controller.close(5)
    assert last(operator).applied_until == cluster.clock.now()
    takes_up(cluster, other)
    assert run.epoch != last(operator).epoch
    assert last(operator).outage < 5
