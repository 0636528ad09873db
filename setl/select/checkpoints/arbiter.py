"""Checkpoints with the arbiter (ZooKeeper), or notes there that say where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Conflict, Invalid, NotFound
from arbiter.values import PipelineId
from setl.clock import Clock, SystemClock
from setl.content_shape import shape
from setl.errors import FatalError, FencedError, SetlError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.position import stored_number
from setl.select.checkpoints.note import CheckpointNote, epoch_of, read_note
from setl.select.checkpoints.succession import StoredCheckpoint, Succession

_ATTEMPTS = 3


class _Found(NamedTuple):
    """What the arbiter keeps, and the revision to replace."""

    stored: StoredCheckpoint
    revision: int


class ArbiterCheckpointStore:
    """Keeps a pipeline's checkpoint beside its leader lock.

    Every store replaces the revision that it was decided on, and the payload says which
    epoch stored it. So a leader that was replaced cannot store any more as soon as its
    successor has. What it stored until then it had applied; its successor, which began from
    an older checkpoint, keeps the newer one until it is past it.

    A note that the checkpoint lies elsewhere counts as none, and is replaced by the first
    that is stored; see `setl.select.checkpoints.note`.

    Belongs to one thread.
    """

    def __init__(
        self, arbiter: Arbiter, pipeline: PipelineId, *, clock: Clock | None = None
    ) -> None:
        """Nothing is asked yet.

        Args:
            arbiter: keeps the checkpoint; every call to it has a time limit.
            pipeline: whose checkpoint it is.
            clock: tells how old it is; that of this machine if None.
        """
        self._clock = clock or SystemClock()
        self._age: float | None = None
        self._arbiter = arbiter
        self._pipeline = pipeline
        self._found: _Found | None = None
        self._known = False  # whether it was ever loaded
        self._succession = Succession()

    def load(self) -> Checkpoint | None:
        """See `CheckpointStore.load`.

        Raises:
            TransientError: the arbiter does not answer.
            FatalError: what is stored was not written by this version.
        """
        self._found = self._read()
        self._known = True
        stored = self._found.stored if self._found else None
        self._succession.loaded(stored)
        self._age = self._seconds_old() if stored and stored.checkpoint else None
        return stored.checkpoint if stored else None

    def age(self) -> float | None:
        """See `CheckpointStore.age`; wrong by what ZooKeeper's clock differs from this one."""
        return self._age

    def _seconds_old(self) -> float | None:
        try:
            stored_at = self._arbiter.positions.stored_at(self._pipeline)
        except ArbiterError:  # it was read a moment ago, and is all that is needed
            return None
        return None if stored_at is None else max(0.0, self._clock.now() - stored_at)

    def store(self, checkpoint: Checkpoint, epoch: int) -> None:
        """See `CheckpointStore.store`.

        Raises:
            FencedError: a higher epoch has stored a checkpoint; nothing was stored.
            FatalError: it lies before the stored one.
            TransientError: the arbiter does not answer; it may or may not be stored.
        """
        if not self._known:
            self.load()
        found, self._found = self._found, None  # unless all goes well, it is read again next time
        if found is None:
            found = self._read()
        for _ in range(_ATTEMPTS):
            stored = found.stored if found else None
            try:
                newest = self._succession.decide(stored, checkpoint, epoch)
            except FencedError as error:
                raise error.at(pipeline=self._pipeline) from None
            value = {"version": 1, "epoch": epoch, "checkpoint": newest.to_json()}
            try:
                revision = self._arbiter.positions.store(
                    self._pipeline, value, found.revision if found else None
                )
            except Conflict:
                found = self._read()
                continue
            except ArbiterError as error:
                raise _translate(error, self._pipeline) from error
            self._found = _Found(StoredCheckpoint(newest, epoch), revision)
            self._succession.loaded(self._found.stored)
            return
        raise _changed_by_others(self._pipeline)

    def replace(self, checkpoint: Checkpoint, epoch: int) -> None:
        """See `ReplaceableStore.replace`."""
        value = {"version": 1, "epoch": epoch, "checkpoint": checkpoint.to_json()}
        try:
            self._arbiter.positions.replace(self._pipeline, value)
        except ArbiterError as error:
            raise _translate(error, self._pipeline) from error

    def close(self) -> None:
        """See `CheckpointStore.close`; the arbiter belongs to the caller."""

    def _read(self) -> _Found | None:
        try:
            found = self._arbiter.positions.read(self._pipeline)
        except ArbiterError as error:
            raise _translate(error, self._pipeline) from error
        if found is None:
            return None
        value, revision = found
        return _Found(self._parse(value), revision)

    def _parse(self, value: dict[str, Any]) -> StoredCheckpoint:
        note = read_note(value)
        if note is not None:
            return StoredCheckpoint(None, note.epoch)
        try:
            return StoredCheckpoint(
                Checkpoint.from_json(value["checkpoint"]), stored_number(value["epoch"])
            )
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise FatalError(
                f"not a stored checkpoint: {shape(value)}",
                hint="Reset the position; it was not written by this version of setl",
                pipeline=self._pipeline,
            ) from error


