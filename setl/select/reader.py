"""Select at work: a thread that reads a source and hands batches on until their termin.

How a pipeline uses it::

    loop = SelectLoop(source, settings, epoch=epoch, name="shop/orders")
    loop.start(checkpoint)                    # returns at once; a thread opens the source
    while leading:
        batch = loop.next_batch(timeout=0.5)  # None: nothing yet; raises what reading raised
        ...                                   # extract, transform, load: several at a time
        store.store(batch.checkpoint, epoch)  # when Load has committed, in batch order
        loop.ack(batch)
    loop.stop()

After any error, from `next_batch` or from loading, either `rollback` or `rewind` and go on, or
`stop`. Batches that were taken before and are still loading have to end first, or be
cancelled: their acks are refused from then on.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from setl.clock import Clock, SystemClock
from setl.errors import FatalError, SetlError, TransientError
from setl.model.batch import Batch, BatchTermin
from setl.model.checkpoint import Checkpoint
from setl.select.batching import BatchAssembler
from setl.select.reading import Counters, Reading, SelectSettings
from setl.select.source import Source
from setl.select.unacked import UnackedBatches

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SelectStatus:
    """What a `SelectLoop` has done, as one consistent picture.

    Attributes:
        state: ``stopped``, ``reading``, ``paused``, or ``failed`` until the next rewind.
        generation: how often reading began, counting the start and each rewind.
        entries: entries read since `start`, those read again included.
        rows: row changes among them.
        bytes: bytes of their payloads.
        batches: batches closed.
        unacked: batches without a termin, taken or not.
        waiting: those of them that nobody has taken.
        buffered_bytes: bytes of payload in batches without a termin.
        buffer_bytes: how many these may be.
        held_back: whether a batch waits for room among them, so that nothing is read.
        behind: records from the last acknowledged one to the end of the stream, as its last
            answer told; None if the source does not tell.
        idle_seconds: time spent waiting for the source.
        blocked_seconds: time spent waiting for room in the window.
        timestamp: commit time at the source of what was read last, seconds since 1970.
        error: why reading failed, else "".
        waiting_for: what the source waits for before it can deliver, else "".
    """

    state: str
    generation: int
    entries: int
    rows: int
    bytes: int
    batches: int
    unacked: int
    waiting: int
    behind: int | None
    idle_seconds: float
    blocked_seconds: float
    timestamp: float
    error: str
    waiting_for: str = ""
    buffered_bytes: int = 0
    buffer_bytes: int = 0
    held_back: bool = False


class SelectLoop:
    """Reads a source in a thread of its own and hands out batches until their termin.

    Every start and every rewind begins a generation with a thread, an assembler and a queue
    of its own. A batch that an older generation read is in a queue that nobody looks at any
    more, so it cannot slip through afterwards. Batch ids go on counting.

    Thread-safe: batches may be taken, acked and rolled back from different threads.
    """

    def __init__(
        self,
        source: Source,
        settings: SelectSettings,
        *,
        epoch: int,
        name: str,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is read before `start`.

        Args:
            source: what to read; closed by `stop`, and by whatever ends reading.
            settings: batches, window and limits.
            epoch: the leadership on whose behalf batches are selected.
            name: the pipeline, for thread names and messages.
            clock: for batch times.
        """
        self._source = source
        self._settings = settings
        self._epoch = epoch
        self._name = name
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._counters = Counters()
        self._reading: Reading | None = None
        self._running = threading.Event()
        self._running.set()
        self._generation = 0
        self._next_id = 1

    def start(self, checkpoint: Checkpoint) -> None:
        """Begin to read at `checkpoint.resume`, in the background.

        Rows that the checkpoint covers are read and handed on too; Extract drops them with
        `Checkpoint.covers`. Errors of opening come out of `next_batch`.
        """
        with self._lock:
            if self._reading is not None:
                raise FatalError("reading was started twice", pipeline=self._name)
            self._begin(checkpoint)

    def next_batch(self, timeout: float) -> Batch | None:
        """The next batch, waiting up to `timeout` seconds; None if there is none yet.

        Raises:
            SetlError: reading failed, and all batches read before that were handed out. It is
                raised again by every call until `rollback` or `rewind`.
        """
        reading = self._reading
        if reading is None:
            raise FatalError("nothing is read: not started, or stopped", pipeline=self._name)
        return reading.batches.take(timeout)

    def ack(self, batch: Batch) -> Checkpoint:
        """A batch was applied and its checkpoint stored; see `settle`."""
        return self.settle(BatchTermin(batch.id, batch.epoch))

    def settle(self, termin: BatchTermin) -> Checkpoint:
        """Take in the outcome of the oldest unacked batch; a rollback also reads again.

        Returns:
            The last acked checkpoint.

        Raises:
            FatalError: it is not the oldest batch, such as one read before a rewind.
            FencedError: it is of another epoch.
            TransientError: after a rollback, reading could not be begun again.
        """
        with self._lock:
            if self._reading is None:
                raise FatalError("a termin came while nothing is read", pipeline=self._name)
            acked = self._reading.batches.settle(termin)
            if termin.error is not None:
                self._rewind(acked, termin.error)
            return acked

    def rollback(self, error: SetlError) -> Checkpoint:
        """Give up everything unacked and read again from the last acked checkpoint (I6).

        Args:
            error: why, for the log.

        Returns:
            Where reading begins again.

        Raises:
            TransientError: the reading thread did not end in time; try again.
        """
        with self._lock:
            if self._reading is None:
                raise FatalError("a rollback came while nothing is read", pipeline=self._name)
            acked = self._reading.batches.close()
            self._rewind(acked, error)
            return acked

    def rewind(self, checkpoint: Checkpoint) -> None:
        """Give up everything unacked and read again from a checkpoint of the caller's choice.

        For a checkpoint store whose answer was lost (load it again and go there), and for an
        operator who moves the position.

        Raises:
            TransientError: the reading thread did not end in time; try again.
        """
        with self._lock:
            self._rewind(checkpoint, None)

    def pause(self) -> None:
        """Stop reading and keep the place. Batches already read can still be taken and acked.

        A server may drop a connection that is paused for long; then `next_batch` raises a
        TransientError after `resume`, and a rollback goes on from the last ack.
        """
        self._running.clear()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._running.set()

    def stop(self) -> None:
        """End reading, close the source, give everything unacked up. Safe to call twice."""
        with self._lock:
            try:
                self._end()
            except TransientError as error:
                # The thread is a daemon and its queue is closed: it can do no harm.
                _LOG.warning("%s", error)
            self._reading = None

    def status(self) -> SelectStatus:
        """What was done so far, and what is the matter now."""
        reading, done = self._reading, self._counters
        error = reading.batches.error if reading else None
        if reading is None:
            state = "stopped"
        elif error is not None:
            state = "failed"
        else:
            state = "reading" if self._running.is_set() else "paused"
        return SelectStatus(
            state=state,
            generation=self._generation,
            entries=done.entries,
            rows=done.rows,
            bytes=done.bytes,
            batches=done.batches,
            unacked=len(reading.batches) if reading else 0,
            waiting=reading.batches.waiting if reading else 0,
            behind=self._behind(reading),
            idle_seconds=done.idle,
            blocked_seconds=done.blocked,
            timestamp=done.timestamp,
            error=str(error or ""),
            waiting_for=self._source.waiting_for() if reading else "",
            buffered_bytes=reading.batches.size if reading else 0,
            buffer_bytes=self._settings.buffer_bytes,
            held_back=reading is not None and reading.held_back,
        )

    def _behind(self, reading: Reading | None) -> int | None:
        unread = self._source.behind()
        return None if unread is None or reading is None else unread + reading.batches.entries

    def _rewind(self, checkpoint: Checkpoint, reason: SetlError | None) -> None:
        self._end()
        _LOG.info(
            "%s: reading again from %s%s", self._name, checkpoint, f": {reason}" if reason else ""
        )
        self._begin(checkpoint)

    def _begin(self, checkpoint: Checkpoint) -> None:
        self._generation += 1
        self._reading = Reading(
            self._source,
            UnackedBatches(
                self._epoch, checkpoint, self._settings.window, self._settings.buffer_bytes
            ),
            BatchAssembler(
                self._epoch, checkpoint, self._settings.batch, self._clock, first_id=self._next_id
            ),
            settings=self._settings,
            counters=self._counters,
            running=self._running,
            clock=self._clock,
        )
        self._reading.begin(checkpoint, f"select-{self._name}-{self._generation}")

    def _end(self) -> None:
        if self._reading is not None:
            self._reading.end(self._name)
            self._next_id = self._reading.assembler.next_id
