"""One generation of reading: the thread between a source and a queue of batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from setl.clock import Clock
from setl.errors import FatalError, SetlError, TransientError
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry
from setl.select.batching import BatchAssembler, BatchSettings
from setl.select.source import Source
from setl.select.unacked import UnackedBatches

_STEP = 0.25  # seconds after which a waiting thread looks at its flags again
# Seconds one read may wait on an idle source: longer than from one heartbeat to the next, as sixty
# quiet pipelines need not wake up in between as well.
_IDLE = 10.0
_LEAST_WAIT = 0.005  # seconds of a read, even where `wait` is 0
_TURN = 0.005  # seconds to wait for the other thread to have cut a batch

_entry_rows = attrgetter("rows")
_entry_payload = attrgetter("payload")


@dataclass(frozen=True, slots=True)
class SelectSettings:
    """How a `SelectLoop` works.

    Attributes:
        batch: when a batch is closed.
        window: batches selected but not yet acknowledged.
        buffer_bytes: bytes of payload that these may hold (I20).
        read_entries: entries that one read of the source may return.
        stop_timeout: seconds that the reading thread may take to end.
    """

    batch: BatchSettings = field(default_factory=BatchSettings)
    window: int = 4
    buffer_bytes: int = 128 * 1024 * 1024
    read_entries: int = 4096
    stop_timeout: float = 15.0


class Counters:
    """Written by the reading thread alone, once for each read or batch; read by anyone."""

    __slots__ = ("batches", "blocked", "bytes", "entries", "rows", "timestamp")

    def __init__(self) -> None:
        self.entries = self.rows = self.bytes = self.batches = 0
        self.blocked = self.timestamp = 0.0

    def count(self, entries: Sequence[Entry]) -> None:
        """Entries were read."""
        self.entries += len(entries)
        self.rows += sum(map(_entry_rows, entries))
        self.bytes += sum(map(len, map(_entry_payload, entries)))
        self.timestamp = max(self.timestamp, entries[-1].timestamp)


class Reading:
    """One generation of reading. Begun once, ended once."""

    def __init__(
        self,
        source: Source,
        batches: UnackedBatches,
        assembler: BatchAssembler,
        *,
        settings: SelectSettings,
        counters: Counters,
        clock: Clock,
    ) -> None:
        self.batches = batches
        self.assembler = assembler
        self._source = source
        self._settings = settings
        self._counters = counters
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        # Who takes batches may cut the open one, too. Only while no other is between being cut and
        # being offered, for batches are in order.
        self._cutting = threading.Lock()
        self._offering = False
        self.held_back = False  # whether a batch waits for room

    def begin(self, checkpoint: Checkpoint, name: str) -> None:
        """Open the source at a checkpoint and read on, in a thread with this name."""
        self._thread = threading.Thread(
            target=self._run, args=(checkpoint,), name=name, daemon=True
        )
        self._thread.start()

    def end(self, name: str) -> None:
        """Close queue and source and wait for the thread; may be called again.

        Raises:
            TransientError: the thread did not end in time.
        """
        self._stop.set()
        self.batches.close()
        # Unblocks a read; the thread then sees the flag and closes again what it may have
        # opened in between.
        self._source.close()
        if self._thread is not None:
            self._thread.join(self._settings.stop_timeout)
            if self._thread.is_alive():
                error = TransientError(
                    f"reading the source does not end within {self._settings.stop_timeout:g} s",
                    hint="The source does not answer, not even to being closed",
                    pipeline=name,
                )
                self.batches.fail(error)
                raise error

    def _run(self, checkpoint: Checkpoint) -> None:
        try:
            self._read_from(checkpoint)
        except SetlError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - handed to whoever takes batches
            failure = FatalError(f"reading failed in an unforeseen way: {error!r}")
            failure.__cause__ = error
            self._fail(failure)
        finally:
            self._source.close()

    def _read_from(self, checkpoint: Checkpoint) -> None:
        source, assembler, done = self._source, self.assembler, self._counters
        limit, wait = self._settings.read_entries, self._settings.batch.wait
        source.open(checkpoint.resume)
        while not self._stop.is_set():
            remaining = assembler.remaining()
            # A batch whose time is up but which is held back must not make this loop spin.
            timeout = _IDLE if remaining is None else max(remaining or wait, _LEAST_WAIT)
            entries = source.read(limit, min(timeout, _IDLE), self._absorb)
            if entries and not self._absorb(entries):
                done.count(entries)
                self._offer_all(partial(assembler.add, entries))
            # While a batch waits to be taken, another small one behind it would gain nothing:
            # the open batch grows instead, and a target that is behind gets full batches.
            self._offer_all(self._due)

    def _due(self) -> Sequence[Batch]:
        return () if self.batches.waiting else _all(self.assembler.take_due())

    def take_complete(self) -> Batch | None:
        """Take the complete transactions of the open batch; for whoever has taken all before them.

        Returns:
            None if there are none, or batches before them are still to be taken.
        """
        if not self._cutting.acquire(timeout=_TURN):
            return None
        try:
            if self._offering:
                return None
            batch = self.batches.take_also(self.assembler.size, self.assembler.take_complete)
            if batch is not None:
                self._counters.batches += 1
            return batch
        finally:
            self._cutting.release()

    def _absorb(self, entries: Sequence[Entry]) -> bool:
        """See `UnackedBatches.absorb`; in whatever thread, while this one reads."""
        assembler = self.assembler
        if not assembler.is_between:
            return False
        passed = self.batches.absorb(entries, lambda: assembler.single_batch(entries))
        if passed:
            self._counters.count(entries)
            self._counters.batches += 1
        return passed

    def _offer_all(self, cut: Callable[[], Sequence[Batch]]) -> None:
        """Offer the batches that are cut now."""
        with self._cutting:
            batches = cut()
            self._offering = bool(batches)
        for batch in batches:
            self._offer(batch)
        self._offering = False

    def _offer(self, batch: Batch) -> None:
        began = self._clock.monotonic()
        while not self._stop.is_set():
            offered = self.batches.offer(batch, _STEP)
            # Counted as it passes: whoever looks while a target is down wants to see it.
            now = self._clock.monotonic()
            self._counters.blocked += now - began
            began = now
            if offered:
                self._counters.batches += 1
                break
            self.held_back = True
        self.held_back = False

    def _fail(self, error: SetlError) -> None:
        if self._stop.is_set():
            return  # being closed from outside looks like a lost connection from inside
        self._offer_all(lambda: _all(self.assembler.flush()))
        self.batches.fail(error)


def _all(batch: Batch | None) -> Sequence[Batch]:
    return () if batch is None else (batch,)
