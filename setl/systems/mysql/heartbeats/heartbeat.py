"""Heartbeats: writes to the source that come back through its stream.

Without them an idle source cannot be distinguished from a dead one, the lag of a quiet pipeline is
unknown, and its checkpoint stays behind in a binlog that the source will purge.

All nodes write the same row of a source, each at its own times. What one of them has written lately
the others leave as it is. If it ends, another one goes on, within one and a half intervals.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pymysql.connections import Connection

from setl.clock import Clock, SystemClock
from setl.errors import SetlError, TransientError
from setl.select.heartbeat import HeartbeatStatus
from setl.systems.mysql.cached_connection import once_more_if_cut_off
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating
from setl.systems.mysql.stored import writers

_LOG = logging.getLogger(__name__)

# A row that stays as it is comes in no binlog. So one heartbeat an interval is read, however many
# nodes write. A time in the future is that of a clock that was set back since.
_BEAT = (
    "INSERT INTO retl.xdual (id, x) VALUES (%s, NOW(6)) ON DUPLICATE KEY UPDATE"
    " x = IF(x BETWEEN NOW(6) - INTERVAL %s MICROSECOND AND NOW(6), x, NOW(6))"
)
_FRESH = 0.5  # of an interval, for which a heartbeat will do; more, and a writer may skip its own
_STOP_LIMIT = 5.0  # seconds that `stop` waits for a write under way


class MysqlHeartbeat:
    """Sees to heartbeats in ``retl.xdual`` of a source, from a thread of its own.

    A failure is counted. It is logged when it begins, when it becomes another one, and when it is
    over. It never stops the pipeline: a source that is read-only can still be read.
    """

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        heartbeat_id: int,
        *,
        interval: float,
        name: str,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is written before `start`.

        Args:
            endpoint: the source.
            heartbeat_id: the row to write, see `setl.select.identity.heartbeat_id`.
            interval: seconds between two writes; 0 or less writes none.
            name: who is meant, for the thread's name and the log.
            clock: for the time of the last write.
        """
        # A write that hangs longer than this is of no use to anybody.
        limit = max(2.0, interval)
        self._endpoint = replace(
            endpoint,
            connect_timeout=min(endpoint.connect_timeout, limit),
            read_timeout=min(endpoint.read_timeout, limit),
        )
        self._id = heartbeat_id
        self._key = f"heartbeat {heartbeat_id}"
        self._server_end = 0  # id of the connection that was made last
        self._interval = interval
        self._name = name
        self._clock = clock or SystemClock()
        self._status = HeartbeatStatus()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def id(self) -> int:
        """See `setl.select.heartbeat.Heartbeat.id`."""
        return self._id

    @property
    def interval(self) -> float:
        """Seconds from one write to the next."""
        return self._interval

    def start(self) -> None:
        """Begin to write, at once and then every `interval` seconds. May be called twice."""
        if self._thread is not None or self._interval <= 0:
            return
        self._stopped.clear()
        self._thread = threading.Thread(
            target=self._run, name=f"heartbeat-{self._name}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Write no more. Waits for a write under way, but not for ever. May be called twice."""
        self._stopped.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_STOP_LIMIT)

    def status(self) -> HeartbeatStatus:
        """What was done so far."""
        return self._status

    def _run(self) -> None:
        stopped, slot = self._stopped, _Slot()
        try:
            while not stopped.is_set():
                began = self._clock.monotonic()
                try:
                    # A server's `wait_timeout` may be shorter than the interval.
                    once_more_if_cut_off(
                        lambda: self._attempt(slot), self._name, cached=slot.connection is not None
                    )
                except SetlError as error:
                    self._failed(error)
                stopped.wait(max(0.0, self._interval - (self._clock.monotonic() - began)))
        finally:
            slot.drop()

    def _attempt(self, slot: _Slot) -> None:
        try:
            slot.connection = slot.connection or self._connected()
            self._beat(slot.connection)
        except BaseException:
            slot.drop()
            raise

    def _connected(self) -> Connection[Any]:
        """A new connection; of the one before, the server may still have its end.

        A commit that waits for a replica, or for room on the disk, waits on after its client has
        gone. One more every two seconds would leave no connection to anybody else.

        Raises:
            SetlError: there is none, or the commit before waits and must not be ended.
        """
        connection, hangs = connect(self._endpoint, lock_wait=1), False
        # Not every cluster lets a session take a user lock; it has heartbeats all the same.
        with suppress(SetlError), translating(self._endpoint):
            ended = writers.end_writer(connection, self._key, self._server_end)
            hangs = not ended and writers.is_alive(connection, self._key, self._server_end)
            if not hangs:
                self._server_end = 0
                self._server_end = writers.claim(connection, self._key)
        if hangs:
            connection.close()
            raise _CommitHangsError(
                "the commit of the last heartbeat does not end: mostly the server's disk is full",
                hint="Its log says why; once commits end there, heartbeats continue automatically",
                server=self._endpoint,
            )
        return connection

    def _beat(self, connection: Connection[Any]) -> None:
        with translating(self._endpoint), connection.cursor() as cursor:
            cursor.execute(_BEAT, (self._id, int(self._interval * _FRESH * 1e6)))
        before = self._status
        if before.error:
            _LOG.info("%s: heartbeats are written again", self._name)
        self._status = replace(
            before,
            written=before.written + 1,
            last_at=self._clock.now(),
            error="",
            hangs_at="",
        )

    def _failed(self, error: SetlError) -> None:
        before, text = self._status, error.text
        if text != before.error:
            _LOG.warning("%s: no heartbeat: %s", self._name, text)
        hangs_at = str(self._endpoint) if isinstance(error, _CommitHangsError) else ""
        self._status = replace(before, errors=before.errors + 1, error=text, hangs_at=hangs_at)


class _CommitHangsError(TransientError):
    """The server does not end a commit, and whoever waits for it should know that."""


class _Slot:
    """The connection from one beat to the next; of one thread."""

    def __init__(self) -> None:
        self.connection: Connection[Any] | None = None

    def drop(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None and connection.open:
            connection.close()
