"""What operators do with channels, positions, alarms and cut-overs from the console."""

import json

import pytest
import yaml

from arbiter.balancing import Move
from arbiter.errors import Unreachable
from arbiter.values import ChannelState
from setl.alarms.asking import silences_at
from setl.alarms.judgement import AlarmKey
from setl.channel.file import BinlogStart
from setl.model.checkpoint import Checkpoint
from setl.model.position import BinlogPosition
from setl.node.cluster.rebalancing import Rebalance
from setl.node.console.actions import rebalancing
from setl.node.console.actions.cli_subprocess import CliSubprocess, Output
from setl.operate.cutover.steps import CutOver, Step
from setl.select.checkpoints.arbiter import ArbiterCheckpointStore
from setl.systems.mysql.source_system import MysqlSourceSystem
from setl.systems.write_stop import Writes
from tests.unit.node.console.browsing import FILE, outcomes
from tests.unit.node.http_node import THERE
from tests.waiting import eventually

# -- what can be undone hardly or not at all ---------------------------------------------------


def stop(node):
    node.operator.channels.set_state(node.operator.channels.one("shop"), ChannelState.STOP)
    node.look()
    node.cluster.clock.advance(5)


def test_a_channel_is_removed_once_it_is_stopped_and_its_name_is_typed(node, anna):
    assert "Remove…" not in anna.get("/console/channels/shop").body.decode()
    anna.do("remove", "shop", typed="shop", sure="yes")
    assert "channel shop is not stopped: `setl stop shop`" in outcomes(node)[-1][2]
    stop(node)
    assert "Remove…" in anna.get("/console/channels/shop").body.decode()
    for typed in ({}, {"typed": ""}, {"typed": "search"}):
        asked = anna.do("remove", "shop", sure="yes", **typed)
        assert asked.code == 200
        assert "Remove channel shop (there, back) with its history" in asked.body.decode()
    assert "search is another name" in asked.body.decode()
    anna.do("remove", "shop", typed="shop", sure="yes")
    assert "a node leads shop/there; nothing was removed" in outcomes(node)[-1][2]
    assert node.operator.channels.one("shop").state is ChannelState.STOP
    node.arbiter.leader_locks.release(THERE, node.operator.leader_locks.one(THERE))
    removed = anna.do("remove", "shop", typed="shop", sure="yes")
    assert (removed.code, removed.headers["Location"]) == (303, "/")
    assert [channel.name for channel in node.operator.channels.all()] == ["search"]
    page = anna.get("/").body.decode()
    assert "channel shop removed" in page
    assert "DELETE FROM retl.setl_checkpoint WHERE pipeline IN (" in page
    assert [(what, on) for what, on, _ in outcomes(node)] == [("remove", "shop")] * 3


POSITION = BinlogPosition("b.000002", 99)


@pytest.fixture
def movable(node, monkeypatch, password):
    """A pipeline whose checkpoint is stored in ZooKeeper; its source is not asked."""
    definition = yaml.safe_load(FILE)
    search = {"type": "elasticsearch", "hosts": ["http://127.0.0.1:1"]}
    definition["pipelines"][0] |= {"target": search, "tables": [{"from": "s.t", "to": "i"}]}
    node.operator.channels.put("shop", definition)
    node.arbiter.leader_locks.release(THERE, node.operator.leader_locks.one(THERE))
    before = Checkpoint(BinlogPosition("b.000007", 4))
    ArbiterCheckpointStore(node.operator, THERE).store(before, 3)
    asked = []

    def find(_, __, ___, nid, position):
        asked.append((nid, position))
        return POSITION

    monkeypatch.setattr(MysqlSourceSystem, "find_position", find)
    node.look()
    node.cluster.clock.advance(5)
    return asked


def stored_position(node):
    return node.operator.positions.read(THERE)[0]["checkpoint"]["resume"]


def test_a_pipeline_is_moved_to_the_position_that_was_shown(node, anna, movable):
    assert "Move…" not in anna.get("/console/pipelines/shop/there").body.decode()
    before = stored_position(node)
    refused = anna.do("position reset", "shop/there", to="latest")
    assert refused.headers["Location"] == "/console/pipelines/shop/there"
    assert "refused: the channel is set to START" in anna.get("/").body.decode()
    assert movable == []
    stop(node)
    assert "Move…" in anna.get("/console/pipelines/shop/there").body.decode()
    page = anna.do("position reset", "shop/there", to="latest").body.decode()
    assert "move shop/there to b.000002:99?" in page
    assert "b.000007:4, generation 1 → b.000002:99, generation 2" in page
    # What was found is what is confirmed: by then the end of the stream may be another.
    assert 'name="to" value="b.000002:99"' in page
    assert stored_position(node) == before
    assert outcomes(node) == []
    anna.do("position reset", "shop/there", to="b.000002:99", sure="yes")
    assert [nid for nid, _ in movable] == ["position-reset.n1"] * 2
    assert movable[-1][1].start == BinlogStart(file="b.000002", offset=99)
    assert (stored_position(node)["file"], stored_position(node)["offset"]) == ("b.000002", 99)
    assert outcomes(node) == [
        ("position reset", "shop/there", "shop/there: moved to b.000002:99, generation 2")
    ]


