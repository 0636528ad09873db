"""Who is not logged in reads no value of a row, statement or file, wherever an error shows it.

A node answers over a real socket. What it says is filled with errors that quote a marker. No open
address may hold that; with the token, a session or the key in ZooKeeper it is there.
"""

import json
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from arbiter.values import HistoryItem, PipelineId
from setl.alarms.message import body_of, text_of
from setl.alarms.settings import AlarmSettings
from setl.cli.main import run
from setl.error_text import HIDDEN, ErrorText
from setl.errors import FatalError, unexpected
from setl.model.standing import DifferingRow, TableFinding
from setl.node import alarm_sender as alarm_sender
from setl.node.alarm_sender import AlarmSender
from setl.node.cluster.answers import KEY_HEADER
from setl.node.public_form import public_status
from setl.run.measured.figures import RunState, TableLoadFigures, VerificationFigures
from tests.arbiter_in_memory import MemoryArbiter, MemoryLink
from tests.security.marked_errors import MARKER, errors
from tests.unit.node.console.browsing import Browser
from tests.unit.node.http_node import THERE, TOKEN, Node

CASES = errors()
OPEN = (
    "/status", "/cluster", "/health", "/liveness", "/readiness", "/readiness?pipeline=there",
    "/leader/shop/there", "/standby/shop/there", "/standby/shop/back", "/history", "/metrics",
)  # fmt: skip
PAGES = (
    "/", "/console/channels/shop", "/console/pipelines/shop/there", "/console/actions",
    "/console/letters/shop/there", "/console/edit/shop",
)  # fmt: skip


class MarkedNode(Node):
    """Says MARKER wherever something can be said that is not a name."""

    said = None

    def status(self):
        reported = super().status()
        error = self.said
        if error is None:
            return reported
        lines = tuple(
            replace(line, not_ready=str(error), decision=f"cannot lead: {error}")
            for line in reported.pipelines
        )
        return replace(reported, pipelines=lines, problem=unexpected(ValueError(MARKER)))


@pytest.fixture
def node():
    node = MarkedNode()
    yield node
    node.close()


def mark(node, error):
    """Let all be said of a pipeline that can be, with an error."""
    finding = TableFinding("shop.a", "shop.a", different=1, error=error.text,
                           rows=(DifferingRow(MARKER, "different"),))  # fmt: skip
    node.said = error.text
    # A text that has lost its public form on the way is shown to nobody.
    node.lead(
        state=RunState.FAILED, error=error.text, stalled=f"load: {error}", attempts=3,
        no_heartbeats=error.text, waiting_for=str(error), last_ddl=f"ALTER … '{MARKER}'",
        last_ddl_ignored=f"ALTER … '{MARKER}'", ddl_replicated=1, ddl_ignored=1,
        table_load=TableLoadFigures("1", "reading", "shop.a", waits_for=str(error)),
        verification=VerificationFigures(
            "failing", error=error.text, waits_for=str(error), findings=(finding,),
            whole={"shop.a": str(error)},
        ),
    )  # fmt: skip
    item = HistoryItem(5, "n1", "first", 1e9, error=str(error), error_public=error.public)
    node.arbiter.history.add(THERE, item)
    for nid, arbiter in (("n1", node.arbiter), ("n2", node.operator)):
        known = node.operator.facts().nodes[nid]
        arbiter.nodes.announce(
            replace(known, not_ready={THERE: str(error)}, read_key="key-of-" + nid)
        )
    node.look()
    facts = node.snapshot.facts
    channels = {name: replace(each, damage=MARKER) for name, each in facts.channels.items()}
    damaged = {"/channels/x": f"is not JSON: {MARKER}"}
    facts = replace(facts, channels=channels, damaged=damaged)
    node.snapshot = replace(node.snapshot, facts=facts)
    type(node.arbiter.session).problem = lambda _: f"connection refused by {MARKER}"


@pytest.fixture(autouse=True)
def _no_trouble(monkeypatch):
    monkeypatch.setattr(MemoryLink, "problem", MemoryLink.problem)


def event_of(node, page, **headers):
    """The first regions of a page that its event stream sends."""
    import http.client

    address = node.server.address.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", f"/console/events?of={page}", headers=headers)
    answer = connection.getresponse()
    text = ""
    while "event: regions" not in text or not text.endswith("\n\n"):
        line = answer.readline().decode()
        assert line, text
        text += line
    connection.close()
    return text


@pytest.mark.parametrize("case", CASES)
def test_no_open_address_quotes_an_error(node, case):
    error = CASES[case].at(pipeline="shop/there")
    assert MARKER in str(error)
    assert MARKER not in error.public
    mark(node, error)
    stranger = Browser(node)
    for path in OPEN:
        reply = node.get(path)
        assert MARKER.encode() not in reply.body, path
    for path in PAGES:
        assert MARKER.encode() not in stranger.get(path).body, path
    for page in PAGES[:3]:
        assert MARKER not in event_of(node, page)
    lines = node.get("/status").json["pipelines"]
    (public,) = {line["figures"]["error"] for line in lines} - {""}
    assert public == error.public
    assert public in stranger.get("/").body.decode().replace("&#39;", "'")


