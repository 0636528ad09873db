"""A relay's log in memory, for exact faults: see setl.relay.ports.RelayLog."""

from typing import NamedTuple

from setl.codec.dts.relayed import HEADER, relay_position_of
from setl.errors import FencedError


class Stored(NamedTuple):
    value: bytes
    position: bytes
    key: bytes | None
    timestamp_ms: int


class MemoryTopic:
    """What the logs of several leaders share.

    Attributes:
        records: what readers see, by partition.
        leader: the log that took over last.
    """

    def __init__(self, partitions=1):
        self.records: list[list[Stored]] = [[] for _ in range(partitions)]
        self.leader: MemoryRelayLog | None = None


class MemoryRelayLog:
    """One leader's log.

    Attributes:
        queued: what was appended since the last flush, by partition.
        faults: errors to raise by the next calls of append and flush, None for a call that works.
        flushes: how often `flush` returned.
    """

    def __init__(self, topic):
        self.topic = topic
        self.queued: list[list[Stored]] = [[] for _ in topic.records]
        self.faults: list[Exception | None] = []
        self.flushes = 0
        self.closed = False
        self._error: Exception | None = FencedError("not taken over")
        self._abandoned = False

    def take_over(self):
        if self._abandoned:
            raise FencedError("abandoned")
        self.close()
        self.closed, self._error = False, None
        self.topic.leader = self
        return tuple(
            relay_position_of([(HEADER, part[-1].position)]) if part else None
            for part in self.topic.records
        )

    def append(self, partition, value, position, key, timestamp_ms):
        self._check()
        self.queued[partition].append(Stored(value, position, key, timestamp_ms))

    def flush(self):
        self._check()
        self.arrive(*map(len, self.queued))
        self.flushes += 1

    def arrive(self, *counts):
        """Let the first records of each partition be seen, as a crash before `flush` may."""
        for seen, queued, count in zip(self.topic.records, self.queued, counts, strict=True):
            seen.extend(queued[:count])
            del queued[:count]

    def abandon(self):
        self._abandoned = True
        self._drop()

    def close(self):
        self.closed = True
        self._drop()

    def _drop(self):
        for queued in self.queued:
            queued.clear()

    def _check(self):
        fault = self.faults.pop(0) if self.faults else None
        if self._abandoned or self.topic.leader is not self:
            fault = FencedError("another leader took over")
        self._error = self._error or fault
        if self._error is not None:
            self._drop()
            raise self._error
