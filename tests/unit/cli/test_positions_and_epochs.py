import json

import pytest

from arbiter.values import ChannelState, PipelineId
from setl.cli.terminal import confirmation
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore
from setl.systems.mysql.source_system import MysqlSourceSystem
from tests.unit.cli.cluster_in_memory import FakeNode

ID = PipelineId("search", "p")
THERE = BinlogPosition("b.000002", 99)
SEARCH = {"type": "elasticsearch", "hosts": ["http://127.0.0.1:1"]}


@pytest.fixture
def search(shop, monkeypatch):
    """A channel whose checkpoint is stored in ZooKeeper, stopped; its source is not asked."""
    tables = [{"from": "s.t", "to": "i"}]
    shop.put("search", ChannelState.STOP, pipelines=["p"], target=SEARCH, tables=tables)
    checkpoint = Checkpoint(BinlogPosition("b.000007", 4), rows=5)
    ArbiterCheckpointStore(shop.arbiter, ID).store(checkpoint, 3)
    monkeypatch.setattr(MysqlSourceSystem, "find_position", lambda *_: THERE)
    return shop


def test_a_reset_shows_before_and_after(search, capsys):
    assert search.run("position", "reset", "p", "--to", "earliest", "-o", "json") == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["before"]["resume"], reported["after"]["resume"]) == (
        "b.000007:4",
        "b.000002:99",
    )
    assert (reported["before"]["generation"], reported["after"]["generation"]) == (1, 2)
    assert search.run("position", "reset", "p", "--to", "earliest") == 0
    shown = capsys.readouterr().out
    assert "b.000002:99, generation 2 → b.000002:99, generation 3" in shown


def test_a_reset_is_refused_while_the_channel_runs(search, capsys):
    search.state(ChannelState.START, "search")
    assert search.run("position", "reset", "p", "--to", "earliest") == 1
    assert "refused: the channel is set to START; `setl stop search`" in capsys.readouterr().err


def test_a_reset_asks_a_person(search, capsys, monkeypatch):
    monkeypatch.setattr(confirmation, "has_terminal", lambda: True)
    monkeypatch.setattr(confirmation.click, "confirm", lambda *_, **__: False)
    assert search.run("position", "reset", "p", "--to", "earliest") == 1
    assert "nothing was done" in capsys.readouterr().err
    assert search.arbiter.positions.read(ID)[0]["epoch"] == 3


def test_a_position_that_is_none_is_wrong_usage(search, capsys):
    assert search.run("position", "reset", "p", "--to", "somewhere") == 2
    assert "not a position in the source: 'somewhere'" in capsys.readouterr().err


def test_a_missing_secret_is_wrong_configuration(search, capsys):
    search.put("hidden", pipelines=["h"], target={**SEARCH, "api_key": "${TEST_ABSENT_KEY}"})
    assert search.run("position", "show", "h") == 2
    assert "TEST_ABSENT_KEY" in capsys.readouterr().err


def test_a_channel_that_cannot_be_read_here_hides_no_other_position(search, capsys):
    search.put("hidden", pipelines=["h"], target={**SEARCH, "api_key": "${TEST_ABSENT_KEY}"})
    assert search.run("position", "show", "search", "hidden", "-o", "json") == 2
    reported = capsys.readouterr()
    assert [row["pipeline"] for row in json.loads(reported.out)] == ["search/p"]
    assert "TEST_ABSENT_KEY is not set (channel hidden" in reported.err


def test_show_reports_what_it_knows_and_what_not(search, capsys, monkeypatch):
    monkeypatch.undo()  # the source is asked, and not there
    assert search.run("position", "show", "search", "-o", "json") == 3
    printed = capsys.readouterr()
    (row,) = json.loads(printed.out)
    assert (row["resume"], row["rows"], row["stored_by_epoch"]) == ("b.000007:4", 5, 3)
    assert row["latest"] == ""
    assert "search/p: " in printed.err


@pytest.fixture
def only_search(search, monkeypatch):
    """A cluster whose other channel has nothing to ask."""
    search.arbiter.channels.put("shop", {"channel": "shop", "pipelines": []})
    return search


def test_epochs_fit(only_search, capsys):
    assert only_search.run("epoch", "show", "-o", "json") == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["base"] == 0
    assert reported["pipelines"] == [
        {
            "pipeline": "search/p", "leader": "", "epoch": None, "target_epoch": 3, "ok": True,
            "verdict": "ok",
        }
    ]  # fmt: skip
    assert only_search.run("epoch", "raise") == 0
    assert "nothing to raise" in capsys.readouterr().out
    assert only_search.arbiter.epochs.base() == 0


def test_epochs_are_raised_above_what_is_known(only_search, capsys):
    value, revision = only_search.arbiter.positions.read(ID)
    only_search.arbiter.positions.store(ID, {**value, "epoch": 5000}, revision)
    node = FakeNode(only_search.cluster, "n1", http=False)
    low = node.arbiter.leader_locks.campaign(ID, "n1")
    assert only_search.run("epoch", "show", "search") == 1
    assert "refuses the present" in " ".join(capsys.readouterr().out.split())
    assert only_search.run("epoch", "raise", "-o", "json") == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["before"], reported["base"], reported["deposed"]) == (0, 5000, ["search/p"])
    assert node.arbiter.leader_locks.one(ID) is None
    assert node.arbiter.leader_locks.campaign(ID, "n1").epoch > 5000 > low.epoch
    assert only_search.run("epoch", "show") == 0


def test_a_silent_target_has_to_be_answered_for(search, capsys):
    assert search.run("epoch", "show") == 3
    assert search.run("epoch", "raise") == 1
    assert "it is not known how high epochs have to be" in capsys.readouterr().err
    assert search.run("epoch", "raise", "--to", "2") == 1
    assert "knows epoch 3 already, which is above 2" in capsys.readouterr().err
    assert search.run("epoch", "raise", "--to", "7000") == 0
    assert search.arbiter.epochs.base() == 7000
    assert search.run("epoch", "raise", "--to", "6000") == 0
    assert search.arbiter.epochs.base() == 7000
