"""The checkpoint: everything up to it is applied, and reading goes on from it (I7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from setl.content_shape import shape
from setl.errors import FatalError
from setl.model.entry import Entry, EntryKind
from setl.model.file_count import BY_NUMBER, OFFSET_BITS, FileCount
from setl.model.position import (
    BinlogPosition,
    KafkaPosition,
    Position,
    binlog_file_number,
    document_version,
    files_from,
    next_generation,
    position_from_json,
    position_to_json,
    stored_number,
)
from setl.model.table_load import TableLoad

KnownTargets = tuple[tuple[str, str], ...]
"""Targets with what tells each from another one of its name, see `setl.load.identities`."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a pipeline has applied the stream.

    Reading starts again at `resume`, always a transaction boundary, since marks and table
    maps stand at the front of a transaction. When a transaction was cut into batches and some
    are applied, `applied` says how far: rows up to there are read again for what they say
    about the transaction, but not applied again.

    Attributes:
        resume: where to start reading.
        applied: last applied place inside the transaction that starts at `resume`, or None.
        timestamp: commit time at the source of the last thing applied, seconds since 1970.
        generation: see `setl.model.position.document_version`. It begins with the channel
            file's, and grows with every `moved_to`: by one, or by more where binlog files have
            taken up room above it.
        rows: row changes applied since the pipeline's first start, each counted once however
            often it was delivered. Kept here because counters of a node die with it.
        requested: generation in the channel file when the pipeline last started over; a file
            with a higher one asks to start over again. 0 stands for `generation`, as in
            checkpoints stored before the two could differ.
        repeats: whether what follows, as far as it was committed by `timestamp`, was applied
            before, under a lower generation. The target has its outcome already.
        load: the load of whole tables that goes on alongside the stream, or the last one that did;
            None if there was none.
        targets: the targets that rows were written to, as far as the pipeline keeps that. What is
            not among them is taken as it is found. Of a target with foreign keys, those whose
            actions are carried out, see `KeyAction.id`.
        transaction: GTID of the transaction that `applied` is inside of, "" where there is none,
            in a topic, and in checkpoints stored without it. Another server may lack this
            transaction and have all that is before it. When a position is looked for there, GTIDs
            of all transactions behind `resume` of which the target is known to have something, with
            commas between.
        files: how binlog files are counted in document versions. Those of a pipeline that was
            begun when they were not count by their numbers, as theirs did.
        began: whether a leadership has begun from it, so that the target may have something of
            what follows. Says nothing new where anything was applied.
    """

    resume: Position
    applied: Position | None = None
    timestamp: float = 0.0
    generation: int = 1
    rows: int = 0
    requested: int = 0
    repeats: bool = False
    load: TableLoad | None = None
    targets: KnownTargets = ()
    transaction: str = ""
    files: FileCount = BY_NUMBER

    @classmethod
    def first(cls, position: Position, generation: int) -> Checkpoint:
        """That of a pipeline which begins at a position, as the channel file wants it."""
        return cls(
            position, generation=generation, requested=generation, files=files_from(position)
        )

    def version_of(self, position: Position) -> int:
        """The document version of a position that this leads to, see `document_version`."""
        return document_version(self.generation, position, self.files)

    @property
    def version(self) -> int:
        """The document version of the last position that is applied."""
        return self.version_of(self.applied or self.resume)

    began: bool = False

    @property
    def fresh(self) -> bool:
        """Whether the pipeline begins here as if it never ran."""
        return not (self.rows or self.timestamp or self.applied or self.began)

    def outdated(self, requested: int) -> bool:
        """Whether a channel file with generation `requested` asks to start over."""
        return (self.requested or self.generation) < requested

    def moved_to(self, position: Position, *, exact: bool = False) -> Checkpoint:
        """The checkpoint to go on from another position: one generation up, all else kept.

        A transaction of which a part was applied is applied again from its beginning, since
        the places inside it are other ones now.

        Args:
            position: a transaction boundary.
            exact: whether it is the position of `resume` itself, not one before it.
        """
        return Checkpoint(
            position,
            timestamp=self.timestamp,
            generation=next_generation(self.generation, self.applied or self.resume, self.files),
            rows=self.rows,
            requested=self.requested or self.generation,
            repeats=self.timestamp > 0 and not (exact and self.applied is None),
            load=None if self.load is None else self.load.elsewhere,
            targets=self.targets,
            files=files_from(position),
            began=self.began,
        )

    def counting(self, rows: int, load: TableLoad | None, targets: KnownTargets) -> Checkpoint:
        """The same position, with what a run keeps beside it."""
        # `dataclasses.replace` takes three times as long, and this is done for each heartbeat.
        return Checkpoint(
            self.resume,
            self.applied,
            self.timestamp,
            self.generation,
            rows,
            self.requested,
            self.repeats,
            load,
            targets,
            self.transaction,
            self.files,
            self.began,
        )

    @property
    def order(self) -> tuple[int, tuple[int, int]]:
        """Grows as the pipeline moves on; a store refuses to go below what it holds."""
        furthest = self.applied or self.resume
        return self.generation, furthest.order

    def covers(self, entry: Entry) -> bool:
        """Whether `entry` is already applied, so that reading it again must change nothing."""
        return self.applied is not None and entry.position.order <= self.applied.order

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is its inverse."""
        load = {} if self.load is None else {"load": self.load.to_json()}
        targets = {"targets": [list(pair) for pair in self.targets]} if self.targets else {}
        transaction = {"transaction": self.transaction} if self.transaction else {}
        files = {} if self.files == BY_NUMBER else {"files": self.files.to_json()}
        began = {"began": True} if self.began else {}
        return {
            "version": 1,
            "resume": position_to_json(self.resume),
            "applied": None if self.applied is None else position_to_json(self.applied),
            "timestamp": self.timestamp,
            "generation": self.generation,
            "rows": self.rows,
            "requested": self.requested,
            "repeats": self.repeats,
            **load,
            **targets,
            **transaction,
            **files,
            **began,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Checkpoint:
        """Inverse of `to_json`; raises FatalError for what it did not write."""
        try:
            applied, load, files = value.get("applied"), value.get("load"), value.get("files")
            return cls(
                resume=position_from_json(value.get("resume", {})),
                applied=None if applied is None else position_from_json(applied),
                timestamp=_seconds(value.get("timestamp", 0)),
                generation=stored_number(value.get("generation", 1)),
                rows=stored_number(value.get("rows", 0)),
                requested=stored_number(value.get("requested", 0)),
                repeats=bool(value.get("repeats", False)),
                load=None if load is None else TableLoad.from_json(load),
                targets=tuple((str(name), str(id_)) for name, id_ in value.get("targets", ())),
                transaction=str(value.get("transaction", "")),
                files=FileCount.from_json(files) if files else BY_NUMBER,
                began=bool(value.get("began", False)),
            )
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise FatalError(
                f"not a stored checkpoint: {shape(value)}",
                hint="Reset the position; it was not written by this version of setl",
            ) from error

    def __str__(self) -> str:
        inside = f" (inside a transaction, applied to {self.applied})" if self.applied else ""
        return f"{self.resume}{inside}"


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError(f"not a time: {seconds}")
    return seconds


def check_progress(stored: Checkpoint, new: Checkpoint) -> None:
    """Refuse a checkpoint that would take a store back.

    Positions of two streams cannot be compared: another topic, or a binlog under another
    name. They may follow each other only with a higher generation, which says that it is
    meant: an operator started over, or the source found its position on another server.

    Raises:
        FatalError: `new` lies before `stored`, or belongs to another stream.
    """
    if new.generation > stored.generation:
        return
    if _stream(new.resume) != _stream(stored.resume):
        raise FatalError(
            f"the checkpoint {new} is of another stream than the stored one, {stored}",
            hint="Reset the position, or raise the pipeline's generation if the source is new",
        )
    if new.order < stored.order:
        raise FatalError(
            f"the checkpoint {new} (generation {new.generation}) lies before the stored one, "
            f"{stored} (generation {stored.generation})",
            hint="Reset the position if the pipeline is to go back",
        )


def _stream(position: Position) -> tuple[str, int]:
    if isinstance(position, KafkaPosition):
        return position.topic, position.partition
    return position.file.rpartition(".")[0], 0


_timestamp = attrgetter("timestamp")


class CheckpointTracker:
    """Follows the stream and says, after each entry, which checkpoint it would justify.

    Does not trust that every transaction has both a begin and a commit record: DTS leaves
    some out. Rows outside a transaction open one; a begin inside one closes it.
    """

    def __init__(self, start: Checkpoint) -> None:
        """Start where reading starts, at `start.resume`."""
        self._resume: Position = start.resume
        self._applied: Position | None = start.applied
        self._transaction = start.transaction
        self._timestamp = start.timestamp
        self._generation = start.generation
        self._requested = start.requested
        self._files = start.files
        self._repeated = start.timestamp if start.repeats else 0.0
        self._last: Position = start.resume
        self._inside = False
        # Rows that an earlier leader applied are read again; until they are past, a row must
        # not move the mark inside the transaction backwards.
        self._again = start.applied is not None
        self._built: Checkpoint | None = start

    @property
    def inside(self) -> bool:
        """Whether a transaction is open after what was seen so far."""
        return self._inside

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint once everything seen so far is applied."""
        if self._built is None:
            self._built = Checkpoint(
                self._resume,
                self._applied,
                self._timestamp,
                self._generation,
                requested=self._requested,
                repeats=self._repeated > 0,
                transaction="" if self._applied is None else self._transaction,
                files=self._files,
            )
        return self._built

    def advance(self, entry: Entry) -> Checkpoint:
        """Take the next entry in; returns `checkpoint`."""
        return self.advance_all((entry,))

    def advance_all(self, entries: Sequence[Entry]) -> Checkpoint:
        """Take the next entries in, in order; returns `checkpoint`.

        The same as `advance` for each of them, for a small part of the cost: a commit or a
        DDL completes everything before it, so only what follows the last one is looked at.
        """
        if not entries:
            return self.checkpoint
        self._built = None
        if self._repeated and any(map(self._is_new, entries)):
            self._repeated = 0.0
        newest = max(map(_timestamp, entries))
        self._timestamp = max(self._timestamp, newest)
        self._count_files(entries)
        complete = len(entries)
        while complete and entries[complete - 1].kind not in _BOUNDARIES:
            complete -= 1
        if complete:
            self._advance(entries[complete - 1].position)
            self._last = self._resume
        # A slice is a copy; what follows the last commit is usually nothing or everything.
        for entry in entries[complete:] if complete else entries:
            self._follow(entry)
        return self.checkpoint

    def _count_files(self, entries: Sequence[Entry]) -> None:
        """Note how long the files are that these entries leave."""
        last, end = self._last, entries[-1].position
        if not isinstance(last, BinlogPosition) or not isinstance(end, BinlogPosition):
            return
        if end.file == last.file:
            return  # as nearly always, since they are in order
        for entry in entries:
            position = entry.position
            if isinstance(position, BinlogPosition):
                if position.file != last.file and last.offset >> OFFSET_BITS:
                    self._files = self._files.past(binlog_file_number(last.file), last.offset)
                last = position

    def _is_new(self, entry: Entry) -> bool:
        # A heartbeat says when it was written, also by a relay that has to write again what its
        # topic has lost.
        return entry.timestamp > self._repeated and entry.kind is not EntryKind.HEARTBEAT

    def _follow(self, entry: Entry) -> None:
        kind, position = entry.kind, entry.position
        if kind is EntryKind.ROWS:
            self._inside = True
            applied = self._applied
            if not self._again or applied is None or position.order > applied.order:
                self._again = False
                self._applied = position
                # In a topic its position is found again by the records themselves.
                in_binlog = isinstance(position, BinlogPosition)
                self._transaction = entry.transaction if in_binlog else ""
        elif kind is EntryKind.BEGIN:
            if self._inside:
                self._advance(self._last)
            self._inside = True
        elif kind is EntryKind.STATEMENT:
            self._inside = True
        elif not (kind is EntryKind.HEARTBEAT and self._inside):
            # A heartbeat between two records of a transaction is no boundary.
            self._advance(position)
        self._last = position

    def _advance(self, boundary: Position) -> None:
        self._resume, self._applied = boundary, None
        self._inside = self._again = False


_BOUNDARIES = frozenset((EntryKind.COMMIT, EntryKind.DDL))


class ShownPosition(NamedTuple):
    """Up to where the stream is applied; what is read at the source has to show all of that.

    Attributes:
        position: the position.
        inside: whether it is inside a transaction.
    """

    position: Position
    inside: bool = False

    @classmethod
    def of(cls, reached: Checkpoint) -> ShownPosition:
        """The position of a checkpoint."""
        return cls(reached.applied or reached.resume, reached.applied is not None)
