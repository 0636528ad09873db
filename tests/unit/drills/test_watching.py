"""Who watches a drill lives through whatever a killed process answers, or says that it did not."""

import socket
import threading
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.structs import TopicPartition

from setl.codec.dts.relayed import HEARTBEAT, LAST, RelayPosition, RelayTransaction
from setl.model.position import BinlogPosition
from setl_drills import topic
from setl_drills.nodes import Cluster
from setl_drills.observing import MarkWatch, StatusWatch
from setl_drills.topic import Record, TopicWatch
from setl_drills.watching import Watch, WatchEndedError
from setl_drills.workload import SiteWriter
from setl_embedded import NoAnswerError, ask_json
from setl_embedded.ports import HOST, free_port
from tests.waiting import eventually

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
STATUS = b'{"contact": "connected", "pipelines": []}'
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(STATUS) + STATUS
PARTS = {
    "nothing": b"",
    "half the first line": b"HTTP/1.",
    "half the head": HEAD,
    "no body": HEAD + b"Content-Length: 1910\r\n\r\n",
    "half a body": HEAD + b'Content-Length: 1910\r\n\r\n{"pipelines": [',
    "half a body of no known length": HEAD + b'\r\n{"pipelines": [',
    "half a chunk": HEAD + b'Transfer-Encoding: chunked\r\n\r\n40\r\n{"pipelines": [',
    "no further chunk": HEAD + b'Transfer-Encoding: chunked\r\n\r\nf\r\n{"pipelines": [\r\n',
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a line without end": b"HTTP/1.1 200 " + b"x" * 70_000,
    "an error": b"HTTP/1.1 503 Unavailable\r\nContent-Length: 2\r\n\r\n{}",
    "something else": HEAD + b"Content-Length: 4\r\n\r\nnull",
    "a body that is no text": HEAD + b"Content-Length: 2\r\n\r\n\xff\xfe",
}
RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # SO_LINGER of 0 s: what is lost is told as a reset


NO_SERVER: Any = None
NOT_OF_A_RELAY = SimpleNamespace(topic="t", offset=7, headers=[], value=b"")


@contextmanager
def answering(answers, *, reset=False):
    """A server that gives one answer to each client, and ends the connection as a kill does.

    The last answer is given for ever.
    """
    listener = socket.create_server((HOST, 0))
    listener.settimeout(0.05)
    over = threading.Event()

    def serve():
        following = iter(answers)
        answer = next(following)
        while not over.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            with client:
                client.settimeout(10)
                asked = b""
                while b"\r\n\r\n" not in asked and (more := client.recv(65_536)):
                    asked += more
                client.sendall(answer)
                if reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            answer = next(following, answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join(60)
        listener.close()


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path, "", {})


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("name", PARTS)
def test_a_node_that_dies_while_it_answers_does_not_answer(cluster, name, reset):
    with answering([PARTS[name]], reset=reset) as address:
        cluster.http["n1"] = address
        assert cluster.status("n1", timeout=10) is None


def test_a_node_that_stops_while_it_answers_does_not_answer(cluster):
    with socket.create_server((HOST, 0)) as listener:
        cluster.http["n1"] = f"http://{HOST}:{listener.getsockname()[1]}"
        assert cluster.status("n1", timeout=0.1) is None


def test_a_node_that_is_gone_does_not_answer(cluster):
    cluster.http["n1"] = f"http://{HOST}:{free_port()}"
    assert cluster.status("n1") is None


def test_a_whole_answer_is_one(cluster):
    with answering([WHOLE]) as address:
        cluster.http["n1"] = address
        assert cluster.status("n1", timeout=10) == {"contact": "connected", "pipelines": []}


@pytest.mark.parametrize("name", [n for n in PARTS if n != "something else"])
def test_a_server_that_dies_while_it_answers_gives_no_answer(name):
    with answering([PARTS[name]]) as address, pytest.raises(NoAnswerError, match=address):
        ask_json(f"{address}/_search", {"size": 1}, timeout=10)


def test_a_watch_of_nodes_goes_on_after_half_an_answer(cluster):
    with answering([*PARTS.values(), WHOLE]) as address:
        cluster.http["n1"] = address
        watch = StatusWatch({"n1": lambda: cluster.status("n1", timeout=10)})
        watch.start()
        try:
            eventually(lambda: watch.contacts["n1"], timeout=60)
        finally:
            watch.stop()
    watch.check()
    assert watch.total("c/p", "retries") == 0


def failing_watch_of_statuses(_):
    def ask():
        raise KeyError("broken")

    watch = StatusWatch({"n1": ask})
    return watch, lambda: watch.latest("c/p"), lambda: watch.total("c/p", "retries")


def failing_watch_of_marks(_):
    watch = MarkWatch({"c/p": NO_SERVER})
    return watch, lambda: watch.since("c/p", 0), lambda: watch.epoch("c/p")


def failing_watch_of_topics(monkeypatch):
    polled = {TopicPartition("t", 0): [NOT_OF_A_RELAY]}
    monkeypatch.setattr(topic, "_consumer", lambda *_: nullcontext())
    monkeypatch.setattr(topic, "_polled", lambda _: polled)
    watch = TopicWatch("", {"c/p": "t"})
    return (
        watch,
        lambda: watch.since("c/p", 0),
        lambda: watch.rows("c/p"),
        lambda: watch.holds("c/p", BinlogPosition("b.1", 4)),
    )


def test_a_watch_of_topics_counts_the_rows_only(monkeypatch):
    position = RelayTransaction(1, "b.000001", 4)
    batch = [
        Record(RelayPosition(position, ordinal), b"") for ordinal in (0, 1, 2, LAST, HEARTBEAT)
    ]
    monkeypatch.setattr(topic, "_record", lambda record: record)
    watch = TopicWatch("", {"c/p": "t"})
    for expected in (2, 4):
        watch._note({TopicPartition("t", 0): batch})
        assert watch.rows("c/p") == expected
    assert len(watch.since("c/p", 0)) == 2


@pytest.mark.parametrize(
    "failing", [failing_watch_of_statuses, failing_watch_of_marks, failing_watch_of_topics]
)
def test_a_watch_that_fails_answers_nothing(failing, monkeypatch):
    watch, *questions = failing(monkeypatch)
    watch.start()
    watch.join(60)
    assert not watch.is_alive()
    assert watch.error is not None
    for question in questions:
        with pytest.raises(WatchEndedError, match=f"the watch of {watch.name} ended: ") as caught:
            question()
        assert caught.value.__cause__ is watch.error


def test_a_watch_that_was_stopped_still_answers():
    class Calm(Watch):
        def watch(self):
            self._stopping.wait()

    watch = Calm("nothing")
    watch.start()
    watch.check()
    watch.stop()
    assert not watch.is_alive()
    watch.check()


def test_a_writer_of_large_transactions_that_fails_is_noticed():
    class Site:
        def connect(self, *, autocommit, read_timeout):
            raise KeyError("broken") if read_timeout == 60 else OSError("away")

    site: Any = Site()
    writer = SiteWriter(site, "schema", "a", seed="1")
    writer.start()
    writer.large(10).join(30)
    with pytest.raises(RuntimeError, match="writer-a: KeyError"):
        writer.finish()
