"""When a wait is over."""

import pytest

from arbiter.values import ChannelState
from setl.operate.waiting import Health, Verdict, judge

STARTED = Health(ChannelState.START)


@pytest.mark.parametrize(
    ("why", "runs", "failed_for", "left", "verdict"),
    [
        ("", Health(ChannelState.STOP), 9.0, -1.0, Verdict.PASSED),
        ("far", STARTED, 0.0, 1.0, Verdict.WAITING),
        ("far", STARTED, 0.0, 0.0, Verdict.TIMEOUT),
        ("far", Health(ChannelState.STOP), 0.0, 9.0, Verdict.STOPPED),
        ("far", Health(ChannelState.PAUSE), 0.0, 9.0, Verdict.STOPPED),
        ("far", Health(ChannelState.START, failed=True), 1.0, 9.0, Verdict.WAITING),
        ("far", Health(ChannelState.START, failed=True), 6.0, 9.0, Verdict.STOPPED),
    ],
)
def test_verdicts(why, runs, failed_for, left, verdict):
    assert judge(why, runs, failed_for=failed_for, left=left) is verdict
