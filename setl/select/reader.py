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

After an error of loading, `finish` the batch with it, or `rollback`, and go on. After one of
`next_batch`, `stop`, look where to go on, and `start` again. Batches that were taken before and
are still loading have to end first, or be cancelled: their acks are refused from then on.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from setl.clock import Clock, SystemClock
from setl.errors import FatalError, TransientError
from setl.model.batch import Batch, BatchTermin
from setl.model.checkpoint import Checkpoint
from setl.select.batching import BatchAssembler
from setl.select.key_turns import KeyTurns
from setl.select.reading import Counters, Reading, SelectSettings
from setl.select.source import Blocked, Source
from setl.select.unacked import AbsorbsHeartbeats, UnackedBatches

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SelectStatus:
    """What a `SelectLoop` has done, as one consistent picture.

    Attributes:
        state: ``stopped``, ``reading``, or ``failed`` until `stop`.
        generation: how often reading began, counting the start and each rollback.
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
        blocked_seconds: time spent waiting for room in the window.
        timestamp: commit time at the source of what was read last, seconds since 1970.
        error: why reading failed, else "".
        waiting_for: what the source waits for before it can deliver, else "".
        blocked: why the source delivers nothing although there is more, None normally.
        shared: whether the source is read on a connection that other pipelines read, too.
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
    blocked_seconds: float
    timestamp: float
    error: str
    waiting_for: str = ""
    blocked: Blocked | None = None
    buffered_bytes: int = 0
    buffer_bytes: int = 0
    held_back: bool = False
    shared: bool = False


class SelectLoop:
    """Reads a source in a thread of its own and hands out batches until their termin.

    Every start and every rollback begins a generation with a thread, an assembler and a queue
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
        turns: KeyTurns | None = None,
    ) -> None:
        """Nothing is read before `start`.

        Args:
            source: what to read; closed by `stop`, and by whatever ends reading.
            settings: batches, window and limits.
            epoch: the leadership on whose behalf batches are selected.
            name: the pipeline, for thread names and messages.
            clock: for batch times.
            turns: see `BatchAssembler`.
        """
        self._source = source
        self._settings = settings
        self._epoch = epoch
        self._name = name
        self._clock = clock or SystemClock()
        self._turns = turns
        self._lock = threading.RLock()
        self._counters = Counters()
        self._reading: Reading | None = None
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

    def next_batch(self, timeout: float, absorber: AbsorbsHeartbeats | None = None) -> Batch | None:
        """The next batch, waiting up to `timeout` seconds; None if there is none yet.

        Args:
            timeout: seconds to wait.
            absorber: does meanwhile what there is to do with heartbeats.

        Raises:
            SetlError: reading failed, and all batches read before that were handed out. It is
                raised again by every call until reading restarts.
        """
        reading = self._reading
        if reading is None:
            raise FatalError("nothing is read: not started, or stopped", pipeline=self._name)
        return reading.batches.take(timeout, absorber)

    def complete_so_far(self, rows: int) -> Batch | None:
        """What could join the batches that were taken and are not acked: all complete transactions.

        While a load runs, one batch waits for it to end, and all that comes meanwhile is in the
        open one. Without this, the open one would be loaded after the one that waits, which takes
        as long as what came meanwhile has waited already.

        Args:
            rows: of the load that is to begin. Where it is as large as a batch may be, loading is
                behind, and the open batch becomes a full one.

        Returns:
            None if there are none, or `next_batch` has something.
        """
        reading = self._reading
        if reading is None or rows >= self._settings.batch.rows:
            return None
        return reading.take_complete()

    def wake(self) -> None:
        """Let a `next_batch` that waits return now, or the next one that would. From any thread."""
        reading = self._reading
        if reading is not None:
            reading.batches.wake()

    def ack(self, batch: Batch) -> Checkpoint:
        """A batch was applied and its checkpoint stored; see `finish`."""
        return self.finish(BatchTermin(batch.id, batch.epoch))

    def finish(self, termin: BatchTermin) -> Checkpoint:
        """Take in the outcome of the oldest unacked batch (I6).

        A rollback gives up everything unacked and reads again from the last acked checkpoint.

        Returns:
            The last acked checkpoint.

        Raises:
            FatalError: it is not the oldest batch, such as one read before a rollback.
            FencedError: it is of another epoch.
            TransientError: after a rollback, reading could not be begun again.
        """
        with self._lock:
            if self._reading is None:
                raise FatalError("a termin came while nothing is read", pipeline=self._name)
            acked = self._reading.batches.finish(termin)
            if termin.error is not None:
                self._read_again(acked)
            return acked

    def rollback(self) -> Checkpoint:
        """Give up everything unacked, whatever is loading, and read again from the last ack (I6).

        Returns:
            The last acked checkpoint, where reading restarts.

        Raises:
            TransientError: the reading thread did not end in time; try again.
        """
        with self._lock:
            if self._reading is None:
                raise FatalError("a rollback came while nothing is read", pipeline=self._name)
            acked = self._reading.batches.close()
            self._read_again(acked)
            return acked

    def stop(self) -> None:
        """End reading, close the source, give everything unacked up. Safe to call twice."""
        with self._lock:
            try:
                self._end()
            except TransientError as error:
                # The thread is a daemon and its queue is closed: it can do no harm.
                _LOG.warning("%s", error)
            self._reading = None

    @property
    def unacked(self) -> int:
        """How many batches are without a termin; `status` tells more, and costs more."""
        reading = self._reading
        return len(reading.batches) if reading else 0

    def status(self) -> SelectStatus:
        """What was done so far, and what is the matter now."""
        reading, done = self._reading, self._counters
        error = reading.batches.error if reading else None
        if reading is None:
            state = "stopped"
        elif error is not None:
            state = "failed"
        else:
            state = "reading"
        return SelectStatus(
            state=state,
            generation=self._generation,
            entries=done.entries,
            rows=done.rows,
            bytes=done.bytes,
            batches=done.batches,
            unacked=self.unacked,
            waiting=reading.batches.waiting if reading else 0,
            behind=self._behind(reading),
            blocked_seconds=done.blocked,
            timestamp=done.timestamp,
            error=str(error or ""),
            waiting_for=self._source.waiting_for() if reading else "",
            blocked=self._source.blocked() if reading else None,
            buffered_bytes=reading.batches.size if reading else 0,
            buffer_bytes=self._settings.buffer_bytes,
            held_back=reading is not None and reading.held_back,
            shared=reading is not None and self._source.shared(),
        )

    def _behind(self, reading: Reading | None) -> int | None:
        unread = self._source.behind()
        return None if unread is None or reading is None else unread + reading.batches.entries

    def _read_again(self, checkpoint: Checkpoint) -> None:
        self._end()
        self._begin(checkpoint)

    def _begin(self, checkpoint: Checkpoint) -> None:
        self._generation += 1
        self._reading = Reading(
            self._source,
            UnackedBatches(
                self._epoch, checkpoint, self._settings.window, self._settings.buffer_bytes
            ),
            BatchAssembler(
                self._epoch,
                checkpoint,
                self._settings.batch,
                self._clock,
                first_id=self._next_id,
                turns=self._turns,
            ),
            settings=self._settings,
            counters=self._counters,
            clock=self._clock,
        )
        self._reading.begin(checkpoint, f"select-{self._name}-{self._generation}")

    def _end(self) -> None:
        if self._reading is not None:
            self._reading.end(self._name)
            self._next_id = self._reading.assembler.next_id
