"""A ZooKeeper that was set up again holds nothing that could fail: the nodes say so."""

from types import SimpleNamespace
from typing import Any

import pytest

from arbiter.errors import Contact
from arbiter.snapshot import Snapshot
from arbiter.values import Channel, ChannelState, Facts, OperatorAction
from setl.alarms.rules import judge_channels
from setl.node.leading.cycle_problems import LostChannels

REMOVED = OperatorAction("me", "remove", "a", 1.0)


def looked(*channels, session, contact=Contact.CONNECTED):
    stored = {name: Channel(name, ChannelState.START, {}) for name in channels}
    return Snapshot(0.0, 0.0, contact, 0.0, 6.0, session, Facts(channels=stored))


def arbiter(*actions) -> Any:
    return SimpleNamespace(actions=SimpleNamespace(all=lambda: actions))


def test_channels_that_are_gone_in_a_new_session_are_reported_once_until_there_are_some(caplog):
    lost = LostChannels("n1")
    for snapshot in (looked("a", "b", session=1), looked("a", "b", session=1)):
        lost.seen(snapshot, arbiter())
    lost.seen(looked(session=0, contact=Contact.LOST), arbiter())
    assert not lost.sentence
    for session in (2, 2, 3):
        lost.seen(looked(session=session), arbiter())
        assert "(a, b): it was set up again" in lost.sentence
        assert "`setl epoch show`" in lost.sentence
        alarm = judge_channels(lost.sentence)
        assert alarm.holds
        assert alarm.hint.startswith("`setl apply`")
    assert [record.message for record in caplog.records] == ["channels are gone"]
    lost.seen(looked("a", session=3), arbiter())
    assert not lost.sentence


@pytest.mark.parametrize(("session", "actions"), [(1, ()), (2, (REMOVED,))])
def test_a_channel_that_an_operator_removes_is_no_loss(session, actions):
    lost = LostChannels("n1")
    lost.seen(looked("a", session=1), arbiter(*actions))
    lost.seen(looked(session=session), arbiter(*actions))
    lost.seen(looked(session=3), arbiter())
    assert not lost.sentence
