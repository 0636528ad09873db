"""Checkpoints with the arbiter (ZooKeeper), for targets that cannot keep one."""

from __future__ import annotations

from typing import Any, NamedTuple

from arbiter.port import Arbiter, ArbiterError, Conflict, NotFound
from arbiter.values import PipelineId
from setl.errors import FatalError, FencedError, SetlError, TransientError
from setl.model.checkpoint import Checkpoint, check_progress

_ATTEMPTS = 3


class _Kept(NamedTuple):
    """What the arbiter keeps: the checkpoint, who stored it, and the revision to replace."""

    checkpoint: Checkpoint
    epoch: int
    revision: int


class ArbiterCheckpointStore:
    """Keeps a pipeline's checkpoint beside its mainstem.

    Every store replaces the revision that it was decided on, and the payload says which
    epoch stored it. So a leader that was replaced cannot store any more as soon as its
    successor has. What it stored until then it had applied; its successor, which began from
    an older checkpoint, keeps the newer one until it is past it.

    Belongs to one thread.
    """

    def __init__(self, arbiter: Arbiter, pipeline: PipelineId) -> None:
        """Nothing is asked yet.

        Args:
            arbiter: keeps the checkpoint; every call to it has a time limit.
            pipeline: whose checkpoint it is.
        """
        self._arbiter = arbiter
        self._pipeline = pipeline
        self._kept: _Kept | None = None
        self._known = False  # whether it was ever loaded
        # What an older leader stored after this one had loaded.
        self._inherited: Checkpoint | None = None

    def load(self) -> Checkpoint | None:
        """See `CheckpointStore.load`.

        Raises:
            TransientError: the arbiter does not answer.
            FatalError: what is stored was not written by this version.
        """
        self._kept = self._read()
        self._known = True
        return self._kept.checkpoint if self._kept else None

    def store(self, checkpoint: Checkpoint, epoch: int) -> None:
        """See `CheckpointStore.store`.

        Raises:
            FencedError: a higher epoch has stored a checkpoint; nothing was stored.
            FatalError: it lies before the stored one.
            TransientError: the arbiter does not answer; it may or may not be stored.
        """
        if not self._known:
            self.load()
        kept, self._kept = self._kept, None  # unless all goes well, it is read again next time
        if kept is None:
            kept = self._read_again(epoch)
        for _ in range(_ATTEMPTS):
            newest = self._decide(kept, checkpoint, epoch)
            value = {"version": 1, "epoch": epoch, "checkpoint": newest.to_json()}
            try:
                revision = self._arbiter.store_position(
                    self._pipeline, value, kept.revision if kept else None
                )
            except Conflict:
                kept = self._read_again(epoch)
                continue
            except ArbiterError as error:
                raise self._translate(error) from error
            self._kept = _Kept(newest, epoch, revision)
            return
        raise TransientError(
            f"the checkpoint was changed by others {_ATTEMPTS} times in a row",
            hint="Two nodes may be active; see `setl status`",
            pipeline=self._pipeline,
        )

    def _decide(self, kept: _Kept | None, checkpoint: Checkpoint, epoch: int) -> Checkpoint:
        """What to store instead of `kept` when `epoch` is at `checkpoint`."""
        if kept is None:
            return checkpoint
        if kept.epoch > epoch:
            raise FencedError(
                f"epoch {epoch} is over, epoch {kept.epoch} is active", pipeline=self._pipeline
            )
        inherited = self._inherited
        if inherited is not None and checkpoint.order < inherited.order:
            return inherited
        check_progress(kept.checkpoint, checkpoint)
        return checkpoint

    def _read_again(self, epoch: int) -> _Kept | None:
        kept = self._read()
        if kept is not None and kept.epoch < epoch:
            self._inherited = kept.checkpoint
        return kept

    def _read(self) -> _Kept | None:
        try:
            found = self._arbiter.stored_position(self._pipeline)
        except ArbiterError as error:
            raise self._translate(error) from error
        if found is None:
            return None
        value, revision = found
        return _Kept(*self._parse(value), revision)

    def _parse(self, value: dict[str, Any]) -> tuple[Checkpoint, int]:
        try:
            return Checkpoint.from_json(value["checkpoint"]), int(value["epoch"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FatalError(
                f"not a stored checkpoint: {str(value)[:200]}",
                hint="Reset the position; it was not written by this version of setl",
                pipeline=self._pipeline,
            ) from error

    def _translate(self, error: ArbiterError) -> SetlError:
        if isinstance(error, NotFound):
            return FatalError(
                f"the arbiter knows no such pipeline: {error}",
                hint="`setl apply` makes a channel known",
                pipeline=self._pipeline,
            )
        return TransientError(f"the arbiter: {error}", pipeline=self._pipeline)
