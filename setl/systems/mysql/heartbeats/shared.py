"""One heartbeat a source, however many pipelines of this process read it.

Each pipeline of a node could write a row of its own. Then every one of sixty pipelines would read
sixty heartbeats a second, and the source would commit as many. A heartbeat says when it was
committed at its source, which is the same for all who read it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from setl.select.heartbeat import Heartbeat, HeartbeatStatus
from setl.select.identity import heartbeat_id
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.heartbeats.heartbeat import MysqlHeartbeat

Maker = Callable[[MysqlEndpoint, float], Heartbeat]
"""Makes what writes to a source every so many seconds."""

_Key = tuple[MysqlEndpoint, float]


@dataclass(slots=True)
class _Writer:
    """What writes for several, and for how many.

    Attributes:
        heartbeat: what writes.
        users: how many want it to.
    """

    heartbeat: Heartbeat
    users: int = 0


def _made(endpoint: MysqlEndpoint, interval: float) -> Heartbeat:
    number = heartbeat_id(endpoint.host, endpoint.port)
    return MysqlHeartbeat(endpoint, number, interval=interval, name=str(endpoint))


class HeartbeatWriters:
    """The heartbeats that this process writes, by account, server and interval. Thread-safe."""

    def __init__(self, make: Maker = _made) -> None:
        """Nothing is written yet."""
        self._make = make
        self._lock = threading.Lock()
        self._writers: dict[_Key, _Writer] = {}

    def join(self, endpoint: MysqlEndpoint, interval: float) -> Heartbeat:
        """Have heartbeats written until as many have left as joined."""
        key = endpoint, interval
        with self._lock:
            writer = self._writers.get(key)
            if writer is None:
                writer = self._writers[key] = _Writer(self._make(endpoint, interval))
                writer.heartbeat.start()
            writer.users += 1
            return writer.heartbeat

    def leave(self, endpoint: MysqlEndpoint, interval: float) -> None:
        """The last who leaves ends the writing, and waits for a write under way."""
        key = endpoint, interval
        with self._lock:
            writer = self._writers[key]
            writer.users -= 1
            if writer.users:
                return
            del self._writers[key]
        writer.heartbeat.stop()


WRITERS = HeartbeatWriters()
"""Those of this process."""


class SharedHeartbeat:
    """Implements `setl.select.heartbeat.Heartbeat` for one pipeline. Used by one thread.

    `status` may be called from any thread.
    """

    def __init__(
        self, endpoint: MysqlEndpoint, *, interval: float, writers: HeartbeatWriters = WRITERS
    ) -> None:
        """Nothing is written before `start`.

        Args:
            endpoint: the source.
            interval: seconds between two writes; 0 or less writes none.
            writers: who writes.
        """
        self._endpoint = endpoint
        self._interval = interval
        self._writers = writers
        self._joined: Heartbeat | None = None
        self._at_start = HeartbeatStatus()
        self._last = HeartbeatStatus()

    @property
    def id(self) -> int:
        """See `Heartbeat.id`: that of the server, whoever writes to it."""
        return heartbeat_id(self._endpoint.host, self._endpoint.port)

    @property
    def interval(self) -> float:
        """See `Heartbeat.interval`."""
        return self._interval

    def start(self) -> None:
        """See `Heartbeat.start`."""
        if self._joined is not None or self._interval <= 0:
            return
        joined = self._writers.join(self._endpoint, self._interval)
        now, before = joined.status(), self._last
        # What was written for others before does not count; what this one has seen goes on.
        self._at_start = HeartbeatStatus(now.written - before.written, now.errors - before.errors)
        self._joined = joined

    def stop(self) -> None:
        """See `Heartbeat.stop`; others may still want it written."""
        if self._joined is None:
            return
        self._last = self.status()
        self._joined = None
        self._writers.leave(self._endpoint, self._interval)

    def status(self) -> HeartbeatStatus:
        """See `Heartbeat.status`."""
        joined = self._joined
        if joined is None:
            return self._last
        now, start = joined.status(), self._at_start
        return HeartbeatStatus(
            now.written - start.written,
            now.errors - start.errors,
            now.last_at,
            now.error,
            now.hangs_at,
        )
