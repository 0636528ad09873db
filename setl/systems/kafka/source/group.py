"""Membership of a consumer group, which says who may read a topic's partition now.

A thread with a reader of its own does nothing but take part in the group: it subscribes, keeps
every partition paused, and polls. So the membership outlives errors of reading and loading. Each
coming and going makes the group deal its partitions out again. If a membership ended with each
error, two members would take the partition from each other for ever.
"""

from __future__ import annotations

import logging
import queue
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import NamedTuple

from setl.channel.file import KafkaSource
from setl.clock import Clock, SystemClock
from setl.errors import FatalError, SetlError, TransientError
from setl.log import fields
from setl.systems.kafka.reader import TopicReader, check_single, reader_and_partitions
from setl.systems.kafka.record import TopicPartition

_LOG = logging.getLogger(__name__)

_SLICE = 0.2  # seconds of a poll, after which commits that wait are sent
_DEFAULTS = {
    # A node that was killed is a member for so long, and keeps its successor waiting.
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 2_000,
    # It does nothing between two polls, so silence means that it hangs; for that long the group
    # would wait for it before it gives the partition to another.
    "max.poll.interval.ms": 30_000,
    # It has to begin somewhere to be assigned anything; being paused, it reads nothing.
    "auto.offset.reset": "latest",
}
_LEAVING = 5.0  # seconds that the thread may take to leave the group
_SAY_FIRST = 1.0  # seconds of waiting after which it is said; less is any dealing out again
_SAY_AGAIN = 60.0  # seconds after which it is said again


class _Commit(NamedTuple):
    """A commit that waits for the thread of the membership.

    Attributes:
        turn: the turn in which it is good.
        offset: the offset.
        metadata: what is kept with it.
        done: ends when the brokers have answered.
    """

    turn: int | None
    offset: int
    metadata: str
    done: Future[None]