# -- without ZooKeeper ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "method", "said"),
    [
        ("actions", "add", "Nothing was done: no answer of ZooKeeper (gone). Try again"),
        ("channels", "set_state", "No answer of ZooKeeper (gone), so nobody knows whether it was"),
    ],
)
def test_an_action_without_an_answer_says_whether_it_was_done(
    node, anna, monkeypatch, part, method, said
):
    def silent(*_):
        raise Unreachable("gone")

    monkeypatch.setattr(type(getattr(node.arbiter, part)), method, silent)
    anna.do("pause", "shop")
    assert said in anna.get("/console/channels/shop").body.decode()


# -- loads ------------------------------------------------------------------------------------


def test_loads_are_paused_and_ended_though_nobody_leads(node, anna, browser):
    node.arbiter.leader_locks.release(THERE, node.operator.leader_locks.one(THERE))
    node.figures.clear()
    node.look()
    node.cluster.clock.advance(5)
    page = "/console/pipelines/shop/there"
    assert "Cancel loads…" not in anna.get(page).body.decode()
    anna.do("load", "shop/there", table="s.t", where="id < 5", sure="yes")
    assert "Load of s.t where id &lt; 5: waiting, asked for by anna" in anna.get(page).body.decode()
    assert "id &lt; 5" not in browser.get(page).body.decode()
    anna.do("load-pause", "shop/there")
    shown = anna.get(page).body.decode()
    assert "Load of s.t where id &lt; 5: paused" in shown
    assert "Cancel loads…" in shown
    anna.do("load-cancel", "shop/there", sure="yes")
    assert "Cancel loads…" not in anna.get(page).body.decode()
    # No leader has answered yet. What is cancelled does not begin again all the same.
    anna.do("load-resume", "shop/there")
    assert "has no load that waits" in outcomes(node)[-1][2]
    assert node.operator.loads.all(THERE)[0].value["state"] == "cancelled"


TWO_WAY = """\
channel: shop
pipelines:
  - name: there
    source: {type: mysql, host: a, user: u, password: p}
    target: {type: mysql, host: b, user: u, password: p}
    tables: [{from: s.t}, {from: s.safe, conflict: home}]
  - name: back
    source: {type: mysql, host: b, user: u, password: p}
    target: {type: mysql, host: a, user: u, password: p}
    tables: [{from: s.t}, {from: s.safe, conflict: home}]
"""


def test_a_load_that_may_replace_newer_rows_says_so_before(node, anna, password):
    asked = anna.do("load", "shop/there", table="s.t").body.decode()
    assert "Load rows of s.t of shop/there from its source" in asked
    assert "must not write" not in asked
    node.operator.channels.put("shop", yaml.safe_load(TWO_WAY))
    warning = "Clients of the target must not write to {} until this is done"
    asked = anna.do("load", "shop/there", table="s.t").body.decode()
    assert warning.format("s.t") in asked
    assert "must not write" not in anna.do("load", "shop/there", table="s.safe").body.decode()
    assert warning.format("s.t") in anna.do("load", "shop/there").body.decode()
    assert outcomes(node) == []
    assert anna.do("load", "shop/there", where="id < 5").code == 303
    assert "a condition needs one table" in anna.get("/").body.decode()


def test_a_repair_that_may_replace_newer_rows_says_so_before(node, anna, password):
    asked = anna.do("repair", "shop/there").body.decode()
    assert "send rows that differ again" in asked
    assert "must not write" not in asked
    node.operator.channels.put("shop", yaml.safe_load(TWO_WAY))
    asked = anna.do("repair", "shop/there").body.decode()
    assert "Clients of the target must not write to s.t until this is done" in asked
    assert outcomes(node) == []


# -- spreading the load -----------------------------------------------------------------------

MOVED = {
    "moves": [
        {
            "pipeline": "shop/there",
            "from": "n1",
            "to": "n2",
            "outcome": "done",
            "seconds": 1.25,
            "redelivered": 0,
        },
        {
            "pipeline": "shop/index",
            "from": "n1",
            "to": "n2",
            "outcome": "done",
            "seconds": 2.0,
            "redelivered": None,
        },
    ],
    "leads_after": {"n1": 0, "n2": 1},
}


