import json
import re
import threading
import time

import pytest
import yaml

from arbiter.values import ChannelState, HistoryItem, PipelineId, Signal, SignalKind
from setl.cli.inspection import views
from setl.node.cluster import answers as node_answers
from setl.operate.cutover.steps import CutOver, Step
from tests.arbiter_in_memory import MemoryLink
from tests.unit.cli.cluster_in_memory import AB

BA = PipelineId("shop", "ba")


def printed(shop, capsys, *arguments, status=0):
    assert shop.run(*arguments) == status
    return capsys.readouterr().out


def test_list_shows_who_leads_and_what_it_does(shop, capsys):
    leader_lock = shop.node("n1").leads(AB, lag=0.5, rows_per_second=12.0, pending=3)
    listed = json.loads(printed(shop, capsys, "list", "-o", "json"))[0]
    (node,) = listed["nodes"]
    assert (node["node"], node["answers"], node["leads"], node["warm"]) == ("n1", True, 1, True)
    forth, back = listed["pipelines"]
    assert (forth["leader"], forth["epoch"], forth["state"]) == ("n1", leader_lock.epoch, "running")
    assert (forth["position"], forth["lag"], forth["pending"]) == ("b.000001:4", 0.5, 3)
    assert (back["leader"], back["state"], back["position"]) == ("", "no leader", None)
    assert (
        yaml.safe_load(printed(shop, capsys, "list", "-o", "yaml"))[0]["pipelines"]
        == listed["pipelines"]
    )


def test_list_of_one_channel(shop, capsys):
    shop.put("other", pipelines=["x"])
    listed = json.loads(printed(shop, capsys, "list", "other", "-o", "json"))[0]
    assert [p["pipeline"] for p in listed["pipelines"]] == ["other/x"]
    assert shop.run("list", "nonsense") == 2
    assert "known: other, shop" in capsys.readouterr().err


def test_a_node_leads_what_it_leads_whichever_channel_is_listed(shop, capsys):
    shop.put("other", pipelines=["x"])
    shop.node("n1").leads(AB)
    listed = json.loads(printed(shop, capsys, "list", "other", "-o", "json"))[0]
    assert listed["nodes"][0]["leads"] == 1


def test_a_leader_that_does_not_answer_is_shown_as_such(shop, capsys):
    shop.node("n1", http=False).leads(AB)
    text = printed(shop, capsys, "list")
    assert "no answer" in text
    assert "leader n1 does not answer over HTTP" in text


def test_many_silent_nodes_are_waited_for_side_by_side(shop, capsys, monkeypatch):
    asked = threading.Barrier(10)

    def silent(node, timeout, *, whole):
        asked.wait(30)  # until all are asked, and nobody has answered

    monkeypatch.setattr(node_answers, "node_status", silent)
    for i in range(10):
        shop.node(f"n{i}", http=False)
    printed(shop, capsys, "list")
    assert not asked.broken


def test_footers_name_pause_schedules_stalls_and_errors(shop, capsys):
    node = shop.node("n1")
    leader_lock = node.leads(AB, stalled="waits for a lock", error="MySQL: gone")
    node.arbiter.signals.send(
        AB,
        Signal(
            SignalKind.SWITCHOVER, to="n2", at=time.time() + 3600, leader="n1",
            epoch=leader_lock.epoch, by="me",
        ),
    )  # fmt: skip
    shop.state(ChannelState.PAUSE)
    text = printed(shop, capsys, "list")
    assert "Channel shop is paused" in text
    assert re.search(r"Switchover of shop/ab scheduled at \S+: n1 → n2 \(asked for by me\)", text)
    assert "shop/ab stalled: waits for a lock" in text
    assert "shop/ab error: MySQL: gone" in text


def test_passed_statements_are_counted_by_schema(shop, capsys):
    passed = {"percona": {"number": 7}, "mysql": {"number": 1}}
    shop.node("n1").leads(AB, statements_skipped=8, statements_by_schema=passed)
    text = " ".join(printed(shop, capsys, "status", "shop", "-v").split())
    assert "statements skipped │ 8" in text
    assert "statements skipped: percona │ 7" in text


