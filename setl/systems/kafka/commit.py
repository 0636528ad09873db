"""What a checkpoint looks like as an offset that is committed to Kafka.

The offset is that of the next record to read, as is Kafka's custom. The metadata is
``timestamp|JSON``: the commit time of the record before it in seconds, as a DTS client writes
it, and the rest of the checkpoint. (The client's README gives ``ts|meta`` as its form; what it
writes is the bare timestamp, and the offset of the record itself, so that record is read twice.)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, cast

from setl.content_shape import shape
from setl.errors import FatalError
from setl.model.checkpoint import Checkpoint
from setl.model.position import KafkaPosition

_SECONDS = re.compile(r"\s*([0-9]{10})", re.ASCII)
_JSON = json.JSONDecoder()

METADATA_BYTES = 4096
"""What a broker takes unless told otherwise (``offset.metadata.max.bytes``)."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed offset.

    Attributes:
        offset: of the record to read next.
        timestamp: commit time at the source, seconds since 1970; 0 if it does not say.
        checkpoint: what a pipeline stored; None if a foreign client committed.
        pipeline: the full name of that pipeline, "" for a foreign client.
        epoch: the leadership that stored it, 0 for a foreign client.
    """

    offset: int
    timestamp: int = 0
    checkpoint: Checkpoint | None = None
    pipeline: str = ""
    epoch: int = 0


def metadata_of(checkpoint: Checkpoint, pipeline: str, epoch: int) -> str:
    """The metadata with which a checkpoint is committed.

    What it knows of targets is left out if there is no room: they are taken as they are found then.

    Raises:
        FatalError: it is longer than a broker takes.
    """
    whole = checkpoint.to_json()
    for position in (whole["resume"], whole["applied"]):
        if position is not None:
            # Said by the commit itself, and the topic's name may be long.
            del position["topic"], position["partition"]
    del whole["resume"]["offset"]
    rest = {"setl": 1, "pipeline": pipeline, "epoch": epoch, **whole}
    text = _text(checkpoint, rest)
    if len(text) > METADATA_BYTES and rest.pop("targets", None):
        text = _text(checkpoint, rest)
    if len(text) > METADATA_BYTES:
        raise FatalError(
            f"the checkpoint does not fit into a commit: {len(text)} of {METADATA_BYTES} bytes",
            hint="Choose another `checkpoint` for this pipeline",
        )
    return text


def read_commit(topic: str, partition: int, offset: int, metadata: str) -> Commit:
    """Inverse of `metadata_of`, and what can be known of any other commit.

    Whatever follows is ignored, see `TopicReader.committed`: a time has ten digits from 2001 to
    2286, and JSON ends with its bracket.

    Raises:
        FatalError: a pipeline wrote it, but not of this version.
    """
    seconds = _SECONDS.match(metadata)
    foreign = Commit(offset, int(seconds[1]) if seconds else 0)
    try:
        rest: Any = _JSON.raw_decode(metadata.partition("|")[2])[0]
    except ValueError:
        return foreign
    if not isinstance(rest, dict) or "setl" not in rest:
        return foreign
    whole = cast("dict[str, Any]", rest)
    position = {"topic": topic, "partition": partition}
    try:
        whole["resume"] = {**whole["resume"], **position, "offset": offset}
        if whole["applied"] is not None:
            whole["applied"] = {**whole["applied"], **position}
        return Commit(
            offset,
            foreign.timestamp,
            Checkpoint.from_json(whole),
            str(whole["pipeline"]),
            int(whole["epoch"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FatalError(
            f"not a stored checkpoint: {shape(metadata)}",
            hint="Reset the position; it was not written by this version of setl",
        ) from error


def foreign_checkpoint(
    commit: Commit, topic: str, partition: int, generation: int, requested: int
) -> Checkpoint:
    """Where to go on after a foreign client.

    It may have committed inside a transaction. What it has read of that counts as applied; and
    if a mark of this channel stood in front, the rest is not known to be an echo.

    Args:
        commit: what it committed.
        topic: of which topic.
        partition: of which partition.
        generation: see `Checkpoint.generation`.
        requested: see `Checkpoint.requested`.
    """
    position = KafkaPosition(topic, partition, commit.offset, commit.timestamp)
    return Checkpoint(
        position,
        timestamp=float(commit.timestamp),
        generation=generation,
        requested=requested,
    )


def _text(checkpoint: Checkpoint, rest: dict[str, Any]) -> str:
    return f"{_timestamp(checkpoint)}|{json.dumps(rest, separators=(',', ':'))}"


def _timestamp(checkpoint: Checkpoint) -> int:
    resume = checkpoint.resume
    return (resume.timestamp if isinstance(resume, KafkaPosition) else 0) or int(
        checkpoint.timestamp
    )
