"""Cuts the stream of entries into batches. No threads, no connections, no waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from setl.clock import Clock
from setl.model.batch import Batch
from setl.model.checkpoint import Checkpoint, CheckpointTracker
from setl.model.entry import Entry, EntryKind
from setl.select.key_turns import KeyTurns, Turn

_ROWS, _COMMIT, _BEGIN, _HEARTBEAT, _STATEMENT = (
    EntryKind.ROWS,
    EntryKind.COMMIT,
    EntryKind.BEGIN,
    EntryKind.HEARTBEAT,
    EntryKind.STATEMENT,
)

_NO_TABLES = frozenset[tuple[str, str]]()
_SLACK = 1.25  # how far beyond its limit a batch may go to end with a transaction
_ENTRIES_PER_ROW = 4  # a one-row transaction is three entries: begin, row, commit
_GROWTH = 4  # times of what all batches had, as much as the next one after a start
_PATIENCE = 25  # times `wait`, for the rest of a transaction that is still arriving


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """When a batch is closed.

    Attributes:
        rows: at this many rows.
        bytes: at this many bytes of payload, whatever its rows.
        wait: this many seconds after its first entry came, or after the batch before it.
        first_rows: after a start at this many rows, if that is less, or at four times as many as
            all batches had by then. The first rows of a take-over are to be applied soon (I4), and
            the first batches may be hardly more than a heartbeat.
    """

    rows: int = 10_000
    bytes: int = 32 * 1024 * 1024
    wait: float = 0.02
    first_rows: int = 1_000


class _Extent(NamedTuple):
    """How much something holds."""

    entries: int = 0
    rows: int = 0
    size: int = 0

    def exceeds(self, most: _Extent) -> bool:
        return self.rows > most.rows or self.size > most.size or self.entries > most.entries


_NOTHING = _Extent()


class BatchAssembler:
    """Takes entries in source order and gives them out as batches.

    A batch ends where a transaction ends, whenever that is possible:

    - At its limit it waits for the end of the transaction that is open, for up to a quarter
      more than the limit. If the end does not come by then, the batch ends before that
      transaction, which begins the next one.
    - A transaction that fills a batch alone is cut there, and at the limit from then on; the
      checkpoint says how far inside it the pipeline is (I7).
    - When the time is up, the complete transactions go. One that is still arriving is given
      25 times as long, since sources write a transaction at once when it commits.
    - Transactions that come after a pause, and are complete, do not wait at all: the time is
      counted from the batch before them. So there are no more batches than otherwise.

    A DDL entry ends the batch before it and is alone in its own (I16). Actions of foreign keys
    have batches of their own, too, see `setl.select.key_turns`. Entries without rows count too,
    four for a row, so that a stream of empty transactions does not pile up.
    """

    def __init__(
        self,
        epoch: int,
        start: Checkpoint,
        settings: BatchSettings,
        clock: Clock,
        *,
        first_id: int = 1,
        turns: KeyTurns | None = None,
    ) -> None:
        """Begin at a checkpoint.

        Args:
            epoch: the leadership on whose behalf batches are selected.
            start: where reading starts; its `resume` is where the source was opened.
            settings: when to close a batch.
            clock: for `settings.wait`.
            first_id: id of the first batch. A rewind goes on counting, so that no two
                batches of an epoch have the same id.
            turns: tells of actions of foreign keys; None if there are none.
        """
        self._turns = turns
        self._turn: Turn | None = None  # what the open batch does to tables with such keys
        self._coming = deque[Turn]()  # of the entries that are about to be added
        self._epoch = epoch
        self._clock = clock
        self._wait = settings.wait
        self._next_id = first_id
        self._tracker = CheckpointTracker(start)
        self._settings = settings
        self._limit = self._most = _NOTHING
        self._rows = 0  # in all batches until now
        self._allow()
        self._entries: list[Entry] = []
        self._open = _NOTHING
        self._whole = _NOTHING  # the part of the open batch up to its last transaction end
        self._inside: bool = False
        self._cut: bool = False  # the open batch begins with the rest of a transaction
        self._since = 0.0  # when the first entry of the open batch came
        self._whole_at = 0.0  # when its last transaction end came
        self._closed_at = clock.monotonic()  # when the batch before it was closed

    def _allow(self) -> None:
        """Set the rows at which batches are closed from now on."""
        settings = self._settings
        rows = min(settings.rows, max(settings.first_rows, _GROWTH * self._rows))
        if rows == self._limit.rows:
            return
        self._limit = _Extent(rows * _ENTRIES_PER_ROW, rows, self._settings.bytes)
        self._most = _Extent(*(int(part * _SLACK) for part in self._limit))

    @property
    def next_id(self) -> int:
        """The id that the next batch will have."""
        return self._next_id

    @property
    def is_between(self) -> bool:
        """Whether no batch and no transaction is open."""
        return not (self._entries or self._inside)

    def single_batch(self, entries: Sequence[Entry]) -> Batch:
        """A batch of whole transactions that come between two batches, whatever its limits."""
        self._since = self._clock.monotonic()
        self._cut = False
        rows = sum([entry.rows for entry in entries])
        size = sum([len(entry.payload) for entry in entries])
        return self._batch(list(entries), _Extent(len(entries), rows, size))

    def add(self, entries: Sequence[Entry]) -> list[Batch]:
        """Take entries in; returns the batches that they completed, in order."""
        now = self._clock.monotonic()
        if not self._entries:
            self._since = now
        closed: list[Batch] = []
        # This loop sees every record of the source. The counts live in local names and are
        # written back before a method looks at them: attribute stores would double its cost.
        batch, inside = self._entries, self._inside
        _, rows, size = self._open
        entries_limit, rows_limit, size_limit = self._limit
        entries, related = self._with_turns(entries)
        for entry in entries:
            kind = entry.kind
            if kind is _ROWS:
                if related and (entry.schema, entry.table) in related and self._ends_before():
                    self._open, self._inside = _Extent(len(batch), rows, size), inside
                    closed.append(self._close_at_turn(now))
                    batch, rows, size = self._entries, 0, 0
                    entries_limit, rows_limit, size_limit = self._limit
                inside = True
            elif kind is _BEGIN:
                if inside:
                    self._mark_whole(_Extent(len(batch), rows, size), now)
                inside = True
            elif kind is _COMMIT or (kind is _HEARTBEAT and not inside):
                inside = False
                self._mark_whole(
                    _Extent(len(batch) + 1, rows + entry.rows, size + len(entry.payload)), now
                )
            elif kind is _STATEMENT:
                inside = True
                size += len(entry.statement)
            elif kind is not _HEARTBEAT:
                self._open = _Extent(len(batch), rows, size)
                self._ddl(entry, closed, now)
                batch, rows, size, inside = self._entries, 0, 0, False
                continue
            batch.append(entry)
            rows += entry.rows
            size += len(entry.payload)
            if rows >= rows_limit or size >= size_limit or len(batch) >= entries_limit:
                self._open, self._inside = _Extent(len(batch), rows, size), inside
                self._full(closed, now)
                batch, (_, rows, size) = self._entries, self._open
                entries_limit, rows_limit, size_limit = self._limit
        self._open, self._inside = _Extent(len(batch), rows, size), inside
        return closed

    def _with_turns(
        self, entries: Sequence[Entry]
    ) -> tuple[Sequence[Entry], frozenset[tuple[str, str]]]:
        """The entries, those of related tables in parts whose turns are noted; and these tables."""
        related = _NO_TABLES if self._turns is None else self._turns.tables
        if self._turns is None or not related:
            return entries, _NO_TABLES
        found: list[Entry] = []
        for entry in entries:
            if entry.kind is not _ROWS or (entry.schema, entry.table) not in related:
                found.append(entry)
                continue
            for part, turn in self._turns.divided(entry):
                self._coming.append(turn)
                found.append(part)
        return found, related

    def _ends_before(self) -> bool:
        """Whether the open batch has to end before the next entry of a related table.

        If not, it is in the open batch from now on.
        """
        turn = self._coming[0]
        if not turn.follows(self._turn):
            return True
        self._turn = self._coming.popleft().joined(self._turn)
        return False

    def _close_at_turn(self, now: float) -> Batch:
        """Close the open batch; the next entry of a related table begins another one."""
        batch = self._close()
        self._turn = self._coming.popleft()
        self._since = now
        return batch

    def remaining(self) -> float | None:
        """Seconds until `take_due` has something to give; None while there is no open batch."""
        if not self._entries:
            return None
        arriving = self._inside and not self._whole.entries
        if len(self._entries) == self._whole.entries:
            due = min(self._since, self._closed_at) + self._wait
        else:
            due = self._since + self._wait * (_PATIENCE if arriving else 1)
        return max(0.0, due - self._clock.monotonic())

    def take_due(self) -> Batch | None:
        """The open batch, if its time is up; without a transaction that is still arriving."""
        if self.remaining() != 0.0:
            return None
        return self._close_whole() if self._whole.entries else self._close()

    @property
    def size(self) -> int:
        """Bytes of payload in the open batch."""
        return self._open.size

    def take_complete(self) -> Batch | None:
        """The complete transactions of the open batch, however long they waited; None if none."""
        return self._close_whole() if self._whole.entries else None

    def flush(self) -> Batch | None:
        """The complete transactions of the open batch, without waiting for more.

        An incomplete one is forgotten. For the end of a stream that broke: it is read again
        when the source is opened again.
        """
        batch = self._close_whole() if self._whole.entries else None
        self._entries, self._open, self._whole = [], _NOTHING, _NOTHING
        self._turn = None
        return batch

    def _mark_whole(self, extent: _Extent, now: float) -> None:
        self._whole = extent
        self._whole_at = now

    def _ddl(self, entry: Entry, closed: list[Batch], now: float) -> None:
        if self._entries:
            closed.append(self._close())
        self._entries = [entry]
        self._open = _Extent(1, 0, len(entry.payload))
        closed.append(self._close())
        self._cut = self._inside = False
        self._since = now

    def _full(self, closed: list[Batch], now: float) -> None:
        """The open batch is at its limit: close it if this is a good place, or too late."""
        if not self._inside or (self._cut and not self._whole.entries):
            closed.append(self._close())
        elif self._open.exceeds(self._most):
            closed.append(self._close_whole() if self._whole.entries else self._close())
        if not self._entries:
            self._since = now

    def _close_whole(self) -> Batch:
        """Close up to the last transaction end; what follows it becomes the open batch."""
        whole, entries, total = self._whole, self._entries, self._open
        if whole.entries == len(entries):
            return self._close()
        batch = self._batch(entries[: whole.entries], whole)
        self._entries = entries[whole.entries :]
        self._open = _Extent(*(a - b for a, b in zip(total, whole, strict=True)))
        self._whole, self._cut = _NOTHING, False
        self._since = self._whole_at
        return batch

    def _close(self) -> Batch:
        batch = self._batch(self._entries, self._open)
        self._cut = self._inside
        self._entries, self._open, self._whole = [], _NOTHING, _NOTHING
        self._turn = None
        return batch

    def _batch(self, entries: list[Entry], extent: _Extent) -> Batch:
        checkpoint = self._tracker.advance_all(entries)
        self._closed_at = now = self._clock.monotonic()
        batch = Batch(
            self._next_id,
            self._epoch,
            entries,
            checkpoint,
            extent.rows,
            extent.size,
            opened=self._since,
            closed=now,
            acts=self._turn is not None and self._turn.single_batch,
        )
        self._next_id += 1
        self._rows += extent.rows
        self._allow()
        return batch