LOAD = {"id": "start 1", "rows": 1_250_000, "begun": 1e9, "ended": 0.0, "rows_per_second": 98_765.4}


@pytest.mark.parametrize(
    ("load", "says"),
    [
        ({"state": "reading", "table": "s.t", "tables_left": 3},
         "shop/ab loads tables: 1,250,000 rows, 98,765 rows/s, now s.t, 3 tables left"),
        ({"state": "catching up", "table": "s.t", "tables_left": 0},
         "all that there were; the stream has to come to where they were read"),
        ({"state": "done", "table": "s.t", "tables_left": None}, ""),
    ],
)  # fmt: skip
def test_a_load_of_tables_has_a_line(shop, capsys, load, says):
    shop.node("n1").leads(AB, table_load={**LOAD, **load})
    text = " ".join(printed(shop, capsys, "list").split())
    assert says in text
    assert ("loads tables" in text) == bool(says)
    assert "table load: rows" in printed(shop, capsys, "status", "shop", "-v")
    short = printed(shop, capsys, "status", "shop")
    assert ("  loads " in short) == bool(says)


def test_list_is_shown_again_until_interrupted(shop, capsys, monkeypatch):
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(views.time, "sleep", wait)
    assert shop.run("list", "-W", "5") == 130
    assert waits == [5.0, 5.0]
    assert capsys.readouterr().out.count("pipelines") == 2


def test_topology_puts_standbys_in_the_order_of_their_turns(shop, capsys):
    shop.put(
        "tuned", pipelines=["p"], nodes={"prefer": ["n3", "n2"], "weights": {"n4": 0}}
    )  # fmt: skip
    tuned = PipelineId("tuned", "p")
    shop.node("n1").leads(tuned)
    for nid in ("n2", "n3", "n4"):
        shop.node(nid)
    shop.node("n5", ready=False)
    rows = json.loads(printed(shop, capsys, "topology", "tuned", "-o", "json"))
    (row,) = rows
    assert (row["source"], row["target"], row["leader"]) == ("db1:3306", "db2:3306", "n1")
    assert [(s["node"], s["turn"]) for s in row["standbys"]] == [
        ("n3", 1), ("n2", 2), ("n4", 0), ("n5", 0),
    ]  # fmt: skip
    text = printed(shop, capsys, "topology", "tuned")
    lines = [line.strip("│├└─ ") for line in text.splitlines()]
    assert lines[:2] == ["tuned  START", "p: db1:3306 → db2:3306"]
    assert lines[2].startswith("n1  leads, leadership 1, ")
    assert lines[3] == "n3  standby, warm, preferred, number 1 to take over"
    assert lines[5] == "n4  standby, warm, never leads: its weight is 0"
    assert lines[6] == "n5  standby, not warm yet"


RELAYS = PipelineId("relays", "p")
KAFKA = {"type": "kafka", "brokers": ["k1:9092"], "topic": "t"}


@pytest.fixture
def mixed(shop):
    """Two nodes and two relays; n1 leads shop/ab, r1 leads relays/p."""
    shop.put("relays", pipelines=["p"], target=KAFKA)
    for nid, kind in (("n1", "load"), ("n2", "load"), ("r1", "relay"), ("r2", "relay")):
        shop.node(nid, serves=(kind,))
    shop.nodes["n1"].leads(AB)
    shop.nodes["r1"].leads(RELAYS, rows_applied=9)
    return shop


def test_nodes_and_relays_are_shown_with_what_they_lead(mixed, capsys):
    (seen,) = json.loads(printed(mixed, capsys, "list", "-o", "json"))
    assert [(n["node"], n["serves"]) for n in seen["nodes"]] == [
        ("n1", "load"), ("n2", "load"), ("r1", "relay"), ("r2", "relay"),
    ]  # fmt: skip
    leaders = {p["pipeline"]: (p["leader"], p["state"]) for p in seen["pipelines"]}
    assert leaders["relays/p"] == ("r1", "running")
    assert leaders["shop/ab"] == ("n1", "running")
    (row,) = json.loads(printed(mixed, capsys, "status", "relays", "-o", "json"))
    assert (row["leader"], row["rows_applied"], row["missing"]) == ("r1", 9, "")
    assert "needs a" not in printed(mixed, capsys, "list")


