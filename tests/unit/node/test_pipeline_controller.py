"""A pipeline controller over an arbiter in memory, with a run that only notes what it is told."""

import pytest

from arbiter import requests
from arbiter.requests import Requester
from arbiter.snapshot import look
from arbiter.values import ChannelState, SignalKind, SignalState
from setl.errors import ConfigurationError, FatalError, FencedError, TransientError
from setl.run.measured.figures import RunState
from tests.unit.node.candidate import PIPELINE, Node, answer, leading, leading_nothing
from tests.waiting import eventually

ROOT = Requester("root", 0.0)


@pytest.fixture
def node(cluster, operator):
    node = Node(cluster)
    yield node
    node.may_build.set()
    for run in node.runs:
        run.ends.set()
    node.idle()


def test_a_leader_runs_and_says_so(cluster, node, operator):
    run = leading(cluster, node)
    eventually(lambda: list(operator.history.all(PIPELINE)))
    (item,) = operator.history.all(PIPELINE)
    assert (item.epoch, item.nid, item.outage) == (run.epoch, "n1", None)
    assert node.controller.status().mine


def test_a_rollback_is_answered_when_it_is_done(cluster, node, operator):
    run = leading(cluster, node)
    requests.ask_leader(operator, PIPELINE, SignalKind.ROLLBACK, ROOT)
    node.tick()
    node.tick()
    assert run.reported.count("rollback") == 1
    assert answer(operator)[0] is SignalState.PENDING
    run.rolled_back.set()
    node.tick()
    assert answer(operator)[0] is SignalState.DONE


def test_a_restart_is_answered_when_the_next_run_has_begun(cluster, node, operator):
    run = leading(cluster, node)
    requests.ask_leader(operator, PIPELINE, SignalKind.RESTART, ROOT)
    node.tick()
    assert "stop" in run.reported
    node.idle()
    eventually(lambda: (node.tick(), answer(operator)[0] is SignalState.DONE)[1])
    assert [r.epoch for r in node.runs] == [run.epoch, run.epoch]


def test_a_failed_run_is_restarted_on_request_and_not_before(cluster, node, operator):
    run = leading(cluster, node)
    run.failure = FatalError("the table is gone")
    run.ends.set()
    node.idle()
    for _ in range(3):
        node.tick()
    assert len(node.runs) == 1
    assert node.state is RunState.FAILED
    requests.ask_leader(operator, PIPELINE, SignalKind.ROLLBACK, ROOT)
    node.tick()
    state, text = answer(operator)
    assert state is SignalState.REFUSED
    assert "the table is gone" in text
    requests.ask_leader(operator, PIPELINE, SignalKind.RESTART, ROOT)
    eventually(lambda: (node.tick(), answer(operator)[0] is SignalState.DONE)[1])
    assert len(node.runs) == 2


def test_a_request_to_an_earlier_leadership_is_refused(cluster, node, operator):
    sent_to = operator.leader_locks.campaign(PIPELINE, "n0")
    requests.ask_leader(operator, PIPELINE, SignalKind.RESTART, ROOT)
    operator.leader_locks.release(PIPELINE, sent_to)
    leading(cluster, node)
    node.tick()
    state, text = answer(operator)
    assert state is SignalState.REFUSED
    assert "the leader has changed: n1 leads" in text


def test_what_is_reported_while_the_run_is_built_is_not_lost(cluster, node):
    node.may_build.clear()
    node.tick()
    cluster.advance(0.5)
    node.tick()
    assert node.controller.busy
    node.controller.suspend()
    node.controller.suspend()
    node.controller.abort()
    node.may_build.set()
    node.idle()
    assert node.runs[0].reported == ["suspend", "abort"]


def test_a_run_that_was_cancelled_is_followed_by_one_under_another_epoch(cluster, node):
    run = leading(cluster, node)
    node.controller.abort()
    node.idle()
    eventually(lambda: (node.tick(), len(node.runs) == 2)[1])
    assert node.runs[1].epoch > run.epoch


def test_a_run_that_failed_for_good_is_not_tried_again_under_another_epoch(cluster, node):
    run = leading(cluster, node)
    run.reported.append("abort")  # it also left tasks behind
    run.failure = FatalError("division by zero")
    run.ends.set()
    node.idle()
    for _ in range(4):
        node.tick()
        assert node.state is RunState.FAILED
    assert len(node.runs) == 1
    assert node.controller.status().epoch > run.epoch
    requests.change_state(node.arbiter, "shop", ChannelState.START)
    eventually(lambda: (node.tick(), len(node.runs) == 2)[1])


def test_a_run_that_was_fenced_off_is_followed_by_one_under_another_epoch_only(cluster, node):
    run = leading(cluster, node)
    run.failure = FencedError("epoch 9 is active")
    run.ends.set()
    node.idle()
    for _ in range(3):
        node.tick()
    assert node.state is RunState.FAILED
    assert len(node.runs) == 1
    leader_lock = node.arbiter.leader_locks.one(PIPELINE)
    node.arbiter.leader_locks.depose(PIPELINE, leader_lock)
    eventually(lambda: (cluster.advance(1), node.tick(), len(node.runs) == 2)[2])
    assert node.runs[1].epoch > run.epoch


def test_a_run_that_left_tasks_behind_is_followed_by_one_under_another_epoch(cluster, node):
    run = leading(cluster, node)
    run.failure = TransientError("a worker ended")
    run.ends.set()
    node.idle()
    for _ in range(3):
        node.tick()
    assert node.state is RunState.RETRYING
    assert len(node.runs) == 1, "it pauses first"
    cluster.advance(1)
    eventually(lambda: (node.tick(), len(node.runs) == 2)[1])
    assert node.runs[1].epoch > run.epoch


