"""What load balancers and Kubernetes are told, through a real socket."""

import json
import math
import socket

import pytest

from arbiter.errors import Contact
from arbiter.values import ChannelState, HistoryItem, NodeInfo
from setl.error_text import HIDDEN
from setl.node.http import probes
from setl.node.http.server import INDEX, NodeHttp
from setl.run.measured.figures import RunState

from .http_node import BACK, SEARCH, THERE, TOKEN, Node


@pytest.fixture
def node():
    node = Node()
    yield node
    node.close()


def answer(node, path, **shown):
    reply = node.ask("GET", path, **shown)
    return reply.code, reply.json.get("error", "")


# -- health and liveness ----------------------------------------------------------------------


def test_health_is_yes_when_the_node_is_warm_and_connected_and_says_what_is_wrong(node):
    reply = node.get("/health")
    assert (reply.code, reply.json) == (200, {"nid": "n1", "contact": "connected", "warm": True})
    node.warm = False
    node.arbiter.link.suspend()
    code, error = answer(node, "/health")
    assert code == 503
    assert "not warm yet" in error
    assert "contact with ZooKeeper is suspended" in error


def test_a_session_that_was_never_there_has_no_age(node):
    class Unborn:
        session_timeout = 10.0
        contact = staticmethod(lambda: Contact.LOST)
        last_contact = staticmethod(lambda: -math.inf)
        session_id = staticmethod(lambda: 0)
        problem = staticmethod(lambda: reason)
        watch = staticmethod(lambda wake: None)
        close = staticmethod(lambda: None)

    reason = ""
    code, body, _ = probes.health(probes.moment(1000.0, node.status(), Unborn(), None))
    assert code == 503
    assert body["error"] == "contact with ZooKeeper is lost, never heard"
    reason = "zk:2281: its certificate is not accepted: it has expired"
    _, body, _ = probes.health(probes.moment(1000.0, node.status(), Unborn(), None))
    assert body["error"] == f"contact with ZooKeeper is lost, never heard ({reason})"


@pytest.mark.parametrize(("silent", "code"), [(7.9, 200), (8.1, 503)])
def test_health_ends_with_the_local_deadline_and_not_with_the_session(node, silent, code):
    node.arbiter.link.cut()  # nobody has told the process
    node.cluster.clock.advance(silent)  # of a session timeout of 10 s
    assert answer(node, "/health")[0] == code


def test_liveness_is_the_age_of_the_last_cycle_and_of_the_engines_last_answer(node):
    for silent, expected in (
        (30, (200, "")),
        (30.1, (503, "Spark's JVM has not answered for 30 s")),
    ):
        node.answered = node.last_cycle - silent
        assert answer(node, "/liveness") == expected
    node.answered = node.last_cycle
    for seconds, code in ((0, 200), (10, 200), (0.1, 503)):
        node.cluster.clock.advance(seconds)
        assert answer(node, "/liveness")[0] == code
    node.last_cycle, node.warm = None, False
    node.cluster.clock.advance(1000)
    assert answer(node, "/liveness") == (200, ""), "it is still starting"


def test_neither_a_failed_pipeline_nor_a_lost_arbiter_makes_a_node_dead(node):
    node.lead(state=RunState.FAILED, error="no such table")
    node.arbiter.link.suspend()
    assert answer(node, "/liveness") == (200, "")


# -- readiness --------------------------------------------------------------------------------


def test_a_standby_is_ready_that_is_warm_and_connected(node):
    assert answer(node, "/readiness") == (200, "")
    assert answer(node, "/readiness?lag=0") == (200, "")
    node.warm = False
    assert answer(node, "/readiness")[0] == 503
    node.warm = True
    node.arbiter.link.suspend()
    assert answer(node, "/readiness")[0] == 503


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (RunState.RUNNING, 200),
        (RunState.PAUSED, 200),
        (RunState.STOPPED, 200),
        (RunState.TAKING, 503),
        (RunState.RETRYING, 503),
        (RunState.SUSPENDED, 503),
        (RunState.FAILED, 503),
    ],
)
def test_a_leader_is_ready_when_its_pipelines_are_as_wanted(node, state, code):
    node.lead(state=state, error="the disk is full" if code == 503 else "")
    got, error = answer(node, "/readiness", token=TOKEN)
    assert got == code
    assert ("the disk is full" in error) == (code == 503)
    got, error = answer(node, "/readiness")
    assert got == code
    assert "the disk is full" not in error
    assert (HIDDEN in error) == (code == 503)