def test_only_nodes_that_serve_a_pipeline_are_standbys_of_it(mixed, capsys):
    rows = json.loads(printed(mixed, capsys, "topology", "-o", "json"))
    standbys = {r["pipeline"]: [(s["node"], s["turn"]) for s in r["standbys"]] for r in rows}
    assert standbys == {
        "relays/p": [("r2", 1)],
        "shop/ab": [("n2", 1)],
        "shop/ba": [("n2", 1), ("n1", 2)],
    }


def test_a_pipeline_that_no_live_node_serves_says_what_it_needs(shop, capsys):
    shop.put("relays", pipelines=["p"], target=KAFKA)
    shop.node("n1", serves=("load",)).leads(AB)
    needs = "needs a `setl relay` process; none is running"
    text = printed(shop, capsys, "list")
    assert f"relays/p {needs}" in text
    assert text.count("none is running") == 1
    assert f"no node leads: no leader\n    └── {needs}" in printed(
        shop, capsys, "topology", "relays"
    )
    shop.state(ChannelState.STOP, "relays")
    assert "none is running" not in printed(shop, capsys, "list")


def test_status_shows_every_figure_and_decision(shop, capsys):
    shop.node("n1").leads(AB, rows_applied=7)
    shop.node("n2").says(AB, "standby")
    rows = json.loads(printed(shop, capsys, "status", "shop", "-o", "json"))
    assert rows[0]["rows_applied"] == 7
    assert rows[0]["decisions"] == {"n1": "n1 decided", "n2": "n2 decided"}
    assert "n2 decided" in printed(shop, capsys, "status", "shop", "-v")


def test_status_is_short_and_has_units(shop, capsys):
    shop.node("n1").leads(
        AB, lag=0.5, lag_p99=75.0, rows_per_second=12345.6, rows_total=1_500_000, pending=3,
        dead_letters=2, stalled="waits for a lock", buffered_bytes=5_000, held_back_seconds=90.5,
        no_heartbeats="read-only",
    )  # fmt: skip
    shop.node("n2")
    text = printed(shop, capsys, "status", "shop")
    forth = text.partition("shop/ba")[0].splitlines()
    assert re.fullmatch(r"shop/ab  running on n1, leadership 1", forth[0])
    assert forth[1:] == [
        "  stalled    waits for a lock",
        "  heartbeats none can be written: read-only",
        "  lag        500 ms, 99 % within 1 min 15 s, 3 batches in flight",
        "  applied    12,346 rows/s, 1,500,000 rows since the first start",
        "  position   b.000001:4",
        "  put aside  2 faulty rows, see `setl deadletter`",
        "  standby    n2, warm, number 1 to take over",
    ]
    everything = printed(shop, capsys, "status", "shop", "-v")
    assert re.search(r"buffered bytes +│ 4.9 KiB", everything)
    assert re.search(r"held back seconds +│ 1 min 30 s", everything)


@pytest.mark.parametrize("stalled", ["", "no progress: the end of a transaction. Abort it"])
def test_what_a_pipeline_waits_for_is_reported_once(shop, capsys, stalled):
    shop.node("n1").leads(AB, waiting_for="the end of a transaction", stalled=stalled)
    for command in ("status", "list"):
        assert printed(shop, capsys, command).count("the end of a transaction") == 1


def test_lost_channels_are_reported_once(shop, capsys, monkeypatch):
    answer = {"pipelines": [], "lost_channels": "ZooKeeper was set up again"}
    answers = {"n1": answer, "n2": answer}
    monkeypatch.setattr("setl.node.cluster.view.ask_nodes", lambda nodes: answers)
    for command in ("status", "list"):
        assert printed(shop, capsys, command).count("ZooKeeper was set up again") == 1


def test_a_lost_zookeeper_server_is_reported_once(shop, capsys, monkeypatch):
    seen = [{"address": f"zk{n}:2181", "answers": n != 2} for n in (1, 2, 3)]
    answer = {"pipelines": [], "zookeeper": seen}
    answers = {"n1": answer, "n2": answer}
    monkeypatch.setattr("setl.node.cluster.view.ask_nodes", lambda nodes: answers)
    for command in ("status", "list"):
        text = " ".join(printed(shop, capsys, command).split())
        assert text.count("server zk2:2181 does not answer; n1, n2 see it so") == 1
        assert text.count("does not answer; ") == 1
        assert text.count("See whether it runs and has joined the others") == 1