def test_the_load_is_spread_after_a_question_that_names_each_switchover(
    node, anna, browser, monkeypatch
):
    given = []

    def output(_, arguments, limit=None, said=None):
        del limit
        given.append(list(arguments))
        return Output(0, json.dumps(MOVED), "")

    monkeypatch.setattr(CliSubprocess, "output", output)
    plan = Rebalance((), {THERE: "it loads <tables>"}, {"n2": "is gone"}, {"n1": 1}, {"n1": 1})
    plans = [plan]
    monkeypatch.setattr(rebalancing, "look_at", lambda _: None)
    monkeypatch.setattr(rebalancing, "rebalance", lambda *_: plans[-1])
    assert "Spread the load…" in anna.get("/").body.decode()
    assert "Spread the load…" not in browser.get("/").body.decode()
    assert anna.do("rebalance", "the cluster").headers["Location"] == "/"
    page = anna.get("/").body.decode()
    assert "nothing to do: n1 leads 1" in page
    assert "shop/there stays where it is: it loads &lt;tables&gt;" in page
    assert "node n2 gets nothing: it is gone" in page
    move = Move(THERE, "n1", "n2", "n2 leads less")
    plans.append(Rebalance((move,), {}, {}, {"n1": 2, "n2": 0}, {"n1": 1, "n2": 1}))
    asked = anna.do("rebalance", "the cluster").body.decode()
    for words in ("do this switchover?", "shop/there: n1 → n2, n2 leads less", "then: n1 leads 1"):
        assert words in asked
    assert given == []
    assert outcomes(node) == []
    anna.do("rebalance", "the cluster", sure="yes")
    eventually(lambda: outcomes(node)[-1] == ("rebalance", "the cluster", "done: in 0 s"))
    assert given == [["rebalance", "-o", "json", "--yes"]]
    page = anna.get("/").body.decode()
    assert "shop/there: n1 → n2, done in 1.2 s, 0 rows applied again" in page
    assert "shop/index: n1 → n2, done in 2 s" in page
    assert "now: n1 leads 0, n2 leads 1" in page
    assert "rows applied again" not in browser.get("/").body.decode()
    assert anna.do("rebalance", "shop", sure="yes").code == 404


# -- alarms -----------------------------------------------------------------------------------


def test_alarms_are_silenced_for_some_minutes_and_reported_again(node, anna, browser):
    done = anna.do("alarm silence", "shop/there", rule="lag", minutes="30", reason="moving <db1>")
    assert (done.code, done.headers["Location"]) == (303, "/")
    (stored,) = silences_at(node.operator, node.cluster.clock.now())
    assert stored.covers(AlarmKey("lag", "shop", "there"), node.cluster.clock.now() + 1799)
    assert not stored.covers(AlarmKey("lag", "shop", "there"), node.cluster.clock.now() + 1800)
    assert not stored.covers(AlarmKey("lag", "shop", "back"), node.cluster.clock.now())
    assert (stored.by, stored.reason) == ("anna (127.0.0.1), console of n1", "moving <db1>")
    page = anna.get("/").body.decode()
    assert "Nothing is told of shop/there (lag) until" in page
    assert "moving &lt;db1&gt;" in page
    assert "moving" not in browser.get("/").body.decode()
    anna.do("alarm silence --end", stored.id)
    assert silences_at(node.operator, node.cluster.clock.now()) == ()
    anna.do("alarm silence --end", stored.id)
    assert [what for what, _, _ in outcomes(node)] == [
        "alarm silence",
        *["alarm silence --end"] * 2,
    ]
    assert outcomes(node)[0][2].startswith("nothing is told of shop/there (lag) until")
    assert outcomes(node)[1][2] == "the silence of shop/there (lag) is over"
    assert "there is no silence" in outcomes(node)[2][2]


@pytest.mark.parametrize(
    ("on", "fields", "words"),
    [
        ("shop", {"minutes": "0"}, "a silence lasts from 1"),
        ("shop", {"minutes": "-5"}, "a silence lasts from 1"),
        ("shop", {"minutes": "1e9"}, "a silence lasts from 1"),
        ("shop", {}, "a silence lasts from 1"),
        ("shop", {"minutes": "5", "rule": "lags"}, "there is no rule"),
        ("shop/nowhere", {"minutes": "5"}, "shop has no pipeline"),
        ("nowhere", {"minutes": "5"}, "not done"),
    ],
)
def test_a_silence_that_makes_no_sense_is_refused(node, anna, on, fields, words):
    anna.do("alarm silence", on, **fields)
    assert words in outcomes(node)[-1][2]
    assert node.operator.alarms.silences() is None


def test_everything_can_be_silenced(node, anna):
    anna.do("alarm silence", "alarms", minutes="5")
    (stored,) = silences_at(node.operator, node.cluster.clock.now())
    assert stored.covers(AlarmKey("disk", subject="node n1"), node.cluster.clock.now())


