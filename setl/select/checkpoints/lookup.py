"""Where a pipeline's checkpoint is found if the configured store has none.

What is kept beside the leader lock says which store was written last: that one comes first. So a
pipeline whose `checkpoint` was changed goes on where it stood, also if it once was in the store
that it is told to use now, which still holds an older checkpoint.

Then comes the configured store, then the target, ZooKeeper, and the offset committed to Kafka; so
a pipeline that follows another client of a subscription goes on where that stood. Whatever store
it is in, a checkpoint of a higher generation comes before those of lower ones: the position was
reset since, or the source moved to another server, and what a forgotten store still holds is
older than that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from setl.errors import ConfigurationError, FatalError
from setl.model.checkpoint import Checkpoint
from setl.select.checkpoints.note import CheckpointNote, Notes, missing
from setl.select.source import CheckpointStore

_LOG = logging.getLogger(__name__)

_WITHOUT_NOTE = "zookeeper"  # a checkpoint there goes as soon as another store has one: see `Notes`


class Found(NamedTuple):
    """A checkpoint, and the name of the store that has it."""

    store: str
    checkpoint: Checkpoint


class OtherStore(NamedTuple):
    """A store that is looked into.

    Attributes:
        name: its name in the channel file.
        load: its checkpoint, None if it has none; raises SetlError.
        last_resort: whether it is asked only if no store before it has anything, since asking
            costs time, or rights that the account may not have.
    """

    name: str
    load: Callable[[], Checkpoint | None]
    last_resort: bool = False


def choose(found: Sequence[Found], note: CheckpointNote | None = None) -> Found | None:
    """The checkpoint to go on from, None if there is none.

    That of the highest generation; of those that in the store which was written last; else the
    first.

    Args:
        found: what the stores have, in their order.
        note: where ZooKeeper says that the checkpoint is; None if it says so of no other store.
    """
    last = note.store if note is not None else _WITHOUT_NOTE

    def rank(found: Found) -> tuple[int, bool]:
        return found.checkpoint.generation, found.store == last

    return max(found, key=rank, default=None)


class LookupStore:
    """A store that looks into others when it loads, and keeps what it finds there at once."""

    def __init__(
        self,
        name: str,
        store: CheckpointStore,
        others: Sequence[OtherStore],
        *,
        notes: Notes,
        pipeline: str,
        epoch: int,
    ) -> None:
        """Nothing is asked yet.

        Args:
            name: of the configured store.
            store: the configured store.
            others: where to look besides, in this order.
            notes: say which store was written last.
            pipeline: full name, for the log.
            epoch: the leadership on whose behalf a checkpoint is taken over.
        """
        self._name = name
        self._store = store
        self._others = others
        self._notes = notes
        self._pipeline = pipeline
        self._epoch = epoch
        self._elsewhere = False  # whether what was loaded was found in another store

    def load(self) -> Checkpoint | None:
        """See `CheckpointStore.load`; raises what storing raises, too."""
        own = self._store.load()
        self._elsewhere = False
        chosen = look_up(self._name, own, self._others, self._notes, self._pipeline)
        if chosen is None:
            _LOG.info("%s: no store has a checkpoint: beginning at `start`", self._pipeline)
            return None
        if chosen.store == self._name:
            return own
        _LOG.warning(
            "%s: going on from %s, generation %d, found in the store `%s`; `%s` has %s",
            self._pipeline,
            chosen.checkpoint,
            chosen.checkpoint.generation,
            chosen.store,
            self._name,
            "none" if own is None else f"{own}, generation {own.generation}",
        )
        self._elsewhere = True
        self._store.store(chosen.checkpoint, self._epoch)
        return chosen.checkpoint

    def age(self) -> float | None:
        """See `CheckpointStore.age`; nobody knows that of another store's."""
        return None if self._elsewhere else self._store.age()

    def store(self, checkpoint: Checkpoint, epoch: int) -> None:
        """See `CheckpointStore.store`."""
        self._store.store(checkpoint, epoch)

    def close(self) -> None:
        """See `CheckpointStore.close`."""
        self._store.close()


def look_up(
    name: str,
    own: Checkpoint | None,
    others: Sequence[OtherStore],
    notes: Notes,
    pipeline: str,
) -> Found | None:
    """The checkpoint to go on from, wherever it is; None if no store has one.

    Args:
        name: of the configured store.
        own: what that has.
        others: where to look besides, in this order.
        notes: say which store was written last.
        pipeline: full name of the pipeline.

    Raises:
        TransientError: a store or the notes do not answer.
        FatalError: as `_look_into`; or the note cannot be read.
    """
    note = notes.read()
    found = [] if own is None else [Found(name, own)]
    elsewhere = note if note is not None and note.store != name else None
    found += _look_into(others, pipeline, found=bool(found), note=elsewhere)
    return choose(found, note)


def _look_into(
    others: Sequence[OtherStore],
    pipeline: str,
    *,
    found: bool = False,
    note: CheckpointNote | None = None,
) -> list[Found]:
    """What other stores have, in their order.

    Args:
        others: the stores.
        pipeline: full name of the pipeline.
        found: whether the configured store has a checkpoint.
        note: names one of these stores as that which was written last; None if it was none.

    Raises:
        TransientError: a store does not answer.
        FatalError: there is a checkpoint that is out of reach or cannot be read, and no other; or
            the one that was written last is.
    """
    if note is not None and note.store not in {other.name for other in others}:
        what, hint = f"the pipeline has no such {note.store} any more", "Name it again"
        raise missing(note, what, hint, pipeline)
    result: list[Found] = []
    for other in others:
        last = note is not None and other.name == note.store
        if other.last_resort and not last and (found or result):
            continue
        try:
            checkpoint = other.load()
        except ConfigurationError as error:
            if note is not None and last:
                raise missing(note, f"cannot be read: {error}", "Allow it", pipeline) from error
            # Whatever is not set up for this pipeline has nothing of it.
            _LOG.warning("the store `%s` is not looked into: %s", other.name, error)
            continue
        except FatalError as error:
            if last or not (found or result):
                raise
            _LOG.warning("what is in the store `%s` is skipped: %s", other.name, error)
            continue
        if checkpoint is not None:
            result.append(Found(other.name, checkpoint))
    return result