def test_a_leader_that_is_too_far_behind_is_not_ready(node):
    node.lead(lag=1.5)
    for limit, code in (("1.5", 200), ("1.4", 503), ("0", 503), ("1e3", 200)):
        assert answer(node, f"/readiness?lag={limit}")[0] == code
    node.lead(state=RunState.PAUSED, lag=400.0)
    assert answer(node, "/readiness")[0] == 200
    assert answer(node, "/readiness?lag=300") == (
        503,
        "shop/there is 400.0 s behind, more than 300 s",
    )
    node.lead(lag=None)
    assert answer(node, "/readiness?lag=3600") == (503, "the lag of shop/there is not known")
    assert answer(node, "/readiness") == (200, "")
    # A stall counts, since its heartbeats do not arrive.
    node.lead(lag=0.2, stalled="load: no progress", stalled_seconds=90.0)
    assert answer(node, "/readiness?lag=89")[0] == 503
    assert answer(node, "/readiness?lag=91")[0] == 200


def test_readiness_of_one_pipeline_leaves_the_others_out(node):
    node.lead(THERE, state=RunState.FAILED)
    node.lead(BACK)
    assert answer(node, "/readiness")[0] == 503
    assert answer(node, "/readiness?lag=2&pipeline=shop/back")[0] == 200
    assert answer(node, "/readiness?lag=2&pipeline=shop/there")[0] == 503
    assert answer(node, "/readiness?pipeline=shop/nowhere")[0] == 404
    assert answer(node, "/readiness?pipeline=there")[0] == 409


def test_a_lag_that_is_no_number_is_refused(node):
    for lag in ("", "soon", "-1", "nan", "inf", "1s"):
        code, error = answer(node, f"/readiness?lag={lag}")
        assert (lag, code) == (lag, 400)
        assert "lag must be a number of seconds" in error


# -- leader and standby -----------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/leader/shop/back", "/leader/back"])
def test_the_leader_says_so_under_the_full_and_the_short_name(node, path):
    node.lead(BACK)
    reply = node.get(path)
    assert reply.code == 200
    assert reply.json["leader"] == "n1"
    assert reply.json["epoch"] == node.arbiter.leader_locks.one(BACK).epoch


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (RunState.RUNNING, 200),
        (RunState.RETRYING, 200),
        (RunState.TAKING, 503),
        (RunState.SUSPENDED, 503),
        (RunState.PAUSED, 503),
        (RunState.FAILED, 503),
        (RunState.STANDBY, 503),
        (RunState.STOPPED, 503),
    ],
)
def test_a_leader_that_does_not_apply_is_no_leader(node, state, code):
    node.lead(state=state)
    assert answer(node, "/leader/shop/there")[0] == code


def test_the_local_deadline_and_doubt_end_a_leadership(node):
    """The first without a word from the arbiter."""
    node.lead().arbiter.link.cut()
    node.cluster.clock.advance(7.9)
    assert answer(node, "/leader/shop/there")[0] == 200
    node.cluster.clock.advance(0.2)
    assert answer(node, "/leader/shop/there")[0] == 503
    node.arbiter.link.suspend()
    code, error = answer(node, "/leader/shop/there")
    assert (code, "leadership is in doubt" in error) == (503, True)


def test_a_new_session_does_not_lead_by_what_the_old_one_saw(node):
    node.lead()
    node.arbiter.link.suspend()
    node.cluster.advance(11)
    node.arbiter.link.resume()
    node.arbiter.link.rejoined(node.arbiter.session.session_id())  # and has not looked again yet
    assert node.get("/health").code == 200
    code, error = answer(node, "/leader/shop/there")
    assert code == 503
    assert "does not show it" in error


def test_a_leadership_of_an_earlier_session_of_the_same_node_is_not_its_own(node):
    node.operator.leader_locks.campaign(THERE, "n1")
    node.look()
    assert answer(node, "/leader/shop/there") == (503, "an earlier session of n1 leads shop/there")


