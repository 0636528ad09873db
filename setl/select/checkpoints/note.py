"""A note beside the leader lock that says where a checkpoint is stored, if not there.

What lies elsewhere can go without anybody noticing: commits of a Kafka group that is idle expire, a
file is on one machine only, and a target may be restored without setl's tables. A node that finds
nothing would begin at `start`, and what lies between would never be applied (I7). So the note
stands in ZooKeeper instead of the checkpoint, and says that there is one, and where.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, cast

from setl.content_shape import shape
from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint
from setl.model.position import stored_number
from setl.select.checkpoints.owner import Owner

Store = Literal["kafka", "file", "target"]
"""The stores whose checkpoints need a note."""

_KEY = "elsewhere"


@dataclass(frozen=True, slots=True)
class CheckpointNote:
    """Where a checkpoint is.

    Attributes:
        epoch: the leadership that began to keep it there.
        store: what kind of store it is.
        location: the file; or topic, partition and group; or the server.
        nid: the node that led then.
        host: its machine.
        generation: of the checkpoint. A commit of a foreign client says nothing of it, and
            going on with a lower one would make all writes to Elasticsearch look old.
        requested: see `Checkpoint.requested`.
    """

    epoch: int
    store: Store
    location: str
    nid: str = ""
    host: str = ""
    generation: int = 1
    requested: int = 0

    @classmethod
    def of(cls, owner: Owner, epoch: int, store: Store, location: str) -> CheckpointNote:
        """What the leader of an epoch notes of the position where it keeps the checkpoint."""
        return cls(epoch, store, location, owner.nid, owner.host)

    def to_json(self) -> dict[str, Any]:
        """The value that is kept beside the leader lock."""
        values = asdict(self)
        values["place"] = values.pop("location")
        return {"version": 1, "epoch": values.pop("epoch"), _KEY: values}

    def __str__(self) -> str:
        if self.store == "file":
            return f"in the file {self.location} on node {self.nid} ({self.host})"
        if self.store == "target":
            return f"in the target {self.location}"
        return f"in Kafka: {self.location}"


def read_note(value: Mapping[str, Any]) -> CheckpointNote | None:
    """The note in what is kept beside the leader lock, None if that is a checkpoint.

    Raises:
        FatalError: it is a note that this version did not write.
    """
    found = value.get(_KEY)
    if found is None:
        return None
    try:
        known = cast("Mapping[str, Any]", found)
        store: Any = known["store"]
        return CheckpointNote(
            epoch=stored_number(value["epoch"]),
            store=store,
            location=str(known["place"]),
            nid=str(known["nid"]),
            host=str(known["host"]),
            generation=stored_number(known["generation"]),
            requested=stored_number(known["requested"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise FatalError(
            f"not a note about a checkpoint: {shape(value)}",
            hint="Reset the position; it was not written by this version of setl",
        ) from error


class Notes(Protocol):
    """Where a pipeline's note is kept; `setl.select.checkpoints.arbiter.ArbiterNotes` is it."""

    def read(self) -> CheckpointNote | None:
        """The note, None if there is none.

        Raises:
            TransientError: the arbiter does not answer.
            FatalError: it cannot be read.
        """
        ...

    def keep(self, checkpoint: Checkpoint, note: CheckpointNote) -> None:
        """See that the note says what is true of a checkpoint that was just stored.

        One write for a leadership, and one for each new generation.

        Args:
            checkpoint: what was stored.
            note: where, by whom and under which epoch; its generation is that of `checkpoint`.

        Raises:
            FencedError: a higher epoch has written there.
            TransientError: the arbiter does not answer; it may or may not be written.
        """
        ...

    def replace(self, checkpoint: Checkpoint, note: CheckpointNote) -> None:
        """As `keep`, over whatever is there, which may not be readable; raises TransientError."""
        ...


def epoch_of(value: Mapping[str, Any]) -> int:
    """The leadership that wrote what is kept beside the leader lock, 0 if it does not say."""
    epoch = value.get("epoch")
    return epoch if isinstance(epoch, int) else 0


def missing(note: CheckpointNote, what: str, hint: str, pipeline: str) -> FatalError:
    """The error that a checkpoint is not where the note says (I7).

    Args:
        note: the note.
        what: what was found instead, as the end of a sentence.
        hint: what repairs it without losing anything.
        pipeline: whose it is.
    """
    return FatalError(
        f"the checkpoint is stored {note}, since epoch {note.epoch}, and {what}",
        hint=f"{hint}, or choose a position yourself with `setl position reset {pipeline}`;"
        " beginning at `start` without being told to could lose changes",
        pipeline=pipeline,
    )
