"""Two alarm senders over one ZooKeeper, a real HTTP receiver and a real mail server."""

import hashlib
import hmac
import json
import threading
from contextlib import contextmanager, suppress
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from aiosmtpd.controller import Controller
from prometheus_client import CollectorRegistry, generate_latest

from arbiter.snapshot import look
from arbiter.values import ChannelState, NodeInfo, PipelineId
from arbiter.zookeeper import ZooKeeperArbiter
from setl.alarms.alarm_state import Silence
from setl.alarms.asking import ask_for_test, end_silence, silence, stored_alarms
from setl.alarms.settings import AlarmSettings, MailSettings, WebhookSettings
from setl.clock import SystemClock
from setl.node.alarm_sender import AlarmSender
from setl.node.metrics import AlarmCollector
from setl.node.status import NodeStatus
from setl_embedded.ports import free_port
from tests.integration.pipelines import fresh_name
from tests.unit.cli.cluster_in_memory import definition
from tests.waiting import eventually

pytestmark = pytest.mark.not_mixed(why="no database takes part")
AB = PipelineId("shop", "ab")
SECRET = "a secret of the tests"
ALARMS = {
    "no_leader": {"for": 0},
    "recover_after": 0,
    "no_standby": {"enabled": False},
    "position": {"enabled": False},
}


class Hook:
    """An HTTP receiver; a test says with which status it answers."""

    def __init__(self):
        self.bodies, self.headers, self.status, self.before = [], [], 200, None
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                data = self.rfile.read(int(self.headers["content-length"]))
                if hook.before is not None:
                    hook.before()
                if hook.status == 200:
                    hook.headers.append(self.headers)
                    hook.bodies.append(data)  # last: tests wait for it
                with suppress(OSError):  # who asked may be gone
                    self.send_response(hook.status)
                    self.end_headers()
                    self.wfile.write(b"said the receiver")

            def log_message(self, format, *args):  # noqa: A002
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?key=hidden"

    def last_sent_at(self):
        """Event and rule of everything that came."""
        found = [json.loads(body) for body in list(self.bodies)]
        return [(a["event"], a["rule"]) for body in found for a in body["alarms"]]


class Mailbox:
    """Keeps what aiosmtpd takes."""

    def __init__(self):
        self.messages, self.port = [], free_port()

    async def handle_DATA(self, _server, _session, envelope):  # noqa: N802
        self.messages.append((envelope.rcpt_tos, message_from_bytes(envelope.content)))
        return "250 taken"


@pytest.fixture
def hook():
    hook = Hook()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()


@pytest.fixture
def mailbox():
    handler = Mailbox()
    controller = Controller(handler, hostname="127.0.0.1", port=handler.port)
    controller.start()
    yield handler
    controller.stop()


class Cluster:
    """Sessions of several nodes, of which only the senders of alarms are there."""

    def __init__(self, hosts, root, settings):
        self.hosts, self.root, self.settings = hosts, root, settings
        self.nodes = {}
        self.operator = self.session()
        self.operator.channels.put("shop", {**definition(pipelines=("ab",)), "alarms": ALARMS})
        self.start(True)

    def session(self):
        arbiter = ZooKeeperArbiter(self.hosts, root=self.root, session_timeout=20.0)
        arbiter.start()
        return arbiter

    def start(self, on):
        state = ChannelState.START if on else ChannelState.STOP
        self.operator.channels.set_state(self.operator.channels.one("shop"), state)

    def node(self, nid, settings=None):
        arbiter, clock = self.session(), SystemClock()
        arbiter.nodes.announce(NodeInfo(nid))
        sender = AlarmSender(
            nid,
            arbiter,
            settings or self.settings,
            clock,
            own=lambda: NodeStatus(nid, "1", "connected", True, 0.0, ()),
            snapshot=lambda: look(arbiter, clock),
            environment={},
        )
        sender.start()
        self.nodes[nid] = (sender, arbiter)
        return sender

    def kill(self, nid):
        """The session ends at once, as after its timeout; the thread finds out by itself."""
        sender, arbiter = self.nodes.pop(nid)
        sender._stopping.set()
        arbiter.close()

    def senders(self):
        return [nid for nid, (sender, _) in self.nodes.items() if sender.status().sends]

    def stop(self):
        for sender, arbiter in self.nodes.values():
            sender.stop()
            arbiter.close()
        self.operator.close()


@pytest.fixture
def made(zookeeper, hook, mailbox):
    @contextmanager
    def make(**changes):
        mail = MailSettings(
            "127.0.0.1", mailbox.port, "setl@example.org", ("dba@example.org",), tls="none"
        )
        given = {
            "webhooks": (WebhookSettings(hook.url, SECRET, "a token"),),
            "mail": mail,
            "every": 0.1,
            "least_disk_free": 0.0,
        }
        settings = AlarmSettings("tests", **{**given, **changes})
        cluster = Cluster(zookeeper.hosts, f"/{fresh_name('alarms')}", settings)
        try:
            yield cluster
        finally:
            cluster.stop()

    return make