def test_a_certificate_for_zookeeper_that_expires_is_reported_once(shop, capsys, monkeypatch):
    day, now = 86_400.0, time.time()
    of = {"kind": "authority", "of": "CN=ca", "begins": now - 300 * day, "expires": now + 5.5 * day}
    answer = {"pipelines": [], "zookeeper_certificates": [of]}
    answers = {"n1": answer, "n2": answer}
    monkeypatch.setattr("setl.node.cluster.view.ask_nodes", lambda nodes: answers)
    for command in ("status", "list"):
        text = " ".join(printed(shop, capsys, command).split())
        said = "the authority CN=ca, which n1, n2 need for ZooKeeper, expires in 5 d"
        assert text.count(said) == text.count("Have all of them trust a second authority") == 1
    of["expires"] = now + 30 * day
    assert "CN=ca" not in printed(shop, capsys, "status")


@pytest.mark.parametrize("step", ["drain", "done"])
def test_a_cut_over_that_was_left_alone_is_reported(shop, capsys, step):
    """Its command may be gone, and the source of a pipeline that runs well is read-only."""
    node = shop.node("n1")
    node.leads(AB)
    record = CutOver(Step(step), by="me@there", restore={"read_only": "OFF"})
    node.arbiter.cutovers.store(AB, record.to_json(), None)
    for command in ("status", "list"):
        text = printed(shop, capsys, command)
        (line,) = [each for each in text.splitlines() if "me@there" in each]
        assert "setl made its source read-only" in line
        assert "`setl cutover shop/ab --abort` puts it back" in line
        assert ("`setl cutover shop/ab` carries it on" in line) is (step == "drain")
        value = json.loads(printed(shop, capsys, command, "-o", "json"))
        rows = value if command == "status" else value[0]["pipelines"]
        assert [bool(row["cutover"]) for row in rows] == [True, False]


@pytest.mark.parametrize("command", ["list", "status"])
def test_cutovers_of_many_pipelines_are_asked_for_at_once(shop, capsys, monkeypatch, command):
    shop.put("other", pipelines=[f"p{n}" for n in range(5)])
    asked, read_all = [], MemoryLink.read_all

    def counted(tree, paths):
        asked.append(list(paths))
        return read_all(tree, paths)

    monkeypatch.setattr(MemoryLink, "read_all", counted)
    printed(shop, capsys, command)
    of_cutovers = [len(paths) for paths in asked if any("cutover" in path for path in paths)]
    assert of_cutovers == [7]


def test_status_of_all_channels(shop, capsys):
    shop.put("other", pipelines=["x"])
    shop.node("n1").leads(AB, lag=0.5)
    heads = [line for line in printed(shop, capsys, "status").splitlines() if line[0] != " "]
    assert [head.split()[0] for head in heads] == ["other/x", "shop/ab", "shop/ba"]


@pytest.mark.parametrize("name", ["shop/ba", "ba"])
def test_status_of_one_pipeline(shop, capsys, name):
    node = shop.node("n1")
    node.leads(AB, lag=0.5)
    node.leads(BA, lag=0.7)
    text = printed(shop, capsys, "status", name)
    assert [line.split()[0] for line in text.splitlines() if line[0] != " "] == ["shop/ba"]
    assert "700 ms" in text
    (row,) = json.loads(printed(shop, capsys, "status", name, "-o", "json"))
    assert (row["pipeline"], row["lag"]) == ("shop/ba", 0.7)
    assert "shop/ab" not in printed(shop, capsys, "status", name, "-v")


def test_status_of_a_name_that_nobody_knows_asks_no_node(shop, capsys, monkeypatch):
    monkeypatch.setattr("setl.node.cluster.view.ask_nodes", lambda nodes: 1 / 0)
    assert shop.run("status", "nonsense") == 2
    assert (
        "no channel and no pipeline 'nonsense'; known: shop, shop/ab, shop/ba"
        in capsys.readouterr().err
    )


