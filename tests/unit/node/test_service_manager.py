"""What systemd hears of a node, over a real socket."""

import os
import re
import socket
import threading
import time

import pytest

from setl.node.host.service_manager import NoServiceManager, Systemd, service_manager
from setl.node.roles import LOAD
from tests.arbiter_in_memory import ManualClock
from tests.unit.node.test_process import Engine, LateSession, World, running
from tests.waiting import eventually


class Heard:
    """What came to the socket; `address` names it for processes."""

    def __init__(self, address):
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self._socket.setblocking(False)
        self.messages = []

    def now(self):
        """Everything until now, a list of lines a message."""
        while True:
            try:
                self.messages.append(self._socket.recv(4096).decode().splitlines())
            except BlockingIOError:
                return self.messages

    def lines(self):
        return [line for message in self.now() for line in message]

    def pings(self):
        return self.lines().count("WATCHDOG=1")

    def close(self):
        self._socket.close()


@pytest.fixture(params=["file", "abstract"])
def heard(request, tmp_path):
    name = str(tmp_path / "notify") if request.param == "file" else f"@setl-test-{os.getpid()}"
    heard = Heard(name)
    yield heard
    heard.close()


def environment(heard, **more):
    return {"NOTIFY_SOCKET": heard.address, **more}


def test_it_says_how_the_process_does(heard):
    clock = ManualClock()
    systemd = service_manager(environment(heard, WATCHDOG_USEC="8000000"), clock)
    systemd.starting("waits for ZooKeeper")
    systemd.starting("waits for ZooKeeper")
    systemd.ready()
    for _ in range(5):
        systemd.alive(lambda: "leads 1 of\n2 pipelines")
        clock.advance(1)  # of 8 s; a quarter of it is the pace
    systemd.hangs("does not answer")
    systemd.stopping()
    more = "EXTEND_TIMEOUT_USEC=60000000"
    assert heard.now() == [
        [more, "STATUS=waits for ZooKeeper"],
        [more],
        ["READY=1"],
        ["WATCHDOG=1", "STATUS=leads 1 of 2 pipelines"],
        ["WATCHDOG=1"],
        ["WATCHDOG=1"],
        ["STATUS=does not answer"],
        ["STOPPING=1", "STATUS=hands over what it leads"],
    ]


@pytest.mark.parametrize(
    "watchdog", [{}, {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}]
)
def test_without_a_limit_of_its_own_there_are_no_pings(heard, watchdog):
    systemd = service_manager(environment(heard, **watchdog), ManualClock())
    systemd.alive(lambda: "well")
    assert heard.now() == [["STATUS=well"]]


@pytest.mark.parametrize("address", [None, "", "vsock:2:1234"])
def test_without_a_socket_nothing_is_said(address):
    found = service_manager({} if address is None else {"NOTIFY_SOCKET": address}, ManualClock())
    assert isinstance(found, NoServiceManager)


def test_a_socket_that_nobody_reads_holds_nothing_up(tmp_path, caplog):
    clock = ManualClock()
    systemd = Systemd(str(tmp_path / "nobody"), 8.0, clock)
    systemd.ready()
    systemd.alive(lambda: "well")
    assert caplog.text.count("the service manager cannot be notified") == 1
    heard = Heard(str(tmp_path / "nobody"))
    systemd.alive(lambda: "well")  # at once, for the last one was lost
    assert heard.now() == [["WATCHDOG=1", "STATUS=well"]]
    for _ in range(2_000):  # its queue is full long before
        clock.advance(10)
        systemd.alive(lambda: "well")
    heard.close()


class Answering(Engine):
    """An engine that answers until it is told to hang."""

    hanging_since: float | None = None

    def last_answer(self):
        return self.hanging_since or time.monotonic()


@pytest.fixture
def watched(heard):
    return environment(heard, WATCHDOG_USEC="200000", WATCHDOG_PID=str(os.getpid()))


def test_a_node_is_ready_when_it_is_warm_and_pings_while_it_works(heard, watched):
    world = World()
    may_start = threading.Event()

    class Slow(Answering):
        def start(self, lost, stopping):
            assert not stopping()
            assert may_start.wait(60)
            super().start(lost, stopping)

    engine = Slow(LOAD)
    with world.process("n1", engine, environment=watched):
        eventually(lambda: "STATUS=waits for executors of the Spark cluster" in heard.lines())
        assert "READY=1" not in heard.lines()
        may_start.set()
        eventually(lambda: running(engine))
        eventually(lambda: "STATUS=leads 1 of 1 pipeline; ZooKeeper: connected" in heard.lines())
        assert heard.lines().count("READY=1") == 1
        pings = heard.pings()
        eventually(lambda: heard.pings() > pings + 2)
        assert "STOPPING=1" not in heard.lines()
    assert heard.lines().count("STOPPING=1") == 1


def test_a_node_that_waits_for_zookeeper_asks_for_time(heard, watched, monkeypatch):
    monkeypatch.setattr("setl.node.process._CONNECT_PAUSE", 0.01)
    world = World()
    with world.process("n1", Engine(LOAD), environment=watched, session=LateSession):
        eventually(lambda: "READY=1" in heard.lines())
    waiting = ["EXTEND_TIMEOUT_USEC=60000000", "STATUS=waits for ZooKeeper: no ZooKeeper server"]
    assert [line.rpartition(" answered")[0] or line for line in heard.now()[0]] == waiting


def test_an_engine_that_hangs_ends_the_pings_until_it_answers(heard, watched):
    world, engine = World(), Answering(LOAD)
    with world.process("n1", engine, environment=watched):
        eventually(lambda: heard.pings() > 2)
        engine.hanging_since = time.monotonic() - 31
        silent = re.compile(r"STATUS=Spark's JVM has not answered for \d\d s")
        eventually(lambda: any(map(silent.fullmatch, heard.lines())))
        pings, later = heard.pings(), time.monotonic() + 0.5
        eventually(lambda: time.monotonic() > later)
        assert heard.pings() == pings
        assert world.operator.facts().nodes  # all else works
        engine.hanging_since = None
        eventually(lambda: heard.pings() > pings)


def test_a_loop_that_hangs_ends_the_pings(heard, watched, monkeypatch):
    world, stuck = World(), threading.Event()
    with world.process("n1", Engine(LOAD), environment=watched) as process:
        eventually(lambda: heard.pings() > 2)
        waits = threading.Event()
        facts = process._arbiter.facts

        def hang():
            waits.set()
            assert stuck.wait(60)
            return facts()

        monkeypatch.setattr(process._arbiter, "facts", hang)
        assert waits.wait(60)
        pings, later = heard.pings(), time.monotonic() + 0.5
        eventually(lambda: time.monotonic() > later)
        assert heard.pings() == pings
        stuck.set()
        eventually(lambda: heard.pings() > pings)
