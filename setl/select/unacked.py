"""The batches that were selected and whose outcome is not known yet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from setl.errors import FatalError, FencedError, SetlError
from setl.model.batch import Batch, BatchTermin
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry


class AbsorbsHeartbeats(Protocol):
    """Does with a batch of heartbeats what whoever waits for batches would do with it.

    Called by the thread that reads, while the other one waits, and goes on waiting: many quiet
    pipelines would wake up a thread each for every heartbeat. Must not block.
    """

    def absorbs(self, entries: Sequence[Entry]) -> bool:
        """Whether nothing is to be applied of whole transactions."""
        ...

    def absorbed(self, batch: Batch) -> None:
        """They came, in a batch, and count as acknowledged; raises what they are damaged by."""
        ...


class UnackedBatches:
    """Keeps each batch, in order, until its termin (I6).

    Reading offers batches at one end, loading takes them at the other; a batch that was
    taken stays here until it is acked, so that a rollback knows all there is to give up.
    Thread-safe. `offer` blocks while `window` batches are unacked, or while they hold
    `buffer_bytes`: this is what slows the source down when the target is slow. Of batches that
    repeat what was applied before, there may be more.
    """

    def __init__(self, epoch: int, start: Checkpoint, window: int, buffer_bytes: int) -> None:
        """An empty queue.

        Args:
            epoch: the leadership whose batches and termins are accepted.
            start: where reading begins; a rollback before the first ack goes back to it.
            window: how many batches may be unacked at a time, at least 1.
            buffer_bytes: bytes of payload that they may hold together; a batch that is larger by
                itself comes in alone.
        """
        self._epoch = epoch
        self._acked = start
        self._window = max(1, window)
        self._buffer_bytes = buffer_bytes
        self._batches: deque[Batch] = deque()
        self._size = 0
        self._taken = 0
        self._closed = False
        self._woken = False
        self._error: SetlError | None = None
        self._absorber: AbsorbsHeartbeats | None = None  # of the one who waits
        self._changed = threading.Condition()

    def __len__(self) -> int:
        """How many batches are unacked, taken or not."""
        return len(self._batches)

    @property
    def entries(self) -> int:
        """How many entries are in them."""
        with self._changed:
            return sum(len(batch.entries) for batch in self._batches)

    @property
    def size(self) -> int:
        """Bytes of payload that they hold."""
        return self._size

    @property
    def waiting(self) -> int:
        """How many batches nobody has taken yet."""
        with self._changed:
            return len(self._batches) - self._taken

    @property
    def acked(self) -> Checkpoint:
        """The checkpoint of the last acked batch, or where reading began."""
        with self._changed:
            return self._acked

    @property
    def error(self) -> SetlError | None:
        """Why no further batches come, None while they may."""
        return self._error

    def offer(self, batch: Batch, timeout: float) -> bool:
        """Add a batch, waiting up to `timeout` seconds for room.

        Returns:
            Whether it was added; False when there is no room, or when this is closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room(batch.size), timeout)
            if self._closed or not self._has_room(batch.size):
                return False
            self._batches.append(batch)
            self._size += batch.size
            self._changed.notify_all()
            return True

    def take_also(self, size: int, batch: Callable[[], Batch | None]) -> Batch | None:
        """Take what comes behind all that was taken and is not acked; never waits.

        Args:
            size: bytes of payload that it has at most.
            batch: closes the batch that it is, if it is one.

        Returns:
            None if nothing was taken before it, something else is to be taken first, or there is
            no room.
        """
        with self._changed:
            if not self._batches or self._has_heartbeat_to_report() or not self._has_room(size):
                return None
            found = batch()
            if found is not None:
                self._batches.append(found)
                self._size += found.size
                self._taken += 1
            return found

    def _has_room(self, size: int) -> bool:
        if not self._batches:
            return True
        if self._size + size > self._buffer_bytes:
            return False
        # What was applied before is loaded together, with the batch in which it ends.
        return len(self._batches) < self._window or self._batches[-1].checkpoint.repeats

    def fail(self, error: SetlError) -> None:
        """Say that no batch comes after those offered so far, and why.

        After `close` too, if nobody can go on instead.
        """
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def absorb(self, entries: Sequence[Entry], batch: Callable[[], Batch]) -> bool:
        """Let whole transactions are absorbed whoever waits, as an acked batch; whether they did.

        Args:
            entries: what was read after the last batch.
            batch: closes the batch that they are, if they pass.
        """
        with self._changed:
            absorber = self._absorber
            # What was applied before comes in one load, heartbeats in between or not.
            if (
                absorber is None
                or self._has_heartbeat_to_report()
                or self._batches
                or self._acked.repeats
            ):
                return False
            if not absorber.absorbs(entries):
                return False
            passed = batch()
            absorber.absorbed(passed)
            self._acked = passed.checkpoint
            return True

    def take(self, timeout: float, absorber: AbsorbsHeartbeats | None = None) -> Batch | None:
        """The next batch that nobody has taken, waiting up to `timeout` seconds for one.

        Args:
            timeout: seconds to wait.
            absorber: does meanwhile what there is to do with heartbeats.

        Raises:
            SetlError: what `fail` was given, once all batches before it are taken; again on
                every further call, so that it cannot be missed.
        """
        with self._changed:
            self._absorber = absorber
            self._changed.wait_for(self._has_heartbeat_to_report, timeout)
            self._absorber, self._woken = None, False
            if len(self._batches) > self._taken:
                self._taken += 1
                return self._batches[self._taken - 1]
            if self._error is not None:
                raise self._error
            return None

    def _has_heartbeat_to_report(self) -> bool:
        """Whether `take` has something to say."""
        waits = len(self._batches) > self._taken
        return waits or self._closed or self._woken or self._error is not None

    def wake(self) -> None:
        """Let a `take` that waits return now, or the next one that would wait."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def finish(self, termin: BatchTermin) -> Checkpoint:
        """Take in the outcome of the oldest batch.

        An ack releases it and makes its checkpoint the last acked one. A rollback gives up
        everything that is unacked, and closes this queue: whoever reads for it must stop.

        Returns:
            The last acked checkpoint; after a rollback, this is where to read again from.

        Raises:
            FencedError: the termin is of another epoch.
            FatalError: it is not for the oldest batch, or for one that was not taken.
        """
        with self._changed:
            if termin.epoch != self._epoch:
                raise FencedError(
                    f"a termin of epoch {termin.epoch} came for batches of epoch {self._epoch}",
                    batch=termin.batch_id,
                )
            oldest = self._batches[0].id if self._batches else None
            if oldest != termin.batch_id or not self._taken:
                expected = "none is loading" if not self._taken else f"batch {oldest} is next"
                raise FatalError(
                    f"a termin came out of order for batch {termin.batch_id}: {expected}",
                    hint="Batches end in the order in which they were selected; this is a defect",
                    epoch=self._epoch,
                )
            if not termin.acked:
                return self._clear()
            oldest_batch = self._batches.popleft()
            self._acked = oldest_batch.checkpoint
            self._size -= oldest_batch.size
            self._taken -= 1
            self._changed.notify_all()
            return self._acked

    def close(self) -> Checkpoint:
        """Give everything unacked up and wake whoever waits. May be called twice.

        Returns:
            The last acked checkpoint.
        """
        with self._changed:
            return self._clear()

    def _clear(self) -> Checkpoint:
        self._closed = True
        self._error = None
        self._batches.clear()
        self._size = self._taken = 0
        self._changed.notify_all()
        return self._acked