# -- cut-overs --------------------------------------------------------------------------------


class Source:
    """A source that was made read-only."""

    def __init__(self):
        self.restored = []

    def look(self):
        return Writes("server-1", stopped=True)

    def restore(self, settings):
        self.restored.append(dict(settings))


@pytest.fixture
def source(node, monkeypatch, password):
    source = Source()
    monkeypatch.setattr(MysqlSourceSystem, "write_stop", lambda _: source)
    node.operator.channels.put("shop", yaml.safe_load(FILE))
    node.look()
    return source


def cut_over(node, step, revision=None):
    record = CutOver(step, 900.0, "ben@db1", "server-1", {"read_only": "OFF"})
    return node.operator.cutovers.store(THERE, record.to_json(), revision)


def test_a_cut_over_is_shown_and_put_back_after_a_question(node, anna, browser, source):
    page = anna.get("/console/pipelines/shop/there").body.decode()
    assert "Put the cut-over back…" not in page
    anna.do("cutover --abort", "shop/there", sure="yes")
    assert outcomes(node)[-1][2] == "not done: there is no cut-over of shop/there"
    cut_over(node, Step.DRAIN)
    node.cluster.clock.advance(5)
    page = anna.get("/console/pipelines/shop/there").body.decode()
    assert "Put the cut-over back…" in page
    sentence = "is at step `drain`; setl made its source read-only"
    assert f"{sentence}; `setl cutover shop/there` carries it on" in page
    first = browser.get("/").body.decode()
    assert sentence in first
    assert "All is well" not in first  # clients of the source cannot write
    page = browser.get("/console/pipelines/shop/there").body.decode()
    assert sentence in page
    assert "Put the cut-over back…" not in page
    asked = anna.do("cutover --abort", "shop/there").body.decode()
    assert "Put back what the cut-over of shop/there has changed?" in asked
    assert 'name="step" value="drain"' in asked
    assert source.restored == []
    anna.do("cutover --abort", "shop/there", step="drain", sure="yes")
    assert source.restored == [{"read_only": "OFF"}]
    assert node.operator.cutovers.read(THERE) is None
    assert outcomes(node)[-1] == (
        "cutover --abort",
        "shop/there",
        "shop/there: the cut-over is over; the source is as before",
    )


def test_a_cut_over_that_ends_meanwhile_is_asked_about_once_more(node, anna, source):
    cut_over(node, Step.DONE)
    anna.do("cutover --abort", "shop/there", step="drain", sure="yes")
    assert "is done by now; ask again" in outcomes(node)[-1][2]
    assert source.restored == []
    asked = anna.do("cutover --abort", "shop/there").body.decode()
    assert "The application may write to the target of shop/there by now." in asked
    anna.do("cutover --abort", "shop/there", step="done", sure="yes")
    assert source.restored == [{"read_only": "OFF"}]
    assert node.operator.cutovers.read(THERE) is None


@pytest.fixture
def commands(monkeypatch):
    """Command lines that are carried out beside the node."""
    given = []

    def output(_, arguments, limit=None, said=None):
        del limit
        given.append(list(arguments))
        return Output(1, "", "step `check`: no standby; everything is put back")

    monkeypatch.setattr(CliSubprocess, "output", output)
    return given


def test_a_cut_over_is_planned_and_carried_out_beside_the_node(node, anna, commands):
    page = anna.get("/console/pipelines/shop/there").body.decode()
    assert "Plan a cut-over" in page
    assert "Cut over…" in page
    anna.do("cutover --dry-run", "shop/there")
    eventually(lambda: len(commands) == 1)
    asked = anna.do("cutover", "shop/there").body.decode()
    assert "make the source of shop/there read-only?" in asked
    cut_over(node, Step.DRAIN)
    asked = anna.do("cutover", "shop/there").body.decode()
    assert "Go on with the cut-over of shop/there at step `drain`?" in asked
    assert len(commands) == 1
    anna.do("cutover", "shop/there", sure="yes")
    eventually(lambda: outcomes(node)[-1][2].startswith("failed"))
    assert commands == [
        ["cutover", "shop/there", "-o", "json", "--dry-run"],
        ["cutover", "shop/there", "-o", "json", "--yes"],
    ]
    page = anna.get("/console/pipelines/shop/there").body.decode()
    assert "step `check`: no standby; everything is put back" in page
    assert [(what, on) for what, on, _ in outcomes(node)] == [
        ("cutover --dry-run", "shop/there"),
        ("cutover", "shop/there"),
    ]


def test_a_cut_over_that_is_done_is_not_begun_again(node, anna, commands):
    cut_over(node, Step.DONE)
    assert anna.do("cutover", "shop/there").code == 303
    page = anna.get("/console/pipelines/shop/there").body.decode()
    assert "the cut-over of shop/there is done" in page
    assert commands == []
