"""A broker that answers a fetch with as much as was asked for.

The embedded one answers with all that a partition holds from an offset on, whatever size it is
asked for: nobody has a record before 100 MB of them are there. Kafka sends a few MiB at a time,
as its clients ask. So what reads a topic is given an address of this process. What is asked there
goes to the broker as it is, but fetches, which are answered from a copy of the partition.

Source: https://kafka.apache.org/protocol, Fetch v4 to v11 and the record batch of magic 2.
"""

from __future__ import annotations

import socket
import struct
import threading
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from setl_embedded import Kafka
from setl_embedded.ports import HOST

_FETCH: Final = 1
_API_VERSIONS: Final = 18
_PLAIN: Final = 11  # the last version of a fetch without compact lengths
_HEADER: Final = struct.Struct(">hhih")  # api, version, correlation, length of the client's name
_VERSIONS: Final = struct.Struct(">hhh")
_BEFORE_BATCH: Final = 12  # bytes of a batch that its length does not count
_LAST_DELTA: Final = 23  # where in a batch the distance from its first to its last offset is


class _Asked(NamedTuple):
    """What a fetch of one partition asks for."""

    version: int
    topic: str
    offset: int
    most: int


class PartitionCopy(NamedTuple):
    """A partition as it is in the broker.

    Attributes:
        batches: all, one behind the other.
        last: the last offset of each.
        ends: where each ends.
    """

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


@contextmanager
def limited(kafka: Kafka, topic: str) -> Iterator[str]:
    """Gives an address where a broker is reached so; its topic has partition 0 alone, and is full.

    Raises:
        RuntimeError: the broker answers otherwise than understood here.
    """
    copy = _copied(kafka, topic)
    with socket.create_server((HOST, 0)) as listening:
        port: int = listening.getsockname()[1]
        threading.Thread(
            target=_listen, args=(listening, port, kafka, topic, copy), daemon=True
        ).start()
        yield f"{HOST}:{port}"
        listening.shutdown(socket.SHUT_RDWR)


def _copied(kafka: Kafka, topic: str) -> PartitionCopy:
    name = topic.encode()
    asked = struct.pack(">iiiib", -1, 100, 1, 1 << 30, 0) + struct.pack(">ih", 1, len(name)) + name
    asked += struct.pack(">iiqi", 1, 0, 0, 1 << 30)
    with socket.create_connection((kafka.host, kafka.port)) as connection:
        _send(connection, _HEADER.pack(_FETCH, 4, 1, 0) + asked)
        answer = _received(connection.makefile("rb"))
    # Correlation, time to wait, topics; name; partitions; number, error, two ends, aborted ones.
    at = 12 + 2 + len(name) + 4 + 4
    error, _, _, aborted = struct.unpack_from(">hqqi", answer, at)
    at += struct.calcsize(">hqqi")
    if error or aborted > 0:
        raise RuntimeError(f"{topic} cannot be copied: error {error}, {aborted} aborted")
    batches = answer[at + 4 :]
    last: list[int] = []
    ends: list[int] = []
    begin = 0
    while begin < len(batches):
        first, size = struct.unpack_from(">qi", batches, begin)
        last.append(first + struct.unpack_from(">i", batches, begin + _LAST_DELTA)[0])
        begin += _BEFORE_BATCH + size
        ends.append(begin)
    if begin != len(batches):
        raise RuntimeError(f"{topic} cannot be copied: its last batch is cut off")
    return PartitionCopy(batches, last, ends)


def _listen(
    listening: socket.socket, port: int, kafka: Kafka, topic: str, copy: PartitionCopy
) -> None:
    with suppress(OSError):  # closed
        while True:
            client, _ = listening.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(
                target=_serve, args=(client, port, kafka, topic, copy), daemon=True
            ).start()


def _serve(client: socket.socket, port: int, kafka: Kafka, topic: str, copy: PartitionCopy) -> None:
    own, other = (struct.pack(f">{len(HOST)}si", HOST.encode(), p) for p in (port, kafka.port))
    with (
        client,
        suppress(OSError, EOFError),
        socket.create_connection((kafka.host, kafka.port)) as broker,
    ):
        broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asking, answering = client.makefile("rb"), broker.makefile("rb")
        while True:
            request = _received(asking)
            api, version, correlation, _ = _HEADER.unpack_from(request)
            if api == _FETCH:
                asked = _asked(request)
                piece = copy.piece(asked.offset, asked.most) if asked.topic == topic else b""
                if piece:
                    _send(client, _front(asked, correlation, copy, len(piece)), piece)
                    continue
            _send(broker, request)
            answer = _received(answering).replace(other, own)
            _send(client, _capped(answer, version) if api == _API_VERSIONS else answer)


def _asked(request: bytes) -> _Asked:
    """What is asked of the first partition that a fetch names."""
    _, version, _, client = _HEADER.unpack_from(request)
    at = _HEADER.size + max(client, 0) + 17  # replica, wait, least and most bytes, isolation
    at += 8 if version >= 7 else 0
    topics, size = struct.unpack_from(">ih", request, at)
    if topics < 1:
        return _Asked(version, "", 0, 0)
    topic = request[at + 6 : at + 6 + size].decode()
    at += 6 + size + 8 + (4 if version >= 9 else 0)
    (offset,) = struct.unpack_from(">q", request, at)
    at += 8 + (8 if version >= 5 else 0)
    return _Asked(version, topic, offset, *struct.unpack_from(">i", request, at))


def _front(asked: _Asked, correlation: int, copy: PartitionCopy, size: int) -> bytes:
    """An answer up to its batches."""
    end, name = copy.last[-1] + 1, asked.topic.encode()
    front = struct.pack(">ii", correlation, 0) + (b"\0" * 6 if asked.version >= 7 else b"")
    front += struct.pack(">ih", 1, len(name)) + name + struct.pack(">iihqq", 1, 0, 0, end, end)
    front += struct.pack(">q", 0) if asked.version >= 5 else b""
    front += struct.pack(">i", 0) + (struct.pack(">i", -1) if asked.version >= 11 else b"")
    return front + struct.pack(">i", size)


def _capped(answer: bytes, version: int) -> bytes:
    """What a broker says that it understands, without fetches that are not understood here."""
    compact = version >= 3
    begin, step = (7, 7) if compact else (10, 6)
    for at in range(begin, len(answer) - 5, step):
        api, least, most = _VERSIONS.unpack_from(answer, at)
        if api == _FETCH:
            known = _VERSIONS.pack(api, least, min(most, _PLAIN))
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
    content = stream.read(*struct.unpack(">i", size))
    return bytes(content)