def test_one_node_of_two_reports_webhook_and_mailbox_once_each(made, hook, mailbox):
    with made() as cluster:
        for nid in ("n1", "n2"):
            cluster.node(nid)
        eventually(lambda: hook.last_sent_at() and mailbox.messages, 20)
        assert hook.last_sent_at() == [("firing", "no_leader")]
        [sender] = cluster.senders()
        body, headers = json.loads(hook.bodies[0]), hook.headers[0]
        assert (body["version"], body["cluster"], body["node"]) == (1, "tests", sender)
        assert body["alarms"][0]["pipeline"] == "ab"
        digest = hmac.new(SECRET.encode(), hook.bodies[0], hashlib.sha256).hexdigest()
        assert headers["Setl-Signature"] == f"sha256={digest}"
        assert headers["Authorization"] == "Bearer a token"
        to, mail = mailbox.messages[0]
        assert to == ["dba@example.org"]
        assert mail["Subject"] == "[setl tests] ALARM no_leader shop/ab"
        assert "no node" in mail.get_payload()
        last_sent_at = cluster.nodes[sender][0].status()
        assert [(alarm.rule, alarm.severity) for alarm in last_sent_at.firing] == [
            ("no_leader", "critical")
        ]
        registry = CollectorRegistry()
        registry.register(AlarmCollector(cluster.nodes[sender][0].status))
        metrics = generate_latest(registry).decode()
        assert 'setl_alarm_firing{channel="shop",pipeline="ab",rule="no_leader"' in metrics
        assert "hidden" not in metrics
        assert SECRET not in metrics
        cluster.start(False)
        eventually(lambda: len(hook.last_sent_at()) == len(mailbox.messages) == 2, 20)
        assert hook.last_sent_at()[1] == ("recovered", "no_leader")
        eventually(lambda: stored_alarms(cluster.operator).notices == (), 20)
        assert stored_alarms(cluster.operator).alarms == ()


def test_the_next_sender_neither_forgets_nor_reports_again(made, hook, mailbox):
    with made() as cluster:
        cluster.node("n1")
        eventually(lambda: hook.last_sent_at() and not stored_alarms(cluster.operator).notices, 20)
        cluster.node("n2")
        cluster.kill("n1")
        eventually(lambda: cluster.senders() == ["n2"], 20)
        looks = cluster.nodes["n2"][0].status
        eventually(lambda: [a.rule for a in looks().firing] == ["no_leader"], 20)
        ask_for_test(cluster.operator, "t", "me", 1.0 + SystemClock().now())
        eventually(lambda: ("test", "test") in hook.last_sent_at(), 20)
        assert hook.last_sent_at() == [("firing", "no_leader"), ("test", "test")]
        cluster.start(False)
        eventually(lambda: ("recovered", "no_leader") in hook.last_sent_at(), 20)
        eventually(lambda: len(mailbox.messages) == 3, 20)


def test_a_sender_that_dies_while_it_sends_costs_one_message_twice_at_most(made, hook, mailbox):
    with made(mail=None) as cluster:
        hook.before = lambda: cluster.kill("n1") if "n1" in cluster.nodes else None
        cluster.node("n1")
        eventually(lambda: len(hook.bodies) == 1, 20)
        cluster.node("n2")
        eventually(lambda: not stored_alarms(cluster.operator).notices and cluster.senders(), 20)
        eventually(lambda: len(hook.bodies) == 2, 20)
        ids = {json.loads(body)["id"] for body in hook.bodies}
        assert len(ids) == 1
        assert hook.last_sent_at() == [("firing", "no_leader")] * 2


def test_a_test_that_is_asked_for_while_a_message_is_sent_sends_it_no_second_time(made, hook):
    with made(mail=None) as cluster:
        asked = []

        def ask_once():
            if not asked:
                asked.append(ask_for_test(cluster.operator, "t", "me", SystemClock().now()))

        hook.before = ask_once
        cluster.node("n1")
        eventually(lambda: ("test", "test") in hook.last_sent_at(), 20)
        eventually(lambda: not stored_alarms(cluster.operator).notices, 20)
        assert hook.last_sent_at() == [("firing", "no_leader"), ("test", "test")]


def test_a_receiver_that_refuses_is_shown_and_gets_everything_later(made, hook, mailbox):
    with made() as cluster:
        hook.status = 503
        sender = cluster.node("n1")
        eventually(lambda: mailbox.messages and sender.status().failing, 20)
        [(name, why)] = sender.status().failing.items()
        assert name.startswith("webhook 127.0.0.1:")
        assert "503" in why
        assert "hidden" not in name + why
        eventually(lambda: sender.status().failures[name] >= 2, 30)
        assert len(mailbox.messages) == 1
        hook.status = 200
        eventually(lambda: hook.last_sent_at() == [("firing", "no_leader")], 30)
        eventually(lambda: not sender.status().failing, 20)
        assert len(mailbox.messages) == 1


def test_a_silence_holds_back_what_is_reported_when_it_ends(made, hook, mailbox):
    with made() as cluster:
        now = SystemClock().now()
        silence(cluster.operator, Silence("s1", now + 600, "shop", by="me"), now)
        sender = cluster.node("n1")
        eventually(lambda: [a.silenced for a in sender.status().firing] == [True], 20)
        ask_for_test(cluster.operator, "t", "me", now)
        eventually(lambda: hook.last_sent_at() == [("test", "test")], 20)
        ended = end_silence(cluster.operator, "s1", now)
        assert ended is not None
        assert ended.by == "me"
        eventually(lambda: hook.last_sent_at()[1:] == [("firing", "no_leader")], 20)