def test_status_says_that_nobody_would_take_over(shop, capsys):
    shop.node("n1").leads(AB, lag=0.5)
    text = printed(shop, capsys, "status", "shop")
    forth, _, back = text.partition("shop/ba")
    assert "  standby    none: no node would take over from n1" in forth.splitlines()
    assert "none: nobody" not in back, "no node leads it"


def test_history(shop, capsys):
    shop.arbiter.history.add(AB, HistoryItem(5, "n1", "first", 1e9, 1.5, 20, number=1))
    shop.arbiter.history.add(BA, HistoryItem(6, "n2", "second", 1e9))
    rows = json.loads(printed(shop, capsys, "history", "-o", "json"))
    assert [
        (r["pipeline"], r["leadership"], r["epoch"], r["outage"], r["redelivered"]) for r in rows
    ] == [
        ("shop/ab", 1, 5, 1.5, 20), ("shop/ba", None, 6, None, None),
    ]  # fmt: skip
    (row,) = json.loads(printed(shop, capsys, "history", "ba", "-o", "json"))
    assert (row["node"], row["reason"]) == ("n2", "second")
    of_channel = json.loads(printed(shop, capsys, "history", "shop", "-o", "json"))
    assert [row["epoch"] for row in of_channel] == [5, 6]
    shop.arbiter.history.add(AB, HistoryItem(7, "n1", "third", 1e9, 51.0, outage_least=6.0))
    assert "6 s to 51 s" in printed(shop, capsys, "history", "ab")


def test_history_of_several_pipelines_is_in_the_order_of_time(shop, capsys):
    shop.arbiter.history.add(AB, HistoryItem(5, "n1", "first", 1e9))
    shop.arbiter.history.add(BA, HistoryItem(6, "n2", "second", 1e9 + 5))
    shop.arbiter.history.add(AB, HistoryItem(9, "n2", "third", 1e9 + 9, error="the disk is full"))
    rows = json.loads(printed(shop, capsys, "history", "-o", "json"))
    assert [(r["pipeline"], r["reason"]) for r in rows] == [
        ("shop/ab", "first"), ("shop/ba", "second"), ("shop/ab", "third"),
    ]  # fmt: skip
    assert "the disk is full" in printed(shop, capsys, "history")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nonsense", "there is no pipeline 'nonsense'; known: other/ab, other/x, shop/ab, shop/ba"),
        ("ab", "'ab' may be other/ab or shop/ab"),
        ("shop", "'shop' may be shop/ab or shop/ba"),
    ],
)
def test_a_wrong_pipeline_names_what_there_is(shop, capsys, name, why):
    shop.put("other", pipelines=["ab", "x"])
    assert shop.run("signal", "restart", name) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("name", ["solo/p", "p", "solo"])
def test_a_pipeline_has_short_names_where_they_are_clear(shop, capsys, name):
    shop.put("solo", pipelines=["p"])
    shop.arbiter.history.add(PipelineId("solo", "p"), HistoryItem(5, "n1", "", 0))
    assert json.loads(printed(shop, capsys, "history", name, "-o", "json"))


def test_help_fits_on_one_screen(shop, capsys):
    lines = printed(shop, capsys, "--help").splitlines()
    assert len(lines) <= 53
    assert not [line for line in lines if line.endswith("...") and "Usage" not in line]


def test_what_operators_did_is_reported_with_its_outcome(shop, capsys):
    shop.put("shop")
    shop.node("n1").leads(AB)

    def reported(*arguments):
        capsys.readouterr()
        assert shop.run("history", "--actions", *arguments, "-o", "json") == 0
        return json.loads(capsys.readouterr().out)

    assert shop.run("switchover", "shop/ab", "--to", "nobody", "--yes", "--no-wait") == 1
    assert shop.run("pause", "shop", "--no-wait") == 0
    rows = reported()
    assert [(r["what"], r["on"]) for r in rows] == [("switchover", "shop/ab"), ("pause", "shop")]
    assert rows[0]["outcome"].startswith("not done: ")
    assert rows[1]["outcome"] == "done"
    assert all("@" in r["by"] for r in rows)
    assert reported("shop/ab") == reported("shop") == rows
    assert reported("shop/ba") == rows[1:]