def test_with_the_token_a_session_or_the_key_all_is_shown(node):
    error = CASES["a unique key"]
    mark(node, error)
    anna = Browser(node)
    node.serve()
    shown = {"/status", "/cluster", "/readiness", "/leader/shop/there"}
    for path in shown:
        assert MARKER in node.ask("GET", path, token=TOKEN).body.decode(), path
    # What the key in ZooKeeper opens is what its node gave itself.
    assert MARKER not in node.ask("GET", "/status", headers={KEY_HEADER: "key-of-n1"}).body.decode()
    assert anna.log_in().code == 303
    for path in ("/", "/console/pipelines/shop/there"):
        assert MARKER in anna.get(path).body.decode(), path
    for page in ("/", "/console/pipelines/shop/there"):
        assert MARKER in event_of(node, page, Cookie=anna.cookie)
        assert MARKER not in event_of(node, page)


def test_a_wrong_token_is_reported_and_counted_and_a_probe_only_shows_less(node):
    mark(node, CASES["a unique key"])
    for path in ("/status", "/cluster", "/history"):
        assert node.ask("GET", path, token="wrong").code == 401
    assert node.ask("GET", "/readiness", token="wrong").code == 503
    assert MARKER.encode() not in node.ask("GET", "/readiness", token="wrong").body
    assert node.ask("GET", "/status", token=TOKEN).code == 429
    assert node.ask("GET", "/leader/shop/there", token=TOKEN).code == 503
    assert node.get("/status").code == 200
    # A proxy's own log-in is none of the node's.
    assert node.ask("GET", "/status", headers={"Authorization": "Basic eDp5"}).code == 200


def filled(value: Any) -> Any:
    """The same with MARKER in every text of every dataclass that it holds."""
    if isinstance(value, str):
        return MARKER
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: filled(getattr(value, f.name)) for f in fields(value)})
    if isinstance(value, dict):
        return {name: filled(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return tuple(filled(each) for each in value)
    return value


def marked_paths(value: Any, path=""):
    if value == MARKER:
        yield path
    elif is_dataclass(value):
        for each in fields(value):
            yield from marked_paths(getattr(value, each.name), f"{path}.{each.name}".strip("."))
    elif isinstance(value, dict):
        for each in value.values():
            yield from marked_paths(each, path)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from marked_paths(each, path)


def test_a_text_of_a_status_is_hidden_unless_it_is_listed(node):
    """A field that is added has to be thought about before strangers see it."""
    mark(node, CASES["a unique key"])
    shown = set(marked_paths(public_status(filled(node.status()))))
    line, figures = "pipelines", "pipelines.figures"
    assert shown == {
        "nid", "version", "contact", "serves", "lost_channels", "disk.folder",
        f"{line}.channel", f"{line}.pipeline", f"{line}.leader",
        f"{figures}.position", f"{figures}.stalled_stage", f"{figures}.stalled_reason",
        f"{figures}.table_load.id", f"{figures}.table_load.state", f"{figures}.table_load.table",
        f"{figures}.verification.state", f"{figures}.verification.table",
        f"{figures}.verification.repairs_no_more",
        f"{figures}.verification.findings.table", f"{figures}.verification.findings.target",
    }  # fmt: skip


class Postbox:
    name = "postbox"

    def __init__(self):
        self.notices = []

    def send(self, notice):
        self.notices.append(notice)


@pytest.mark.parametrize("case", CASES)
def test_no_mail_and_no_webhook_quotes_an_error(node, monkeypatch, case):
    postbox = Postbox()
    monkeypatch.setattr(alarm_sender, "receivers_of", lambda *_: [postbox])
    mark(node, CASES[case])
    sender = AlarmSender(
        "n1", node.arbiter, AlarmSettings(least_disk_free=0.0), node.cluster.clock,
        own=node.status, snapshot=lambda: node.snapshot, environment={},
    )  # fmt: skip
    for _ in range(2):
        sender.look()
        node.cluster.clock.advance(61)
        node.look()
        mark(node, CASES[case])
    sender.look()
    sender.stop()
    sent = [text_of(n, "c", "n1") + json.dumps(body_of(n, "c", "n1")) for n in postbox.notices]
    assert any("stopped with an error" in text for text in sent)
    assert MARKER not in "".join(sent)
    assert MARKER not in json.dumps(node.arbiter.alarms.read()[0])
    assert MARKER not in str(sender.status().firing)


@pytest.mark.parametrize("case", CASES)
def test_no_report_of_a_fault_quotes_an_error(node, tmp_path: Path, case, capsys):
    mark(node, CASES[case])
    address = node.serve().address
    known = node.operator.facts().nodes["n1"]
    node.arbiter.nodes.announce(replace(known, http=address))

    @contextmanager
    def connect(zookeeper, root):
        yield MemoryArbiter(node.cluster)

    report = tmp_path / "report.yaml"
    assert run(("doctor", "-f", str(report)), connect=connect) == 0
    text = report.read_text()
    assert MARKER not in text
    assert CASES[case].kind.split("'")[0] in text.replace("\n", " ")
    assert report.stat().st_mode & 0o777 == 0o600


def test_what_loses_its_public_form_is_hidden():
    text = FatalError(f"of {MARKER}", table="a.b", key=MARKER).text
    assert isinstance(text, ErrorText)
    made = (str(text), text[:200], f"{text}", "; ".join([text]), text + "", text.strip(" "))
    assert [isinstance(each, ErrorText) for each in made] == [False] * len(made)
    assert HIDDEN not in text.public
    assert "table a.b" in text.public
    assert PipelineId("shop", "there") == THERE
