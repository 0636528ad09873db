"""`setl remove`."""

import json

from arbiter.values import ChannelState
from tests.unit.cli.cluster_in_memory import AB


def test_only_a_stopped_channel_is_removed(shop, capsys):
    assert shop.run("remove", "shop") == 1
    assert "`setl stop shop`" in capsys.readouterr().err
    assert [c.name for c in shop.arbiter.channels.all()] == ["shop"]


def test_a_leader_is_not_pulled_away(shop, capsys):
    shop.node("n1").leads(AB)
    shop.state(ChannelState.STOP)
    assert shop.run("remove", "shop") == 1
    assert "a node leads shop/ab; nothing was removed" in capsys.readouterr().err
    assert shop.arbiter.leader_locks.one(AB) is not None
    assert [c.name for c in shop.arbiter.channels.all()] == ["shop"]


def test_what_targets_keep_is_said(shop, capsys):
    shop.state(ChannelState.STOP)
    assert shop.run("remove", "shop", "-o", "json") == 0
    left = json.loads(capsys.readouterr().out)["left"]
    assert "DELETE FROM retl.setl_checkpoint WHERE pipeline IN ('shop/ab', 'shop/ba');" in left
    assert shop.arbiter.channels.all() == []


def test_who_says_no_stores_the_channel(shop, monkeypatch):
    shop.state(ChannelState.STOP)
    monkeypatch.setattr("setl.cli.terminal.confirmation.has_terminal", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    assert shop.run("remove", "shop") == 1
    assert [c.name for c in shop.arbiter.channels.all()] == ["shop"]
    assert shop.run("remove", "shop", "--yes") == 0
    assert shop.arbiter.channels.all() == []
