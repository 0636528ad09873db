"""A workload on Kafka: a relay puts it there, and a broker answers fetches as Kafka would.

The embedded broker answers a fetch with all that a partition holds from an offset on, whatever
size it is asked for: nobody has a record before 100 MB of them are there. Kafka sends a few MiB at
a time, as its clients ask. So what reads the topic is given an address of this process. What is
asked there goes to the broker as it is, but fetches, which are answered from a copy.

Source: https://kafka.apache.org/protocol, Fetch v4 and the record batch of magic 2.
"""

from __future__ import annotations

import socket
import struct
import threading
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from setl.channel.reading import parse_channel
from setl.clock import SystemClock
from setl.model.leadership import Leadership
from setl.run.measured.progress import Progress
from setl.run.relay.assembly import build_relay_run
from setl_drills.waiting import wait_for
from setl_embedded import DatabaseServer, Kafka
from setl_embedded.ports import HOST
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.bench.servers import mysql_settings
from tests.bench.workloads import SCHEMA, Written

_FETCH, _API_VERSIONS = 1, 18
_VERSION = 4  # of fetches: those that are understood here
_HEADER = struct.Struct(">hhih")  # api, version, correlation, length of the client's name
_VERSIONS = struct.Struct(">hhh")
_BEFORE_BATCH = 12  # bytes of a batch that its length does not count
_LAST_DELTA = 23  # where in a batch the distance from its first to its last offset is


class Topic(NamedTuple):
    """A topic with one partition and nothing but the workload; where it is read."""

    name: str
    brokers: str
    pid: int  # of the broker


@contextmanager
def topic_of(folder: Path, source: DatabaseServer, written: Written) -> Iterator[Topic]:
    """A broker with the workload, relayed before anything is measured that reads it from there."""
    with Kafka(folder / "kafka") as kafka, socket.create_server((HOST, 0)) as listening:
        name = f"{written.workload.name}-{uuid4().hex[:8]}"
        _relay(source, written, kafka, name)
        front = _Front(kafka, name, listening)
        threading.Thread(target=front.listen, daemon=True).start()
        yield Topic(name, f"{HOST}:{front.port}", kafka.pid)
        listening.shutdown(socket.SHUT_RDWR)


def _relay(source: DatabaseServer, written: Written, kafka: Kafka, topic: str) -> None:
    start = {"start": written.start._asdict(), "heartbeat": 0}
    pipeline = {
        "name": "r",
        "source": {"type": "mysql", **mysql_settings(source), **start},
        "target": {"type": "kafka", "brokers": [kafka.brokers], "topic": topic},
        "tables": [{"from": f"{SCHEMA}.*"}],
    }
    file = parse_channel({"channel": topic, "pipelines": [pipeline]})
    arbiter, clock = MemoryArbiter(MemoryCluster()), SystemClock()
    arbiter.channels.put(topic, {})
    progress, leadership = Progress(clock), Leadership(topic, "r", "n1", 1)
    run = build_relay_run(file, leadership, arbiter=arbiter, progress=progress, clock=clock)
    thread = threading.Thread(target=run.run, daemon=True)
    thread.start()

    def done() -> bool:
        figures = progress.figures()
        if not thread.is_alive():
            raise RuntimeError(f"the relay ended: {figures.error}")
        return figures.rows_total >= written.workload.changes

    try:
        wait_for("the relay", done, 60 + written.workload.changes / 500)
    finally:
        run.stop()
        thread.join(30)


class PartitionCopy(NamedTuple):
    """A partition as it is in the broker: its batches, the last offset and the end of each."""

    batches: bytes
    last: list[int]
    ends: list[int]

    def piece(self, offset: int, most: int) -> memoryview:
        """Whole batches from that of an offset on; at least one, and nothing if there is none."""
        number = bisect_left(self.last, offset)
        if number == len(self.last):
            return memoryview(b"")
        begin = self.ends[number - 1] if number else 0
        end = self.ends[max(number, bisect_left(self.ends, begin + most + 1) - 1)]
        return memoryview(self.batches)[begin:end]