class ArbiterNotes:
    """A pipeline's note, beside its leader lock. Belongs to one thread."""

    def __init__(self, arbiter: Arbiter, pipeline: PipelineId) -> None:
        self._arbiter = arbiter
        self._pipeline = pipeline
        self._written: CheckpointNote | None = None

    def read(self) -> CheckpointNote | None:
        """See `Notes.read`."""
        found = self._found()
        return read_note(found[0]) if found else None

    def stored_by(self) -> int:
        """The leadership that stored a checkpoint last, here or elsewhere; 0 if none has.

        Raises:
            TransientError: the arbiter does not answer.
            FatalError: what is there cannot be read.
        """
        found = self._found()
        return epoch_of(found[0]) if found else 0

    def keep(self, checkpoint: Checkpoint, note: CheckpointNote) -> None:
        """See `Notes.keep`."""
        note = _completed(note, checkpoint)
        if note == self._written:
            return
        for _ in range(_ATTEMPTS):
            found = self._found()
            if found is not None and epoch_of(found[0]) > note.epoch:
                raise FencedError(
                    f"epoch {note.epoch} is over, epoch {epoch_of(found[0])} is active",
                    pipeline=self._pipeline,
                )
            try:
                revision = found[1] if found else None
                self._arbiter.positions.store(self._pipeline, note.to_json(), revision)
            except Conflict:
                continue
            except ArbiterError as error:
                raise _translate(error, self._pipeline) from error
            self._written = note
            return
        raise _changed_by_others(self._pipeline)

    def replace(self, checkpoint: Checkpoint, note: CheckpointNote) -> None:
        """See `Notes.replace`."""
        note = _completed(note, checkpoint)
        try:
            self._arbiter.positions.replace(self._pipeline, note.to_json())
        except ArbiterError as error:
            raise _translate(error, self._pipeline) from error
        self._written = note

    def _found(self) -> tuple[dict[str, Any], int] | None:
        try:
            return self._arbiter.positions.read(self._pipeline)
        except ArbiterError as error:
            raise _translate(error, self._pipeline) from error


def _completed(note: CheckpointNote, checkpoint: Checkpoint) -> CheckpointNote:
    """A note, with what it says of the checkpoint itself."""
    requested = checkpoint.requested or checkpoint.generation
    return replace(note, generation=checkpoint.generation, requested=requested)


def _translate(error: ArbiterError, pipeline: PipelineId) -> SetlError:
    if isinstance(error, NotFound):
        return FatalError(
            f"ZooKeeper knows no such pipeline: {error}",
            hint="`setl apply` makes a channel known",
            pipeline=pipeline,
        )
    if isinstance(error, Invalid):
        return FatalError(
            str(error),
            hint="It was overwritten; `setl position` sets it again",
            pipeline=pipeline,
        )
    return TransientError(f"ZooKeeper: {error}", pipeline=pipeline)


def _changed_by_others(pipeline: PipelineId) -> TransientError:
    return TransientError(
        f"the checkpoint was changed by others {_ATTEMPTS} times in a row",
        hint="Two nodes may be active; see `setl status`",
        pipeline=pipeline,
    )
