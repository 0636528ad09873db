"""When a wait is over."""

import pytest

from arbiter.values import ChannelState
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition
from setl.model.table_load import TableLoad
from setl.operate.waiting import Health, Verdict, judge, missing_to

HERE = BinlogPosition("b.1", 4)
STARTED = Health(ChannelState.START)


def test_what_a_checkpoint_lacks():
    assert missing_to(None, passed=False) == "no checkpoint is stored yet"
    assert missing_to(Checkpoint(HERE), passed=False) == "it is at b.1:4"
    assert missing_to(Checkpoint(HERE), passed=True) == ""
    assert missing_to(Checkpoint(HERE, load=TableLoad("l")), passed=True)
    done = Checkpoint(HERE, load=TableLoad("l", ended=1.0, taken=("a ->",)))
    assert missing_to(done, passed=True, wanted=("a ->",)) == ""
    assert missing_to(done, passed=True, wanted=("a ->", "b ->"))
    assert missing_to(Checkpoint(HERE), passed=True, wanted=("a ->",))


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