def test_unknown_and_ambiguous_names_give_the_choices(node):
    reply = node.get("/leader/there")
    assert reply.code == 409
    assert sorted(reply.json["choices"]) == ["search/there", "shop/there"]
    reply = node.get("/leader/shop/nowhere")
    assert reply.code == 404
    assert sorted(reply.json["choices"]) == ["search/there", "shop/back", "shop/there"]


@pytest.mark.parametrize(
    "path", ["/leader/shop/there", "/standby/x", "/readiness?pipeline=x", "/cluster", "/history"]
)
def test_before_the_first_look_a_node_knows_of_nothing(node, path):
    node.snapshot = None
    code, error = answer(node, path)
    assert (code, error) == (503, "this node has not looked at the cluster yet")


def test_a_standby_is_warm_and_does_not_lead(node):
    node.lead(BACK)
    assert answer(node, "/standby/shop/there") == (200, "")
    assert answer(node, "/standby/shop/back") == (503, "n1 leads shop/back")
    node.warm = False
    assert answer(node, "/standby/shop/there")[0] == 503


def test_a_node_that_must_not_lead_is_no_standby():
    node = Node(nid="n3")
    try:
        assert answer(node, "/standby/shop/there")[0] == 200
        code, error = answer(node, "/standby/shop/back")
        assert (code, "weight is 0" in error) == (503, True)
    finally:
        node.close()


@pytest.fixture
def relay():
    node = Node(nid="r1", serves=("relay",))
    kafka = {"pipelines": [{"name": "relay", "target": {"type": "kafka"}}]}
    channel = node.operator.channels.put("kafka", kafka)
    node.operator.channels.set_state(channel, ChannelState.START)
    yield node.look()
    node.close()


def test_a_relay_is_no_standby_of_what_it_does_not_serve(relay):
    assert answer(relay, "/standby/kafka/relay") == (200, "")
    assert answer(relay, "/standby/shop/there") == (
        503,
        "r1 never leads shop/there: it leads relay pipelines only, and this is a load pipeline",
    )
    relay.operator.leader_locks.campaign(THERE, "n2")
    relay.look()
    reply = relay.get("/leader/shop/there")
    assert (reply.code, reply.json["error"]) == (503, "n2 leads shop/there")
    assert reply.json["leader"] == "n2"
    assert reply.json["epoch"] == relay.operator.leader_locks.one(THERE).epoch
    assert answer(relay, "/leader/shop/back") == (503, "no node leads shop/back")
    assert relay.get("/readiness").code == 200


def test_the_cluster_shows_kinds_and_what_is_missing(relay):
    relay.operator.nodes.announce(NodeInfo("n2", ready=True, serves=("load",)))
    seen = relay.look().get("/cluster").json
    assert {n["node"]: n["serves"] for n in seen["nodes"]} == {"r1": ["relay"], "n2": ["load"]}
    kinds = {p["pipeline"]: (p["needs"], p["missing"]) for p in seen["pipelines"]}
    assert kinds["kafka/relay"] == ("relay", "")
    assert kinds["shop/there"] == ("load", "")
    relay.operator.close()
    seen = relay.look().get("/cluster").json
    missing = {p["pipeline"]: p["missing"] for p in seen["pipelines"]}
    assert missing["shop/there"] == "needs a `setl node` process; none is running"
    assert missing["kafka/relay"] == ""


# -- the whole --------------------------------------------------------------------------------


def test_the_cluster_as_the_node_last_saw_it(node):
    node.lead(THERE, position="mariadb-a.000002:4711", pending=3)
    node.operator.leader_locks.campaign(SEARCH, "n2")
    channel = node.operator.channels.one("search")
    node.operator.channels.set_state(channel, ChannelState.PAUSE)
    node.look()
    node.cluster.clock.advance(0.25)
    seen = node.get("/cluster").json
    assert (seen["nid"], seen["contact"], seen["age"]) == ("n1", "connected", 0.25)
    assert seen["paused"] is True
    assert [(n["node"], n["leads"]) for n in seen["nodes"]] == [("n1", 1), ("n2", 1)]
    assert {c["channel"]: (c["state"], c["paused"]) for c in seen["channels"]} == {
        "shop": ("START", False),
        "search": ("PAUSE", True),
    }
    pipelines = {p["pipeline"]: p for p in seen["pipelines"]}
    mine, other, vacant = (pipelines[str(p)] for p in (THERE, SEARCH, BACK))
    assert mine["position"] == "mariadb-a.000002:4711"
    shown = [mine[name] for name in ("leader", "state", "lag", "pending")]
    assert shown == ["n1", "running", 1.5, 3]
    assert mine["epoch"] == node.arbiter.leader_locks.one(THERE).epoch
    assert (other["leader"], other["state"], other["lag"]) == ("n2", None, None)
    assert (vacant["leader"], vacant["epoch"]) == ("", None)