class GroupMembership:
    """One member of the group `sid`, from `join` to `leave`.

    A *turn* is a time in which this member has the partition, with a number that no other turn
    has. The checkpoint that was loaded in one turn is not good for another: in between, another
    member may have moved it. `note` is called right before a checkpoint is loaded; what was
    read and applied from it counts only while `in_noted_turn`.

    Thread-safe.
    """

    def __init__(
        self, source: KafkaSource, *, timeout: float = 5.0, clock: Clock | None = None
    ) -> None:
        """Nothing is connected yet.

        Args:
            source: brokers, account, topic, partition and group.
            timeout: seconds to wait for any answer of a broker.
            clock: for how long it has waited.
        """
        self._source = source
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._assigned = False  # the group has dealt its partitions out since this member joined
        self._waits_since: float | None = None
        self._say_at = 0.0
        self._said = ""
        self._partition = TopicPartition(source.topic, source.partition)
        self._changed = threading.Condition()
        self._turn: int | None = None
        self._turns = 0
        self._noted: int | None = None
        self._error: SetlError | None = None
        self._thread: threading.Thread | None = None
        self._leaving = threading.Event()
        self._left = False
        self._commits: queue.SimpleQueue[_Commit] = queue.SimpleQueue()

    def join(self) -> None:
        """Become a member in the background; nothing happens if this is one, or becomes one.

        Raises:
            TransientError: this member has left. Whoever comes so late is waited for no longer,
                and nobody would end the membership.
        """
        with self._changed:
            if self._left:
                raise self._is_no_member()
            if self._thread is not None and self._thread.is_alive():
                return
            self._error = None
            self._assigned = False
            self._leaving = threading.Event()
            self._thread = threading.Thread(
                target=self._run,
                args=(self._leaving,),
                name=f"group-{self._source.sid}",
                daemon=True,
            )
            self._thread.start()

    def leave(self) -> None:
        """Leave the group for good, so that no other member waits for the session to end."""
        with self._changed:
            self._left = True
            thread, self._thread = self._thread, None
            self._leaving.set()
            self._changed.notify_all()
        if thread is not None:
            thread.join(_LEAVING)

    @property
    def turn(self) -> int | None:
        """The number of the present turn, None while this member does not have the partition."""
        return self._turn

    def wait(self, timeout: float) -> int | None:
        """Wait for a turn; returns it, or None if none has come in time.

        Raises:
            SetlError: why this is no member any more.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._turn is not None or self._error is not None, timeout
            )
            if self._error is not None:
                raise self._error
            return self._turn

    def note(self) -> None:
        """A checkpoint is loaded now."""
        self._noted = self._turn

    @property
    def noted(self) -> int | None:
        """The turn in which the checkpoint was loaded, None if that was in none."""
        return self._noted

    @property
    def in_noted_turn(self) -> bool:
        """Whether the turn in which the checkpoint was loaded lasts."""
        turn = self._turn
        return turn is not None and turn == self._noted

    @property
    def waiting_for(self) -> str:
        """What this member waits for, "" while it has the partition."""
        if self._turn is not None:
            return ""
        if not self._assigned:
            return f"the group {self._source.sid} has not dealt its partitions out yet"
        return (
            f"another member of the group {self._source.sid} has "
            f"{self._source.topic}[{self._source.partition}]"
        )

    def my_turn(self, timeout: float, stop: threading.Event) -> bool:
        """Wait until the partition may be read; False if another member has it all that time.

        Raises:
            TransientError: it was given to this member after the checkpoint was loaded, which
                has to be loaded again; or `stop` was set.
            SetlError: why this is no member any more.
        """
        left = timeout
        while not stop.is_set():
            if self.wait(0) is not None:
                self._waits_since = None
                if self.in_noted_turn:
                    return True
                raise TransientError(
                    f"the group {self._source.sid} has given this node the partition, and"
                    " another member may have moved the checkpoint: it is loaded again"
                ).at(**self._where())
            self._say_waiting()
            if left <= 0:
                return False
            self.wait(min(left, _SLICE))
            left -= _SLICE
        raise TransientError("the source was closed").at(**self._where())

    def _say_waiting(self) -> None:
        """Log what this waits for: soon, when that changes, and every minute from then on."""
        now, reason = self._clock.monotonic(), self.waiting_for
        if self._waits_since is None:
            self._waits_since, self._say_at, self._said = now, now + _SAY_FIRST, ""
        if now >= self._say_at or (self._said and self._said != reason):
            self._say_at, self._said = now + _SAY_AGAIN, reason
            waited, where = now - self._waits_since, fields(**self._where())
            _LOG.info("waiting for %.0f s: %s", waited, reason, extra=where)

    def commit(self, offset: int, metadata: str) -> None:
        """Commit an offset of the partition as a member, in the noted turn.

        Raises:
            TransientError: this is no member, or the turn is over, or the brokers do not answer.
            SetlError: the brokers refuse it.
        """
        done: Future[None] = Future()
        with self._changed:
            if self._thread is None or not self._thread.is_alive() or self._error is not None:
                raise self._is_no_member() from self._error
            self._commits.put(_Commit(self._noted, offset, metadata, done))
        try:
            done.result(2 * self._timeout)
        except FutureTimeoutError:
            done.cancel()
            raise TransientError("the brokers do not answer to a commit").at(
                **self._where()
            ) from None

    # -- the thread -------------------------------------------------------------------------

    def _run(self, leaving: threading.Event) -> None:
        error: SetlError | None = None
        try:
            self._take_part(leaving)
        except SetlError as raised:
            error = raised.at(**self._where())
        except Exception as raised:  # noqa: BLE001 - handed to whoever reads
            error = FatalError(f"taking part in the group failed unexpectedly: {raised!r}")
            error.__cause__ = raised
        with self._changed:
            # Both under the lock, so that no commit is put behind those that fail here.
            self._end_turn("this node has left the group")
            self._error = error
            while not self._commits.empty():
                self._commits.get().done.cancel()
            self._changed.notify_all()

    def _take_part(self, leaving: threading.Event) -> None:
        reader, partitions = reader_and_partitions(self._source, self._timeout, more=_DEFAULTS)
        try:
            check_single(partitions)
            reader.subscribe(
                self.assigned,
                partial(self.revoked, "the group reassigns its partitions"),
                # Also when its coordinator is silent for the time of a session: it may have given
                # the partition to another member, and nobody says so here.
                partial(self.revoked, "the group has excluded this node"),
            )
            while not leaving.is_set():
                try:
                    reader.poll(1, _SLICE)
                except TransientError as error:
                    _LOG.debug("%s", error)  # the client goes on trying by itself
                self._send_commits(reader)
        finally:
            reader.close()

    def _send_commits(self, reader: TopicReader) -> None:
        while not self._commits.empty():
            turn, offset, metadata, done = self._commits.get()
            if not done.set_running_or_notify_cancel():
                continue
            if self._turn is None or self._turn != turn:
                # Without a turn, the client would commit as one that is no member. In a later
                # turn, it would take back what another member has committed in between.
                done.set_exception(self._has_no_turn())
                continue
            reader.send_commit(self._partition.partition, offset, metadata, partial(_finish, done))

    def _has_no_turn(self) -> TransientError:
        return TransientError(
            f"this node has no turn in the group {self._source.sid}, or another one by now"
        ).at(**self._where())

    def _is_no_member(self) -> TransientError:
        return TransientError(f"this node is no member of the group {self._source.sid}").at(
            **self._where()
        )

    def assigned(self, partitions: set[TopicPartition]) -> None:
        """The group has dealt its partitions out; these are this member's."""
        with self._changed:
            self._assigned = True
            if self._partition not in partitions:
                return
            if self._turn is None:
                self._turns += 1
                self._turn = self._turns
                _LOG.info(
                    "the group %s gives %s[%d] to this node",
                    self._source.sid,
                    *self._partition,
                )
            self._changed.notify_all()

    def revoked(self, reason: str) -> None:
        """This member has no partition any more."""
        with self._changed:
            self._end_turn(reason)

    def _end_turn(self, reason: str) -> None:
        if self._turn is not None:
            self._turn = None
            _LOG.info("%s[%d] is not read any more: %s", *self._partition, reason)
            self._changed.notify_all()

    def _where(self) -> dict[str, object]:
        return {
            "brokers": ",".join(self._source.brokers),
            "topic": self._source.topic,
            "group": self._source.sid,
        }


def _finish(done: Future[None], error: SetlError | None) -> None:
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
