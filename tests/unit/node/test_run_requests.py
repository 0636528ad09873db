"""What operators ask of a run that ends, fails or is still being built at that moment."""

from arbiter import requests
from arbiter.requests import Requester
from arbiter.values import ChannelState, SignalKind, SignalState
from setl.errors import ConfigurationError, FatalError, TransientError
from setl.run.measured.figures import RunState
from tests.unit.node.candidate import PIPELINE, answer, leading, leading_nothing
from tests.unit.node.test_pipeline_controller import node
from tests.waiting import eventually

__all__ = ["node"]

ROOT = Requester("root", 0.0)


def ask(operator, kind):
    return requests.ask_leader(operator, PIPELINE, kind, ROOT)


def test_a_restart_that_fails_again_is_refused_and_the_next_one_is_carried_out(
    cluster, node, operator
):
    node.build_failure = ConfigurationError("no such thing")
    leading_nothing(cluster, node)
    ask(operator, SignalKind.RESTART)
    eventually(lambda: (node.tick(), answer(operator)[0] is not SignalState.PENDING)[1])
    state, text = answer(operator)
    assert state is SignalState.REFUSED
    assert "no such thing" in text
    node.build_failure = None
    ask(operator, SignalKind.RESTART)
    eventually(lambda: (node.tick(), answer(operator)[0] is SignalState.DONE)[1])
    eventually(lambda: node.state is RunState.RUNNING)  # the request is answered before


def test_a_run_that_fails_while_it_is_reported_to_restart_is_begun_again(cluster, node, operator):
    run = leading(cluster, node)
    run.failure = FatalError("the table is gone")
    ask(operator, SignalKind.RESTART)
    node.tick()  # the run fails only after it was told
    node.idle()
    eventually(lambda: (node.tick(), answer(operator)[0] is SignalState.DONE)[1])
    assert len(node.runs) == 2


def test_a_restart_during_a_build_is_answered_by_the_run_that_follows(cluster, node, operator):
    node.may_build.clear()
    node.tick()
    cluster.advance(0.5)
    node.tick()
    ask(operator, SignalKind.RESTART)
    node.tick()
    node.may_build.set()
    node.idle()
    assert node.runs[0].reported[-1] == "stop"
    node.may_build.clear()
    node.tick()
    assert answer(operator)[0] is SignalState.PENDING
    node.may_build.set()
    eventually(lambda: (node.tick(), answer(operator)[0] is SignalState.DONE)[1])
    assert len(node.runs) == 2


def test_a_rollback_is_done_when_another_run_has_begun_instead(cluster, node, operator):
    """It begins from the checkpoint, too; and a request that stays open holds all others up."""
    run = leading(cluster, node)
    ask(operator, SignalKind.ROLLBACK)
    node.tick()
    assert run.reported[-1] == "rollback"
    run.failure = TransientError("cut off")
    run.ends.set()
    node.idle()
    node.tick()
    assert answer(operator)[0] is SignalState.PENDING
    eventually(
        lambda: (cluster.advance(1), node.tick(), answer(operator)[0] is SignalState.DONE)[2]
    )
    assert len(node.runs) == 2


def test_a_pause_during_a_rollback_does_not_hold_later_requests_up(cluster, node, operator):
    leading(cluster, node)
    ask(operator, SignalKind.ROLLBACK)
    node.tick()
    requests.change_state(operator, "shop", ChannelState.PAUSE)
    node.tick()
    node.idle()
    requests.change_state(operator, "shop", ChannelState.START)
    eventually(lambda: (node.tick(), answer(operator)[0] is SignalState.DONE)[1])
    ask(operator, SignalKind.RESTART)
    eventually(lambda: (node.tick(), answer(operator)[0] is SignalState.DONE)[1])
    assert len(node.runs) == 3


def test_a_second_silence_during_a_build_is_not_forgotten_after_the_first(cluster, node):
    node.may_build.clear()
    node.tick()
    cluster.advance(0.5)
    node.tick()
    node.controller.suspend()
    node.tick()  # in contact again
    node.controller.suspend()
    node.may_build.set()
    eventually(lambda: node.runs and node.runs[0].reported)
    assert node.runs[0].reported[-1] == "suspend"