def _copied(kafka: Kafka, topic: str) -> PartitionCopy:
    name = topic.encode()
    request = struct.pack(">iiiib", -1, 100, 1, 1 << 30, 0) + struct.pack(">ih", 1, len(name))
    request += name + struct.pack(">iiqi", 1, 0, 0, 1 << 30)
    with socket.create_connection((kafka.host, kafka.port)) as connection:
        _send(connection, _HEADER.pack(_FETCH, _VERSION, 1, 0) + request)
        answer = _received(connection.makefile("rb"))
    # Correlation, time to wait, topics; name; partitions; number, error, two ends, aborted ones.
    at = 12 + 2 + len(name) + 4 + 4
    error, _, _, aborted = struct.unpack_from(">hqqi", answer, at)
    if error or aborted > 0:
        raise RuntimeError(f"{topic} cannot be copied: error {error}, {aborted} aborted")
    copy = PartitionCopy(answer[at + struct.calcsize(">hqqi") + 4 :], [], [])
    begin = 0
    while begin < len(copy.batches):
        first, size = struct.unpack_from(">qi", copy.batches, begin)
        delta: int = struct.unpack_from(">i", copy.batches, begin + _LAST_DELTA)[0]
        begin += _BEFORE_BATCH + size
        copy.last.append(first + delta)
        copy.ends.append(begin)
    return copy


class _Front:
    """Answers clients in place of the broker."""

    def __init__(self, kafka: Kafka, topic: str, listening: socket.socket) -> None:
        self.port: int = listening.getsockname()[1]
        self._listening = listening
        self._kafka = kafka
        self._topic = topic.encode()
        self._copy = _copied(kafka, topic)

    def listen(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        own, other = (
            struct.pack(f">{len(HOST)}si", HOST.encode(), port)
            for port in (self.port, self._kafka.port)
        )
        address = self._kafka.host, self._kafka.port
        with client, suppress(OSError, EOFError), socket.create_connection(address) as broker:
            for connection in (client, broker):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            requests, answers = client.makefile("rb"), broker.makefile("rb")
            while True:
                request = _received(requests)
                api, version, _, _ = _HEADER.unpack_from(request)
                if api == _FETCH and (parts := self._fetched(request)):
                    _send(client, *parts)
                    continue
                _send(broker, request)
                answer = _received(answers).replace(other, own)
                _send(client, _capped(answer, version) if api == _API_VERSIONS else answer)

    def _fetched(self, request: bytes) -> tuple[bytes, memoryview] | None:
        """What answers a fetch; None if there is nothing to answer here."""
        _, _, correlation, client = _HEADER.unpack_from(request)
        at = _HEADER.size + max(client, 0) + 17  # replica, wait, least and most bytes, isolation
        topics, size = struct.unpack_from(">ih", request, at)
        name = request[at + 6 : at + 6 + max(size, 0)]
        if topics < 1 or name != self._topic:
            return None
        offset, most = struct.unpack_from(">qi", request, at + 6 + size + 8)
        piece = self._copy.piece(offset, most)
        if not piece:
            return None
        end = self._copy.last[-1] + 1
        front = struct.pack(">iiih", correlation, 0, 1, size) + name
        front += struct.pack(">iihqqii", 1, 0, 0, end, end, 0, len(piece))
        return front, piece


def _capped(answer: bytes, version: int) -> bytes:
    """What a broker says that it understands, without fetches that are not understood here."""
    begin, step = (7, 7) if version >= 3 else (10, 6)  # with compact lengths, or without
    for at in range(begin, len(answer) - 5, step):
        api, least, _ = _VERSIONS.unpack_from(answer, at)
        if api == _FETCH:
            known = _VERSIONS.pack(api, least, _VERSION)
            return answer[:at] + known + answer[at + _VERSIONS.size :]
    return answer


def _send(connection: socket.socket, *parts: Any) -> None:
    connection.sendall(struct.pack(">i", sum(map(len, parts))))
    for part in parts:
        connection.sendall(part)


def _received(stream: Any) -> bytes:
    size = stream.read(4)
    if len(size) < 4:
        raise EOFError
    return bytes(stream.read(*struct.unpack(">i", size)))