def test_failures_are_counted_on_under_the_next_epoch(cluster, node):
    leading(cluster, node)
    for attempt in range(1, 4):
        run = node.runs[-1]
        run.failure = TransientError("a worker ended")
        run.ends.set()
        node.idle()
        figures = node.controller.status().figures
        assert (figures.attempts, figures.state) == (attempt, RunState.RETRYING)
        assert "a worker ended" in figures.error
        cluster.advance(0.1 * 2 ** (attempt - 1) - 0.01)  # the least that it waits
        for _ in range(3):
            node.tick()
        assert len(node.runs) == attempt
        assert "a worker ended" in node.controller.status().figures.error
        cluster.advance(1)
        eventually(lambda runs=attempt + 1: (node.tick(), len(node.runs) == runs)[1])


def test_a_failure_is_counted_and_shown_in_one_step(cluster, node):
    run = leading(cluster, node)
    seen = []
    count_failure = run.progress.failed

    def failed(*given, **named):
        count_failure(*given, **named)
        seen.append(run.progress.figures())

    run.progress.failed = failed
    run.failure = TransientError("the target is gone")
    run.ends.set()
    node.idle()
    ((attempts, state, error),) = [(f.attempts, f.state, f.error) for f in seen]
    assert (attempts, state) == (1, RunState.RETRYING)
    assert "the target is gone" in error
    assert "shop/there" in error


def test_a_pipeline_that_cannot_be_built_has_failed(cluster, node):
    node.build_failure = ConfigurationError("no such thing")
    node.tick()
    cluster.advance(0.5)
    node.tick()
    node.idle()
    node.tick()
    assert node.state is RunState.FAILED
    assert "no such thing" in node.controller.status().figures.error


def test_leaderships_that_failed_are_in_the_history_with_their_errors(cluster, node, operator):
    node.build_failure = ConfigurationError("the channel file is wrong")
    leading_nothing(cluster, node)
    (item,) = operator.history.all(PIPELINE)
    assert (item.nid, item.epoch) == ("n1", operator.facts().leader_locks[PIPELINE].epoch)
    assert "the channel file is wrong" in item.error


def test_a_failure_is_added_to_what_the_history_has_of_the_leadership(cluster, node, operator):
    run = leading(cluster, node)
    eventually(lambda: list(operator.history.all(PIPELINE)))
    (begun,) = operator.history.all(PIPELINE)
    run.failure = FatalError("x" * 10_000)
    run.ends.set()
    node.idle()
    (item,) = operator.history.all(PIPELINE)
    assert (item.epoch, item.reason, begun.error) == (begun.epoch, begun.reason, "")
    assert item.error.startswith("xxx")
    assert len(item.error) == 500


def test_the_history_is_amended_with_what_the_change_has_cost(cluster, operator):
    first, second = Node(cluster), Node(cluster, "n2")
    run = leading(cluster, first)
    second.tick()
    first.arbiter.link.cut()  # killed: its session expires in ten seconds
    run.ends.set()
    cluster.advance(10)
    second.tick()
    cluster.advance(0.5)
    second.tick()
    eventually(lambda: second.state is RunState.RUNNING)
    progress = second.runs[0].progress
    progress.took_over(20, counted=True)
    cluster.advance(1)
    progress.add(rows_redelivered=7)
    progress.acknowledged(20)
    second.tick()
    item = operator.history.all(PIPELINE)[-1]
    assert (item.epoch, item.nid) == (second.runs[0].epoch, "n2")
    assert item.outage == pytest.approx(11.5)
    assert item.redelivered == 7
    second.runs[0].ends.set()
    second.idle()


def test_nothing_is_resumed_on_the_word_of_an_old_look(cluster, node):
    run = leading(cluster, node)
    snapshot = look(node.arbiter, node.clock, node.snapshot)
    node.arbiter.link.suspend()
    node.controller.tick(snapshot, warm=True, rank=0)
    assert "resume" not in run.reported


def test_closing_drains_and_resigns(cluster, node, operator):
    run = leading(cluster, node)
    node.controller.close(5)
    assert run.reported[-1] == "stop"
    assert operator.leader_locks.one(PIPELINE) is None


def test_a_run_that_begins_again_leaves_what_the_history_has_of_its_leadership(
    cluster, node, operator
):
    run = leading(cluster, node)
    run.progress.took_over(20, counted=True)
    run.progress.acknowledged(20)
    node.tick()
    (before,) = operator.history.all(PIPELINE)
    assert before.redelivered == 0
    requests.change_state(operator, "shop", ChannelState.PAUSE)
    node.tick()
    run.ends.set()
    node.idle()
    cluster.advance(3600)
    requests.change_state(operator, "shop", ChannelState.START)
    node.tick()
    eventually(lambda: len(node.runs) == 2 and node.state is RunState.RUNNING)
    assert node.runs[1].epoch == run.epoch
    node.tick()
    assert list(operator.history.all(PIPELINE)) == [before]


def test_no_run_begins_on_a_decision_that_was_made_while_one_ran(cluster, node, monkeypatch):
    """The one that ran may have been cancelled meanwhile, so that its epoch is spent."""
    run = leading(cluster, node)
    real = node.controller._campaign.cycle

    def cycle(*given, **named):
        election = real(*given, **named)
        node.controller.abort()  # the watchdog
        node.idle()
        return election

    with monkeypatch.context() as patched:
        patched.setattr(node.controller._campaign, "cycle", cycle)
        node.tick()
    eventually(lambda: (node.tick(), len(node.runs) == 2)[1])
    assert node.runs[1].epoch > run.epoch