def test_the_cluster_shows_what_is_scheduled(node):
    node.lead()
    node.post("/switchover", {"pipeline": "shop/there", "at": "2030-01-01T00:00:00Z"})
    (planned,) = node.look().get("/cluster").json["scheduled"]
    assert planned["pipeline"] == "shop/there"
    assert (planned["kind"], planned["from"], planned["to"]) == ("switchover", "n1", "")
    assert (planned["at"], planned["due"]) == (1893456000.0, False)


def test_looking_never_asks_the_arbiter(node):
    node.lead()
    node.serve()
    before = node.arbiter.link.calls
    for path in ("/", "/health", "/liveness", "/readiness?lag=2", "/leader/shop/there",
                 "/standby/shop/back", "/cluster", "/status", "/metrics"):  # fmt: skip
        node.get(path)
    assert node.arbiter.link.calls == before


def test_history_of_all_and_of_one(node):
    item = HistoryItem(7, "n1", "nobody led", 1700000000.0, outage=2.5, redelivered=3, number=4)
    node.operator.history.add(THERE, item)
    node.operator.history.add(BACK, HistoryItem(9, "n2", "switchover", 1700000100.0))
    assert [i["epoch"] for i in node.get("/history").json["history"]] == [7, 9]
    assert node.get("/history?pipeline=shop/there").json["history"] == [
        {
            "pipeline": "shop/there",
            "leadership": 4,
            "epoch": 7,
            "node": "n1",
            "reason": "nobody led",
            "at": 1700000000.0,
            "outage": 2.5,
            "outage_least": None,
            "redelivered": 3,
        }
    ]
    assert node.get("/history?pipeline=nowhere").code == 404


def test_history_of_a_silent_arbiter_is_not_available(node):
    node.arbiter.link.refuse()
    code, error = answer(node, "/history")
    assert code == 503
    assert error


def test_status_and_metrics(node):
    node.lead()
    (line,) = [p for p in node.get("/status").json["pipelines"] if p["mine"]]
    assert (line["channel"], line["pipeline"]) == ("shop", "there")
    assert line["figures"]["state"] == "running"
    reply = node.get("/metrics")
    assert reply.code == 200
    assert b'setl_leader{channel="shop",pipeline="there"} 1.0' in reply.body


def test_the_index_names_only_what_exists(node):
    assert node.get("/").json["paths"] == dict(INDEX)
    for line in INDEX:
        method, _, path = line.partition(" ")
        path = path.partition("?")[0].replace("{channel}/{pipeline}", "shop/back")
        code = node.ask(method, path, {} if method != "GET" else None).code
        assert code not in {404, 405, 500}, line


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
@pytest.mark.parametrize(
    ("path", "code"), [("/health", 200), ("/leader/shop/there", 503), ("/leader/x", 404)]
)
def test_a_check_may_ask_for_the_code_alone(node, method, path, code):
    reply = node.ask(method, path)
    assert (reply.code, reply.body) == (code, b"")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/nowhere", 404), ("POST", "/health", 405), ("GET", "/switchover", 405)],
)
def test_what_is_not_there_is_said_in_json(node, method, path, code):
    reply = node.ask(method, path)
    assert reply.code == code
    assert f"{method} {path}" in json.loads(reply.body)["error"]


@pytest.mark.parametrize(
    ("host", "announced"),
    [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", f"http://{socket.gethostname()}:")],
)
def test_the_announced_address_can_be_called_by_others(node, monkeypatch, host, announced):
    node.serve()
    server = NodeHttp(host, 0, node.server._node_context)
    try:
        assert server.address.startswith(announced)
    finally:
        server.stop()
